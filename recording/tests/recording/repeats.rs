//! Recordings of a program whose threads are timed by chance agree, a thousand times.

use crate::synthetic::{end, training};
use burn_deterministic_recording::diff::{Outcome, compare};
use burn_deterministic_recording::{Level, Record, Thread};

/// Two trainings in threads of their own, whose records come in an order that depends on `seed`.
fn interleaved(seed: u64, folder: &std::path::Path, name: &str) -> std::path::PathBuf {
    let one = training(1, Level::Operations);
    let mut other = training(1, Level::Operations);
    for record in &mut other.records {
        match record {
            Record::Thread(thread) => thread.number = 1,
            Record::Operation(operation) => {
                operation.thread = 1;
                operation.outputs[0].digest.as_mut().expect("a digest").0[3] = 1;
            }
            Record::State(state) => {
                state.thread = 1;
                for tensor in &mut state.tensors {
                    tensor.digest.as_mut().expect("a digest").0[3] = 1;
                }
            }
            _ => {}
        }
    }
    let mut all = one.clone();
    let end = end(vec![10, 10]);
    let mut sources =
        [&one, &other].map(|training| training.records[1..training.records.len() - 1].iter().cloned().peekable());
    all.records = vec![Record::Thread(Thread { number: 0 }), Record::Thread(Thread { number: 1 })];
    let mut state = seed;
    while sources.iter_mut().any(|source| source.peek().is_some()) {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let run = (state >> 33) % 9;
        let source = &mut sources[(state >> 60) as usize % 2];
        all.records.extend(source.take(run as usize));
    }
    all.records.push(end);
    all.write(folder, name)
}

#[test]
fn a_thousand_comparisons_raise_no_false_alarm() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = interleaved(0, folder.path(), "a");
    for seed in 1..=1000 {
        let second = interleaved(seed, folder.path(), "b");
        let comparison = compare(&first, &second).expect("a comparison");
        assert!(matches!(comparison.outcome, Outcome::Same), "seed {seed}: {comparison}");
        assert_eq!(comparison.compared.operations, 20, "seed {seed}");
    }
}
