//! Where in its program a thread issued an operation.
//!
//! Burn's stream runs operations later than they are issued, on a thread of the device, so a seed set between two
//! operations cannot be distinguished from one set before both by the time they run. But burn-fusion gives every tensor a
//! number from one ascending counter when the operation that makes it is issued: a seed notes the counter, and an operation belongs
//! to the last seed noted before its output's number. The same holds for a stream that is entered or left.

use crate::device;
use crate::error::Error;
use crate::settings::is_op_determinism_enabled;
use burn_backend::StreamId;
use burn_cubecl::{CubeDevice, fusion::FusionCubeRuntime};
use burn_fusion::client::GlobalFusionClient;
use burn_ir::TensorId;
use cubecl::device::CpuDevice;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The current value of burn-fusion's counter.
pub(super) fn now() -> TensorId {
    Counter::with(|counter| counter.next())
}

/// Whether the program has made a tensor on a device of Burn's stream, be it that its operation still waits to run.
pub(crate) fn tensors_exist() -> bool {
    tensors_made() > 0
}

/// How many tensors the program has made on devices of Burn's stream.
fn tensors_made() -> u64 {
    Counter::with(|counter| {
        let taken = counter.taken;
        counter.next().value() - taken
    })
}

/// A client of burn-fusion, of which there is one: every client counts on the same counter.
struct Counter {
    /// For a device that no CubeCL runtime here brings up; it is never sent anything.
    client: GlobalFusionClient<FusionCubeRuntime>,
    /// Numbers this crate has taken from the counter, which starts at 0.
    taken: u64,
}

impl Counter {
    fn with<T>(body: impl FnOnce(&mut Self) -> T) -> T {
        static COUNTER: Mutex<Option<Counter>> = Mutex::new(None);
        let mut counter = COUNTER.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Self { client: GlobalFusionClient::new(CubeDevice::Cpu(CpuDevice)), taken: 0 };
        body(counter.get_or_insert_with(new))
    }

    fn next(&mut self) -> TensorId {
        self.taken += 1;
        self.client.create_empty_handle()
    }
}

/// Streams whose operations this crate has run by itself, while they run.
static UNASKED: Mutex<Vec<StreamId>> = Mutex::new(Vec::new());

fn unasked() -> MutexGuard<'static, Vec<StreamId>> {
    UNASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether `stream` is run by this crate, and not because the program waits: then an index out of range is reported later.
pub(crate) fn is_run_unasked(stream: StreamId) -> bool {
    unasked().contains(&stream)
}

/// Runs `body`, which has `stream` run, though the program does not wait for it.
pub(crate) fn run_unasked<T>(stream: StreamId, body: impl FnOnce() -> T) -> T {
    struct Leave(StreamId);
    impl Drop for Leave {
        fn drop(&mut self) {
            let mut unasked = unasked();
            if let Some(this) = unasked.iter().position(|stream| *stream == self.0) {
                unasked.swap_remove(this);
            }
        }
    }
    unasked().push(stream);
    let _leave = Leave(stream);
    body()
}

/// Runs what Burn's stream `stream` still holds, on every device [in use](device::in_use).
///
/// A device whose very first operation waits is not in use yet. That is the default device, which is asked in any case, or
/// one whose operation will find that it was not counted.
///
/// # Errors
///
/// [`Error::Device`] when a device cannot run its operations.
pub(super) fn run_queued(stream: StreamId) -> Result<(), Error> {
    if !tensors_exist() {
        return Ok(());
    }
    let mut devices = device::in_use();
    devices.extend(device::default_cube().filter(|default| !devices.contains(default)));
    devices.iter().try_for_each(|device| run_on(device, stream))
}

/// Runs what Burn's stream `stream` still holds on `device`.
///
/// # Errors
///
/// [`Error::Device`] when the device cannot run its operations.
pub(crate) fn run_on(device: &CubeDevice, stream: StreamId) -> Result<(), Error> {
    let client = GlobalFusionClient::<FusionCubeRuntime>::new(device.clone());
    stream.executes(|| client.try_sync(|| ())).map_err(|error| Error::Device {
        device: format!("{device:?}"),
        reason: error.message().unwrap_or("its thread is gone").to_owned(),
    })
}

/// Runs `body`, and then what it has issued in this thread, without waiting for the device. What fails is the program's
/// to read from its tensors.
pub(crate) fn begun<T>(body: impl FnOnce() -> T) -> T {
    if !is_op_determinism_enabled() {
        return body();
    }
    let before = tensors_made();
    let result = body();
    if tensors_made() != before {
        let _ = run_queued(StreamId::current());
    }
    result
}
