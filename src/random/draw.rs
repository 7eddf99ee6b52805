//! What a random operation draws.

use super::thread::{DeviceNumber, Source, Thread};
use super::{device_seed, repeat, seeded_only, threads};
use crate::context::{self, Draw};
use crate::device;
use crate::error::Error;
use crate::settings::{OnViolation, determinism};
use burn_backend::{DType, DeviceId, Shape, StreamId};
use burn_cubecl::CubeDevice;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What operations draw from that come neither over Burn's stream nor from a thread with a stream.
static BACKEND: Mutex<Option<Source>> = Mutex::new(None);

/// Seeds the operations that a server or a program runs on the backend itself: `Backend::seed`.
///
/// Behind a server the seed arrives on one thread and operations run on others, so it holds for all of them.
pub(crate) fn set_backend_seed(seed: u64) {
    let mut backend = BACKEND.lock().unwrap_or_else(PoisonError::into_inner);
    *backend = Some(Source::of_seed(seed));
}

/// The key and stream of a random operation of the thread that issued the operation being run.
///
/// # Errors
///
/// [`Error::Unseeded`] when that thread had no stream when it issued the operation, [`Error::SeedOfAnotherThread`] when
/// another thread draws from the seed of `Device::seed`, [`Error::Uncounted`] when the thread's state was taken since, and
/// had to count it.
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
    let position = context::position();
    if position.is_none() {
        seeded_only::drawn();
    }
    // Outside Burn's stream an operation runs where it is issued, and has no position.
    let thread_seed = position.and_then(|_| determinism().thread_seed);
    if let (Some(position), None, OnViolation::Error) = (position, thread_seed, determinism().on_violation) {
        device_seed::honour(operation, shape, dtype, position, device)?;
    }
    let number = number_of(device);
    let of_thread = {
        let mut threads = threads::lock();
        let thread = match thread_seed {
            Some(seed) => {
                Some(threads.entry(StreamId::current()).or_insert_with(|| Thread::new(Some(Source::of_seed(seed)))))
            }
            None => threads.get_mut(&StreamId::current()),
        };
        if let Some(thread) = &thread
            && position.is_some_and(|position| thread.is_settled(position))
        {
            return Err(Error::Uncounted { operation, device: format!("{device:?}") });
        }
        thread.and_then(|thread| thread.draw(position, number))
    };
    let drawn = of_thread.or_else(|| {
        let mut backend = BACKEND.lock().unwrap_or_else(PoisonError::into_inner);
        Some(backend.as_mut().filter(|_| position.is_none())?.draw(number))
    });
    drawn.ok_or_else(|| Error::Unseeded { operation, shape: shape.clone(), dtype, device: format!("{device:?}") })
}

/// The device's number in the streams.
fn number_of(device: &CubeDevice) -> DeviceNumber {
    static DEFAULT: OnceLock<Option<CubeDevice>> = OnceLock::new();
    if DEFAULT.get_or_init(device::default_cube).as_ref() == Some(device) {
        return 0;
    }
    let DeviceId { type_id, index_id } = device.to_id();
    (u32::from(type_id) << 16 | u32::from(index_id)) + 1
}
