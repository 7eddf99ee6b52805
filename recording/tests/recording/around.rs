//! What is said of custom operations before the first difference, and of an upload that replaces a parameter.

use crate::synthetic::{SETUP, STEP, Synthetic, cause, compared, training};
use burn_deterministic_recording::diff::{Cause, Comparison, Owner};
use burn_deterministic_recording::{Level, Operation, Record};

/// The number of an operation of step 2.
fn number(index: u64) -> u64 {
    SETUP + 2 * STEP + index
}

/// With a custom operation in the place of another one.
fn with_custom(index: u64) -> Synthetic {
    let mut training = training(4, Level::Operations);
    training.change(number(index), |operation| {
        operation.name = "tests::overwrite".into();
        operation.is_custom = true;
        operation.draws.clear();
    });
    training
}

fn suspects(comparison: &Comparison) -> Vec<(u64, &str)> {
    let suspects = &comparison.difference().expect("a difference").suspects;
    suspects.iter().map(|suspect| (suspect.number, suspect.name.as_str())).collect()
}

/// The report without its line breaks.
fn flat(comparison: &Comparison) -> String {
    comparison.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_custom_operation_after_an_operand_was_made_is_a_suspect() {
    let first = with_custom(1);
    let mut second = first.clone();
    second.corrupt(number(5));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Library), Some(number(5))));
    assert_eq!(suspects(&comparison), [(number(1), "tests::overwrite")]);
    let text = flat(&comparison);
    let custom = "the custom operation 19 `tests::overwrite` (step 2, epoch 0, batch 2, forward, dropout)";
    let title = format!("DIFFERENT: `float_scatter_add` is not repeatable, or {custom} has written into its operands");
    assert!(text.contains(&title), "{text}");
    assert!(text.contains("See that the kernels of the custom operation write into its results alone"), "{text}");
}

#[test]
fn a_custom_operation_before_the_operands_is_none() {
    // Operands of 4 are 3 and 2.
    let first = with_custom(1);
    let mut second = first.clone();
    second.corrupt(number(4));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).1, Some(number(4)));
    assert_eq!(suspects(&comparison), []);
    assert!(comparison.to_string().contains("is not repeatable"), "{comparison}");
    // Of one that differs itself there is no other.
    let first = with_custom(2);
    let mut second = first.clone();
    second.corrupt(number(2));
    let comparison = compared(&first, &second);
    assert_eq!((cause(&comparison).0, suspects(&comparison)), (&Cause::Kernel(Owner::Program), vec![]));
}

#[test]
fn of_many_custom_operations_the_last_are_suspects() {
    let mut first = training(4, Level::Operations);
    for index in 0..8 {
        first.change(number(index), |operation| operation.is_custom = index != 5);
    }
    let mut second = first.clone();
    second.corrupt(number(5));
    let numbers: Vec<u64> = suspects(&compared(&first, &second)).into_iter().map(|(number, _)| number).collect();
    // The older of its operands is the step's batch.
    assert_eq!(numbers, [1, 2, 3, 4].map(number));
}

#[test]
fn a_custom_operation_after_an_overwritten_tensor_was_made_is_a_suspect() {
    let first = with_custom(7);
    let mut second = first.clone();
    for record in &mut second.records {
        if let Record::State(state) = record
            && state.place.step == Some(2)
        {
            let digest = state.tensors[0].digest.as_mut().expect("a digest");
            digest.0[0] += 1;
        }
    }
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).0, &Cause::Overwritten, "{comparison}");
    assert_eq!(suspects(&comparison), [(number(7), "tests::overwrite")]);
}

/// A program that replaces parameters from step 2 on, whose names the recording has no more.
fn with_upload(lost: &[&str]) -> Synthetic {
    let mut training = training(4, Level::Operations);
    training.change(number(7), |operation| {
        operation.name = Operation::UPLOAD.into();
        operation.inputs.clear();
        operation.kernels.clear();
    });
    let lose = |parameter: &mut Option<String>| {
        if parameter.as_deref().is_some_and(|path| lost.contains(&path)) {
            *parameter = None;
        }
    };
    for record in &mut training.records {
        match record {
            Record::Operation(operation) if operation.number >= number(0) => {
                operation.outputs.iter_mut().for_each(|output| lose(&mut output.parameter));
            }
            Record::State(state) if state.place.step >= Some(2) => {
                state.tensors.iter_mut().for_each(|tensor| lose(&mut tensor.parameter));
            }
            _ => {}
        }
    }
    training
}

/// Nor is what nobody could have written any more.
#[test]
fn an_upload_after_the_last_step_replaces_no_parameter() {
    let mut first = with_upload(&["fc2.weight"]);
    first.records.retain(|record| !matches!(record, Record::State(state) if state.place.step >= Some(2)));
    let mut second = first.clone();
    second.corrupt(number(7));
    let text = flat(&compared(&first, &second));
    assert!(text.contains("The host uploaded other data;"), "{text}");
}

#[test]
fn the_parameter_that_an_upload_replaces_is_named() {
    for (lost, named) in [(&["fc2.weight"][..], true), (&["fc1.weight", "fc2.weight"], false)] {
        let first = with_upload(lost);
        let mut second = first.clone();
        second.corrupt(number(7));
        let comparison = compared(&first, &second);
        assert_eq!(cause(&comparison), (&Cause::Data { reordered: false }, Some(number(7))));
        let text = flat(&comparison);
        let why = "The host uploaded other values, it seems for the parameter fc2.weight, which no later state has;";
        assert_eq!(text.contains(why), named, "{text}");
        assert_eq!(text.contains("The host uploaded other data;"), !named, "{text}");
    }
}
