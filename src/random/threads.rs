//! What each thread draws from, kept while the thread lives or its operations wait.

use super::position;
use super::thread::{MAX_CHANGES, Source, Thread};
use crate::error::Error;
use crate::settings::determinism;
use burn_backend::StreamId;
use core::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// By Burn's stream, which is how an operation that runs on the device's thread knows the thread that issued it.
/// Maps are looked up by key only, never iterated.
static THREADS: LazyLock<Mutex<HashMap<StreamId, Thread>>> = LazyLock::new(Mutex::default);

/// All threads.
pub(super) fn lock() -> MutexGuard<'static, HashMap<StreamId, Thread>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a thread draws from, and what it has drawn.
pub(super) fn with_thread<T>(stream: StreamId, body: impl FnOnce(&mut Thread) -> T) -> T {
    let seed = determinism().thread_seed;
    let is_new = touch(stream);
    let mut threads = lock();
    let thread = threads.entry(stream).or_insert_with(|| Thread::new(seed.map(Source::of_seed)));
    if is_new {
        thread.users += 1;
        thread.last_user = USERS.fetch_add(1, Ordering::Relaxed);
    }
    body(thread)
}

/// Changes what a thread draws from, for what it issues from now on.
pub(super) fn change<T>(stream: StreamId, change: impl FnOnce(&mut Thread) -> T) -> T {
    forget();
    let position = position::now();
    let (result, changes) = with_thread(stream, |thread| {
        let result = change(thread);
        (result, thread.note(position))
    });
    if changes > MAX_CHANGES {
        // Where a device fails nothing is forgotten, and the failure is the program's to read from its tensors.
        let _ = settle(stream).map(|()| with_thread(stream, Thread::forget));
    }
    result
}

/// Runs what a thread has issued, so that all its random operations are counted.
///
/// # Errors
///
/// [`Error::Device`] when a device cannot run its operations.
pub(super) fn settle(stream: StreamId) -> Result<(), Error> {
    let position = position::now();
    position::run_unasked(stream, || position::run_queued(stream))?;
    with_thread(stream, |thread| thread.settle(position));
    Ok(())
}

/// How many threads of the operating system have come to have a state.
static USERS: AtomicU64 = AtomicU64::new(0);

/// Streams that no live thread of the operating system uses.
static ENDED: Mutex<Vec<StreamId>> = Mutex::new(Vec::new());

/// Streams whose state this thread of the operating system has had, counted out when it ends. Not part of the
/// [context](crate::context): that is of the thread that runs operations, this of the one that issues them.
#[derive(Default)]
struct Touched(HashSet<StreamId>);

thread_local! {
    static TOUCHED: RefCell<Touched> = RefCell::default();
}

/// Whether this thread has not had the state of `stream` before.
fn touch(stream: StreamId) -> bool {
    // While the thread ends there is nothing to note in.
    TOUCHED.try_with(|touched| touched.borrow_mut().0.insert(stream)).unwrap_or(false)
}

impl Drop for Touched {
    fn drop(&mut self) {
        let mut threads = lock();
        for stream in &self.0 {
            if let Some(thread) = threads.get_mut(stream) {
                thread.users = thread.users.saturating_sub(1);
                if thread.users == 0 {
                    ENDED.lock().unwrap_or_else(PoisonError::into_inner).push(*stream);
                }
            }
        }
    }
}

/// Runs what ended threads have left in Burn's queues, and drops what is kept for them.
fn forget() {
    let ended = core::mem::take(&mut *ENDED.lock().unwrap_or_else(PoisonError::into_inner));
    for stream in ended {
        // A stream of workers may be in use again. Where a device fails, reads of its tensors return the error.
        let Some(before) = last_user(&lock(), stream) else { continue };
        if position::run_unasked(stream, || position::run_queued(stream)).is_err() {
            continue;
        }
        // Another worker may have come meanwhile, and left operations in the queue; under one lock none comes in between.
        let mut threads = lock();
        if last_user(&threads, stream) == Some(before) {
            threads.remove(&stream);
        }
    }
}

/// The number of the last thread of the operating system that had the state of `stream`, if none has it now.
fn last_user(threads: &HashMap<StreamId, Thread>, stream: StreamId) -> Option<u64> {
    threads.get(&stream).filter(|thread| thread.users == 0).map(|thread| thread.last_user)
}
