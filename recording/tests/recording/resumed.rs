//! A run that was resumed from a checkpoint, and one that was not interrupted.

use crate::synthetic::{SETUP, STEP, Synthetic, cause, compared, digest, of, operand, operation, training};
use burn_deterministic_recording::diff::{Cause, Comparison, Outcome, Owner, Resumed};
use burn_deterministic_recording::report::html;
use burn_deterministic_recording::{Level, Operation, Origin, Place, Record, State, StateTensor, Thread};

/// The step at which it was resumed.
pub const RESUMED: u64 = 3;

/// Steps in all.
pub const STEPS: u64 = 6;

pub const MEAN: &str = "norm.running_mean";

pub fn tensor(operation: u64, parameter: Option<&str>, value: u64) -> StateTensor {
    StateTensor {
        origin: Origin { operation, output: 0 },
        shape: vec![64, 10],
        dtype: "f32".into(),
        parameter: parameter.map(str::to_owned),
        digest: Some(digest(value)),
    }
}

/// The first operation of a step.
pub fn begin(step: u64) -> u64 {
    SETUP + step * STEP
}

pub fn states(recording: &mut Synthetic) -> Vec<&mut State> {
    let states = recording.records.iter_mut().filter_map(|record| match record {
        Record::State(state) => Some(state),
        _ => None,
    });
    states.collect()
}

/// A training that begins with a state. It has a table that is never updated, running statistics by operation 2 of each step and,
/// without a name, a moment by operation 4, which the update of the next step reads.
pub fn whole(steps: u64) -> Synthetic {
    let mut whole = training(steps, Level::Operations);
    let fc = |number, name| tensor(number, Some(name), number);
    let mut tensors = vec![fc(0, "fc1.weight"), fc(1, "fc2.weight"), tensor(1, Some("table.weight"), 7)];
    tensors[2].origin.output = 1;
    tensors.push(tensor(1, Some(MEAN), 8));
    tensors[3].origin.output = 2;
    let initial = State { thread: 0, operations: SETUP, place: Place::default(), tensors };
    whole.records.insert(1 + SETUP as usize, Record::State(initial));
    for (step, state) in (0..).zip(states(&mut whole).into_iter().skip(1)) {
        let value = |index: u64| 100 + begin(step) + index;
        let statistics = [(2, Some(MEAN)), (4, None)];
        let more = statistics.map(|(index, name)| tensor(begin(step) + index, name, value(index)));
        state.tensors.splice(0..0, more);
    }
    for step in 1..steps {
        whole.change(begin(step) + 6, |update| update.inputs.push(operand(begin(step - 1) + 4, None)));
    }
    whole
}

/// The values that the training has after the step before, each of which the resumed run uploads.
fn loaded(whole: &Synthetic) -> Vec<StateTensor> {
    let mut whole = whole.clone();
    let states = states(&mut whole);
    let mut tensors = vec![states[0].tensors[2].clone()];
    tensors.extend(states[RESUMED as usize].tensors.iter().cloned());
    tensors
}

/// The same training, resumed.
pub fn resumed(whole: &Synthetic) -> Synthetic {
    let loaded = loaded(whole);
    let count = loaded.len() as u64;
    let number = |operation: u64| operation + count - begin(RESUMED);
    let origin = |origin: Origin| match loaded.iter().position(|tensor| tensor.origin == origin) {
        Some(index) => Origin { operation: index as u64, output: 0 },
        None => Origin { operation: number(origin.operation), ..origin },
    };
    let mut records = vec![Record::Thread(Thread { number: 0 })];
    let mut tensors = loaded.clone();
    for (number, tensor) in (0..).zip(&mut tensors) {
        let mut upload = operation(number, Place::default(), Operation::UPLOAD, vec![], 0);
        upload.outputs[0].digest = tensor.digest;
        records.push(Record::Operation(upload));
        tensor.origin = Origin { operation: number, output: 0 };
    }
    records.push(Record::State(State { thread: 0, operations: count, place: Place::default(), tensors }));
    for mut record in whole.records.iter().cloned() {
        match &mut record {
            Record::Operation(operation) if operation.place.step >= Some(RESUMED) => {
                operation.number = number(operation.number);
                for input in &mut operation.inputs {
                    input.origin = input.origin.map(origin);
                }
            }
            Record::State(state) if state.place.step >= Some(RESUMED) => {
                state.operations = number(state.operations);
                state.tensors.iter_mut().for_each(|tensor| tensor.origin = origin(tensor.origin));
            }
            Record::End { operations, .. } => operations[0] = number(operations[0]),
            _ => continue,
        }
        records.push(record);
    }
    Synthetic { header: whole.header.clone(), records }
}

