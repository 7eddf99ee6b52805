//! Indexed updates and indexed reads.

use super::indices::note;
use super::{Output, operand, run};
use burn_backend::{Shape, TensorMetadata, tensor::IndexingUpdateOp};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::scatter::{self, Update};
use burn_deterministic_kernels::{KernelError, gather};
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;

/// Updates the elements of `tensor` that `indices` name along `dim`.
pub(in crate::backend) fn scatter(
    operation: &'static str,
    dim: usize,
    tensor: CubeTensor,
    indices: CubeTensor,
    values: CubeTensor,
    update: IndexingUpdateOp,
    plain: impl FnOnce(usize, CubeTensor, CubeTensor, CubeTensor, IndexingUpdateOp) -> CubeTensor,
) -> CubeTensor {
    let operands = Updated { tensor, indices, values };
    along(operation, scatter::scatter, dim, operands, kind(update), |tensor, indices, values| {
        plain(dim, tensor, indices, values, update)
    })
}

/// [`scatter`] of bools, by `or`.
pub(in crate::backend) fn scatter_or(
    operation: &'static str,
    dim: usize,
    tensor: CubeTensor,
    indices: CubeTensor,
    values: CubeTensor,
    plain: impl FnOnce(usize, CubeTensor, CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let operands = Updated { tensor, indices, values };
    along(operation, scatter::scatter, dim, operands, Update::Or, |tensor, indices, values| {
        plain(dim, tensor, indices, values)
    })
}

/// Updates the rows of `tensor` that `indices` name along `dim`.
pub(in crate::backend) fn select_assign(
    operation: &'static str,
    tensor: CubeTensor,
    dim: usize,
    indices: CubeTensor,
    values: CubeTensor,
    update: IndexingUpdateOp,
    plain: impl FnOnce(CubeTensor, usize, CubeTensor, CubeTensor, IndexingUpdateOp) -> CubeTensor,
) -> CubeTensor {
    let operands = Updated { tensor, indices, values };
    along(operation, scatter::select_assign, dim, operands, kind(update), |tensor, indices, values| {
        plain(tensor, dim, indices, values, update)
    })
}

/// [`select_assign`] of bools, by `or`.
pub(in crate::backend) fn select_or(
    operation: &'static str,
    tensor: CubeTensor,
    dim: usize,
    indices: CubeTensor,
    values: CubeTensor,
    plain: impl FnOnce(CubeTensor, usize, CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let operands = Updated { tensor, indices, values };
    along(operation, scatter::select_assign, dim, operands, Update::Or, |tensor, indices, values| {
        plain(tensor, dim, indices, values)
    })
}

/// Updates the slices of `data` that tuples of indices name.
pub(in crate::backend) fn scatter_nd(
    operation: &'static str,
    data: CubeTensor,
    indices: CubeTensor,
    values: CubeTensor,
    update: IndexingUpdateOp,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor, IndexingUpdateOp) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&data, &indices, &values],
        Output::like(&data, data.shape()),
        |client| {
            let result =
                scatter::scatter_nd(client, operand(&data), operand(&indices), operand(&values), kind(update))?;
            note(operation, &[&data, &indices, &values], &indices, &addressed(&data, &indices))?;
            Ok(result)
        },
        || plain(data.clone(), indices.clone(), values.clone(), update),
    )
}

/// Reads the elements of `tensor` at `indices` along `dim`.
pub(in crate::backend) fn gather(
    operation: &'static str,
    dim: usize,
    tensor: CubeTensor,
    indices: CubeTensor,
    plain: impl FnOnce(usize, CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&tensor, &indices],
        Output::like(&tensor, indices.shape()),
        |client| {
            let result = gather::gather(client, dim, operand(&tensor), operand(&indices))?;
            note(operation, &[&tensor, &indices], &indices, &[tensor.shape()[dim]])?;
            Ok(result)
        },
        || plain(dim, tensor.clone(), indices.clone()),
    )
}

/// Reads the rows of `tensor` at `indices` along `dim`.
pub(in crate::backend) fn select(
    operation: &'static str,
    tensor: CubeTensor,
    dim: usize,
    indices: CubeTensor,
    plain: impl FnOnce(CubeTensor, usize, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let mut shape = tensor.shape();
    shape[dim] = indices.shape().num_elements();
    run(
        operation,
        &[&tensor, &indices],
        Output::like(&tensor, shape),
        |client| {
            let result = gather::select(client, dim, operand(&tensor), operand(&indices))?;
            note(operation, &[&tensor, &indices], &indices, &[tensor.shape()[dim]])?;
            Ok(result)
        },
        || plain(tensor.clone(), dim, indices.clone()),
    )
}

/// Reads the slices of `tensor` that tuples of indices name.
pub(in crate::backend) fn gather_nd(
    operation: &'static str,
    tensor: CubeTensor,
    indices: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let (from, by) = (tensor.shape(), indices.shape());
    let (tuples, parts) = by.split_at(by.num_dims() - 1);
    let shape: Vec<usize> = tuples.iter().chain(&from[parts[0].min(from.num_dims())..]).copied().collect();
    run(
        operation,
        &[&tensor, &indices],
        Output::like(&tensor, Shape::from(shape)),
        |client| {
            let result = gather::gather_nd(client, operand(&tensor), operand(&indices))?;
            note(operation, &[&tensor, &indices], &indices, &addressed(&tensor, &indices))?;
            Ok(result)
        },
        || plain(tensor.clone(), indices.clone()),
    )
}

/// The operands of an update.
struct Updated {
    tensor: CubeTensor,
    indices: CubeTensor,
    values: CubeTensor,
}

/// An update of a tensor with values at indices along one axis.
type UpdateAlong =
    fn(&Client, usize, TensorHandle, TensorHandle, TensorHandle, Update) -> Result<TensorHandle, KernelError>;

/// Updates a tensor along `dim`.
fn along(
    operation: &'static str,
    kernel: UpdateAlong,
    dim: usize,
    Updated { tensor, indices, values }: Updated,
    update: Update,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&tensor, &indices, &values],
        Output::like(&tensor, tensor.shape()),
        |client| {
            let result = kernel(client, dim, operand(&tensor), operand(&indices), operand(&values), update)?;
            note(operation, &[&tensor, &indices, &values], &indices, &[tensor.shape()[dim]])?;
            Ok(result)
        },
        || plain(tensor.clone(), indices.clone(), values.clone()),
    )
}

/// What an update does, as the kernels name it.
fn kind(operation: IndexingUpdateOp) -> Update {
    match operation {
        IndexingUpdateOp::Assign => Update::Assign,
        IndexingUpdateOp::Add => Update::Add,
        IndexingUpdateOp::Mul => Update::Mul,
        IndexingUpdateOp::Min => Update::Min,
        IndexingUpdateOp::Max => Update::Max,
    }
}

/// The sizes of the axes that the tuples along the last axis of `indices` are for.
fn addressed(tensor: &CubeTensor, indices: &CubeTensor) -> Vec<usize> {
    let parts = indices.shape()[indices.rank() - 1];
    tensor.shape()[..parts].to_vec()
}
