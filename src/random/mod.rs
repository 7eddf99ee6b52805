//! Seeds. Random numbers are addressed, not consumed: a random operation draws a stream of its own under its thread's
//! key.

mod position;

use crate::error::Error;
use burn_backend::{DType, DeviceId, Shape, StreamId};
use burn_ir::TensorId;
use std::collections::HashMap;
use std::sync::Mutex;

pub(crate) use position::issued;

/// The seeds of a thread and how many operations have drawn under each.
#[derive(Default)]
struct Thread {
    /// Each key, and the position in the program from which on it holds, ascending.
    keys: Vec<(TensorId, [u8; 32])>,
    /// Operations that have drawn, by the index of the key and the device.
    draws: HashMap<(usize, DeviceId), u64>,
}

/// By Burn's stream, which is how an operation that runs on the device's thread knows the thread that issued it.
/// Maps are looked up by key only, never iterated.
static THREADS: Mutex<Option<HashMap<StreamId, Thread>>> = Mutex::new(None);

/// Bits of a stream number that count the operations of one device; the bits above are the device's index.
const DEVICE_SHIFT: u32 = 48;

/// Seeds every random operation that this thread issues from now on.
///
/// Call it after [`enable_op_determinism`](crate::enable_op_determinism) and before the first module is initialised.
/// Calling it again starts the same numbers again. Another thread that draws random numbers calls it too, with a seed
/// of its own: no thread's numbers depend on what other threads do.
///
/// The `n`-th random operation of a thread on a device, from 0 and since the seed was set, draws stream
/// `n + 2^48 * index of the device` of ChaCha8 under the 32-byte key
/// `blake3::derive_key("burn-deterministic 1 random operations of a thread", seed as 8 little-endian bytes)`.
///
/// `Device::seed` does not reach this backend and has no effect on it.
pub fn set_random_seed(seed: u64) {
    let key = blake3::derive_key("burn-deterministic 1 random operations of a thread", &seed.to_le_bytes());
    let position = position::now();
    let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let thread = threads.get_or_insert_default().entry(StreamId::current()).or_default();
    thread.keys.push((position, key));
}

/// The key and stream of a random operation of the thread that issued the operation being run.
///
/// # Errors
///
/// [`Error::Unseeded`] when that thread had no seed when it issued the operation.
pub(crate) fn next_stream(
    operation: &'static str,
    shape: &Shape,
    dtype: DType,
    device: DeviceId,
) -> Result<([u8; 32], u64), Error> {
    let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let drawn = threads.as_mut().and_then(|threads| threads.get_mut(&StreamId::current())).and_then(|thread| {
        let later = match position::of_operation() {
            Some(position) => thread.keys.partition_point(|(since, _)| *since <= position),
            // Outside Burn's stream an operation runs where it is issued.
            None => thread.keys.len(),
        };
        let index = later.checked_sub(1)?;
        let draws = thread.draws.entry((index, device)).or_default();
        let stream = *draws + (u64::from(device.index_id) << DEVICE_SHIFT);
        *draws += 1;
        Some((thread.keys[index].1, stream))
    });
    drawn.ok_or_else(|| Error::Unseeded { operation, shape: shape.clone(), dtype })
}
