//! Which steps, states and threads of a resumed run are compared with those of one that was not interrupted.

use crate::resumed::{MEAN, RESUMED, STEPS, begin, each, names, number, resumed, states, tensor, whole};
use crate::synthetic::{Synthetic, cause, compared, digest, in_turn, operand, operation, place, shard, training};
use burn_deterministic_recording::diff::{Cause, Outcome};
use burn_deterministic_recording::{Level, Operation, Phase, Place, Record, State, StateTensor, Thread};

/// Puts operations between the steps of the resumption, and counts the later ones on.
fn with_evaluation(whole: &Synthetic, count: u64) -> Synthetic {
    let mut all = Synthetic { header: whole.header.clone(), records: Vec::new() };
    let number = |number: u64| if number >= begin(RESUMED) { number + count } else { number };
    for mut record in whole.records.iter().cloned() {
        match &mut record {
            Record::Operation(operation) => {
                operation.number = number(operation.number);
                let origins = operation.inputs.iter_mut().filter_map(|input| input.origin.as_mut());
                origins.for_each(|origin| origin.operation = number(origin.operation));
            }
            Record::State(state) => {
                if state.place.step >= Some(RESUMED) {
                    state.operations += count;
                }
                state.tensors.iter_mut().for_each(|tensor| tensor.origin.operation = number(tensor.origin.operation));
            }
            Record::End { operations, .. } => operations[0] += count,
            _ => {}
        }
        let ends = matches!(&record, Record::State(state) if state.place.step == Some(RESUMED - 1));
        all.records.push(record);
        if ends {
            let evaluation = (0..count).map(|index| {
                let inputs = vec![operand(begin(RESUMED) - 1, None)];
                operation(begin(RESUMED) + index, place(None, Phase::Forward, ""), "float_matmul", inputs, 5000 + index)
            });
            all.records.extend(evaluation.map(Record::Operation));
        }
    }
    all
}

#[test]
fn operations_between_two_steps_are_no_difference() {
    let whole = whole(STEPS);
    let mut evaluated = with_evaluation(&whole, 3);
    // The last of them takes in the pending update of the running statistics.
    let mean = StateTensor { digest: Some(digest(5002)), ..tensor(begin(RESUMED) + 2, Some(MEAN), 0) };
    states(&mut evaluated)[1 + RESUMED as usize].tensors.insert(0, mean);
    each(&evaluated, &resumed(&whole), |comparison, _, _| {
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        assert_eq!(comparison.compared.states, 1 + STEPS - RESUMED);
    });
}

/// Has the first step after the resumption do one more operation, before those that are there.
fn with_one_more(recording: &Synthetic) -> Synthetic {
    let mut more = recording.clone();
    for state in states(&mut more).into_iter().filter(|state| state.place.step >= Some(RESUMED)) {
        state.operations += 1;
        state.tensors.iter_mut().for_each(|tensor| tensor.origin.operation += 1);
    }
    let Some(Record::End { operations, .. }) = more.records.last_mut() else { panic!("an end") };
    operations[0] += 1;
    more
}

#[test]
fn an_update_taken_in_during_the_first_step_is_no_difference_of_weights() {
    let whole = whole(STEPS).weights_only();
    let resumed = resumed(&whole).weights_only();
    let mut pending = with_one_more(&whole);
    let taken_in = tensor(begin(RESUMED), Some(MEAN), 9);
    states(&mut pending)[1 + RESUMED as usize].tensors.insert(0, taken_in);
    for (first, second) in [(&pending, &resumed), (&whole, &with_one_more(&resumed))] {
        let comparison = compared(first, second);
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        assert_eq!(comparison.compared.states, 1 + STEPS - RESUMED);
    }
}

#[test]
fn a_loader_counts_batches_where_steps_begin_at_0_again() {
    let whole = whole(STEPS);
    let renumber = |recording: &mut Synthetic| {
        for record in &mut recording.records {
            let (Record::Operation(Operation { place, .. }) | Record::State(State { place, .. })) = record else {
                continue;
            };
            place.step = place.step.map(|step| step - RESUMED);
        }
    };
    let mut second = resumed(&whole);
    renumber(&mut second);
    each(&whole, &second, |comparison, side, _| {
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        assert_eq!(comparison.resumed.map(|resumed| (resumed.side, resumed.step)), Some((side, RESUMED)));
    });
    let mut second = resumed(&whole);
    second.corrupt(number(4, 3));
    renumber(&mut second);
    each(&whole, &second, |comparison, _, _| assert_eq!(names(comparison).0, Some(4), "{comparison}"));
}

#[test]
fn batches_of_another_epoch_are_other_steps() {
    let epochs = |mut recording: Synthetic| {
        for record in &mut recording.records {
            let (Record::Operation(Operation { place, .. }) | Record::State(State { place, .. })) = record else {
                continue;
            };
            place.epoch = place.step.map(|step| step / 2);
            place.batch = place.step.map(|step| step % 2);
        }
        recording
    };
    let whole = whole(STEPS);
    each(&epochs(whole.clone()), &epochs(resumed(&whole)), |comparison, _, _| {
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        let resumed = comparison.resumed.expect("it was resumed");
        assert_eq!((resumed.step, resumed.epoch, resumed.batch), (RESUMED, Some(1), Some(1)));
    });
}

