//! Recordings of states, and of states with operations of some steps.

use crate::synthetic::{Synthetic, cause, compared, of, training};
use burn_deterministic_recording::diff::{Cause, Outcome};
use burn_deterministic_recording::report::html;
use burn_deterministic_recording::{Digest, Level, Origin, Record, State, StateTensor};

fn states(recording: &mut Synthetic) -> Vec<&mut State> {
    let states = recording.records.iter_mut().filter_map(|record| match record {
        Record::State(state) => Some(state),
        _ => None,
    });
    states.collect()
}

/// A tensor without a name.
fn moment(operation: u64) -> StateTensor {
    StateTensor {
        origin: Origin { operation, output: 0 },
        shape: vec![10],
        dtype: "f32".into(),
        parameter: None,
        digest: Some(Digest([1, 2, 3, 4])),
    }
}

#[test]
fn the_first_step_that_differs_is_found_by_states() {
    let first = training(5, Level::Operations);
    let mut second = first.clone();
    second.corrupt(2 + 3 * 8 + 4);
    let comparison = compared(&first.clone().weights_only(), &second.clone().weights_only());
    assert_eq!(cause(&comparison), (&Cause::NotRecorded, None));
    let state = comparison.state.as_ref().expect("a state");
    assert_eq!((state.place.step, state.differing, state.tensors), (Some(3), 2, 2));
    let text = comparison.to_string();
    assert!(text.contains("BURN_DETERMINISTIC_RECORD_LEVEL=operations:0-3"), "{text}");
    assert_eq!(comparison.spread.parameters["fc1.weight"], Some(of(3)));
    // One with operations, one without: states are compared.
    let comparison = compared(&first.weights_only(), &second);
    assert_eq!(cause(&comparison).0, &Cause::NotRecorded);
}

#[test]
fn states_alone_agree() {
    let first = training(5, Level::Operations);
    let comparison = compared(&first.clone().weights_only(), &first);
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
    assert_eq!((comparison.compared.operations, comparison.compared.states), (0, 5));
    assert_eq!(comparison.spread.only, [0, 0], "operations of the level are not missing");
    let some = training(5, Level::OperationsOf { first: 1, last: 2 });
    let comparison = compared(&some, &first);
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
    assert_eq!(comparison.compared.operations, 16);
}

#[test]
fn operations_after_the_first_state_that_differs_do_not_explain_it() {
    let mut first = training(5, Level::Operations);
    let mut second = first.clone();
    second.corrupt(2 + 8 + 4);
    let keep = |recording: &mut Synthetic| {
        recording.header.level = Level::OperationsOf { first: 3, last: 4 };
        recording.records.retain(|record| !matches!(record, Record::Operation(o) if o.place.step < Some(3)));
    };
    keep(&mut first);
    keep(&mut second);
    second.change(2 + 3 * 8, |operation| operation.outputs[0].digest = Some(Digest([0; 4])));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).0, &Cause::NotRecorded);
    assert_eq!(comparison.state.as_ref().expect("a state").place.step, Some(1));
    assert!(comparison.spread.first.iter().any(|affected| affected.place.step == Some(3)));
}

#[test]
fn another_number_of_operations_in_a_step_is_another_program() {
    let first = training(3, Level::Operations).weights_only();
    let mut second = first.clone();
    for state in &mut states(&mut second)[1..] {
        state.operations += 2;
        state.tensors.iter_mut().for_each(|tensor| tensor.origin.operation += 2);
    }
    let comparison = compared(&first, &second);
    let what = "18 operations in the first, 20 in the second".to_owned();
    assert_eq!(cause(&comparison), (&Cause::Program(what), None));
    let state = comparison.state.expect("a state");
    assert_eq!((state.place.step, state.differing, state.tensors), (Some(1), 0, 2), "parameters are matched by name");
}

