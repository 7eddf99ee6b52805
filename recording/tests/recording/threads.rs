//! Programs with several threads.

use crate::synthetic::{
    Synthetic, cause, compared, digest, end, header, in_turn, operand, operation, place, shard, training,
};
use burn_deterministic_recording::diff::{Cause, Outcome, Owner};
use burn_deterministic_recording::{Level, Operation, Phase, Record, Thread};

/// Workers upload batches, worker by worker; thread 0 receives each, and multiplies a weight by it.
fn loader(workers: u32, batches: u64) -> Synthetic {
    let mut operations = vec![operation(0, place(None, Phase::Forward, ""), "upload", vec![], 1)];
    for batch in 0..batches {
        let (worker, number) = (1 + batch as u32 % workers, batch / u64::from(workers));
        let mut upload = operation(number, place(None, Phase::Forward, ""), "upload", vec![], 1000 + batch);
        upload.thread = worker;
        operations.push(upload);
        let (place, received) = (place(Some(batch), Phase::Forward, ""), 1 + 2 * batch);
        let mut receive = operation(received, place.clone(), Operation::RECEIVE, vec![], 1000 + batch);
        receive.kernels.clear();
        operations.push(receive);
        let inputs = vec![operand(0, None), operand(received, None)];
        operations.push(operation(received + 1, place, "float_matmul", inputs, 2000 + batch));
    }
    recorded(operations)
}

fn recorded(operations: Vec<Operation>) -> Synthetic {
    let threads = operations.iter().map(|operation| operation.thread).max().expect("an operation") + 1;
    let mut records: Vec<Record> = (0..threads).map(|number| Record::Thread(Thread { number })).collect();
    let mut counts = vec![0; threads as usize];
    operations.iter().for_each(|operation| counts[operation.thread as usize] += 1);
    records.extend(operations.into_iter().map(Record::Operation));
    records.push(end(counts));
    Synthetic { header: header(Level::Operations), records }
}

fn operations(recording: &mut Synthetic) -> Vec<&mut Operation> {
    let operations = recording.records.iter_mut().filter_map(|record| match record {
        Record::Operation(operation) => Some(operation),
        _ => None,
    });
    operations.collect()
}

/// Gives threads other numbers.
fn renumber(recording: &mut Synthetic, number: impl Fn(u32) -> u32) {
    operations(recording).into_iter().for_each(|operation| operation.thread = number(operation.thread));
}

#[test]
fn records_of_threads_may_come_in_any_order() {
    let first = loader(3, 12);
    let mut second = first.clone();
    // All of the workers first; then all of thread 0 first.
    for key in [(|thread| thread == 0) as fn(u32) -> bool, |thread| thread != 0] {
        second.records.sort_by_key(|record| match record {
            Record::Operation(operation) => (1, key(operation.thread)),
            Record::End { .. } => (2, false),
            _ => (0, false),
        });
        let comparison = compared(&first, &second);
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        assert_eq!(comparison.compared.operations, 37);
    }
}

#[test]
fn workers_with_other_numbers_are_matched_by_what_they_do() {
    let first = loader(3, 12);
    let mut second = first.clone();
    renumber(&mut second, |thread| [0, 3, 1, 2][thread as usize]);
    let comparison = compared(&first, &second);
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
    assert_eq!(comparison.threads, [(2, 1), (3, 2), (1, 3)]);
    assert!(comparison.to_string().contains("thread 1 of the second is thread 2 of the first"), "{comparison}");

    operations(&mut second).into_iter().find(|o| o.name == "float_matmul").expect("one").outputs[0].digest =
        Some(digest(9));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Library), Some(2)));
}

/// The indices of what thread 0 receives.
fn received(recording: &Synthetic) -> Vec<usize> {
    let received = |record: &Record| matches!(record, Record::Operation(o) if o.name == Operation::RECEIVE);
    (0..recording.records.len()).filter(|&index| received(&recording.records[index])).collect()
}

#[test]
fn tensors_of_another_thread_that_differ_are_told_from_those_in_another_order() {
    let first = loader(2, 12);
    let mut second = first.clone();
    let [third, fourth] = [2, 3].map(|batch| received(&first)[batch]);
    for (index, other) in [(third, 1003), (fourth, 1002)] {
        let Record::Operation(receive) = &mut second.records[index] else { panic!("an operation") };
        receive.outputs[0].digest = Some(digest(other));
    }
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Received { reordered: true }, Some(5)));
    let text = comparison.to_string();
    assert!(text.contains("DIFFERENT: tensors of another thread come in another order"), "{text}");
    assert!(text.contains("What another thread uploaded or computed differs"), "{text}");

    let Record::Operation(receive) = &mut second.records[fourth] else { panic!("an operation") };
    receive.outputs[0].digest = Some(digest(9));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Received { reordered: false }, Some(5)));
}

