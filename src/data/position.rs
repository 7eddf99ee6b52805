//! How far a loader has come.

use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard};

/// A batch of an epoch, both from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The epoch.
    pub epoch: usize,
    /// The batch in it.
    pub batch: usize,
}

/// The positions of a loader and of its views on other devices.
#[derive(Debug, Default)]
pub(super) struct Progression(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Where the next pass starts.
    start: Position,
    /// The batch after the last one handed out.
    reached: Position,
    /// How many passes have started.
    passes: u64,
}

impl Progression {
    /// One whose next pass starts at `position`.
    pub(super) fn at(position: Position) -> Self {
        Self(Mutex::new(State { start: position, reached: position, passes: 0 }))
    }

    pub(super) fn reached(&self) -> Position {
        self.state().reached
    }

    pub(super) fn start(&self) -> Position {
        self.state().start
    }

    pub(super) fn resume_at(&self, position: Position) {
        let mut state = self.state();
        state.start = position;
        state.reached = position;
        // What passes that still run hand out does not count any more.
        state.passes += 1;
    }

    /// Starts a pass: its number and where it starts.
    pub(super) fn begin(&self) -> (u64, Position) {
        let mut state = self.state();
        let start = state.start;
        state.start = Position { epoch: start.epoch + 1, batch: 0 };
        state.reached = start;
        state.passes += 1;
        (state.passes, start)
    }

    /// The pass of that number has come to `position`. Of several at a time the one that started last counts.
    pub(super) fn advance(&self, pass: u64, position: Position) {
        let mut state = self.state();
        if state.passes == pass {
            state.reached = position;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a whole one.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