#[test]
fn a_parameter_whose_name_was_lost_is_found_by_its_elements() {
    let mut whole = whole(STEPS);
    let resumed = resumed(&whole);
    // No operation hands the name on: what the training began with is the last that has it.
    let lost = |recording: &mut Synthetic| {
        let means = states(recording).into_iter().skip(1).flat_map(|state| &mut state.tensors);
        means.filter(|tensor| tensor.parameter.as_deref() == Some(MEAN)).for_each(|tensor| tensor.parameter = None);
    };
    lost(&mut whole);
    let mut second = resumed.clone();
    lost(&mut second);
    each(&whole, &second, |comparison, _, _| {
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        assert_eq!(comparison.resumed.map(|resumed| (resumed.tensors, resumed.unmatched)), Some((5, 0)));
    });
    let mut late = second.clone();
    late.corrupt(1);
    each(&whole, &late, |comparison, _, _| {
        assert_eq!(cause(comparison).0, &Cause::Resumed { named: true }, "{comparison}");
        assert_eq!(names(comparison), (Some(RESUMED - 1), vec![MEAN]));
    });
}

#[test]
fn a_run_without_names_is_compared_by_elements() {
    let whole = whole(STEPS);
    let mut second = resumed(&whole);
    states(&mut second)[0].tensors.iter_mut().for_each(|tensor| tensor.parameter = None);
    each(&whole, &second, |comparison, _, _| {
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        // A parameter that is never updated may be another tensor with the same elements.
        assert_eq!(comparison.resumed.map(|resumed| (resumed.tensors, resumed.unmatched)), Some((4, 1)));
    });
}

#[test]
fn a_digest_that_was_lost_at_the_resumption_is_neither_equal_nor_different() {
    let whole = whole(STEPS);
    let mut second = resumed(&whole);
    states(&mut second)[0].tensors[1].digest = None;
    each(&whole, &second, |comparison, _, _| {
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        assert_eq!(comparison.compared.lost, 1);
    });
}

#[test]
fn only_threads_with_steps_are_compared() {
    /// With a worker that uploads, as thread `worker`; the training is the other of threads 0 and 1.
    fn fed(training: &Synthetic, worker: u32, uploads: u64) -> Synthetic {
        let mut fed = training.clone();
        for record in &mut fed.records {
            match record {
                Record::Operation(operation) => operation.thread = 1 - worker,
                Record::State(state) => state.thread = 1 - worker,
                Record::End { operations, .. } => {
                    operations.insert(worker as usize, uploads);
                }
                _ => {}
            }
        }
        fed.records.insert(1, Record::Thread(Thread { number: 1 }));
        let uploads = (0..uploads).map(|number| {
            let mut upload =
                operation(number, Place::default(), Operation::UPLOAD, vec![], 9000 + 7 * uploads + number);
            upload.thread = worker;
            Record::Operation(upload)
        });
        fed.records.splice(2..2, uploads);
        fed
    }
    let whole = whole(STEPS);
    let resumed = resumed(&whole);
    for (worker, renamed) in [(1, false), (0, true)] {
        each(&fed(&whole, 1, 6), &fed(&resumed, worker, 3), |comparison, _, _| {
            assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
            assert_eq!(!comparison.threads.is_empty(), renamed);
            assert!(comparison.uncompared.is_empty(), "{comparison}");
            assert!(comparison.to_string().contains("; threads without steps are not compared\n"), "{comparison}");
        });
    }
    let mut second = resumed.clone();
    second.corrupt(1);
    each(&fed(&whole, 1, 6), &fed(&second, 0, 3), |comparison, _, _| {
        assert_eq!(names(comparison), (Some(RESUMED - 1), vec![MEAN]), "{comparison}");
    });
}

#[test]
fn a_first_state_that_has_its_step_already_is_what_the_run_was_resumed_with() {
    let whole = whole(STEPS);
    let mut second = resumed(&whole);
    second.corrupt(1);
    states(&mut second)[0].place = place(Some(RESUMED), Phase::Forward, "");
    each(&whole, &second, |comparison, _, _| {
        assert_eq!(cause(comparison).0, &Cause::Resumed { named: true }, "{comparison}");
        assert_eq!(names(comparison), (Some(RESUMED - 1), vec![MEAN]));
    });
}

#[test]
fn a_run_that_counts_from_another_number_was_not_resumed() {
    let whole = whole(STEPS);
    let mut other = whole.clone();
    other.count_from(RESUMED);
    each(&whole, &other, |comparison, side, _| {
        assert_eq!(comparison.resumed, None, "{comparison}");
        let Cause::Program(what) = cause(comparison).0 else { panic!("{comparison}") };
        let steps = if side == 1 { ["step 0", "step 3"] } else { ["step 3", "step 0"] };
        let [first, second] = steps.map(|step| format!("{step}, epoch 0, batch"));
        assert!(what.contains(&first) && what.contains(&second), "{what}");
    });
}

/// A thread beside the training, whose steps begin at another number, and which one run may lack.
#[test]
fn a_thread_that_begins_at_a_later_step_was_not_resumed() {
    let training = training(STEPS, Level::Operations);
    let mut late = shard(STEPS, 0, 5);
    late.count_from(10);
    for (first, second) in [
        (vec![training.clone(), late.clone()], vec![late.clone(), training.clone()]),
        (vec![training.clone(), late.clone(), late.clone()], vec![late.clone(), late.clone(), training.clone()]),
    ] {
        for weights in [false, true] {
            let [first, second] = [&first, &second].map(|threads| {
                let together = in_turn(threads);
                if weights { together.weights_only() } else { together }
            });
            let comparison = compared(&first, &second);
            assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
            assert_eq!(comparison.resumed, None);
        }
    }
    // The second run was killed before its first thread had begun.
    let mut killed = late;
    killed.records.pop();
    let comparison = compared(&in_turn(&[training, killed.clone()]), &killed);
    assert_eq!((comparison.resumed, comparison.same()), (None, Some(true)), "{comparison}");
}
