//! Which thread of one recording is which of the other.
//!
//! Threads are numbered in the order of their first operations, which is a race where several begin at once. Threads that
//! recorded the same from their beginning to their end are matched first, then those with the longest common beginning:
//! by what they did and computed, and where that decides nothing, by what they did.

use super::contrast::is_data;
use super::source::{Renamed, Source};
use crate::error::Error;
use crate::record::{Digest, Operation, Record, State};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// The threads of a recording, by number.
type Histories = BTreeMap<u32, History>;

/// What a thread recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct History {
    events: Vec<Event>,
    /// How many operations it issued, where the recording has its end.
    issued: Option<u64>,
}

/// A result of an operation, or a tensor of a state, in 8 bytes: a recording may have 10 million. Hashes of 32 bits that
/// happen to be equal make a common beginning seem longer, by one of 10^9 events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Event {
    /// A hash of what was done.
    done: u32,
    /// A hash of what was computed; 0 where its digest is unknown.
    computed: u32,
}

/// Which threads of the second recording have another number in the first.
pub(super) fn matched(paths: &[PathBuf; 2]) -> Result<Renamed, Error> {
    let mut sources =
        [Source::open(&paths[0], &Renamed::new(), None)?, Source::open(&paths[1], &Renamed::new(), None)?];
    // With other levels, states are all that both have of a step.
    let operations = sources[0].header.level == sources[1].header.level;
    let [first, second] = &mut sources;
    Ok(matching(histories(first, operations)?, histories(second, operations)?))
}

fn histories(source: &mut Source, operations: bool) -> Result<Histories, Error> {
    let mut histories = Histories::new();
    while let Some(record) = source.next()? {
        match record {
            Record::Thread(thread) => drop(histories.entry(thread.number).or_default()),
            Record::Operation(operation) if operations => {
                histories.entry(operation.thread).or_default().events.extend(Event::of_operation(&operation));
            }
            Record::State(state) => histories.entry(state.thread).or_default().events.extend(Event::of_state(&state)),
            Record::End { operations, .. } => {
                for (thread, count) in (0..).zip(operations) {
                    histories.entry(thread).or_default().issued = Some(count);
                }
            }
            _ => {}
        }
    }
    Ok(histories)
}

impl Event {
    /// Of an operation or a state with these results; one of it has no result.
    fn of(done: impl Hash, computed: impl Hash, results: impl ExactSizeIterator<Item = Option<Digest>>) -> Vec<Self> {
        let (done, computed, count) = (hash(done), hash(computed), results.len());
        let event = |(index, digest): (usize, Option<Digest>)| Self {
            done: hash((done, index, count)),
            computed: digest.map_or(0, |digest| hash((computed, digest)).max(1)),
        };
        if count == 0 {
            vec![Self { done, computed: computed.max(1) }]
        } else {
            results.enumerate().map(event).collect()
        }
    }

    fn of_operation(operation: &Operation) -> Vec<Self> {
        let forms: Vec<_> = operation.outputs.iter().map(|output| (&output.shape, &output.dtype)).collect();
        let inputs: Vec<_> = operation.inputs.iter().map(|input| (input.origin, &input.shape, &input.dtype)).collect();
        // The shape of data is data.
        let (fixed, data) = if is_data(operation) { (Vec::new(), forms) } else { (forms, Vec::new()) };
        let done = (operation.number, &operation.name, inputs, fixed);
        let computed = (&operation.parameters, data, operation.error.is_some());
        let results = if operation.error.is_some() { &[] } else { &operation.outputs[..] };
        Self::of(done, computed, results.iter().map(|output| output.digest))
    }

    fn of_state(state: &State) -> Vec<Self> {
        // Of the tensors without a name, one run may have more.
        let is_named = state.tensors.iter().any(|tensor| tensor.parameter.is_some());
        let tensors: Vec<_> = state.tensors.iter().filter(|tensor| !is_named || tensor.parameter.is_some()).collect();
        let forms: Vec<_> =
            tensors.iter().map(|tensor| (tensor.origin, &tensor.shape, &tensor.dtype, &tensor.parameter)).collect();
        Self::of((state.operations, state.place.step), forms, tensors.iter().map(|tensor| tensor.digest))
    }

    /// Whether two threads may have done and computed the same.
    fn agrees(self, other: Self) -> bool {
        self.done == other.done && (self.computed == other.computed || self.computed == 0 || other.computed == 0)
    }
}

fn hash(value: impl Hash) -> u32 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish() as u32
}

impl History {
    /// The length of the common beginning: of what was done and computed, how much of that is known to be equal, and of what
    /// was done.
    fn common(&self, other: &Self) -> [usize; 3] {
        let pairs = || self.events.iter().zip(&other.events);
        let agreeing = || pairs().take_while(|(one, other)| one.agrees(**other));
        [
            agreeing().count(),
            agreeing().filter(|(one, other)| one == other && one.computed != 0).count(),
            pairs().take_while(|(one, other)| one.done == other.done).count(),
        ]
    }
}