/// The number of an operation of the resumed run.
pub fn number(step: u64, index: u64) -> u64 {
    5 + (step - RESUMED) * STEP + index
}

/// Compares with the resumed run as the second and as the first, by operations, by weights and by either.
pub fn each(whole: &Synthetic, resumed: &Synthetic, check: impl Fn(&Comparison, usize, bool)) {
    let weights = [whole, resumed].map(|recording| recording.clone().weights_only());
    let both = [whole, resumed];
    for (pair, operations) in [
        (both, true),
        ([&weights[0], &weights[1]], false),
        ([whole, &weights[1]], false),
        ([&weights[0], resumed], false),
    ] {
        check(&compared(pair[0], pair[1]), 1, operations);
        check(&compared(pair[1], pair[0]), 0, operations);
    }
}

fn which(side: usize) -> &'static str {
    ["first", "second"][side]
}

/// The report without its line breaks.
fn flat(comparison: &Comparison) -> String {
    comparison.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn names(comparison: &Comparison) -> (Option<u64>, Vec<&str>) {
    let state = comparison.state.as_ref().unwrap_or_else(|| panic!("a state that differs: {comparison}"));
    (state.place.step, state.names.iter().map(String::as_str).collect())
}

#[test]
fn a_resumed_run_agrees_with_one_that_was_not_interrupted() {
    let whole = whole(STEPS);
    each(&whole, &resumed(&whole), |comparison, side, operations| {
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        let expected = Resumed {
            side,
            step: RESUMED,
            epoch: Some(0),
            batch: Some(RESUMED),
            after: Some(RESUMED - 1),
            is_reached: true,
            tensors: 5,
            unmatched: 0,
            other_threads: false,
        };
        assert_eq!(comparison.resumed, Some(expected));
        let steps = STEPS - RESUMED;
        assert_eq!(comparison.compared.operations, if operations { steps * STEP } else { 0 });
        assert_eq!((comparison.compared.states, comparison.compared.digests > 0), (1 + steps, true));
        assert_eq!(
            (comparison.compared.lost, comparison.spread.only, comparison.spread.only_tensors),
            (0, [0; 2], [0; 2])
        );
        let (own, other) = (which(side), which(1 - side));
        let sentence = format!(
            "\nthe {own} run was resumed before step 3, epoch 0, batch 3: 5 of 5 tensors that it resumed with are compared \
             with those that the {other} had after step 2, and steps and operations are numbered as in the {other}\n"
        );
        assert!(comparison.to_string().contains(&sentence), "{comparison}");
        assert!(html(comparison).contains(sentence.trim()), "{comparison}");
    });
    assert_eq!(compared(&whole, &whole).resumed, None);
}

#[test]
fn a_running_mean_that_was_saved_late_is_named() {
    let whole = whole(STEPS);
    let mut late = resumed(&whole);
    late.corrupt(1);
    assert_eq!(states(&mut late)[0].tensors[1].parameter.as_deref(), Some(MEAN));
    each(&whole, &late, |comparison, side, _| {
        assert_eq!(cause(comparison).0, &Cause::Resumed { named: true }, "{comparison}");
        assert_eq!(names(comparison), (Some(RESUMED - 1), vec![MEAN]));
        assert_eq!(comparison.spread.parameters[MEAN], Some(of(RESUMED - 1)));
        let (own, other) = (which(side), which(1 - side));
        let text = comparison.to_string();
        let verdict = format!("DIFFERENT: the runs part where the {own} was resumed, before step 3\n");
        assert!(text.contains(&verdict), "{text}");
        let text = flat(comparison);
        let why =
            format!("What the {own} run resumed with is not what the {other} had after step 2 (epoch 0): {MEAN}.");
        assert!(text.contains(&why), "{text}");
        assert!(text.contains("`burn_deterministic::checkpoint::Checkpoint`"), "{text}");
    });
}

#[test]
fn a_parameter_that_was_not_loaded_is_named() {
    let whole = whole(STEPS);
    let mut resumed = resumed(&whole);
    states(&mut resumed)[0].tensors.retain(|tensor| tensor.parameter.as_deref() != Some("fc2.weight"));
    each(&whole, &resumed, |comparison, side, _| {
        assert_eq!(cause(comparison).0, &Cause::Resumed { named: true }, "{comparison}");
        let name = format!("fc2.weight (in the {} alone)", which(1 - side));
        assert_eq!(names(comparison), (Some(RESUMED - 1), vec![name.as_str()]));
    });
}

#[test]
fn a_difference_after_the_resumed_state_is_found_where_it_is() {
    let whole = whole(STEPS);
    let mut second = resumed(&whole);
    second.corrupt(number(4, 3));
    each(&whole, &second, |comparison, side, operations| {
        if operations {
            // As the run counts that was not interrupted.
            assert_eq!(cause(comparison), (&Cause::Kernel(Owner::Library), Some(begin(4) + 3)), "{comparison}");
            let pair = comparison.difference().expect("one").operation.as_ref().expect("one");
            let digests = |side: usize| pair.operands[side].iter().map(|operand| operand.digest).collect::<Vec<_>>();
            assert!(digests(0).iter().all(Option::is_some) && digests(0) == digests(1), "{comparison}");
        } else {
            assert_eq!(cause(comparison), (&Cause::NotRecorded, None), "{comparison}");
            assert!(flat(comparison).contains("BURN_DETERMINISTIC_RECORD_LEVEL=operations:3-4"), "{comparison}");
        }
        assert!(!flat(comparison).contains("It is the first step after"), "{comparison}");
        assert_eq!(names(comparison).0, Some(4), "{side}");
    });
}

#[test]
fn a_moment_that_was_not_restored_is_told_by_the_operation_that_reads_it() {
    let whole = whole(STEPS);
    let mut second = resumed(&whole);
    // The moment is the third of the tensors that were loaded.
    assert_eq!(states(&mut second)[0].tensors[2].parameter, None);
    second.corrupt(2);
    each(&whole, &second, |comparison, side, operations| {
        let resumed = comparison.resumed.expect("it was resumed");
        assert_eq!((resumed.tensors, resumed.unmatched), (4, 1));
        let text = flat(comparison);
        assert!(text.contains(": 4 of 5 tensors that it resumed with are compared with those"), "{text}");
        assert!(text.contains(&format!("; the rest has no name that the {} knows", which(1 - side))), "{text}");
        if operations {
            assert_eq!(cause(comparison), (&Cause::Resumed { named: false }, Some(begin(RESUMED) + 6)), "{text}");
            assert!(text.contains("all operands agree but for operand 2: a tensor that the"), "{text}");
        } else {
            assert_eq!(cause(comparison), (&Cause::NotRecorded, None), "{text}");
            let advice = format!("It is the first step after the {} run was resumed", which(side));
            assert!(text.contains(&advice), "{text}");
        }
        assert_eq!(names(comparison).0, Some(RESUMED));
    });

    // A moment that was restored is known to agree.
    let mut second = resumed(&whole);
    second.corrupt(number(RESUMED, 6));
    let comparison = compared(&whole, &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Library), Some(begin(RESUMED) + 6)), "{comparison}");
    // Unless another tensor has the same elements: then it is not known which of them it is.
    let same = |recording: &mut Synthetic, state: usize, origin| {
        let mut tensor = states(recording)[state].tensors.iter().find(|t| t.parameter.is_none()).expect("one").clone();
        tensor.origin = Origin { operation: origin, output: 3 };
        states(recording)[state].tensors.push(tensor);
    };
    let mut first = whole.clone();
    same(&mut first, RESUMED as usize, begin(RESUMED - 1) + 4);
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison).0, &Cause::Resumed { named: false }, "{comparison}");
}

