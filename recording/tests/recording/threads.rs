//! Programs with several threads.

use crate::synthetic::{Synthetic, cause, compared, digest, header, operand, operation, place};
use burn_deterministic_recording::diff::{Cause, Outcome, Owner};
use burn_deterministic_recording::{Level, Operation, Origin, Phase, Record, Thread};

/// Workers upload batches, worker by worker; thread 0 multiplies batch after batch by a weight.
fn loader(workers: u32, batches: u64) -> Synthetic {
    let mut operations = vec![operation(0, place(None, Phase::Forward, ""), "upload", vec![], 1)];
    for batch in 0..batches {
        let (worker, number) = (1 + batch as u32 % workers, batch / u64::from(workers));
        let mut upload = operation(number, place(None, Phase::Forward, ""), "upload", vec![], 1000 + batch);
        upload.thread = worker;
        operations.push(upload);
        let mut data = operand(number, None);
        data.origin = Some(Origin { thread: worker, operation: number, output: 0 });
        let place = place(Some(batch), Phase::Forward, "");
        operations.push(operation(1 + batch, place, "float_matmul", vec![operand(0, None), data], 2000 + batch));
    }
    recorded(operations)
}

fn recorded(operations: Vec<Operation>) -> Synthetic {
    let threads = operations.iter().map(|operation| operation.thread).max().expect("an operation") + 1;
    let mut records: Vec<Record> = (0..threads).map(|number| Record::Thread(Thread { number })).collect();
    let mut counts = vec![0; threads as usize];
    operations.iter().for_each(|operation| counts[operation.thread as usize] += 1);
    records.extend(operations.into_iter().map(Record::Operation));
    records.push(Record::End { operations: counts });
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
    for operation in operations(recording) {
        operation.thread = number(operation.thread);
        for origin in operation.inputs.iter_mut().filter_map(|input| input.origin.as_mut()) {
            origin.thread = number(origin.thread);
        }
    }
}

#[test]
fn records_of_threads_may_come_in_any_order() {
    let first = loader(3, 12);
    let mut second = first.clone();
    // All of the workers first; then all of thread 0 first, before what it reads.
    for key in [(|thread| thread == 0) as fn(u32) -> bool, |thread| thread != 0] {
        second.records.sort_by_key(|record| match record {
            Record::Operation(operation) => (1, key(operation.thread)),
            Record::End { .. } => (2, false),
            _ => (0, false),
        });
        let comparison = compared(&first, &second);
        assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
        assert_eq!(comparison.compared.operations, 25);
        let mut third = second.clone();
        operations(&mut third)
            .into_iter()
            .filter(|o| o.thread == 2 || o.name == "float_matmul" && o.number % 3 == 2)
            .for_each(|operation| operation.outputs[0].digest = Some(digest(9)));
        let comparison = compared(&second, &third);
        assert_eq!(cause(&comparison), (&Cause::Data { reordered: false }, Some(0)), "{comparison}");
        assert_eq!(comparison.spread.others_count, 3, "three more uploads of the worker, and no product: {comparison}");
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
    assert_eq!(cause(&comparison), (&Cause::Kernel(Owner::Library), Some(1)));
    let pair = comparison.difference().expect("one").operation.clone().expect("one");
    assert_eq!(pair.operands[1][1].producer.as_ref().expect("the upload").0.number, 0, "in its own numbers");
}

#[test]
fn batches_that_arrive_in_another_order_are_told_from_other_data() {
    let first = loader(2, 12);
    let mut second = first.clone();
    // Thread 0 takes batch 3 from worker 2 before batch 2 from worker 1.
    let mut products: Vec<&mut Operation> =
        operations(&mut second).into_iter().filter(|operation| operation.name == "float_matmul").collect();
    let origins = [products[2].inputs[1].origin, products[3].inputs[1].origin];
    (products[2].inputs[1].origin, products[3].inputs[1].origin) = (origins[1], origins[0]);
    products[2].outputs[0].digest = Some(digest(3003));
    products[3].outputs[0].digest = Some(digest(3002));
    let comparison = compared(&first, &second);
    assert_eq!(cause(&comparison), (&Cause::Arrival, Some(3)));
    assert_eq!(comparison.spread.others_count, 0, "{comparison}");
}

#[test]
fn the_same_batch_by_another_worker_is_the_same() {
    let mut second = loader(2, 4);
    // Both batches are equal: which worker made which does not matter.
    let mut uploads: Vec<&mut Operation> =
        operations(&mut second).into_iter().filter(|o| o.name == "upload" && o.thread > 0 && o.number == 0).collect();
    assert_eq!(uploads.len(), 2);
    uploads[1].outputs[0].digest = Some(digest(1000));
    let first = second.clone();
    let mut products: Vec<&mut Operation> =
        operations(&mut second).into_iter().filter(|operation| operation.name == "float_matmul").collect();
    let origins = [products[0].inputs[1].origin, products[1].inputs[1].origin];
    (products[0].inputs[1].origin, products[1].inputs[1].origin) = (origins[1], origins[0]);
    let comparison = compared(&first, &second);
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
}

#[test]
fn many_threads_of_a_batch_each_are_matched() {
    let first = loader(600, 600);
    let mut second = first.clone();
    renumber(&mut second, |thread| if thread == 0 { 0 } else { 601 - thread });
    let comparison = compared(&first, &second);
    assert!(matches!(comparison.outcome, Outcome::Same), "{comparison}");
}
