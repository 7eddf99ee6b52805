//! Indexed reads: no arithmetic, so no order. An index outside its axis reads zero.

use crate::KernelError;
use crate::device::require_units;
use crate::launch::{UNITS, unwritten};
use crate::scatter::accepts::{index_type, supported, tuple_axes};
use crate::scatter::axes::{AxisView, checked_elements};
use crate::scatter::kernel::{Extent, Strides, Tile, row_of};
use crate::scatter::plan::{Problem, axis_grids};
use crate::scatter::segment::U32;
use crate::scatter::update::{extent, launch_tuple_keys};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Reads `tensor` at `indices` along `dim`: `indices`, and so the result, has the shape of `tensor` but for `dim`.
///
/// # Errors
///
/// Shapes that do not fit together or are too large, or an element type without a kernel on this device.
pub fn gather(
    client: &Client,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "scatter::gather";
    let (from, to) = (tensor.shape().as_slice(), indices.shape().as_slice());
    let fits =
        dim < from.len() && from.len() == to.len() && (0..from.len()).all(|axis| axis == dim || from[axis] == to[axis]);
    if !fits {
        let reason = format!("indices {to:?} into tensor {from:?} along axis {dim}, want equal other axes");
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    let shape = to.to_vec();
    let axis = dim..dim + 1;
    launch(client, KERNEL, tensor, axis.clone(), shape, axis.clone(), |client| {
        let dtype = index_type(client, KERNEL, &indices)?;
        Ok((AxisView::new(client, KERNEL, indices, axis)?, dtype))
    })
}

/// The rows of `tensor` along `dim` that the one-dimensional `indices` name, in their order.
///
/// # Errors
///
/// Shapes that do not fit together or are too large, or an element type without a kernel on this device.
pub fn select(
    client: &Client,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "scatter::select";
    if dim >= tensor.shape().len() || indices.shape().len() != 1 {
        let (from, by) = (tensor.shape().as_slice(), indices.shape().as_slice());
        let reason = format!("indices {by:?} into tensor {from:?} along axis {dim}, want one axis of indices");
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    let mut shape = tensor.shape().to_vec();
    shape[dim] = indices.shape()[0];
    launch(client, KERNEL, tensor, dim..dim + 1, shape, dim..dim + 1, |client| {
        let dtype = index_type(client, KERNEL, &indices)?;
        Ok((AxisView::new(client, KERNEL, indices, 0..1)?.along_axis_only(), dtype))
    })
}

/// The slices of `tensor` that the tuples along the last axis of `indices[.., k]` name by their position in the first
/// `k` axes, in a result of shape `indices[..] ++ tensor[k..]`.
///
/// # Errors
///
/// Shapes that do not fit together or are too large, or an element type without a kernel on this device.
pub fn gather_nd(client: &Client, tensor: TensorHandle, indices: TensorHandle) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "scatter::gather_nd";
    let batch = tuple_axes(KERNEL, tensor.shape(), indices.shape())?;
    let parts = indices.shape()[batch];
    let shape: Vec<usize> = indices.shape()[..batch].iter().chain(&tensor.shape()[parts..]).copied().collect();
    let sizes = tensor.shape()[..parts].to_vec();
    launch(client, KERNEL, tensor, 0..parts, shape, 0..batch, |client| {
        let tuples: usize = indices.shape()[..batch].iter().product();
        let dtype = index_type(client, KERNEL, &indices)?;
        let keys = launch_tuple_keys(client, KERNEL, indices, &sizes, dtype)?;
        let keys = TensorHandle::new_contiguous(vec![tuples], keys, U32);
        Ok((AxisView::new(client, KERNEL, keys, 0..1)?.along_axis_only(), U32))
    })
}

/// Reads along `axes` of the tensor into a result of shape `shape`, of which `out_axes` number the sources.
fn launch(
    client: &Client,
    kernel: &'static str,
    tensor: TensorHandle,
    axes: std::ops::Range<usize>,
    shape: Vec<usize>,
    out_axes: std::ops::Range<usize>,
    indices: impl FnOnce(&Client) -> Result<(AxisView, ElemType), KernelError>,
) -> Result<TensorHandle, KernelError> {
    let dtype = tensor.dtype;
    require_units(client, kernel, UNITS)?;
    supported(client, kernel, dtype, "read f64, f32, f16, bf16 or an integer type that the device has")?;
    let elements = checked_elements(kernel, &shape)?;
    let problem = Problem {
        outer: shape[..out_axes.start].iter().product(),
        rows: tensor.shape()[axes.clone()].iter().product(),
        sources: shape[out_axes.clone()].iter().product(),
        inner: shape[out_axes.end..].iter().product(),
    };
    let output = unwritten(client, shape, dtype);
    if elements == 0 {
        return Ok(output);
    }
    let (indices, index_dtype) = indices(client)?;
    let tensor = AxisView::new(client, kernel, tensor, axes)?;
    for (count, dim, tile) in axis_grids(problem.outer, problem.sources, problem.inner) {
        // SAFETY: units stop at the number of elements of the result; the kernel reads the tensor only at rows below
        // the extent's, which its view covers.
        unsafe {
            gather_kernel::launch_unchecked(
                client,
                count,
                dim,
                tensor.buffer(),
                indices.buffer(),
                output.clone().into_arg().into_buffer_arg(),
                extent(&problem),
                tile,
                tensor.strides(),
                indices.strides(),
                [dtype, index_dtype],
            );
        }
    }
    Ok(output)
}

/// For each element of the result: the tensor's element at its index.
#[cube(launch_unchecked)]
fn gather_kernel<F: Numeric, I: Int>(
    tensor: &[F],
    indices: &[I],
    output: &mut [F],
    extent: Extent,
    tile: Tile,
    tensor_strides: Strides,
    index_strides: Strides,
    #[define(F, I)] _dtypes: [ElemType; 2],
) {
    let (outer, source, inner) = (tile.outer(), tile.axis(), tile.inner());
    if outer >= extent.outer || source >= extent.sources || inner >= extent.inner {
        terminate!();
    }
    let row = row_of::<I>(indices[index_strides.offset(outer, source, inner)], extent.rows);
    let mut value = F::from_int(0);
    if row < extent.rows {
        value = tensor[tensor_strides.offset(outer, row, inner)];
    }
    output[((outer * extent.sources + source) * extent.inner + inner) as usize] = value;
}
