//! The numbers of two runs, one of which was resumed: the records before the step at which they meet are left out, and the later
//! ones of the resumed run get the numbers that the other run counts.

use super::comparison::Resumed;
use crate::record::{Origin, Place, Record, StateTensor};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How a resumed run is compared with one that was not interrupted.
pub(super) struct Resume {
    /// The side that was resumed.
    pub(super) side: usize,
    /// By thread. The others are not compared.
    pub(super) threads: BTreeMap<u32, Meeting>,
}

/// Where a thread of the resumed run meets that of the other run.
pub(super) struct Meeting {
    /// The side that was resumed.
    pub(super) side: usize,
    /// The place of the first step of the resumed run, as the other run counts.
    pub(super) step: Place,
    /// The place of the last state of the other run before that step.
    pub(super) after: Option<Place>,
    /// Whether the other run came as far as that step.
    pub(super) is_reached: bool,
    /// The number of the first operation that is compared, by side.
    pub(super) begin: [u64; 2],
    /// What is added to the steps of the resumed run.
    pub(super) steps: u64,
    /// The tensors that were loaded and those of the other run, by side. Both have the origin in the other run.
    pub(super) pairs: Vec<[StateTensor; 2]>,
    /// Parameters of the other run that were not loaded.
    pub(super) missing: Vec<StateTensor>,
    /// How many tensors were loaded that are not known in the other run.
    pub(super) unmatched: u64,
    /// From the origins of tensors that were loaded to those in the other run.
    pub(super) origins: HashMap<Origin, Origin>,
    /// The latter.
    pub(super) matched: HashSet<Origin>,
}

impl Meeting {
    /// A number of operations of a side, as the run counts them that was not interrupted.
    fn number(&self, side: usize, number: u64) -> u64 {
        number - self.begin[side] + self.begin[1 - self.side]
    }

    fn origin(&self, side: usize, origin: Origin) -> Option<Origin> {
        let Origin { operation, output } = origin;
        if operation >= self.begin[side] {
            return Some(Origin { operation: self.number(side, operation), output });
        }
        match side == self.side {
            true => self.origins.get(&origin).copied(),
            false => self.matched.contains(&origin).then_some(origin),
        }
    }

    fn place(&self, side: usize, place: &mut Place) {
        if side == self.side {
            place.step = place.step.map(|step| step.wrapping_add(self.steps));
        }
    }
}

impl Resume {
    /// What the report says of it.
    pub(super) fn summary(&self, threads: [u64; 2]) -> Option<Resumed> {
        let meeting = self.threads.values().next()?;
        Some(Resumed {
            side: self.side,
            step: meeting.step.step?,
            epoch: meeting.step.epoch,
            batch: meeting.step.batch,
            after: meeting.after.as_ref().and_then(|place| place.step),
            is_reached: self.threads.values().any(|meeting| meeting.is_reached),
            tensors: self.reached().map(|(_, meeting)| meeting.pairs.len() as u64).sum(),
            unmatched: self.reached().map(|(_, meeting)| meeting.unmatched).sum(),
            other_threads: threads.iter().any(|&threads| threads > self.reached().count() as u64),
        })
    }

    /// The threads in which the other run came as far as the resumed one began.
    pub(super) fn reached(&self) -> impl Iterator<Item = (u32, &Meeting)> {
        self.threads.iter().filter(|(_, meeting)| meeting.is_reached).map(|(&thread, meeting)| (thread, meeting))
    }

    fn meeting(&self, thread: u32) -> Option<&Meeting> {
        self.threads.get(&thread).filter(|meeting| meeting.is_reached)
    }

    /// Whether a record of a side is compared; if so, its numbers become those that the other run counts.
    pub(super) fn takes(&self, side: usize, record: &mut Record) -> bool {
        match record {
            Record::Operation(operation) => {
                let Some(meeting) = self.meeting(operation.thread) else { return false };
                if operation.number < meeting.begin[side] {
                    return false;
                }
                meeting.place(side, &mut operation.place);
                operation.number = meeting.number(side, operation.number);
                for input in &mut operation.inputs {
                    input.origin = input.origin.and_then(|origin| meeting.origin(side, origin));
                }
                true
            }
            Record::State(state) => {
                let Some(meeting) = self.meeting(state.thread) else { return false };
                let begin = meeting.begin[side];
                if state.operations <= begin {
                    return false;
                }
                meeting.place(side, &mut state.place);
                state.operations = meeting.number(side, state.operations);
                // What was made between two steps, the resumed run has loaded.
                state.tensors.retain(|tensor| tensor.origin.operation >= begin);
                for StateTensor { origin, .. } in &mut state.tensors {
                    origin.operation = meeting.number(side, origin.operation);
                }
                true
            }
            Record::End { operations, .. } => {
                for (thread, count) in (0..).zip(operations) {
                    let number = |meeting: &Meeting| meeting.number(side, meeting.begin[side].max(*count));
                    *count = self.meeting(thread).map_or(0, number);
                }
                true
            }
            Record::Header(_) | Record::Thread(_) => true,
        }
    }
}
