//! Seeds. Random numbers are addressed, not consumed: a random operation draws a stream of its own under its thread's
//! key.

mod position;
mod repeat;

use crate::error::Error;
use burn_backend::{DType, DeviceId, Shape, StreamId};
use burn_cubecl::CubeDevice;
use burn_ir::TensorId;
use repeat::Draw;
use std::collections::HashMap;
use std::sync::Mutex;

pub(crate) use position::{issued, of_operation, tensors_exist};
pub(crate) use repeat::repeatable;

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

/// The seed of operations that come neither over Burn's stream nor from a thread with a seed, and how many operations
/// have drawn under it, by device.
static BACKEND: Mutex<Option<Thread>> = Mutex::new(None);

/// Seeds every random operation that this thread issues from now on.
///
/// Call it after [`enable_op_determinism`](crate::enable_op_determinism) and before the first module is initialised.
/// Calling it again starts the same numbers again. Another thread that draws random numbers calls it too, with a seed
/// of its own: no thread's numbers depend on what other threads do.
///
/// The `n`-th random operation of a thread on a device, from 0 and since the seed was set, draws a stream of ChaCha8
/// under the 32-byte key
/// `blake3::derive_key("burn-deterministic 1 random operations of a thread", seed as 8 little-endian bytes)`.
/// The stream's number is `n` in the low 32 bits, and in the high ones Burn's id of the device: its type, then its
/// index, 16 bits each.
///
/// `Device::seed` does not reach this backend and has no effect on it.
pub fn set_random_seed(seed: u64) {
    let position = position::now();
    let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let thread = threads.get_or_insert_default().entry(StreamId::current()).or_default();
    thread.keys.push((position, key(seed)));
}

/// Seeds the operations that a server or a program runs on the backend itself: `Backend::seed`.
///
/// Behind a server the seed arrives on one thread and operations run on others, so it holds for all of them.
pub(crate) fn set_backend_seed(seed: u64) {
    let mut backend = BACKEND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    *backend = Some(Thread { keys: vec![(position::now(), key(seed))], draws: HashMap::new() });
}

fn key(seed: u64) -> [u8; 32] {
    blake3::derive_key("burn-deterministic 1 random operations of a thread", &seed.to_le_bytes())
}

impl Thread {
    /// The key that holds at `position` (the last one, where there is none), and the next stream of `device` under it.
    fn draw(&mut self, position: Option<TensorId>, device: DeviceId) -> Option<Draw> {
        let later = match position {
            Some(position) => self.keys.partition_point(|(since, _)| *since <= position),
            None => self.keys.len(),
        };
        let index = later.checked_sub(1)?;
        let draws = self.draws.entry((index, device)).or_default();
        let operation = u32::try_from(*draws).expect("less than 2^32 random operations under one seed");
        *draws += 1;
        let device = (u64::from(device.type_id) << 16) | u64::from(device.index_id);
        Some((self.keys[index].1, (device << 32) | u64::from(operation)))
    }
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
    device: &CubeDevice,
) -> Result<Draw, Error> {
    repeat::again(|| draw(operation, shape, dtype, device))
}

/// [`next_stream`], of an operation that runs for the first time.
fn draw(operation: &'static str, shape: &Shape, dtype: DType, device: &CubeDevice) -> Result<Draw, Error> {
    let position = position::of_operation();
    let of_thread = {
        let mut threads = THREADS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let thread = threads.as_mut().and_then(|threads| threads.get_mut(&StreamId::current()));
        thread.and_then(|thread| thread.draw(position, device.to_id()))
    };
    let drawn = of_thread.or_else(|| {
        // Outside Burn's stream an operation runs where it is issued, and has no position.
        let mut backend = BACKEND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        backend.as_mut().filter(|_| position.is_none())?.draw(None, device.to_id())
    });
    let device = || format!("{device:?}");
    drawn.ok_or_else(|| Error::Unseeded { operation, shape: shape.clone(), dtype, device: device() })
}
