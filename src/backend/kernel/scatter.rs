//! Indexed updates and indexed reads.

use super::indices::note;
use super::{Output, operand, run};
use burn_backend::{Shape, TensorMetadata, tensor::IndexingUpdateOp};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::{KernelError, gather, scatter};
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;

pub(in crate::backend) use scatter::Update;

/// An update of a tensor with values at indices along one axis.
type UpdateAlong =
    fn(&Client, usize, TensorHandle, TensorHandle, TensorHandle, Update) -> Result<TensorHandle, KernelError>;

/// What an update does, as the kernels name it.
pub(in crate::backend) fn update(operation: IndexingUpdateOp) -> Update {
    match operation {
        IndexingUpdateOp::Assign => Update::Assign,
        IndexingUpdateOp::Add => Update::Add,
        IndexingUpdateOp::Mul => Update::Mul,
        IndexingUpdateOp::Min => Update::Min,
        IndexingUpdateOp::Max => Update::Max,
    }
}

/// The operands of an update.
pub(in crate::backend) struct Updated {
    /// The tensor to update.
    pub tensor: CubeTensor,
    /// Where.
    pub indices: CubeTensor,
    /// With what.
    pub values: CubeTensor,
}

/// Updates a tensor along `dim`.
pub(in crate::backend) fn along(
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

/// Updates the slices of a tensor that tuples of indices name.
pub(in crate::backend) fn slices(
    operation: &'static str,
    Updated { tensor, indices, values }: Updated,
    update: Update,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&tensor, &indices, &values],
        Output::like(&tensor, tensor.shape()),
        |client| {
            let result = scatter::scatter_nd(client, operand(&tensor), operand(&indices), operand(&values), update)?;
            note(operation, &[&tensor, &indices, &values], &indices, &addressed(&tensor, &indices))?;
            Ok(result)
        },
        || plain(tensor.clone(), indices.clone(), values.clone()),
    )
}

/// Reads the elements of `tensor` at `indices` along `dim`.
pub(in crate::backend) fn gather(
    operation: &'static str,
    dim: usize,
    tensor: CubeTensor,
    indices: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
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
        || plain(tensor.clone(), indices.clone()),
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

/// Reads the rows of `tensor` at `indices` along `dim`.
pub(in crate::backend) fn select(
    operation: &'static str,
    tensor: CubeTensor,
    dim: usize,
    indices: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
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
        || plain(tensor.clone(), indices.clone()),
    )
}

/// The sizes of the axes that the tuples along the last axis of `indices` are for.
fn addressed(tensor: &CubeTensor, indices: &CubeTensor) -> Vec<usize> {
    let parts = indices.shape()[indices.rank() - 1];
    tensor.shape()[..parts].to_vec()
}
