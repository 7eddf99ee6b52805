//! A custom operation that writes into an operand.

use crate::synthetic::{SETUP, STEP, cause, compared, digest, training};
use burn_deterministic_recording::Level;
use burn_deterministic_recording::diff::{Cause, Owner};

/// The number of an operation of step 2.
fn number(index: u64) -> u64 {
    SETUP + 2 * STEP + index
}

#[test]
fn the_operation_is_named_and_not_the_next_reader() {
    let mut first = training(4, Level::Operations);
    first.change(number(2), |operation| {
        operation.name = "tests::overwrite".into();
        operation.is_custom = true;
        operation.operands_after = vec![Some(digest(1)); operation.inputs.len()];
    });
    let mut second = first.clone();
    second.change(number(2), |operation| operation.operands_after[0] = Some(digest(2)));
    // It reads the batch, too.
    let reader = number(5);
    second.corrupt(reader);
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Program), Some(number(2))));
    let pair = comparison.difference().and_then(|difference| difference.operation.as_ref()).expect("an operation");
    assert_eq!((&pair.overwritten[..], pair.operands[0][0].same), (&[0][..], Some(true)));
    assert!(comparison.spread.first.iter().any(|affected| affected.number == reader), "{comparison}");
    let text = comparison.to_string();
    for part in
        ["`tests::overwrite` wrote into an operand", "equal, DIFFERENT after the operation", "into its results alone"]
    {
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(part), "{part}: {text}");
    }
}

/// What an operation reads that differs already may differ after it.
#[test]
fn an_operand_that_differed_before_is_not_overwritten() {
    let mut first = training(4, Level::Operations);
    first.change(number(4), |operation| operation.operands_after = vec![Some(digest(1)); operation.inputs.len()]);
    let mut second = first.clone();
    second.corrupt(number(3));
    second.change(number(4), |operation| operation.operands_after = vec![Some(digest(2)), Some(digest(1))]);
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).1, Some(number(3)));
}
