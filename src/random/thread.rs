//! What a thread draws from, and how much it has drawn.

use burn_ir::TensorId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Changes of a thread's stream that are kept, for operations that still wait to run. Past it the thread's operations
/// are run first.
pub(super) const MAX_CHANGES: usize = 1 << 12;

/// A key, and how many operations have drawn under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    key: [u8; 32],
    /// By device, ascending.
    draws: Vec<Draws>,
    /// Whether all devices count as number 0.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    any_device: bool,
}

/// A device's number in the streams: 0 for the default device, so that a program draws the same on any; else one more than
/// `type << 16 | index` of Burn's `DeviceId`.
pub(super) type DeviceNumber = u32;

/// How many operations have drawn on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Draws {
    device: DeviceNumber,
    operations: u64,
}

/// The key of [`RandomStream::from_seed`](crate::RandomStream::from_seed).
pub(super) fn key_of_seed(seed: u64) -> [u8; 32] {
    blake3::derive_key("burn-deterministic 1 random operations of a thread", &seed.to_le_bytes())
}

impl Source {
    /// Nothing drawn yet.
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { key, draws: Vec::new(), any_device: false }
    }

    /// Nothing drawn yet, and all devices count as number 0.
    pub(super) fn on_any_device(key: [u8; 32]) -> Self {
        Self { any_device: true, ..Self::new(key) }
    }

    /// What a thread of this seed draws from, nothing drawn yet.
    pub(super) fn of_seed(seed: u64) -> Self {
        Self::new(key_of_seed(seed))
    }

    pub(super) fn key(&self) -> [u8; 32] {
        self.key
    }

    /// The key, and ChaCha's stream of the next operation on `device`.
    pub(super) fn draw(&mut self, device: DeviceNumber) -> ([u8; 32], u64) {
        let device = if self.any_device { 0 } else { device };
        let at = self.draws.binary_search_by_key(&device, |draws| draws.device).unwrap_or_else(|at| {
            self.draws.insert(at, Draws { device, operations: 0 });
            at
        });
        let operation = self.draws[at].operations;
        self.draws[at].operations += 1;
        (self.key_of(operation >> 32), (u64::from(device) << 32) | (operation & u64::from(u32::MAX)))
    }

    /// The key of the operations `turn * 2^32` and later: ChaCha's stream number holds the low 32 bits only.
    fn key_of(&self, turn: u64) -> [u8; 32] {
        if turn == 0 {
            return self.key;
        }
        let mut hasher = blake3::Hasher::new_derive_key("burn-deterministic 1 later operations of a stream");
        hasher.update(&self.key).update(&turn.to_le_bytes());
        *hasher.finalize().as_bytes()
    }
}

/// What a thread draws from at some position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// A seed or stream that the program gave the thread.
    Own,
    /// A seed set with `Device::seed`.
    SeedOfDevice,
    Nothing,
}

/// A source of a thread: its number in the thread.
type Number = u64;

/// The sources of a thread.
#[derive(Default)]
pub(super) struct Thread {
    /// What the thread draws from where it has entered nothing.
    seeded: Option<Number>,
    /// What it has entered, innermost last; and by which guard.
    entered: Vec<(Number, Number)>,
    sources: HashMap<Number, Source>,
    /// Of the sources, the last one set with `Device::seed`.
    seed_of_device: Option<Number>,
    /// Threads of the operating system that have this state and live.
    pub(super) users: usize,
    /// Of all threads of the operating system that came to have a state, the number of the last that has this one.
    pub(super) last_user: u64,
    /// The position in the program from which on a source holds, ascending.
    changes: Vec<(TensorId, Option<Number>)>,
    /// The position up to which every operation has been counted.
    settled: Option<TensorId>,
    /// Numbers given.
    numbers: Number,
}

impl Thread {
    /// A thread that draws from `seed` from its start.
    pub(super) fn new(seed: Option<Source>) -> Self {
        let mut thread = Self::default();
        if let Some(seed) = seed {
            thread.seed(seed);
            thread.note(TensorId::new(0));
        }
        thread
    }

    fn add(&mut self, source: Source) -> Number {
        self.numbers += 1;
        self.sources.insert(self.numbers, source);
        self.numbers
    }

    fn current(&self) -> Option<Number> {
        self.entered.last().map(|(source, _)| *source).or(self.seeded)
    }

    /// What the thread draws from now.
    pub(super) fn source(&self) -> Option<&Source> {
        self.sources.get(&self.current()?)
    }

    /// Draws from `source` from now on; whatever was entered has ended.
    pub(super) fn seed(&mut self, source: Source) {
        self.entered.clear();
        self.seeded = Some(self.add(source));
    }

