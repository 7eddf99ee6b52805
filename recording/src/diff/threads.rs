//! Which thread of one recording is which of the other.
//!
//! Threads are numbered in the order of their first operations, so workers may have other numbers in another run. Threads
//! with the longest common beginning are matched: first by what they do and compute, then by what they do.

use super::source::{Renamed, Source};
use crate::error::Error;
use crate::record::{Operation, Record};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// So many of a thread's first operations are looked at.
const BEGINNING: usize = 64;

/// Hashes of the beginnings of a thread, of one operation, two, and so on: with results and without.
type Beginnings = BTreeMap<u32, [Vec<u64>; 2]>;

/// Which threads of the second recording have another number in the first.
pub(super) fn matched(paths: &[PathBuf; 2]) -> Result<Renamed, Error> {
    Ok(matching(beginnings(&paths[0])?, beginnings(&paths[1])?))
}

fn beginnings(path: &Path) -> Result<Beginnings, Error> {
    let mut source = Source::open(path, &Renamed::new())?;
    let mut beginnings = Beginnings::new();
    while let Some(record) = source.next()? {
        if let Record::Operation(operation) = record {
            let hashes = beginnings.entry(operation.thread).or_default();
            if hashes[0].len() < BEGINNING {
                for (results, hashes) in [true, false].into_iter().zip(hashes) {
                    let hash = hash(&operation, results, hashes.last().copied());
                    hashes.push(hash);
                }
            }
        }
    }
    Ok(beginnings)
}

/// Of an operation and what came before it, but for the numbers of threads.
fn hash(operation: &Operation, results: bool, before: Option<u64>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before, operation.number, &operation.name, &operation.parameters).hash(&mut hasher);
    for input in &operation.inputs {
        (&input.shape, &input.dtype).hash(&mut hasher);
    }
    for output in &operation.outputs {
        (&output.shape, &output.dtype, output.digest.filter(|_| results)).hash(&mut hasher);
    }
    hasher.finish()
}

fn matching(mut first: Beginnings, mut second: Beginnings) -> Renamed {
    let mut renamed = Renamed::new();
    let taken: BTreeSet<u32> = first.keys().chain(second.keys()).copied().collect();
    for kind in 0..2 {
        for length in (1..=BEGINNING).rev() {
            let mut by_hash: HashMap<u64, BTreeSet<u32>> = HashMap::new();
            for (&thread, hashes) in &first {
                if let Some(&hash) = hashes[kind].get(length - 1) {
                    by_hash.entry(hash).or_default().insert(thread);
                }
            }
            let candidates: Vec<u32> = second.keys().copied().collect();
            // Those that keep their number first: a worker that does the same as others stays what it is.
            for keeps in [true, false] {
                for &thread in &candidates {
                    let Some(hash) = second.get(&thread).and_then(|hashes| hashes[kind].get(length - 1)) else {
                        continue;
                    };
                    let Some(same) = by_hash.get_mut(hash) else { continue };
                    let found = if keeps { same.get(&thread).copied() } else { same.first().copied() };
                    if let Some(found) = found {
                        same.remove(&found);
                        first.remove(&found);
                        second.remove(&thread);
                        renamed.insert(thread, found);
                    }
                }
            }
        }
    }
    // What has no counterpart keeps its number if that is free, and gets a new one if not.
    let mut next = taken.last().map_or(0, |last| last + 1);
    let used: BTreeSet<u32> = renamed.values().copied().collect();
    for &thread in second.keys() {
        let free = !used.contains(&thread);
        renamed.insert(thread, if free { thread } else { next });
        next += u32::from(!free);
    }
    renamed.retain(|from, to| from != to);
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(threads: &[(u32, &[u64])]) -> Beginnings {
        let hashes = |values: &[u64]| {
            let chain = values.iter().scan(1_u64, |hash, value| {
                *hash = hash.wrapping_mul(31).wrapping_add(*value);
                Some(*hash)
            });
            chain.collect::<Vec<u64>>()
        };
        let kinds =
            |values: &[u64]| [hashes(values), hashes(&values.iter().map(|value| value / 10).collect::<Vec<_>>())];
        threads.iter().map(|(number, values)| (*number, kinds(values))).collect()
    }

    #[test]
    fn the_longest_common_beginning_decides() {
        let first = threads(&[(0, &[10, 20]), (1, &[30, 40, 51]), (2, &[30, 40, 61])]);
        let second = threads(&[(0, &[10, 20]), (1, &[30, 40, 61]), (2, &[30, 40, 51])]);
        assert_eq!(matching(first.clone(), second), Renamed::from([(1, 2), (2, 1)]));
        assert_eq!(matching(first.clone(), first), Renamed::new());
    }

    #[test]
    fn what_a_thread_does_decides_where_its_results_are_others() {
        let first = threads(&[(0, &[10, 20]), (1, &[30, 40])]);
        let second = threads(&[(0, &[31, 41]), (1, &[11, 21])]);
        assert_eq!(matching(first, second), Renamed::from([(0, 1), (1, 0)]));
    }

    #[test]
    fn a_thread_without_a_counterpart_keeps_or_gets_a_number_of_its_own() {
        let first = threads(&[(0, &[10])]);
        let second = threads(&[(0, &[70]), (1, &[10]), (2, &[80])]);
        assert_eq!(matching(first, second), Renamed::from([(0, 3), (1, 0)]));
    }

    #[test]
    fn threads_that_do_the_same_keep_their_numbers() {
        let first = threads(&[(0, &[10]), (1, &[10]), (2, &[10])]);
        let second = threads(&[(1, &[10]), (2, &[10]), (4, &[10])]);
        assert_eq!(matching(first, second), Renamed::from([(4, 0)]));
    }
}
