//! How many operations each thread has issued on each device.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// By the number of the thread.
static COUNTS: Mutex<Vec<Arc<AtomicU64>>> = Mutex::new(Vec::new());

/// A new thread's number, and its count.
pub(super) fn of_thread() -> (u32, Arc<AtomicU64>) {
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = Arc::new(AtomicU64::new(0));
    counts.push(count.clone());
    (counts.len() as u32 - 1, count)
}

/// All counts, by the number of the thread.
pub(super) fn all() -> Vec<u64> {
    let counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}