#[test]
fn a_tensor_that_is_not_what_its_operation_computed_was_overwritten() {
    let first = training(3, Level::Operations);
    let mut second = first.clone();
    states(&mut second)[1].tensors[0].digest = Some(Digest([0; 4]));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Overwritten, None));
    assert_eq!(comparison.state.as_ref().expect("a state").place.step, Some(1));
}

#[test]
fn a_parameter_missing_from_a_state_differs_and_an_unnamed_tensor_does_not() {
    let first = training(3, Level::Operations).weights_only();
    let mut second = first.clone();
    states(&mut second)[1].tensors.pop();
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).0, &Cause::NotRecorded);
    assert_eq!(comparison.state.expect("a state").names, ["fc2.weight (in the first alone)"]);

    let mut second = first.clone();
    states(&mut second)[1].tensors.push(moment(11));
    let comparison = compared(&first, &second);
    assert_eq!((comparison.same(), comparison.spread.only_tensors), (Some(true), [0, 1]));
}

#[test]
fn a_moment_that_differs_is_a_difference() {
    let mut first = training(3, Level::Operations).weights_only();
    states(&mut first)[2].tensors.push(moment(20));
    let mut second = first.clone();
    states(&mut second)[2].tensors[2].digest = Some(Digest([0; 4]));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).0, &Cause::NotRecorded);
    assert_eq!(comparison.state.expect("a state").names, ["[10] f32"]);
}

#[test]
fn a_digest_that_was_lost_is_neither_equal_nor_different() {
    let first = training(3, Level::Operations).weights_only();
    let mut second = first.clone();
    states(&mut second)[1].tensors[0].digest = None;
    let comparison = compared(&first, &second);
    assert_eq!((comparison.same(), comparison.compared.digests, comparison.compared.lost), (Some(true), 5, 1));
    let expected =
        "\nSAME as far as is known: 0 operations and 3 states agree, but 1 digest was lost: whether its tensor";
    assert!(comparison.to_string().contains(expected), "{comparison}");
    assert!(html(&comparison).contains("1 digest was lost"));

    for state in states(&mut second) {
        state.tensors.iter_mut().for_each(|tensor| tensor.digest = None);
    }
    let comparison = compared(&first, &second);
    assert!(matches!(comparison.outcome, Outcome::Nothing), "{comparison}");
    assert!(comparison.to_string().contains("NOTHING COMPARED: 6 digests were lost"), "{comparison}");
}

/// Where one run has more operations before, its tensors have other origins: those of other tensors of the other run.
#[test]
fn after_another_number_of_operations_tensors_are_those_of_one_name() {
    for names in [true, false] {
        let mut first = training(3, Level::Weights);
        for (step, state) in (0..).zip(states(&mut first)) {
            state.tensors[1].shape = vec![10];
            let after = state.tensors[1].origin.operation;
            state.tensors.push(StateTensor { origin: Origin { operation: after + 1, output: 0 }, ..moment(step) });
            if !names {
                state.tensors.iter_mut().for_each(|tensor| tensor.parameter = None);
            }
        }
        let mut second = first.clone();
        for state in states(&mut second).into_iter().skip(1) {
            state.operations += 1;
            state.tensors.iter_mut().for_each(|tensor| tensor.origin.operation += 1);
        }
        let comparison = compared(&first, &second);
        assert!(matches!(cause(&comparison).0, Cause::Program(_)), "{comparison}");
        let state = comparison.state.as_ref().expect("a state");
        assert_eq!((state.place.step, state.differing, state.tensors), (Some(1), 0, 3), "{comparison}");
        assert_eq!(comparison.spread.only_tensors, [0; 2]);
        // One of another path.
        for state in states(&mut second).into_iter().filter(|_| names) {
            state.tensors[0].parameter = Some("fc3.weight".into());
        }
        let comparison = compared(&first, &second);
        let state = comparison.state.as_ref().expect("a state");
        assert!(state.differing <= state.tensors, "{comparison}");
    }
}
