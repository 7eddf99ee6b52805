//! Programs whose operations share kernels and launches, or are assigned, moved and reduced in place, are checked against references,
//! and run twice.

use super::{channels, groups, slices};
use crate::closed_world::guarantee::is_given;
use crate::process::Program;
use burn::prelude::*;
use burn_deterministic::{Determinism, Guarantee, enable_op_determinism, reference_check};

/// The programs of this module's neighbours, each of several sizes, on the default device.
fn all() {
    let device = Device::default();
    groups::read_all(&device);
    channels::read_all(&device);
    slices::read_all(&device);
}

pub fn against_references() {
    let settings = Determinism::default().guarantee(Guarantee::GpuToGpu).check_against_reference(1);
    enable_op_determinism(settings).expect("this process has run no tensor operation");
    all();
    let check = reference_check();
    assert_eq!((check.different, check.unchecked.len()), (None, 0));
    for operation in ["float_mean_dim", "float_sum_dim", "float_slice_assign"] {
        assert!(check.checked.get(operation).is_some_and(|count| *count > 50), "{operation}: {:?}", check.checked);
    }
}

pub fn twice() {
    enable_op_determinism(Determinism::default().rerun(2)).expect("this process has run no tensor operation");
    all();
}

#[test]
fn shared_launches_have_the_bits_of_references() {
    if is_given() {
        Program::new("shared_launches_against_references").run();
    }
}

#[test]
fn shared_launches_repeat() {
    Program::new("shared_launches_twice").run();
}
