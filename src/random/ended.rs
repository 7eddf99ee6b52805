//! Threads that end: what is kept for them is dropped, once their operations have run.

use super::{THREADS, position};
use burn_backend::StreamId;
use core::cell::RefCell;
use std::collections::HashSet;
use std::sync::Mutex;

/// Streams that no live thread of the operating system uses.
static ENDED: Mutex<Vec<StreamId>> = Mutex::new(Vec::new());

/// Streams whose state this thread has.
#[derive(Default)]
struct Touched(HashSet<StreamId>);

thread_local! {
    static TOUCHED: RefCell<Touched> = RefCell::default();
}

/// Whether this thread has not had the state of `stream` before.
pub(super) fn touch(stream: StreamId) -> bool {
    // While the thread ends there is nothing to note in.
    TOUCHED.try_with(|touched| touched.borrow_mut().0.insert(stream)).unwrap_or(false)
}

impl Drop for Touched {
    fn drop(&mut self) {
        let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(threads) = threads.as_mut() else { return };
        for stream in &self.0 {
            if let Some(thread) = threads.get_mut(stream) {
                thread.users = thread.users.saturating_sub(1);
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
        let ran = || position::run_unasked(stream, || position::run_queued(stream));
        if !is_unused(stream) || ran().is_err() {
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
