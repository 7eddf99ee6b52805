//! What an update or a read accepts: element types and shapes.

use crate::KernelError;
use crate::device::require_units;
use crate::launch::UNITS;
use crate::scatter::axes::checked_elements;
use crate::scatter::plan::Problem;
use cubecl::ir::{FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The element types of one update.
#[derive(Clone, Copy)]
pub(super) struct Types {
    pub(super) storage: ElemType,
    pub(super) accumulator: ElemType,
    pub(super) index: ElemType,
}

impl Types {
    pub(super) fn of(
        client: &Client,
        kernel: &'static str,
        tensor: &TensorHandle,
        indices: &TensorHandle,
        values: &TensorHandle,
    ) -> Result<Self, KernelError> {
        let storage = tensor.dtype;
        if values.dtype != storage {
            let reason = format!("values are {}, the tensor they update is {storage}", values.dtype);
            return Err(KernelError::Shape { kernel, reason });
        }
        let index = index_type(client, kernel, indices)?;
        require_units(client, kernel, UNITS)?;
        supported(client, kernel, storage, "update f64, f32, f16, bf16 or an integer type that the device has")?;
        Ok(Self { storage, accumulator: accumulator(storage), index })
    }

    pub(super) fn is_float(&self) -> bool {
        matches!(self.storage, ElemType::Float(_))
    }
}

/// The type in which values of a type are combined.
pub(super) fn accumulator(storage: ElemType) -> ElemType {
    match storage {
        ElemType::Float(FloatKind::F16 | FloatKind::BF16) => ElemType::Float(FloatKind::F32),
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

/// The type of an index tensor, if it is one.
pub(super) fn index_type(
    client: &Client,
    kernel: &'static str,
    indices: &TensorHandle,
) -> Result<ElemType, KernelError> {
    const REMEDY: &str = "index with i32, i64 or u32, whichever the device has";
    let dtype = indices.dtype;
    match dtype {
        ElemType::Int(IntKind::I32 | IntKind::I64) | ElemType::UInt(UIntKind::U32) => {
            supported(client, kernel, dtype, REMEDY).map(|()| dtype)
        }
        _ => Err(KernelError::Dtype { kernel, dtype, remedy: REMEDY }),
    }
}

pub(super) fn scatter_problem(
    dim: usize,
    tensor: &TensorHandle,
    indices: &TensorHandle,
    values: &TensorHandle,
) -> Result<Problem, KernelError> {
    const KERNEL: &str = "scatter::scatter";
    if indices.shape() != values.shape() {
        let (indices, values) = (indices.shape().as_slice(), values.shape().as_slice());
        let reason = format!("indices {indices:?} and values {values:?} differ in shape");
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    axis_problem(KERNEL, dim, tensor.shape(), values.shape())
}

pub(super) fn select_assign_problem(
    dim: usize,
    tensor: &TensorHandle,
    indices: &TensorHandle,
    values: &TensorHandle,
) -> Result<Problem, KernelError> {
    const KERNEL: &str = "scatter::select_assign";
    let problem = axis_problem(KERNEL, dim, tensor.shape(), values.shape())?;
    if indices.shape().to_vec() != [problem.sources] {
        let (indices, values) = (indices.shape().as_slice(), values.shape().as_slice());
        let reason = format!("indices {indices:?} do not number the rows of values {values:?} along axis {dim}");
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    Ok(problem)
}

pub(super) fn scatter_nd_problem(
    tensor: &TensorHandle,
    indices: &TensorHandle,
    values: &TensorHandle,
) -> Result<Problem, KernelError> {
    const KERNEL: &str = "scatter::scatter_nd";
    let batch = tuple_axes(KERNEL, tensor.shape(), indices.shape())?;
    let parts = indices.shape()[batch];
    let expected: Vec<usize> = indices.shape()[..batch].iter().chain(&tensor.shape()[parts..]).copied().collect();
    if values.shape().to_vec() != expected {
        let [tensor, indices, values] = [tensor, indices, values].map(|operand| operand.shape().as_slice());
        let reason = format!(
            "values {values:?} for tensor {tensor:?} and indices {indices:?}, want values of shape {expected:?}"
        );
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    checked_elements(KERNEL, tensor.shape())?;
    checked_elements(KERNEL, values.shape())?;
    Ok(Problem {
        outer: 1,
        rows: tensor.shape()[..parts].iter().product(),
        sources: indices.shape()[..batch].iter().product(),
        inner: tensor.shape()[parts..].iter().product(),
    })
}

/// The number of axes of `indices` before its tuples, if these name places in `tensor`.
pub(super) fn tuple_axes(kernel: &'static str, tensor: &[usize], indices: &[usize]) -> Result<usize, KernelError> {
    match indices.split_last() {
        Some((&parts, batch)) if (1..=tensor.len()).contains(&parts) => Ok(batch.len()),
        _ => {
            let reason = format!(
                "indices {indices:?} into tensor {tensor:?}, want a last axis of 1 to {} index parts",
                tensor.len()
            );
            Err(KernelError::Shape { kernel, reason })
        }
    }
}

/// The problem of operands that differ in shape along `dim` only.
fn axis_problem(kernel: &'static str, dim: usize, tensor: &[usize], values: &[usize]) -> Result<Problem, KernelError> {
    let fits = dim < tensor.len()
        && tensor.len() == values.len()
        && (0..tensor.len()).all(|axis| axis == dim || tensor[axis] == values[axis]);
    if !fits {
        let reason = format!("values {values:?} into tensor {tensor:?} along axis {dim}, want equal other axes");
        return Err(KernelError::Shape { kernel, reason });
    }
    checked_elements(kernel, tensor)?;
    checked_elements(kernel, values)?;
    Ok(Problem {
        outer: tensor[..dim].iter().product(),
        rows: tensor[dim],
        sources: values[dim],
        inner: tensor[dim + 1..].iter().product(),
    })
}
