//! Element types: names, what a kernel supports, and in which type it accumulates.

pub(crate) mod key;

use crate::KernelError;
use crate::view::require_reach;
use cubecl::ir::{ElemType, FloatKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

pub(crate) const F32: ElemType = ElemType::Float(FloatKind::F32);
pub(crate) const F64: ElemType = ElemType::Float(FloatKind::F64);
/// The type of positions, keys and counters.
pub(crate) const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// The type in which values of a type are combined: f32 for f16 and bf16, else the type itself.
pub(crate) fn accumulator(storage: ElemType) -> ElemType {
    match storage {
        ElemType::Float(FloatKind::F16 | FloatKind::BF16) => F32,
        other => other,
    }
}

/// Refuses element types that are not plain numbers or that the device does not have.
pub(crate) fn supported(
    client: &Client,
    kernel: &'static str,
    dtype: ElemType,
    remedy: &'static str,
) -> Result<(), KernelError> {
    let plain = match dtype {
        ElemType::Float(kind) => {
            matches!(kind, FloatKind::F16 | FloatKind::BF16 | FloatKind::F32 | FloatKind::F64)
        }
        ElemType::Int(_) | ElemType::UInt(_) => true,
        _ => false,
    };
    match plain && client.properties().supports_type(dtype) {
        true => Ok(()),
        false => Err(KernelError::Dtype { kernel, dtype, remedy }),
    }
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
        ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16) => Ok(F32),
        ElemType::Float(FloatKind::F64) => Ok(dtype),
        _ => refuse("convert to f32, f64, f16 or bf16"),
    }
}
