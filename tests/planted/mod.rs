//! Faults of a training that numbers its steps anew in each epoch: each is named at its epoch, step and operation.

pub mod programs;

use crate::driver;
use crate::process::{Folder, Program};
use crate::skip::skip;
use burn_deterministic_recording::diff::{Cause, Comparison, Owner, Step, compare};
use burn_deterministic_recording::{Operation, Phase};
use programs::{OVERWRITE, WRONG};

/// Pairs of runs in which a hazard has to show.
const PAIRS: usize = 20;

/// Those of this crate, and Burn's own.
const KERNELS: [&str; 2] = ["deterministic", "plain"];

/// Whether these run here.
fn run_here(kernels: &str) -> bool {
    let is_missing = kernels == "plain" && driver::is_emulator();
    if is_missing {
        skip("the CUDA emulator has no asynchronous copies, which products of plain Burn use");
    }
    !is_missing
}

/// Two runs that differ, not by what Burn's autotune chose in each.
fn differing(program: &str, arguments: &[&str]) -> Comparison {
    for _ in 0..PAIRS {
        let folder = Folder::new();
        let files = ["first", "second"].map(|name| folder.path().join(name));
        for file in &files {
            let program = Program::new(program).arguments(arguments);
            program.env("BURN_DETERMINISTIC_RECORD", file).env("BURN_DETERMINISTIC_RECORD_LEVEL", "operations").run();
        }
        let comparison = compare(&files[0], &files[1]).expect("two recordings");
        let is_tuned = |cause: &Cause| matches!(cause, Cause::KernelChoice | Cause::Kernel(Owner::Burn));
        if comparison.same() != Some(true)
            && !comparison.difference().is_some_and(|difference| is_tuned(&difference.cause))
        {
            return comparison;
        }
    }
    panic!("{PAIRS} pairs of runs agree, or differ by autotune alone");
}

/// The cause, and the operation.
fn first(comparison: &Comparison) -> (&Cause, &Operation) {
    let difference = comparison.difference().unwrap_or_else(|| panic!("{comparison}"));
    let pair = difference.operation.as_ref().unwrap_or_else(|| panic!("{comparison}"));
    (&difference.cause, &pair.operations[0])
}

/// The cause, and the name of the operation, which is at the step and in the phase where the program is wrong.
fn found(comparison: &Comparison, phase: Phase) -> (&Cause, &str) {
    let (cause, operation) = first(comparison);
    let wrong = Step { epoch: Some(WRONG.0), number: Some(WRONG.1) };
    assert_eq!((Step::of(&operation.place), operation.place.phase), (wrong, phase), "{comparison}");
    (cause, &operation.name)
}

#[test]
fn a_number_that_depends_on_time() {
    // The update begins where an operation consumes a weight.
    for (fault, phase, kernels) in [
        ("scalar", Phase::Forward, "deterministic"),
        ("scalar", Phase::Forward, "plain"),
        ("rate", Phase::Backward, "deterministic"),
    ] {
        if !run_here(kernels) {
            continue;
        }
        let comparison = differing("planted", &[fault, kernels]);
        assert_eq!(found(&comparison, phase), (&Cause::Parameters, "float_mul_scalar"), "{comparison}");
    }
}

#[test]
fn layers_in_the_order_of_a_hash_map() {
    let comparison = differing("planted", &["hash map"]);
    let (cause, _) = found(&comparison, Phase::Forward);
    assert!(matches!(cause, Cause::Program(_)), "{comparison}");
    assert_eq!(first(&comparison).1.place.labels, ["branches"]);
}

#[test]
fn a_weight_of_which_one_bit_is_flipped() {
    let comparison = differing("planted", &["bit"]);
    assert_eq!(found(&comparison, Phase::Update), (&Cause::Data { reordered: false }, Operation::UPLOAD));
    let difference = comparison.difference().expect("a difference");
    assert_eq!(difference.replaced.as_deref(), Some("head.weight"), "{comparison}");
}

