//! What kernels ask of a device before they launch.

use crate::KernelError;
use cubecl::ir::FloatKind;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

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

/// Checks that a cube of `units` units fits the device.
pub fn require_units(client: &Client, kernel: &'static str, units: u32) -> Result<(), KernelError> {
    require(kernel, "units per cube", units as usize, client.properties().hardware.max_units_per_cube as usize)
}

/// Checks that `bytes` of shared memory fit the device.
pub fn require_shared_memory(client: &Client, kernel: &'static str, bytes: usize) -> Result<(), KernelError> {
    require(kernel, "bytes of shared memory", bytes, client.properties().hardware.max_shared_memory_size)
}

/// The element type float chains run in: f32 for half types, else the operands' own. Refuses operands of different or
/// unsupported types, and operands that 32-bit indices cannot reach over.
pub(crate) fn float_accumulator(
    client: &Client,
    kernel: &'static str,
    operands: &[&TensorHandle],
) -> Result<ElemType, KernelError> {
    let dtype = operands[0].dtype;
    if let Some(other) = operands.iter().find(|operand| operand.dtype != dtype) {
        let reason = format!("operands of {dtype} and of {}, want one element type", other.dtype);
        return Err(KernelError::Shape { kernel, reason });
    }
    require_reach(kernel, operands.iter().copied())?;
    let refuse = |remedy| Err(KernelError::Dtype { kernel, dtype, remedy });
    if !client.properties().supports_type(dtype) {
        return refuse("the device does not have it: convert to f32");
    }
    match dtype {
        ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16) => Ok(ElemType::Float(FloatKind::F32)),
        ElemType::Float(FloatKind::F64) => Ok(dtype),
        _ => refuse("convert to f32, f64, f16 or bf16"),
    }
}

/// Refuses operands that 32-bit indices cannot reach over.
pub(crate) fn require_reach<'a>(
    kernel: &'static str,
    operands: impl IntoIterator<Item = &'a TensorHandle>,
) -> Result<(), KernelError> {
    let far = |operand: &&TensorHandle| {
        let reach = |(&size, &stride): (&usize, &usize)| size.saturating_sub(1).saturating_mul(stride);
        let reach = operand.shape().iter().zip(operand.strides().iter()).map(reach);
        reach.fold(0, usize::saturating_add) >= u32::MAX as usize
    };
    let Some(operand) = operands.into_iter().find(far) else { return Ok(()) };
    let (shape, strides) = (operand.shape(), operand.strides());
    let reason = format!("an operand {:?} with strides {:?} reaches over 2^32 elements", &shape[..], &strides[..]);
    Err(KernelError::Shape { kernel, reason })
}

/// Refuses an operand whose shape is not `want`.
pub(crate) fn require_shape(
    kernel: &'static str,
    name: &str,
    got: &[usize],
    want: &[usize],
) -> Result<(), KernelError> {
    match got == want {
        true => Ok(()),
        false => Err(KernelError::Shape { kernel, reason: format!("{name} {got:?}, want {want:?}") }),
    }
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