#[test]
fn many_threads_of_a_batch_each_are_matched() {
    let first = loader(600, 600);
    let mut second = first.clone();
    renumber(&mut second, |thread| if thread == 0 { 0 } else { 601 - thread });
    let comparison = compared(&first, &second);
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
}

#[test]
fn what_a_thread_made_comes_before_what_another_received() {
    let first = loader(2, 12);
    let mut second = first.clone();
    // Worker 2 uploads another batch 3, which thread 0 receives. The records of thread 0 come first.
    for operation in operations(&mut second) {
        let is_upload = operation.thread == 2 && operation.number == 1;
        if is_upload || operation.thread == 0 && [7, 8].contains(&operation.number) {
            operation.outputs[0].digest = Some(digest(9));
        }
    }
    second.records.sort_by_key(|record| match record {
        Record::Operation(operation) => 1 + operation.thread,
        Record::End { .. } => 4,
        _ => 0,
    });
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Data { reordered: false }, Some(1)));
    let others: Vec<&str> = comparison.spread.others.iter().map(|other| other.name.as_str()).collect();
    assert_eq!(others, ["receive"], "{comparison}");
}

#[test]
fn two_trainings_whose_threads_have_changed_places_agree() {
    let [one, other] = [1, 2].map(|seed| shard(4, 0, seed));
    let [first, second] = [in_turn(&[one.clone(), other.clone()]), in_turn(&[other, one])];
    for [first, second] in [[first.clone().weights_only(), second.clone().weights_only()], [first, second]] {
        let comparison = compared(&first, &second);
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        assert_eq!(comparison.threads, [(1, 0), (0, 1)]);
        assert_eq!(comparison.compared.states, 8);
    }
}

#[test]
fn replicas_that_part_after_hundreds_of_operations_are_matched() {
    // Four replicas do the same up to operation 300.
    let replicas: Vec<Synthetic> = (1..=4).map(|seed| shard(60, 300, seed)).collect();
    let first = in_turn(&replicas);
    let second = in_turn(&[2, 3, 1, 0].map(|replica: usize| replicas[replica].clone()));
    let comparison = compared(&first, &second);
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");

    // The fault of one is found in it.
    let mut faulty = replicas.clone();
    faulty[3].corrupt(400);
    let second = in_turn(&[2, 3, 1, 0].map(|replica: usize| faulty[replica].clone()));
    let comparison = compared(&first, &second);
    let (_, number) = cause(&comparison);
    let pair = comparison.difference().expect("one").operation.as_ref().expect("one");
    assert_eq!((number, pair.operations[0].thread), (Some(400), 3), "{comparison}");
}

/// A training fed by workers of which nothing is recorded but their lengths.
fn fed(workers: &[u64]) -> Synthetic {
    let mut fed = training(4, Level::Operations).weights_only();
    let threads = (1..=workers.len() as u32).map(|number| Record::Thread(Thread { number }));
    fed.records.splice(1..1, threads);
    let Some(Record::End { operations, .. }) = fed.records.last_mut() else { panic!("an end") };
    operations.extend_from_slice(workers);
    fed
}

#[test]
fn workers_that_take_what_comes_are_no_difference_of_weights() {
    let comparison = compared(&fed(&[13, 12, 13]), &fed(&[13, 13, 12]));
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
    assert!(comparison.uncompared.is_empty(), "all lengths have a counterpart: {comparison}");

    let comparison = compared(&fed(&[13, 12]), &fed(&[15, 10]));
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
    let note = "\nnot compared, because nothing of them is recorded: thread 1 issued 13 operations in the first, 15 in the \
                second; thread 2 issued 12 operations in the first, 10 in the second\n";
    assert!(comparison.to_string().contains(note), "{comparison}");

    let comparison = compared(&fed(&[25]), &fed(&[12, 13]));
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
    assert_eq!(comparison.uncompared.len(), 2);
}

#[test]
fn a_training_thread_that_ends_earlier_is_a_difference_of_weights() {
    let [long, short] = [4, 3].map(|steps| training(steps, Level::Operations));
    let [first, second] = [in_turn(&[long.clone(), long.clone()]), in_turn(&[short, long])];
    let comparison = compared(&first.weights_only(), &second.weights_only());
    let Outcome::Length(length) = &comparison.outcome else { panic!("{comparison}") };
    assert_eq!((length.operations, length.states), ([34, 26], [4, 3]));
}

#[test]
fn a_state_that_one_program_lacks_is_a_difference() {
    let first = training(4, Level::Operations).weights_only();
    let mut second = first.clone();
    second.records.remove(4);
    let comparison = compared(&first, &second);
    assert_eq!(comparison.same(), Some(false), "{comparison}");
    assert!(
        comparison.to_string().contains("thread 0 ends 4 steps in the first program, 3 in the second"),
        "{comparison}"
    );
}