fn matching(mut first: Histories, mut second: Histories) -> Renamed {
    let taken: BTreeSet<u32> = first.keys().chain(second.keys()).copied().collect();
    let mut renamed = Renamed::new();
    let mut pair = |first: &mut Histories, second: &mut Histories, one: u32, other: u32| {
        if first.contains_key(&one) && second.contains_key(&other) {
            first.remove(&one);
            second.remove(&other);
            renamed.insert(other, one);
        }
    };
    for (one, other) in equal(&first, &second) {
        pair(&mut first, &mut second, one, other);
    }
    let mut candidates = Vec::new();
    for (&one, history) in &first {
        for (&other, another) in &second {
            let common = history.common(another);
            if common != [0; 3] {
                candidates.push((Reverse(common), history.issued != another.issued, one != other, one, other));
            }
        }
    }
    candidates.sort_unstable();
    for (.., one, other) in candidates {
        pair(&mut first, &mut second, one, other);
    }
    // What has no counterpart keeps its number where that is free, and gets a new one where not. Threads of which nothing
    // is recorded but their lengths are as good as each other.
    let of_nothing = |threads: &Histories| -> Vec<u32> {
        threads.iter().filter(|(_, history)| history.events.is_empty()).map(|(&thread, _)| thread).collect()
    };
    for (one, other) in of_nothing(&first).into_iter().zip(of_nothing(&second)) {
        pair(&mut first, &mut second, one, other);
    }
    let mut next = taken.last().map_or(0, |last| last + 1);
    let used: BTreeSet<u32> = renamed.values().copied().collect();
    for &thread in second.keys() {
        let is_free = !used.contains(&thread);
        renamed.insert(thread, if is_free { thread } else { next });
        next += u32::from(!is_free);
    }
    renamed.retain(|from, to| from != to);
    renamed
}

/// Pairs of threads that recorded the same from beginning to end; of several, those with equal numbers.
fn equal(first: &Histories, second: &Histories) -> Vec<(u32, u32)> {
    let mut by_history: HashMap<&History, BTreeSet<u32>> = HashMap::new();
    for (&thread, history) in first {
        by_history.entry(history).or_default().insert(thread);
    }
    let mut pairs = Vec::new();
    let mut others = Vec::new();
    for (&thread, history) in second {
        if by_history.get_mut(history).is_some_and(|same| same.remove(&thread)) {
            pairs.push((thread, thread));
        } else {
            others.push((thread, history));
        }
    }
    for (thread, history) in others {
        pairs.extend(by_history.get_mut(history).and_then(BTreeSet::pop_first).map(|one| (one, thread)));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads whose events do the tens of these numbers and compute the ones; 0 is unknown.
    fn threads(threads: &[(u32, &[u32])]) -> Histories {
        let history = |events: &[u32]| History {
            events: events.iter().map(|event| Event { done: event / 10, computed: event % 10 }).collect(),
            issued: Some(events.len() as u64),
        };
        threads.iter().map(|(number, events)| (*number, history(events))).collect()
    }

    #[test]
    fn the_longest_common_beginning_decides() {
        let first = threads(&[(0, &[11, 21]), (1, &[31, 41, 52]), (2, &[31, 41, 62])]);
        let second = threads(&[(0, &[11, 21]), (1, &[31, 41, 63]), (2, &[31, 41, 53])]);
        assert_eq!(matching(first.clone(), second), Renamed::from([(1, 2), (2, 1)]));
        assert_eq!(matching(first.clone(), first), Renamed::new());
    }

    #[test]
    fn threads_that_part_late_are_told_apart() {
        let mut begin: Vec<u32> = (1..900).map(|event| 10 * event + 1).collect();
        let thread = |last: u32| [&begin[..], &[last]].concat();
        let first = threads(&[(0, &thread(9991)), (1, &thread(9992))]);
        let second = threads(&[(0, &thread(9992)), (1, &thread(9991))]);
        assert_eq!(matching(first.clone(), second), Renamed::from([(0, 1), (1, 0)]));
        // One was cut before that.
        let cut = threads(&[(0, &thread(9992)), (1, &begin)]);
        assert_eq!(matching(first.clone(), cut), Renamed::from([(0, 1), (1, 0)]));
        // What is unknown decides nothing.
        begin[3] = 40;
        let thread = |last: u32| [&begin[..], &[last]].concat();
        let second = threads(&[(0, &thread(9992)), (1, &thread(9991))]);
        assert_eq!(matching(first, second), Renamed::from([(0, 1), (1, 0)]));
    }

    #[test]
    fn what_a_thread_does_decides_where_its_results_are_others() {
        let first = threads(&[(0, &[11, 21]), (1, &[31, 41])]);
        let second = threads(&[(0, &[32, 42]), (1, &[12, 22])]);
        assert_eq!(matching(first, second), Renamed::from([(0, 1), (1, 0)]));
    }

    #[test]
    fn a_thread_without_a_counterpart_keeps_or_gets_a_number_of_its_own() {
        let first = threads(&[(0, &[11])]);
        let second = threads(&[(0, &[71]), (1, &[11]), (2, &[81])]);
        assert_eq!(matching(first, second), Renamed::from([(0, 3), (1, 0)]));
    }

    #[test]
    fn threads_that_do_the_same_keep_their_numbers() {
        let first = threads(&[(0, &[11]), (1, &[11]), (2, &[11])]);
        let second = threads(&[(1, &[11]), (2, &[11]), (4, &[11])]);
        assert_eq!(matching(first, second), Renamed::from([(4, 0)]));
    }

    #[test]
    fn threads_of_which_only_their_lengths_are_known_are_matched_by_these() {
        let of = |lengths: &[(u32, u64)]| -> Histories {
            let history = |issued| History { events: Vec::new(), issued: Some(issued) };
            lengths.iter().map(|&(thread, issued)| (thread, history(issued))).collect()
        };
        let renamed = matching(of(&[(1, 13), (2, 12), (3, 5)]), of(&[(1, 12), (2, 13), (4, 6)]));
        assert_eq!(renamed, Renamed::from([(1, 2), (2, 1), (4, 3)]));
    }
}
