//! Threads that end: what is kept for them is dropped, once their operations have run.

use super::{THREADS, position, seeded_only};
use burn_backend::StreamId;
use core::cell::RefCell;
use std::collections::HashSet;
use std::sync::Mutex;

/// Streams whose last thread has ended.
static ENDED: Mutex<Vec<StreamId>> = Mutex::new(Vec::new());

#[derive(Default)]
struct Touched {
    /// Streams whose state this thread has.
    streams: HashSet<StreamId>,
    /// Whether it has seeded before determinism was enabled.
    seeded_before_enabling: bool,
}

thread_local! {
    static TOUCHED: RefCell<Touched> = RefCell::default();
}

/// Whether this thread has not had the state of `stream` before.
pub(super) fn touch(stream: StreamId) -> bool {
    // While the thread ends there is nothing to note in.
    TOUCHED.try_with(|touched| touched.borrow_mut().streams.insert(stream)).unwrap_or(false)
}

/// Notes that this thread has seeded in a program that has not enabled determinism so far.
pub(super) fn seeded_before_enabling() {
    TOUCHED.with_borrow_mut(|touched| touched.seeded_before_enabling = true);
}

impl Drop for Touched {
    fn drop(&mut self) {
        if self.seeded_before_enabling {
            seeded_only::tell(None);
        }
        let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(threads) = threads.as_mut() else { return };
        for stream in &self.streams {
            if let Some(thread) = threads.get_mut(stream) {
                thread.users -= 1;
                if thread.users == 0 {
                    ENDED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(*stream);
                }
            }
        }
    }
}

/// Runs what ended threads have left in Burn's queues, and drops what is kept for them.
pub(super) fn forget() {
    let ended = core::mem::take(&mut *ENDED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    for stream in ended {
        // A stream of workers may be in use again. Where a device fails, its tensors tell.
        if !is_unused(stream) || position::run_queued(stream).is_err() {
            continue;
        }
        let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(threads) = threads.as_mut()
            && threads.get(&stream).is_some_and(|thread| thread.users == 0)
        {
            threads.remove(&stream);
        }
    }
}

fn is_unused(stream: StreamId) -> bool {
    let threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    threads.as_ref().and_then(|threads| threads.get(&stream)).is_some_and(|thread| thread.users == 0)
}
