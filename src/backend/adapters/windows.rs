//! Windows along an axis.
//!
//! Burn makes them a view: one axis steps from window to window, another through a window, over the same elements. Where
//! CubeCL would [misread](is_misread) it, the windows are copied.

use super::{Output, operand, run};
use burn_backend::{TensorData, TensorMetadata, ops::IntTensorOps};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use burn_deterministic_kernels::copy::is_misread;
use burn_deterministic_kernels::gather;

/// The windows of `size` elements that start every `step` elements of axis `dim`, with the elements of a window along a
/// new last axis.
pub(in crate::backend) fn windows(
    operation: &'static str,
    tensor: CubeTensor,
    dim: usize,
    size: usize,
    step: usize,
    plain: impl FnOnce(CubeTensor, usize, usize, usize) -> CubeTensor,
) -> CubeTensor {
    let view = plain(tensor.clone(), dim, size, step);
    if !is_misread(view.meta.shape(), view.meta.strides()) {
        return view;
    }
    let last = view.rank() - 1;
    let view = with_axis_at(view, last, dim + 1);
    let starts = (0..view.shape()[dim]).map(|window| window * step);
    let indices: Vec<i32> = starts.flat_map(|start| start..start + size).map(|index| index as i32).collect();
    let indices = CubeBackend::int_from_data(TensorData::from(indices.as_slice()), &tensor.device);
    let copied = run(
        operation,
        &[&tensor],
        Output::like(&tensor, view.shape()),
        |client| gather::select(client, dim, operand(&tensor), operand(&indices), None),
        || view.clone(),
    );
    with_axis_at(copied, dim + 1, last)
}

/// The same elements, with axis `from` moved to `to`.
fn with_axis_at(mut tensor: CubeTensor, from: usize, to: usize) -> CubeTensor {
    let (length, stride) = tensor.meta.remove(from);
    tensor.meta.insert(to, length, stride);
    tensor
}
