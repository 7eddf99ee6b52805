//! Which devices pass through the deterministic backend, and which of them are in use.

use crate::error::Error;
use burn_backend::{Device as _, DeviceId};
use burn_core::tensor::Device;
use burn_cubecl::CubeDevice;
use burn_dispatch::{DispatchDevice, DispatchDeviceId};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bits of `DeviceId::type_id` below Burn's number of the backend.
const BACKEND_SHIFT: u32 = 8;

/// Whether operations on `device` run on the deterministic backend once determinism is
/// [enabled](crate::enable_op_determinism): a device of CubeCL (CUDA, ROCm, Metal, Vulkan, WebGPU), with or without
/// autodiff.
///
/// Flex, ndarray, tch, capture and remote devices are not covered. A remote device computes in the server's process,
/// which must enable determinism itself (or serve [`Deterministic`](crate::Deterministic)).
///
/// The device is not opened.
pub fn covers(device: &Device) -> bool {
    device.as_dispatch().to_id().type_id >> BACKEND_SHIFT == u16::from(DispatchDeviceId::Cube)
}

/// Requires that `device` is [covered](covers), for `function`.
///
/// # Errors
///
/// [`Error::NotCovered`].
pub(crate) fn check(function: &'static str, device: &Device) -> Result<(), Error> {
    match covers(device) {
        true => Ok(()),
        false => Err(Error::NotCovered { function, device: format!("{device:?}") }),
    }
}

/// The device of CubeCL's behind a device that is [covered](covers).
pub(crate) fn cube(device: &Device) -> CubeDevice {
    let id = device.as_dispatch().to_id();
    CubeDevice::from_id(DeviceId { type_id: id.type_id & ((1 << BACKEND_SHIFT) - 1), ..id })
}

/// The device of CubeCL's behind Burn's default one, which the environment variable `BURN_DEVICE` may choose. `None` where that is
/// not [covered](covers).
pub(crate) fn default_cube() -> Option<CubeDevice> {
    let device = Device::default();
    covers(&device).then(|| cube(&device))
}

/// The device of Burn's that is this one of CubeCL's.
pub(crate) fn of_cube(device: CubeDevice) -> Device {
    Device::new(DispatchDevice::from(device))
}

/// Devices on which Burn's stream has run something.
fn list() -> MutexGuard<'static, Vec<CubeDevice>> {
    static IN_USE: Mutex<Vec<CubeDevice>> = Mutex::new(Vec::new());
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a device on which Burn's stream runs something. Whether it is the first time.
pub(crate) fn note_use(device: &CubeDevice) -> bool {
    let mut devices = list();
    let is_first = !devices.contains(device);
    if is_first {
        devices.push(device.clone());
    }
    is_first
}

/// The devices on which Burn's stream has run something.
pub(crate) fn in_use() -> Vec<CubeDevice> {
    list().clone()
}
