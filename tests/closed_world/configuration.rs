//! Enabling: once, first, and only where nothing bypasses it.

use crate::process::{Folder, Program, report};
use burn::prelude::*;
use burn_deterministic::{
    Determinism, Error, Guarantee, OnViolation, enable_op_determinism, is_op_determinism_enabled,
};

/// `1 + 1, 2 + 1`, on the way to the device.
fn queued() -> Tensor<1> {
    Tensor::<1>::from_data([1.0, 2.0], &Device::default()) + 1.0
}

fn assert_computed(tensor: Tensor<1>) {
    assert_eq!(tensor.into_data().try_to_vec::<f32>().expect("f32"), [2.0, 3.0]);
}

pub fn too_late() {
    assert_computed(queued());
    assert_eq!(enable_op_determinism(Determinism::default()), Err(Error::TooLate));
    assert!(!is_op_determinism_enabled());
    assert_computed(queued());
}

/// An operation that no device has begun yet counts too.
pub fn too_late_for_a_queued_operation() {
    let tensor = queued();
    assert_eq!(enable_op_determinism(Determinism::default()), Err(Error::TooLate));
    assert!(!is_op_determinism_enabled());
    assert_computed(tensor);
}

pub fn enabled_again() {
    let enabled = Determinism::default();
    assert_eq!(enable_op_determinism(enabled.clone()), Ok(()));
    assert_eq!(enable_op_determinism(enabled.clone()), Ok(()));
    let stronger = Determinism::default().guarantee(Guarantee::GpuToGpu);
    for requested in [Determinism::default().on_violation(OnViolation::Warn), stronger] {
        let enabled = enabled.clone();
        assert_eq!(enable_op_determinism(requested.clone()), Err(Error::AlreadyEnabled { enabled, requested }));
    }
    assert!(is_op_determinism_enabled());
}

pub fn bypassing() {
    match enable_op_determinism(Determinism::default()) {
        Err(error @ Error::Configuration { .. }) => report("error", error),
        other => panic!("{other:?}"),
    }
    assert!(!is_op_determinism_enabled());
}

#[test]
fn enabling_after_an_operation() {
    Program::new("too_late").run();
}

#[test]
fn enabling_while_an_operation_is_queued() {
    let output = Program::new("too_late_for_a_queued_operation").run();
    output.assert_quiet();
}

#[test]
fn enabling_more_than_once() {
    Program::new("enabled_again").run();
}

#[test]
fn a_setting_that_bypasses_the_route() {
    let folder = Folder::new();
    let in_file = Program::new("bypassing").folder(folder.path());
    std::fs::write(folder.path().join("burn.toml"), "[fusion.beam_search]\nmax_explorations = 5\n").expect("burn.toml");
    for program in [in_file, Program::new("bypassing").env("BURN_FUSION_MAX_EXPLORATIONS", "5")] {
        let output = program.run();
        let error = output.reported("error");
        assert!(error.contains("`fusion.beam_search.max_explorations` is 5"), "{error}");
    }
}