#[test]
fn other_draws_after_the_resumption_are_another_seed() {
    let whole = whole(STEPS);
    let mut second = resumed(&whole);
    second.corrupt(number(RESUMED, 1));
    second.change(number(RESUMED, 1), |operation| operation.draws[0].stream += 1);
    let comparison = compared(&whole, &second);
    assert_eq!(cause(&comparison), (&Cause::Seed, Some(begin(RESUMED) + 1)), "{comparison}");
    assert!(flat(&comparison).contains("and the random state too"), "{comparison}");
}

#[test]
fn another_operation_of_the_first_step_is_another_program() {
    let whole = whole(STEPS);
    let mut second = resumed(&whole);
    second.change(number(RESUMED, 6), |operation| operation.name = "float_mul".into());
    let comparison = compared(&whole, &second);
    let (cause, number) = cause(&comparison);
    assert!(matches!(cause, Cause::Program(_)), "{comparison}");
    assert_eq!(number, Some(begin(RESUMED) + 6));
    assert!(flat(&comparison).contains("restores the optimizer"), "{comparison}");
}

#[test]
fn an_operation_less_in_the_first_step_is_found_where_it_is() {
    let whole = whole(STEPS);
    let mut second = resumed(&whole);
    let left_out = number(RESUMED, 3);
    let count = |number: &mut u64| *number -= u64::from(*number > left_out);
    second.records.retain(|record| !matches!(record, Record::Operation(operation) if operation.number == left_out));
    for record in &mut second.records {
        match record {
            Record::Operation(operation) => {
                count(&mut operation.number);
                let origins = operation.inputs.iter_mut().filter_map(|input| input.origin.as_mut());
                origins.for_each(|origin| count(&mut origin.operation));
            }
            Record::State(state) => {
                count(&mut state.operations);
                state.tensors.iter_mut().for_each(|tensor| count(&mut tensor.origin.operation));
            }
            Record::End { operations, .. } => count(&mut operations[0]),
            _ => {}
        }
    }
    let comparison = compared(&whole, &second);
    let (cause, number) = cause(&comparison);
    assert!(matches!(cause, Cause::Program(_)), "{comparison}");
    assert_eq!(number, Some(begin(RESUMED) + 3), "{comparison}");
}

