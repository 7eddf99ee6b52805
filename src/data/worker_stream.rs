//! Burn's streams of workers.

use crate::random::unseed;
use crate::worker_streams;
use burn_backend::StreamId;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A stream of Burn's for one worker at a time.
///
/// A thread would get one of its own, and with it memory of every device it uses, for the rest of the process. Workers
/// end with their pass, so they take streams that earlier ones have left.
pub(super) struct WorkerStream(StreamId);

/// Streams that no worker has.
static LEFT: Mutex<Vec<StreamId>> = Mutex::new(Vec::new());

fn left() -> MutexGuard<'static, Vec<StreamId>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkerStream {
    pub(super) fn take() -> Self {
        let taken = left().pop();
        Self(taken.unwrap_or_else(|| {
            let stream = StreamId::allocate();
            worker_streams::add(stream);
            stream
        }))
    }

    /// Runs a worker on the stream.
    pub(super) fn run(self, work: impl FnOnce()) {
        self.0.executes(|| {
            work();
            // The next worker draws from nothing that this one may have set.
            unseed();
        });
    }
}

impl Drop for WorkerStream {
    fn drop(&mut self) {
        // A worker that panics leaves its random numbers behind.
        if !std::thread::panicking() {
            left().push(self.0);
        }
    }
}
