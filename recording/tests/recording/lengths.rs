//! Recordings of other lengths.

use crate::synthetic::{compared, training};
use burn_deterministic_recording::diff::{Outcome, compare};
use burn_deterministic_recording::{Level, Record};
use std::fs;

#[test]
fn a_recording_that_was_cut_agrees_as_far_as_it_goes() {
    let first = training(4, Level::Operations);
    for count in [5, 20, first.records.len() - 1] {
        let mut second = first.clone();
        second.records.truncate(count);
        for (a, b, which) in [(&first, &second, "second"), (&second, &first, "first")] {
            let comparison = compared(a, b);
            assert!(matches!(comparison.outcome, Outcome::SameSoFar), "{comparison}");
            let text = comparison.to_string();
            assert!(text.contains(&format!("the {which} recording was cut before its program ended")), "{text}");
        }
        let comparison = compared(&second, &second);
        assert!(comparison.to_string().contains("both recordings were cut"), "{comparison}");
    }
}

#[test]
fn records_without_a_checksum_are_said_to_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = training(4, Level::Operations).write(folder.path(), "a");
    let file = fs::read(&path).expect("a file");
    let cut = folder.path().join("cut");
    fs::write(&cut, &file[..file.len() - 100]).expect("a file");
    let comparison = compare(&path, &cut).expect("a comparison");
    assert!(matches!(comparison.outcome, Outcome::SameSoFar), "{comparison}");
    assert_eq!(comparison.sides[0].unverified, 0);
    let expected = format!("the last records ({}) without their checksum", comparison.sides[1].unverified);
    assert!(comparison.sides[1].unverified > 0 && comparison.to_string().contains(&expected), "{comparison}");
}

#[test]
fn a_program_that_ends_earlier_is_a_difference() {
    let first = training(4, Level::Operations);
    let second = training(3, Level::Operations);
    let comparison = compared(&first, &second);
    let Outcome::Length(length) = &comparison.outcome else { panic!("{comparison}") };
    assert_eq!(length.operations, [34, 26]);
    assert_eq!((comparison.same(), comparison.spread.only), (Some(false), [8, 0]));
    let text = comparison.to_string();
    assert!(
        text.contains("thread 0 ends after 26 operations in the second program, and has 34 in the first, from 26 `upload` (step 3, epoch 0, \
             batch 3, forward) on"),
        "{text}"
    );

    // Also where the longer one was cut, and where states alone are recorded.
    let mut cut = first.clone();
    cut.records.pop();
    assert!(matches!(compared(&cut, &second).outcome, Outcome::Length(_)));
    assert!(matches!(compared(&first.weights_only(), &second.weights_only()).outcome, Outcome::Length(_)));
}

#[test]
fn a_difference_comes_before_the_length() {
    let first = training(4, Level::Operations);
    let mut second = training(3, Level::Operations);
    second.corrupt(7);
    assert!(matches!(compared(&first, &second).outcome, Outcome::Differ(_)));
}

#[test]
fn nothing_compared_is_not_the_same() {
    let mut empty = training(0, Level::Operations);
    empty.records.retain(|record| !matches!(record, Record::Operation(_)));
    let comparison = compared(&empty, &training(2, Level::Operations));
    assert!(comparison.same() != Some(true), "{comparison}");
    empty.records.pop();
    let comparison = compared(&empty, &training(2, Level::Operations));
    assert!(matches!(comparison.outcome, Outcome::Nothing), "{comparison}");
    assert_eq!(comparison.same(), None);
}