#[test]
fn a_recording_that_was_cut_is_compared_as_far_as_it_goes() {
    let whole = whole(STEPS);
    let resumed = resumed(&whole);
    let cut = |recording: &Synthetic, step| {
        let mut cut = recording.clone();
        let last =
            cut.records.iter().position(|record| matches!(record, Record::State(s) if s.place.step == Some(step)));
        cut.records.truncate(last.expect("the step") + 1);
        cut
    };
    for (first, second, steps) in [
        (cut(&whole, 4), resumed.clone(), 2),
        (whole.clone(), cut(&resumed, 4), 2),
        (cut(&whole, RESUMED - 1), resumed.clone(), 0),
    ] {
        each(&first, &second, |comparison, _, operations| {
            assert!(matches!(comparison.outcome, Outcome::SameSoFar), "{comparison}");
            assert_eq!(comparison.compared.operations, if operations { steps * STEP } else { 0 });
            assert_eq!(comparison.compared.states, 1 + steps);
        });
    }
    // Within the first step that both have, the operations of it are compared.
    let mut first = cut(&whole, RESUMED - 1);
    first.records.extend(whole.records[first.records.len()..].iter().take(5).cloned());
    let comparison = compared(&first, &resumed);
    assert!(matches!(comparison.outcome, Outcome::SameSoFar), "{comparison}");
    assert_eq!((comparison.compared.operations, comparison.compared.states), (5, 1));
    let mut second = resumed.clone();
    second.corrupt(number(RESUMED, 2));
    assert_eq!(cause(&compared(&first, &second)).1, Some(begin(RESUMED) + 2));
}

#[test]
fn a_run_that_ends_where_the_other_was_resumed_is_shorter() {
    let resumed = resumed(&whole(STEPS));
    each(&whole(RESUMED), &resumed, |comparison, side, _| {
        let Outcome::Length(length) = &comparison.outcome else { panic!("{comparison}") };
        assert_eq!((length.operations[1 - side], length.operations[side]), (begin(RESUMED), begin(STEPS)));
        assert_eq!((length.states[1 - side], length.states[side]), (0, STEPS - RESUMED));
    });
}

#[test]
fn a_run_that_did_not_reach_the_step_is_not_compared() {
    let resumed = resumed(&whole(STEPS));
    each(&whole(RESUMED - 1), &resumed, |comparison, side, _| {
        assert!(matches!(comparison.outcome, Outcome::Nothing), "{comparison}");
        assert_eq!(comparison.same(), None);
        assert!(comparison.state.is_none() && comparison.uncompared.is_empty());
        let (own, other) = (which(side), which(1 - side));
        let text = comparison.to_string();
        let sentence = format!(
            "\nthe {own} run was resumed before step 3, epoch 0, batch 3, and the recording of the {other} ends after step 1: \
             record that run for longer\n"
        );
        assert!(text.contains(&sentence), "{text}");
        assert!(
            text.contains("NOTHING COMPARED: one run was resumed at a step that the other did not reach\n"),
            "{text}"
        );
    });
}
