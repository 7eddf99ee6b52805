//! Seeds. Random numbers are addressed, not consumed: draw `n` of a thread is stream `n` of that thread's key.

use crate::error::Error;
use burn_backend::{DType, Shape, StreamId};
use std::collections::HashMap;
use std::sync::Mutex;

/// The key of a thread's random numbers and how many operations have drawn from it.
#[derive(Clone, Copy)]
struct ThreadDraws {
    key: [u8; 32],
    operations: u64,
}

/// By Burn's stream, which is how an operation that runs on the device's thread knows the thread that issued it.
/// Looked up by key only, never iterated.
static DRAWS: Mutex<Option<HashMap<StreamId, ThreadDraws>>> = Mutex::new(None);

/// Seeds every random operation that this thread issues from now on.
///
/// Call it after [`enable_op_determinism`](crate::enable_op_determinism) and before the first module is initialised.
/// Calling it again starts the same numbers again. Another thread that draws random numbers calls it too, with a seed
/// of its own: no thread's numbers depend on what other threads do.
///
/// The numbers of a thread's `n`-th random operation (from 0) are stream `n` of ChaCha8 with the 32-byte key
/// `blake3::derive_key("burn-deterministic 1 random operations of a thread", seed as 8 little-endian bytes)`.
///
/// `Device::seed` does not reach this backend and has no effect on it.
pub fn set_random_seed(seed: u64) {
    let key = blake3::derive_key("burn-deterministic 1 random operations of a thread", &seed.to_le_bytes());
    let mut draws = DRAWS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    draws.get_or_insert_default().insert(StreamId::current(), ThreadDraws { key, operations: 0 });
}

/// The key and stream of the next random operation of the thread whose operation is being run.
///
/// # Errors
///
/// [`Error::Unseeded`] when that thread has no seed.
pub(crate) fn next_stream(operation: &'static str, shape: &Shape, dtype: DType) -> Result<([u8; 32], u64), Error> {
    let mut draws = DRAWS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match draws.as_mut().and_then(|draws| draws.get_mut(&StreamId::current())) {
        Some(thread) => {
            let stream = thread.operations;
            thread.operations += 1;
            Ok((thread.key, stream))
        }
        None => Err(Error::Unseeded { operation, shape: shape.clone(), dtype }),
    }
}
