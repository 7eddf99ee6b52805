//! Indexed updates and indexed reads.

use super::indices::flagged;
use super::{Output, operand, run};
use burn_backend::{Shape, TensorMetadata, tensor::IndexingUpdateOp};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::gather;
use burn_deterministic_kernels::scatter::{self, Addressing, Operands, Update};

/// Updates a tensor at indices with values: `[tensor, indices, values]`.
pub(in crate::backend) fn at_indices(
    operation: &'static str,
    addressing: Addressing,
    operands: [CubeTensor; 3],
    update: Update,
    plain: impl FnOnce([CubeTensor; 3]) -> CubeTensor,
) -> CubeTensor {
    let [tensor, indices, values] = &operands;
    run(
        operation,
        &[tensor, indices, values],
        Output::like(tensor, tensor.shape()),
        |client| {
            let operands = Operands { tensor: operand(tensor), indices: operand(indices), values: operand(values) };
            let sizes = addressing.sizes(&tensor.shape(), &indices.shape());
            flagged(operation, &[tensor, indices, values], indices, &sizes, |flag| {
                scatter::update_checked(client, addressing, operands, update, None, flag)
            })
        },
        || plain(operands.clone()),
    )
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
    let plain = |[data, indices, values]: [_; 3]| plain(data, indices, values, update);
    at_indices(operation, Addressing::Tuples, [data, indices, values], kind(update), plain)
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
            let (from, at) = (operand(&tensor), operand(&indices));
            flagged(operation, &[&tensor, &indices], &indices, &[tensor.shape()[dim]], |flag| {
                gather::gather(client, dim, from, at, Some(flag))
            })
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
            let (from, at) = (operand(&tensor), operand(&indices));
            flagged(operation, &[&tensor, &indices], &indices, &[tensor.shape()[dim]], |flag| {
                gather::select(client, dim, from, at, Some(flag))
            })
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
            let (from, at) = (operand(&tensor), operand(&indices));
            let sizes = Addressing::Tuples.sizes(&tensor.shape(), &indices.shape());
            flagged(operation, &[&tensor, &indices], &indices, &sizes, |flag| {
                gather::gather_nd(client, from, at, Some(flag))
            })
        },
        || plain(tensor.clone(), indices.clone()),
    )
}

/// What an update does, as the kernels name it.
pub(crate) fn kind(operation: IndexingUpdateOp) -> Update {
    match operation {
        IndexingUpdateOp::Assign => Update::Assign,
        IndexingUpdateOp::Add => Update::Add,
        IndexingUpdateOp::Mul => Update::Mul,
        IndexingUpdateOp::Min => Update::Min,
        IndexingUpdateOp::Max => Update::Max,
    }
}
