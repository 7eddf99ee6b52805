//! The operations of one thread on a device.

use super::count;
use super::mark::PartKind;
use burn_deterministic_recording::{Phase, Place, Record, Thread};
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The operations of one thread on the device.
pub(super) struct Queue {
    pub(super) number: u32,
    operations: Arc<AtomicU64>,
    pub(super) place: Place,
    /// The parts of the program in force, and where each begins.
    parts: Vec<(PartKind, String)>,
    /// What the present step began with.
    pub(super) step: Option<Begun>,
    /// Whether the program has ever said where a step begins.
    pub(super) says_steps: bool,
    /// The step that ended last.
    pub(super) last_step: Option<u64>,
    /// Whether a state has been recorded.
    pub(super) has_state: bool,
    pub(super) backward_passes: u64,
    /// The operations before the present one.
    pub(super) before_backward: u64,
    /// The operations before the present update.
    before_update: u64,
    /// The number of the step that the next batch begins.
    pub(super) next_batch: u64,
    /// The operations before the present batch.
    pub(super) before_batch: u64,
}

/// What a step began with.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Begun {
    /// `step`.
    Step,
    /// A batch of a loader.
    Batch,
}

impl Queue {
    pub(super) fn new() -> (Self, Record) {
        let (number, operations) = count::of_thread();
        let queue = Self {
            number,
            operations,
            place: Place::default(),
            parts: Vec::new(),
            step: None,
            says_steps: false,
            last_step: None,
            has_state: false,
            backward_passes: 0,
            before_backward: 0,
            before_update: 0,
            next_batch: 0,
            before_batch: 0,
        };
        (queue, Record::Thread(Thread { number }))
    }

    /// A part of the program begins at `source`.
    pub(super) fn part_begins(&mut self, kind: PartKind, source: String) {
        self.parts.push((kind, source));
        self.set_source();
    }

    /// The innermost part of this kind ends.
    pub(super) fn part_ends(&mut self, kind: PartKind) {
        if let Some(innermost) = self.parts.iter().rposition(|&(part, _)| part == kind) {
            self.parts.remove(innermost);
        }
        self.set_source();
    }

    fn set_source(&mut self) {
        self.place.source = self.parts.last().map(|(_, source)| source.clone());
    }

    /// The next operation's number.
    pub(super) fn count(&self) -> u64 {
        self.operations.fetch_add(1, Ordering::Relaxed)
    }

    /// How many operations there were.
    pub(super) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// The step. What comes before the first one is part of that, and what comes after one is part of it.
    pub(super) fn step_or_last(&self) -> Option<u64> {
        self.place.step.or(self.last_step)
    }

    /// Whether the end of an update would be the end of the step: the program does not say where steps are.
    pub(super) fn is_updating(&self) -> bool {
        !self.says_steps && self.place.phase == Phase::Update
    }

    /// The update begins with the next operation.
    pub(super) fn update(&mut self) {
        self.before_update = self.operations();
        self.place.phase = Phase::Update;
    }

    /// Whether the operation of this number is of the present update.
    pub(super) fn updated(&self, operation: u64) -> bool {
        self.place.phase == Phase::Update && operation >= self.before_update
    }

    /// Whether a step ends where a backward pass begins: the update that ended it was not recognised.
    pub(super) fn ends_by_pass(&self) -> bool {
        !self.says_steps && self.backward_passes > 0 && self.place.phase != Phase::Forward
    }
}