    /// Draws from `source`, a seed set with `Device::seed`, from `position` on wherever the thread has no seed of its own.
    pub(super) fn take_seed_of_device(&mut self, position: TensorId, source: Source) {
        let (before, now) = (self.seed_of_device, Some(self.add(source)));
        if self.seeded == before {
            self.seeded = now;
        }
        let at = self.changes.partition_point(|(since, _)| *since <= position);
        for (_, later) in &mut self.changes[at..] {
            if *later == before {
                *later = now;
            }
        }
        self.changes.insert(at, (position, now));
        self.seed_of_device = now;
        // Operations run in order: the oldest changes are of operations that have run.
        if self.changes.len() > MAX_CHANGES {
            self.changes.drain(..MAX_CHANGES / 2);
            self.drop_unheld();
        }
    }

    /// What the thread draws from at `position`.
    pub(super) fn held(&self, position: TensorId) -> Held {
        match self.at(position) {
            None => Held::Nothing,
            number if number == self.seed_of_device => Held::SeedOfDevice,
            Some(_) => Held::Own,
        }
    }

    /// The source that holds at `position`.
    fn at(&self, position: TensorId) -> Option<Number> {
        let later = self.changes.partition_point(|(since, _)| *since <= position);
        self.changes[later.checked_sub(1)?].1
    }

    /// Draws from nothing from now on.
    pub(super) fn unseed(&mut self) {
        self.entered.clear();
        self.seeded = None;
    }

    /// Enters `source`; gives what [`exit`](Self::exit) is to be called with.
    pub(super) fn enter(&mut self, source: Source) -> Number {
        let guard = self.add(source);
        self.entered.push((guard, guard));
        guard
    }

    /// Ends what was entered under `guard`, if it has not ended yet.
    pub(super) fn exit(&mut self, guard: Number) {
        self.entered.retain(|(_, entered_by)| *entered_by != guard);
    }

    /// The sources that the thread draws from: its seed's, and the entered ones, innermost last.
    pub(super) fn save(&self) -> (Option<Source>, Vec<Source>) {
        let source = |number: &Number| self.sources[number].clone();
        (self.seeded.as_ref().map(source), self.entered.iter().map(|(number, _)| source(number)).collect())
    }

    /// Whether the seed was set with `Device::seed`.
    pub(super) fn has_seed_of_device(&self) -> bool {
        self.seeded.is_some() && self.seeded == self.seed_of_device
    }

    /// How many streams are entered.
    pub(super) fn depth(&self) -> usize {
        self.entered.len()
    }

    /// Puts back what [`save`](Self::save) and [`has_seed_of_device`](Self::has_seed_of_device) gave, with as many streams
    /// entered.
    pub(super) fn restore(&mut self, seeded: Option<Source>, of_device: bool, entered: Vec<Source>) {
        self.seeded = seeded.map(|source| self.add(source));
        if of_device {
            self.seed_of_device = self.seeded;
        }
        for (index, source) in entered.into_iter().enumerate() {
            self.entered[index].0 = self.add(source);
        }
    }

    /// Notes that what the thread draws from holds from `position` on; gives the number of changes noted.
    pub(super) fn note(&mut self, position: TensorId) -> usize {
        let current = self.current();
        if self.changes.last().is_none_or(|(_, source)| *source != current) {
            self.changes.push((position, current));
        }
        self.changes.len()
    }

    /// Every operation issued before `position` has been counted.
    pub(super) fn settle(&mut self, position: TensorId) {
        self.settled = Some(position);
    }

    /// Whether an operation at `position` has been counted, or should have been.
    pub(super) fn is_settled(&self, position: TensorId) -> bool {
        self.settled.is_some_and(|settled| position <= settled)
    }

    /// Drops what only operations that have been counted draw from.
    pub(super) fn forget(&mut self) {
        let held = self.settled.map_or(0, |settled| self.changes.partition_point(|(since, _)| *since <= settled));
        self.changes.drain(..held.saturating_sub(1));
        self.drop_unheld();
    }

    /// Drops sources that nothing can draw from.
    fn drop_unheld(&mut self) {
        let kept = |number: &Number| {
            [self.seeded, self.seed_of_device].contains(&Some(*number))
                || self.entered.iter().any(|(source, _)| source == number)
                || self.changes.iter().any(|(_, source)| *source == Some(*number))
        };
        self.sources.retain(|number, _| kept(number));
    }