#[test]
fn a_number_that_threads_add_to_as_they_come() {
    let comparison = differing("planted", &["host race"]);
    assert_eq!(found(&comparison, Phase::Forward), (&Cause::Data { reordered: false }, Operation::UPLOAD));
}

#[test]
fn burns_loader_with_workers() {
    let comparison = differing("planted", &["loader"]);
    assert_eq!(found(&comparison, Phase::Forward), (&Cause::Received { reordered: true }, Operation::RECEIVE));
}

#[test]
fn an_order_of_the_data_that_depends_on_time() {
    for kernels in KERNELS.into_iter().filter(|kernels| run_here(kernels)) {
        let comparison = differing("planted", &["shuffle", kernels]);
        assert_eq!(found(&comparison, Phase::Forward), (&Cause::Data { reordered: false }, Operation::UPLOAD));
    }
}

#[test]
fn a_conversion_to_another_dtype() {
    let comparison = differing("planted", &["dtype"]);
    assert!(matches!(found(&comparison, Phase::Forward).0, Cause::Program(_)), "{comparison}");
}

#[test]
fn draws_of_threads_that_are_seeded_as_they_come() {
    let comparison = differing("planted", &["thread draws"]);
    assert_eq!(found(&comparison, Phase::Forward), (&Cause::Received { reordered: true }, Operation::RECEIVE));
}

#[test]
fn draws_of_one_run_alone() {
    let comparison = differing("planted", &["draws"]);
    let (cause, name) = found(&comparison, Phase::Forward);
    assert!(matches!(cause, Cause::Program(_)) && ["float_sum", "float_add"].contains(&name), "{comparison}");
    let state = comparison.state.as_ref().expect("the weights differ");
    assert!(state.differing <= state.tensors, "{comparison}");
}

#[test]
fn a_seed_that_depends_on_time() {
    let comparison = differing("planted", &["seed"]);
    assert_eq!(found(&comparison, Phase::Forward), (&Cause::Seed, "float_random"));
}

#[test]
fn initial_weights_without_a_seed() {
    if !run_here("plain") {
        return;
    }
    let comparison = differing("planted", &["plain", "unseeded"]);
    let (cause, operation) = first(&comparison);
    assert_eq!((cause, operation.name.as_str()), (&Cause::Unseeded, "float_random"), "{comparison}");
    assert_eq!(Step::of(&operation.place), Step { epoch: Some(0), number: Some(0) }, "drawn where it is first used");
}

/// What a validation computes decides on the learning rate of the next epoch.
#[test]
fn a_validation_whose_data_depend_on_time() {
    let comparison = differing("planted", &["validation"]);
    let (cause, operation) = first(&comparison);
    assert_eq!((cause, operation.name.as_str()), (&Cause::Data { reordered: false }, Operation::UPLOAD));
    assert_eq!(Step::of(&operation.place), Step { epoch: Some(WRONG.0), number: None }, "{comparison}");
    let state = comparison.state.as_ref().expect("the weights differ");
    assert_eq!(Step::of(&state.place), Step { epoch: Some(WRONG.0 + 1), number: Some(0) }, "{comparison}");
}

#[test]
fn a_custom_operation_that_writes_into_another_tensor() {
    let comparison = differing("clobbered", &[]);
    let (cause, operation) = first(&comparison);
    assert_eq!(operation.name, "float_exp", "what reads it: {comparison}");
    assert_eq!((cause, operation.place.step), (&Cause::Kernel(Owner::Library), Some(WRONG.1)), "{comparison}");
    let suspects = &comparison.difference().expect("a difference").suspects;
    let suspects: Vec<_> = suspects.iter().map(|suspect| (suspect.name.as_str(), suspect.place.step)).collect();
    assert_eq!(suspects, [(OVERWRITE, Some(WRONG.1))], "{comparison}");
}
