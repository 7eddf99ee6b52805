//! What kernels ask of a device before they launch: which it is, what kind of machine, and whether a cube fits it.

use crate::KernelError;
use core::any::TypeId;
use cubecl::prelude::*;

/// What runs the cubes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// A GPU: adjacent units want adjacent elements, shared memory feeds units, and many of them hide latency.
    Gpu,
    /// A software driver: a cube is one thread, its units are the lanes of a vector in a loop, shared memory is plain
    /// memory, a barrier costs microseconds.
    Software,
}

impl Machine {
    /// What the client's device is. Planes of at most 8 units are the vector registers of a CPU (lavapipe's 8,
    /// SwiftShader's 4); GPUs offer 16 and more.
    pub fn of(client: &Client) -> Self {
        let hardware = &client.properties().hardware;
        match hardware.plane_size_max <= 8 || hardware.num_cpu_cores.is_some() {
            true => Self::Software,
            false => Self::Gpu,
        }
    }
}

/// A device: its runtime's type, the kind and the number that the runtime has for it.
pub(crate) type DeviceKey = (TypeId, u16, u16);

/// The client's device.
pub(crate) fn device_key(client: &Client) -> DeviceKey {
    let id = client.service_id();
    (id.service, id.device.type_id, id.device.index_id)
}

/// Checks that a cube of `units` units fits the device.
pub fn require_units(client: &Client, kernel: &'static str, units: u32) -> Result<(), KernelError> {
    require(kernel, "units per cube", units as usize, client.properties().hardware.max_units_per_cube as usize)
}

/// Checks that `bytes` of shared memory fit the device.
pub fn require_shared_memory(client: &Client, kernel: &'static str, bytes: usize) -> Result<(), KernelError> {
    require(kernel, "bytes of shared memory", bytes, client.properties().hardware.max_shared_memory_size)
}

/// Refuses a device that has less of something than a kernel needs.
fn require(kernel: &'static str, what: &'static str, needs: usize, has: usize) -> Result<(), KernelError> {
    match needs <= has {
        true => Ok(()),
        false => Err(KernelError::Device { kernel, what, needs, has }),
    }
}

#[cfg(test)]
mod tests {
    use super::require;

    #[test]
    fn a_device_with_less_is_refused_by_name() {
        assert_eq!(require("matmul", "units per cube", 256, 256), Ok(()));
        assert_eq!(require("matmul", "units per cube", 0, 0), Ok(()));
        let refused = require("matmul", "units per cube", 256, 128).unwrap_err().to_string();
        assert_eq!(refused, "matmul: needs 256 units per cube, the device has 128; use another device or driver");
        let refused = require("reduce::sum", "bytes of shared memory", 16_384, 16_383).unwrap_err().to_string();
        assert!(
            refused.starts_with("reduce::sum: needs 16384 bytes of shared memory, the device has 16383"),
            "{refused}"
        );
    }
}
