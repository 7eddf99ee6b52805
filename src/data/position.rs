//! How far a loader has come.

use super::identity::Identity;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A batch of an epoch of a loader.
///
/// [`DataLoader::position`](super::DataLoader::position) gives it, and
/// [`DataLoader::resume_at`](super::DataLoader::resume_at) takes it. With serde it goes into a checkpoint:
/// `checkpoint.with_value("train", &loader.position())`.
///
/// It also holds what decides the loader's batches: its name, the range of its samples or the number of its shards, the
/// batch size, `drop_last`, `fixed_epoch`, its order (`shuffle`, `shuffle_window` or `weighted`) with the stream and a
/// digest of the weights, the stream of `random`, and the functions of its pipeline in order, with the streams of the
/// augmentations. Neither the number of workers nor that of prefetched batches is part of it: both may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The epoch, from 0.
    pub epoch: usize,
    /// The batch in it, from 0.
    pub batch: usize,
    pub(super) loader: Identity,
}

/// A batch of an epoch, both from 0, of any loader.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    pub(super) epoch: usize,
    pub(super) batch: usize,
}

/// How far a loader and its views on other devices have come.
#[derive(Debug, Default)]
pub(super) struct Progression {
    /// Whether each pass is the epoch of the one before.
    fixed: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Where the next pass starts.
    start: Cursor,
    /// The batch after the last one handed out.
    reached: Cursor,
    /// How many passes have started.
    passes: u64,
}

impl Progression {
    /// One whose next pass starts at `start`, and whose epoch is `fixed` or not.
    pub(super) fn at(start: Cursor, fixed: bool) -> Self {
        Self { fixed, state: Mutex::new(State { start, reached: start, passes: 0 }) }
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// The epoch of the pass after one of `epoch`.
    pub(super) fn after(&self, epoch: usize) -> usize {
        if self.fixed { epoch } else { epoch.saturating_add(1) }
    }

    pub(super) fn reached(&self) -> Cursor {
        self.state().reached
    }

    pub(super) fn start(&self) -> Cursor {
        self.state().start
    }

    pub(super) fn start_at(&self, start: Cursor) {
        let mut state = self.state();
        state.start = start;
        state.reached = start;
        // What passes that still run hand out does not count any more.
        state.passes += 1;
    }

    /// Starts a pass: its number and where it starts.
    pub(super) fn begin(&self) -> (u64, Cursor) {
        let mut state = self.state();
        let start = state.start;
        state.start = Cursor { epoch: self.after(start.epoch), batch: 0 };
        state.reached = start;
        state.passes += 1;
        (state.passes, start)
    }

    /// The pass of that number has come to `reached`. Of several at a time the one that started last counts.
    pub(super) fn advance(&self, pass: u64, reached: Cursor) {
        let mut state = self.state();
        if state.passes == pass {
            state.reached = reached;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a whole one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
