//! A recording that cannot be written.

use crate::process::{Folder, Program, report};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::{Determinism, Error, Level, enable_op_determinism, is_op_determinism_enabled, observe};

/// Enables nothing: an operation runs as in plain Burn, which draws without a seed of ours.
fn assert_plain() {
    assert!(!is_op_determinism_enabled());
    let drawn = Tensor::<1>::random([4], Distribution::Default, &Device::default());
    drawn.try_into_data().expect("plain Burn draws it");
}

pub fn unwritable() {
    let settings = Determinism::default().record("/dev/null/file", Level::Weights);
    let error = enable_op_determinism(settings).expect_err("a file is no folder");
    assert!(matches!(error, Error::Record { .. }), "{error:?}");
    report("error", error);
    assert_plain();
}

pub fn unwritable_observed() {
    report("error", observe().expect_err("a file is no folder"));
    assert_plain();
}

pub fn too_late() {
    let tensor = Tensor::<1>::zeros([4], &Device::default());
    for enabled in [enable_op_determinism(Determinism::default()), observe()] {
        assert!(matches!(enabled, Err(Error::TooLate)), "{enabled:?}");
    }
    drop(tensor);
}

/// An earlier recording is not replaced by one that is refused.
#[test]
fn a_file_is_kept_where_it_is_too_late_to_record() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    std::fs::write(&file, "an earlier recording").expect("a file for the test");
    Program::new("too_late_to_record").env("BURN_DETERMINISTIC_RECORD", &file).run();
    assert_eq!(std::fs::read_to_string(&file).expect("it is still there"), "an earlier recording");
}

#[test]
fn nothing_is_enabled_where_the_file_cannot_be_written() {
    for program in ["unwritable", "unwritable_observed"] {
        let output = Program::new(program).env("BURN_DETERMINISTIC_RECORD", "/dev/null/file").run();
        let error = output.reported("error");
        assert!(error.contains("cannot be recorded") && error.contains("/dev/null/file"), "{error}");
        output.assert_quiet();
    }
}
