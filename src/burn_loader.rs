//! Burn's data loader with several workers, whose batches come in the order in which the workers are ready.

use crate::worker_streams;
use burn_backend::StreamId;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The name of a loader's second worker.
const SECOND_WORKER: &str = "dataloader-1";

/// The streams of other threads whose tensors were used; none once it was told.
static OWNERS: Mutex<Option<BTreeSet<u64>>> = Mutex::new(Some(BTreeSet::new()));

/// The last of them.
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Warns once, on standard error, if tensors of another thread are used, this one's, while Burn's loader has a second worker. Threads have
/// names on Linux alone.
pub(crate) fn warn_of_workers(owner: StreamId) {
    if LAST.swap(owner.value, Ordering::Relaxed) == owner.value || worker_streams::contains(owner) {
        return;
    }
    let mut owners = OWNERS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = owners.as_mut().is_some_and(|known| known.insert(owner.value));
    if is_new && has_second_worker() {
        *owners = None;
        let text = "a data loader of Burn's has several workers, and a thread uses tensors of another one: batches of that loader come in \
                    the order in which its workers are ready, so that two runs that train on them end with other weights; use \
                    `burn_deterministic::data::DataLoaderBuilder` in its place, or `num_workers(0)`";
        // A closed standard error must not become a panic.
        let _ = writeln!(std::io::stderr(), "burn-deterministic: {text}");
    }
}

fn has_second_worker() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm"));
    threads.flatten().any(|thread| name(thread).is_ok_and(|name| name.trim_end() == SECOND_WORKER))
}
