//! A program that numbers its steps anew in each epoch.

use crate::synthetic::{SETUP, STEP, Synthetic, cause, compared, training};
use burn_deterministic_recording::Level;
use burn_deterministic_recording::diff::{Cause, Owner, Step};
use burn_deterministic_recording::report::html;

/// Steps of an epoch.
const EPOCH: u64 = 5;

/// Three epochs.
fn epochs() -> Synthetic {
    let mut epochs = training(3 * EPOCH, Level::Operations);
    for place in epochs.places() {
        place.epoch = place.step.map(|step| step / EPOCH);
        place.step = place.step.map(|step| step % EPOCH);
        place.batch = place.step;
    }
    epochs
}

#[test]
fn steps_are_told_apart_by_their_epochs() {
    let mut second = epochs();
    // Step 3 of epoch 1.
    let number = SETUP + (EPOCH + 3) * STEP + 4;
    second.corrupt(number);
    let comparison = compared(&epochs(), &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Library), Some(number)));
    let differing: Vec<_> =
        comparison.spread.steps.iter().filter(|(_, counts)| counts.differing > 0).map(|(step, _)| *step).collect();
    let of = |epoch, number| Step { epoch: Some(epoch), number: Some(number) };
    let later = (0..EPOCH).map(|number| of(2, number));
    let expected: Vec<Step> = [of(1, 3), of(1, 4)].into_iter().chain(later).collect();
    assert_eq!(differing, expected);
    assert_eq!(comparison.operations.steps.len() as u64, 1 + 3 * EPOCH, "a column for each");
    let text = comparison.to_string();
    assert!(text.contains("step 3 (epoch 1): 4 of 8 operations differ"), "{text}");
    assert!(text.contains("fc1.weight, from step 3 (epoch 1) on"), "{text}");
    assert!(html(&comparison).contains("from step 3 (epoch 1) on"));
}

#[test]
fn the_level_that_is_asked_for_has_all_steps() {
    let mut second = epochs();
    second.corrupt(SETUP + (EPOCH + 1) * STEP + 4);
    let comparison = compared(&epochs().weights_only(), &second.weights_only());
    assert_eq!(cause(&comparison).0, &Cause::NotRecorded);
    let state = comparison.state.as_ref().expect("a state that differs");
    assert_eq!((Step::of(&state.place), state.steps), (Step { epoch: Some(1), number: Some(1) }, [0, EPOCH - 1]));
    // Those of the last epoch are recorded with it.
    assert!(comparison.to_string().contains("BURN_DETERMINISTIC_RECORD_LEVEL=operations:0-4"), "{comparison}");
}

#[test]
fn a_run_that_was_resumed_in_another_epoch_asks_for_all_steps() {
    // From step 4 of epoch 0 on.
    let first = SETUP + (EPOCH - 1) * STEP;
    let mut resumed = epochs();
    resumed.records.retain(|record| match record {
        burn_deterministic_recording::Record::Operation(operation) => operation.number >= first,
        burn_deterministic_recording::Record::State(state) => state.operations > first,
        _ => true,
    });
    resumed.corrupt(SETUP + (EPOCH + 1) * STEP + 4);
    let comparison = compared(&epochs().weights_only(), &resumed.weights_only());
    assert!(comparison.resumed.is_some(), "{comparison}");
    assert!(comparison.to_string().contains("BURN_DETERMINISTIC_RECORD_LEVEL=operations:0-4"), "{comparison}");
}
