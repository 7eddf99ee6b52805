//! What kernels ask of a device before they launch.

use crate::KernelError;
use cubecl::prelude::*;

/// Checks that a cube of `units` units fits the device.
pub fn require_units(client: &Client, kernel: &'static str, units: u32) -> Result<(), KernelError> {
    let has = client.properties().hardware.max_units_per_cube;
    match units <= has {
        true => Ok(()),
        false => Err(KernelError::Device { kernel, what: "units per cube", needs: units as usize, has: has as usize }),
    }
}

/// Checks that `bytes` of shared memory fit the device.
pub fn require_shared_memory(client: &Client, kernel: &'static str, bytes: usize) -> Result<(), KernelError> {
    let has = client.properties().hardware.max_shared_memory_size;
    match bytes <= has {
        true => Ok(()),
        false => Err(KernelError::Device { kernel, what: "bytes of shared memory", needs: bytes, has }),
    }
}
