//! The streams of Burn's that loaders' workers have.
//!
//! Any worker may take any batch, and nobody waits for a worker: what its stream computes belongs to whoever uses the
//! batch. So its operations are not recorded (what they upload is, where another thread first uses it), and it is told
//! of no other thread's index errors.

use burn_backend::StreamId;
use std::sync::Mutex;

static STREAMS: Mutex<Vec<StreamId>> = Mutex::new(Vec::new());

/// Notes that `stream` is a worker's.
pub(crate) fn add(stream: StreamId) {
    STREAMS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(stream);
}

/// Whether `stream` is a worker's.
pub(crate) fn contains(stream: StreamId) -> bool {
    STREAMS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).contains(&stream)
}