    /// The next draw on `device` from what held at `position`; from what holds now, where there is no position.
    pub(super) fn draw(&mut self, position: Option<TensorId>, device: DeviceNumber) -> Option<([u8; 32], u64)> {
        let source = match position {
            Some(position) => self.at(position)?,
            None => self.current()?,
        };
        Some(self.sources.get_mut(&source)?.draw(device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: DeviceNumber = 3 << 16 | 1;

    fn key(number: u8) -> [u8; 32] {
        [number; 32]
    }

    fn draw(thread: &mut Thread, position: u64) -> Option<(u8, u64)> {
        thread.draw(Some(TensorId::new(position)), DEVICE).map(|(key, stream)| (key[0], stream))
    }

    #[test]
    fn what_waits_draws_from_what_held_when_it_was_issued() {
        let mut thread = Thread::default();
        assert_eq!(draw(&mut thread, 5), None);
        thread.seed(Source::new(key(1)));
        thread.note(TensorId::new(10));
        let guard = thread.enter(Source::new(key(2)));
        thread.note(TensorId::new(20));
        thread.exit(guard);
        assert_eq!(thread.note(TensorId::new(30)), 3);
        let high = 3 << 48 | 1 << 32;
        assert_eq!(
            [9, 11, 21, 29, 31].map(|position| draw(&mut thread, position)),
            [None, Some((1, high)), Some((2, high)), Some((2, high | 1)), Some((1, high | 1)),]
        );
    }

    #[test]
    fn a_thread_draws_from_its_first_seed_before_it_has_another() {
        let mut thread = Thread::new(Some(Source::new(key(7))));
        thread.seed(Source::new(key(1)));
        thread.note(TensorId::new(10));
        assert_eq!([0, 9, 10].map(|position| draw(&mut thread, position).map(|(key, _)| key)), [7, 7, 1].map(Some));
        assert_eq!(draw(&mut Thread::new(None), 0), None);
    }

    #[test]
    fn operations_are_counted_beyond_32_bits() {
        let mut source = Source::new(key(1));
        source.draw(DEVICE);
        source.draws[0].operations = u64::from(u32::MAX);
        let [last, first, second] = [(); 3].map(|()| source.draw(DEVICE));
        let device = 3 << 48 | 1 << 32;
        assert_eq!(last, (key(1), device | u64::from(u32::MAX)));
        assert_eq!([first.1, second.1], [device, device | 1]);
        assert!(first.0 == second.0 && first.0 != last.0, "another key");
        assert_eq!(source.draws[0].operations, (1 << 32) + 2);
    }

    #[test]
    fn a_seed_of_a_device_holds_where_the_thread_has_no_other() {
        let mut thread = Thread::default();
        thread.take_seed_of_device(TensorId::new(10), Source::new(key(1)));
        let guard = thread.enter(Source::new(key(2)));
        thread.note(TensorId::new(20));
        thread.exit(guard);
        thread.note(TensorId::new(30));
        thread.take_seed_of_device(TensorId::new(15), Source::new(key(3)));
        let keys = |thread: &mut Thread, positions: [u64; 5]| positions.map(|at| draw(thread, at).map(|(key, _)| key));
        assert_eq!(keys(&mut thread, [9, 10, 15, 20, 30]), [None, Some(1), Some(3), Some(2), Some(3)]);
        thread.seed(Source::new(key(4)));
        thread.note(TensorId::new(40));
        thread.take_seed_of_device(TensorId::new(35), Source::new(key(5)));
        assert_eq!(keys(&mut thread, [34, 35, 39, 40, 50]), [Some(3), Some(5), Some(5), Some(4), Some(4)]);
        assert!(thread.held(TensorId::new(40)) == Held::Own && thread.held(TensorId::new(39)) == Held::SeedOfDevice);
    }

    #[test]
    fn only_what_nothing_can_draw_from_is_forgotten() {
        let mut thread = Thread::default();
        thread.seed(Source::new(key(0)));
        thread.note(TensorId::new(0));
        let outer = thread.enter(Source::new(key(1)));
        thread.note(TensorId::new(1));
        for turn in 0..100 {
            let guard = thread.enter(Source::new(key(2)));
            thread.note(TensorId::new(10 * turn + 2));
            thread.exit(guard);
            thread.note(TensorId::new(10 * turn + 5));
        }
        thread.forget();
        assert_eq!((thread.sources.len(), thread.changes.len()), (102, 202), "nothing is known to have run");
        // Between the last stream's start and its end.
        thread.settle(TensorId::new(993));
        assert!(thread.is_settled(TensorId::new(993)) && !thread.is_settled(TensorId::new(994)));
        thread.forget();
        assert_eq!((thread.sources.len(), thread.changes.len()), (3, 2));
        assert_eq!(draw(&mut thread, 994).map(|(key, _)| key), Some(2));
        assert_eq!(draw(&mut thread, 999).map(|(key, _)| key), Some(1));
        thread.exit(outer);
        thread.note(TensorId::new(1000));
        assert_eq!(draw(&mut thread, 1001).map(|(key, _)| key), Some(0));
    }
}
