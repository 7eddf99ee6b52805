//! Recordings of a program whose threads are timed by chance: where it is repeatable no comparison says otherwise, a
//! thousand times, and where one operation is not, that one is named.

use crate::synthetic::{SETUP, STEP, Synthetic, cause, shard, together};
use burn_deterministic_recording::diff::{Cause, Comparison, Outcome, Owner, compare};
use burn_deterministic_recording::{Digest, Record};
use std::collections::BTreeMap;
use std::path::Path;

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    /// Below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }

    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        (1..count).rev().for_each(|last| order.swap(last, self.below(last + 1)));
        order
    }
}

const STEPS: u64 = 2;

/// Trainings in threads, of which some do the same for a while, and some begin at a later step.
fn threads(chance: &mut Chance) -> Vec<Synthetic> {
    let count = 1 + chance.below(4);
    let mut thread = |seed| {
        let mut thread = shard(STEPS, [0, 0, 1, 3, 12][chance.below(5)], seed);
        thread.count_from([0, 0, 0, 5, 100][chance.below(5)]);
        thread
    };
    (0..count as u64).map(&mut thread).collect()
}

/// A run of these threads: numbered in any order, with records in any order.
fn run(threads: &[Synthetic], chance: &mut Chance) -> (Synthetic, Vec<usize>) {
    let order = chance.order(threads.len());
    let threads: Vec<Synthetic> = order.iter().map(|&thread| threads[thread].clone()).collect();
    (together(&threads, || (chance.below(threads.len()), chance.below(9))), order)
}

/// Has the program killed, or digests lost, or neither. Each thread has recorded something before it is killed: another one
/// may be taken for a thread that is not there.
fn damage(recording: &mut Synthetic, chance: &mut Chance) {
    if chance.below(3) == 0 {
        let mut begun = BTreeMap::new();
        for (index, record) in recording.records.iter().enumerate() {
            match record {
                Record::Operation(operation) => begun.entry(operation.thread).or_insert(index),
                Record::State(state) => begun.entry(state.thread).or_insert(index),
                _ => continue,
            };
        }
        let least = begun.into_values().max().map_or(0, |last| last + 1);
        recording.records.truncate(least + chance.below(recording.records.len() - least));
    }
    let lost = [0, 0, 2, 10][chance.below(4)];
    let mut lose = |digest: &mut Option<Digest>| {
        if chance.below(100) < lost {
            *digest = None;
        }
    };
    for record in &mut recording.records {
        match record {
            Record::Operation(operation) => operation.outputs.iter_mut().for_each(|output| lose(&mut output.digest)),
            Record::State(state) => state.tensors.iter_mut().for_each(|tensor| lose(&mut tensor.digest)),
            _ => {}
        }
    }
}

fn compared(first: &Synthetic, second: &Synthetic, folder: &Path) -> Comparison {
    compare(&first.write(folder, "a"), &second.write(folder, "b")).expect("a comparison")
}

#[test]
fn a_thousand_comparisons_raise_no_false_alarm() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..1000 {
        let mut chance = Chance(seed);
        let threads = threads(&mut chance);
        let mut runs = [0, 1].map(|_| run(&threads, &mut chance).0);
        if chance.below(3) == 0 {
            runs = runs.map(Synthetic::weights_only);
        }
        let is_damaged = seed % 2 == 1;
        if is_damaged {
            runs.iter_mut().for_each(|run| damage(run, &mut chance));
        }
        let comparison = compared(&runs[0], &runs[1], folder.path());
        let expected = match is_damaged {
            false => matches!(comparison.outcome, Outcome::Same),
            true => comparison.same() != Some(false),
        };
        assert!(expected, "seed {seed}: {comparison}");
    }
}

#[test]
fn each_of_many_differences_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..200 {
        let mut chance = Chance(seed);
        let mut threads = threads(&mut chance);
        let steps: Vec<u64> = threads.iter().map(Synthetic::first_step).collect();
        let (first, order) = run(&threads, &mut chance);
        let faulty = chance.below(threads.len());
        let number = chance.below((SETUP + STEPS * STEP) as usize) as u64;
        threads[faulty].corrupt(number);
        let (second, _) = run(&threads, &mut chance);
        let thread = order.iter().position(|&thread| thread == faulty).expect("a thread") as u32;

        let comparison = compared(&first, &second, folder.path());
        let is_upload = number < SETUP || (number - SETUP).is_multiple_of(STEP);
        let expected = if is_upload { Cause::Data { reordered: false } } else { Cause::Kernel(Owner::Library) };
        assert_eq!(cause(&comparison), (&expected, Some(number)), "seed {seed}: {comparison}");
        let pair = comparison.difference().and_then(|difference| difference.operation.as_ref()).expect("an operation");
        assert_eq!(pair.operations[0].thread, thread, "seed {seed}: {comparison}");
        assert_eq!(comparison.spread.others_count, 0, "seed {seed}: {comparison}");

        // By its weights, the step.
        let comparison = compared(&first.weights_only(), &second.weights_only(), folder.path());
        let state = comparison.state.as_ref().unwrap_or_else(|| panic!("seed {seed}: {comparison}"));
        assert_eq!(
            (state.thread, state.place.step),
            (thread, Some(steps[faulty] + number.saturating_sub(SETUP) / STEP)),
            "seed {seed}"
        );
    }
}
