//! Each fault is named at its step and operation.

use super::programs::STEP;
use super::{compared, difference, first};
use crate::driver;
use crate::process::Program;
use crate::skip::skip;
use burn_deterministic_recording::diff::{Cause, Outcome};

/// Pairs of runs in which a hazard has to show.
const PAIRS: usize = 10;

/// Two runs of a program with this fault.
fn both(program: &str, fault: &str) -> [Program; 2] {
    [(); 2].map(|()| Program::new(program).arguments(&[fault]))
}

#[test]
fn data_that_depend_on_time() {
    for program in ["fault", "observed_fault"] {
        let comparison = compared(both(program, "data"), "operations");
        let (cause, operation, step) = first(&comparison);
        assert!(matches!(cause, Cause::Data { .. }), "{cause:?}");
        assert_eq!((operation, step), ("upload", Some(STEP)));
    }
}

#[test]
fn a_learning_rate_that_depends_on_time() {
    let comparison = compared(both("fault", "rate"), "operations");
    let (cause, operation, step) = first(&comparison);
    assert!(matches!(cause, Cause::Parameters), "{cause:?}");
    assert_eq!((operation, step), ("float_mul_scalar", Some(STEP)));
}

#[test]
fn one_flipped_bit_of_one_tensor() {
    let programs = || [Program::new("fault"), Program::new("fault").arguments(&["bit"])];
    // The second program reads the weights and uploads others.
    let comparison = compared(programs(), "operations");
    assert!(matches!(difference(&comparison).cause, Cause::Program(_)), "{:?}", comparison.outcome);
    let comparison = compared(programs(), "weights");
    let state = comparison.state.as_ref().expect("the weights differ");
    assert_eq!(state.place.step, Some(STEP), "{state:?}");
}

#[test]
fn an_operation_more() {
    let comparison = compared([Program::new("fault"), Program::new("fault").arguments(&["longer"])], "operations");
    let (cause, _, step) = first(&comparison);
    assert!(matches!(cause, Cause::Program(_)), "{cause:?}");
    assert!(step == Some(STEP + 1) || step == Some(STEP), "{step:?}");
}

#[test]
fn draws_without_a_seed() {
    let comparison = compared(both("observed_fault", "noise"), "operations");
    let (cause, operation, step) = first(&comparison);
    assert!(matches!(cause, Cause::Unseeded), "{cause:?}");
    assert_eq!((operation, step), ("float_random", Some(STEP)));
}

#[test]
fn plain_burns_scatter_add() {
    if driver::is_emulator() {
        return skip("the CUDA emulator runs no atomics, so plain Burn's hazard does not show");
    }
    // The hazard does not show in each pair of runs.
    for _ in 0..PAIRS {
        let comparison = compared(both("observed_fault", "scatter"), "operations");
        if matches!(comparison.outcome, Outcome::Same) {
            continue;
        }
        let (cause, operation, step) = first(&comparison);
        assert!(matches!(cause, Cause::Kernel(_) | Cause::KernelChoice), "{cause:?}");
        assert_eq!((operation, step), ("float_scatter", Some(STEP)));
        return;
    }
    panic!("{PAIRS} pairs of runs agree");
}

/// Burn measures which kernel is the fastest, and takes another one in another run.
#[test]
fn a_kernel_that_autotune_chose() {
    if driver::is_emulator() {
        return skip("the CUDA emulator has no asynchronous copies, which products of plain Burn use");
    }
    for _ in 0..PAIRS {
        let comparison = compared(both("observed_training", ""), "operations");
        if matches!(comparison.outcome, Outcome::Same) {
            continue;
        }
        let (cause, operation, _) = first(&comparison);
        assert!(matches!(cause, Cause::KernelChoice), "{cause:?} of {operation}");
        return;
    }
    skip("autotune chose the same kernels in each run, or kernels of the same bits");
}

#[test]
fn the_same_faults_are_none_on_deterministic_kernels() {
    let comparison = compared(both("fault", "scatter"), "operations");
    assert!(matches!(comparison.outcome, Outcome::Same), "{:?}", comparison.outcome);
}
