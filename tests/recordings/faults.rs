//! Each fault is named at its step and operation.

use super::programs::STEP;
use super::{compared, difference, first};
use crate::driver;
use crate::process::{Folder, Program};
use crate::skip::skip;
use burn_deterministic_recording::diff::{Cause, Comparison, Outcome, Owner};

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

/// Burn measures which kernel is the fastest, and takes another one in another run, or the same one with other settings; on a GPU
/// some of those it chooses from add by atomics.
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
        assert!(matches!(cause, Cause::KernelChoice | Cause::Kernel(Owner::Burn)), "{cause:?} of {operation}");
        return;
    }
    skip("autotune chose the same kernels in each run, or kernels of the same bits");
}

/// The program's promise was wrong.
#[test]
fn a_promised_custom_operation_that_is_not_repeatable() {
    let comparison = compared(both("custom_fault", ""), "operations");
    let (cause, operation, step) = first(&comparison);
    assert!(matches!(cause, Cause::Kernel(Owner::Program)), "{cause:?}");
    assert_eq!((operation, step), ("tests::drift", Some(STEP)));
}

/// The same in another environment, which may be why.
#[test]
fn another_environment() {
    let [one, other] = both("custom_fault", "");
    let comparison = compared([one, other.env("LP_NUM_THREADS", "1")], "operations");
    let (cause, operation, step) = first(&comparison);
    assert!(matches!(cause, Cause::Environment), "{cause:?}");
    assert_eq!((operation, step), ("tests::drift", Some(STEP)));
    let [difference] = &comparison.environment[..] else { panic!("{:?}", comparison.environment) };
    assert!(difference.to_string().contains("LP_NUM_THREADS"), "{difference}");
}

#[test]
fn tensors_that_threads_add_as_they_arrive() {
    // Which thread is the first is the same in half of the pairs.
    for _ in 0..2 * PAIRS {
        let comparison = compared(both("race", ""), "operations");
        if matches!(comparison.outcome, Outcome::Same) {
            continue;
        }
        let (cause, operation, step) = first(&comparison);
        assert!(matches!(cause, Cause::Received { reordered: true }), "{cause:?}");
        assert_eq!((operation, step), ("receive", Some(STEP)));
        return;
    }
    panic!("{} pairs of runs agree", 2 * PAIRS);
}

/// Running statistics that are later than the weights.
#[test]
fn a_batch_norm_saved_late() {
    let comparison = compared([Program::new("normalised"), Program::new("normalised").arguments(&["late"])], "weights");
    let state = comparison.state.as_ref().expect("the running statistics differ");
    assert_eq!(state.place.step, Some(STEP), "{state:?}");
    assert_eq!(state.names, ["norm.running_mean", "norm.running_var"], "{state:?}");
}

/// A run that goes on from a checkpoint, beside one that was not interrupted.
fn resumed(save: &[&str], level: &str) -> Comparison {
    let folder = Folder::new();
    let checkpoint = folder.path().join("a.checkpoint");
    let path = checkpoint.to_str().expect("the path of a temporary folder");
    Program::new("normalised").arguments(&[&["save", path], save].concat()).run();
    // The run that was not interrupted saves too: what that computes is part of both.
    let elsewhere = folder.path().join("b.checkpoint");
    let elsewhere = elsewhere.to_str().expect("the path of a temporary folder");
    compared(
        [["save", elsewhere], ["resume", path]].map(|arguments| Program::new("normalised").arguments(&arguments)),
        level,
    )
}

#[test]
fn a_checkpoint_with_late_running_statistics() {
    for level in ["weights", "operations"] {
        let comparison = resumed(&[], level);
        assert!(matches!(comparison.outcome, Outcome::Same), "{level}: {:?}", comparison.outcome);
        let comparison = resumed(&["saved late"], level);
        assert_eq!(comparison.resumed.map(|resumed| resumed.step), Some(STEP + 1));
        assert!(matches!(difference(&comparison).cause, Cause::Resumed { named: true }), "{:?}", comparison.outcome);
        let state = comparison.state.as_ref().expect("what it resumed with differs");
        assert_eq!(state.names, ["norm.running_mean", "norm.running_var"], "{state:?}");
    }
}

#[test]
fn the_same_faults_are_none_on_deterministic_kernels() {
    let comparison = compared(both("fault", "scatter"), "operations");
    assert!(matches!(comparison.outcome, Outcome::Same), "{:?}", comparison.outcome);
}
