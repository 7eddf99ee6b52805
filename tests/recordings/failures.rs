//! A recording that cannot be written.

use crate::process::{Program, report};
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

#[test]
fn nothing_is_enabled_where_the_file_cannot_be_written() {
    for program in ["unwritable", "unwritable_observed"] {
        let output = Program::new(program).env("BURN_DETERMINISTIC_RECORD", "/dev/null/file").run();
        let error = output.reported("error");
        assert!(error.contains("cannot be recorded") && error.contains("/dev/null/file"), "{error}");
        output.assert_quiet();
    }
}
