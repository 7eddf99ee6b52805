//! Seeds set with `Device::seed`, Burn's own way of seeding.
//!
//! Burn hands such a seed to its plain generator, which is private, and tells no one else. So this module plants a seed of its
//! own in that generator. Where a thread without a seed or stream draws, it draws from the plain generator: other numbers
//! than those of the planted seed are a function of the program's seed, and become the thread's key:
//!
//! ```text
//! derive_key("burn-deterministic 1 seed of a device", the bits of 32 uniform f32 of Burn's plain generator)
//! ```
//!
//! Then it plants its seed again. One thread on one device has that seed: the one that drew first after it was set.
//! Setting it again is noticed at the first draw after the thread's operations have run to the last, as `Device::seed` makes them.

use super::thread::{Held, Source};
use super::threads;
use crate::context;
use crate::error::Error;
use crate::settings::is_op_determinism_enabled;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{Backend, DType, DeviceId, Distribution, FloatDType, Shape, StreamId, read_sync};
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_ir::TensorId;
use core::sync::atomic::{AtomicBool, Ordering};
use cubecl::device::CpuDevice;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The seed planted: the first digits of pi, which no program is likely to choose.
const PLANTED: u64 = 0x243F_6A88_85A3_08D3;

/// Numbers drawn to compare two generators: several times as many bits as a generator's state has.
const NUMBERS: usize = 32;

#[derive(Default)]
struct State {
    /// The thread that has the last seed, and the device it draws on; none yet after a restore.
    owner: Option<(StreamId, Option<DeviceId>)>,
    /// Whether its operations have run to the last since it drew.
    waited: bool,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Whether some thread draws from a device's seed.
static IN_USE: AtomicBool = AtomicBool::new(false);

fn with_state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    let mut state: MutexGuard<_> = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    body(state.get_or_insert_default())
}

/// Plants the known seed.
pub(crate) fn plant() {
    // Burn's generator is one for all devices, whichever is given.
    CubeBackend::seed(&CubeDevice::Cpu(CpuDevice), PLANTED);
}

/// Notes that the operations of `stream` have run to the last.
pub(crate) fn waited(stream: StreamId) {
    if IN_USE.load(Ordering::Relaxed) {
        with_state(|state| state.waited |= state.owner.is_some_and(|(owner, _)| owner == stream));
    }
}

/// Notes that `stream` goes on with a restored seed. One that the program has set before does not count any more.
pub(super) fn restored(stream: StreamId) {
    with_state(|state| *state = State { owner: Some((stream, None)), waited: false });
    IN_USE.store(true, Ordering::Relaxed);
    if is_op_determinism_enabled() {
        plant();
    }
}

/// Gives the thread `stream` the seed that the program has set with `Device::seed`, from `position` on, if there is a new
/// one and the thread has none of its own.
///
/// # Errors
///
/// [`Error::SeedOfAnotherThread`] when another thread has drawn from that seed, or this one on another device.
pub(super) fn honour(
    operation: &'static str,
    shape: &Shape,
    dtype: DType,
    position: TensorId,
    device: &CubeDevice,
) -> Result<(), Error> {
    debug_assert!(is_op_determinism_enabled() && context::position().is_some(), "operations of Burn's stream only");
    let stream = StreamId::current();
    let held = threads::lock().get(&stream).map_or(Held::Nothing, |thread| thread.held(position));
    let asks = match held {
        Held::Own => return Ok(()),
        Held::SeedOfDevice => with_state(|state| match state.owner {
            Some((owner, _)) if owner == stream => core::mem::take(&mut state.waited),
            _ => true,
        }),
        Held::Nothing => true,
    };
    if asks && let Some(source) = program_seed(device) {
        with_state(|state| *state = State { owner: Some((stream, Some(device.to_id()))), waited: false });
        IN_USE.store(true, Ordering::Relaxed);
        threads::lock().entry(stream).or_default().take_seed_of_device(position, source);
    }
    let is_owner = with_state(|state| {
        let Some((owner, drawn_on)) = &mut state.owner else { return true };
        *owner == stream && *drawn_on.get_or_insert(device.to_id()) == device.to_id()
    });
    match is_owner {
        true => Ok(()),
        false => {
            Err(Error::SeedOfAnotherThread { operation, shape: shape.clone(), dtype, device: format!("{device:?}") })
        }
    }
}

/// What the program's seed gives, if it has set one since the last call; the planted seed is there afterwards.
fn program_seed(device: &CubeDevice) -> Option<Source> {
    // One at a time: between two calls of a generator another thread could draw.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let found = drawn(device);
    plant();
    let planted = drawn(device);
    plant();
    let (found, planted) = (found?, planted?);
    (found != planted).then(|| Source::new(blake3::derive_key("burn-deterministic 1 seed of a device", &found)))
}

/// Numbers of Burn's plain generator; none where the device fails, which says so at the next read.
fn drawn(device: &CubeDevice) -> Option<Vec<u8>> {
    let numbers = CubeBackend::float_random([NUMBERS].into(), Distribution::Default, device, FloatDType::F32);
    read_sync(CubeBackend::float_into_data(numbers)).ok().map(|data| data.as_bytes().to_vec())
}
