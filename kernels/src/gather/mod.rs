//! Indexed reads: `gather`, `select` and `gather_nd`. No arithmetic, so no order.
//!
//! An index outside its axis, a negative one among them, reads zero, and sets the [flag](crate::index_check) that a caller
//! gives. One launch, of tuples too: each unit reads the tuple of its slice. Tensor and indices are read in place where
//! their other axes collapse to one before and one after the indexed ones.

mod kernel;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::require_units;
use crate::dtype::supported;
use crate::error::require_shapes;
use crate::grid::{UNITS, axis_grids};
use crate::index::{Tuples, require_indices, tuple_axes};
use crate::index_check::{Flag, check};
use crate::view::{AxisView, StridesLaunch, checked_elements, vector_width};
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
    flag: Option<Flag<'_>>,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "gather::gather";
    let (from, to) = (tensor.shape().as_slice(), indices.shape().as_slice());
    let fits =
        dim < from.len() && from.len() == to.len() && (0..from.len()).all(|axis| axis == dim || from[axis] == to[axis]);
    require_shapes(KERNEL, fits, || {
        format!("indices {to:?} into tensor {from:?} along axis {dim}, want equal other axes")
    })?;
    let shape = to.to_vec();
    let read = Read { kernel: KERNEL, dim, along: dim, shape, flag };
    read.run(client, tensor, indices)
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
    flag: Option<Flag<'_>>,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "gather::select";
    if dim >= tensor.shape().len() || indices.shape().len() != 1 {
        let (from, by) = (tensor.shape().as_slice(), indices.shape().as_slice());
        let reason = format!("indices {by:?} into tensor {from:?} along axis {dim}, want one axis of indices");
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    let mut shape = tensor.shape().to_vec();
    shape[dim] = indices.shape()[0];
    let read = Read { kernel: KERNEL, dim, along: 0, shape, flag };
    read.run(client, tensor, indices)
}

/// The slices of `tensor` that the tuples along the last axis of `indices[.., k]` name by their position in the first
/// `k` axes, in a result of shape `indices[..] ++ tensor[k..]`.
///
/// # Errors
///
/// Shapes that do not fit together or are too large, or an element type without a kernel on this device.
pub fn gather_nd(
    client: &Client,
    tensor: TensorHandle,
    indices: TensorHandle,
    flag: Option<Flag<'_>>,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "gather::gather_nd";
    let batch = tuple_axes(KERNEL, tensor.shape(), indices.shape())?;
    let parts = indices.shape()[batch];
    let shape: Vec<usize> = indices.shape()[..batch].iter().chain(&tensor.shape()[parts..]).copied().collect();
    let sizes = tensor.shape()[..parts].to_vec();
    let (positions, inner) = (shape[..batch].iter().product(), shape[batch..].iter().product());
    let output = made(client, KERNEL, shape, tensor.dtype)?;
    if positions * inner == 0 {
        flag.map_or(Ok(()), |flag| check(client, indices, &sizes, flag))?;
        return Ok(output);
    }
    let indices = Tuples::new(client, KERNEL, indices, &sizes)?;
    let types = [tensor.dtype, indices.view.dtype];
    let tensor = AxisView::new(client, KERNEL, tensor, 0..parts)?;
    let width = tensor.vector_width(inner);
    for (count, dim, unit) in axis_grids(1, positions, inner / width) {
        // SAFETY: units stop at the number of vectors of the result; the kernel reads the tensor only at rows that exist,
        // which its view covers in vectors, each part of a tuple is in the view of the indices, and a flag is in its buffer.
        unsafe {
            kernel::gather_tuples::launch_unchecked(
                client,
                count,
                dim,
                width,
                tensor.buffer(),
                indices.view.buffer(),
                output.clone().into_arg().into_buffer_arg(),
                unit,
                indices.sizes(),
                tensor.vector_strides(width as u32),
                indices.stride,
                indices.part_stride,
                flag.map(Flag::buffer).into(),
                flag.map_or(0, Flag::number),
                types,
            );
        }
    }
    Ok(output)
}

/// The unwritten result of a read, if the device has its type and indices reach its elements.
fn made(
    client: &Client,
    kernel: &'static str,
    shape: Vec<usize>,
    dtype: ElemType,
) -> Result<TensorHandle, KernelError> {
    require_units(client, kernel, UNITS)?;
    supported(client, kernel, dtype, "read f64, f32, f16, bf16 or an integer type that the device has")?;
    checked_elements(kernel, &shape)?;
    Ok(unwritten(client, shape, dtype))
}

/// A read along `dim` of a tensor into a result of `shape`.
struct Read<'a> {
    kernel: &'static str,
    dim: usize,
    /// The axis of the indices whose places are positions.
    along: usize,
    shape: Vec<usize>,
    flag: Option<Flag<'a>>,
}

impl Read<'_> {
    fn run(self, client: &Client, tensor: TensorHandle, indices: TensorHandle) -> Result<TensorHandle, KernelError> {
        let Self { kernel, dim, along, shape, flag } = self;
        let dtype = tensor.dtype;
        let extents = Extents {
            outer: shape[..dim].iter().product(),
            rows: tensor.shape()[dim],
            positions: shape[dim],
            inner: shape[dim + 1..].iter().product(),
        };
        let is_empty = shape.contains(&0);
        let output = made(client, kernel, shape, dtype)?;
        if is_empty {
            flag.map_or(Ok(()), |flag| check(client, indices, &[extents.rows], flag))?;
            return Ok(output);
        }
        require_indices(client, kernel, &indices)?;
        let indices = AxisView::new(client, kernel, indices, along..along + 1)?;
        let tensor = AxisView::new(client, kernel, tensor, dim..dim + 1)?;
        let launch = Launch { tensor, types: [dtype, indices.dtype], indices, extents, flag };
        match launch.slice_width() {
            1 => launch.elements(client, &output),
            width => launch.slices(client, &output, width),
        }
        Ok(output)
    }
}

/// `tensor[outer, rows, inner]`, read into `output[outer, positions, inner]`.
#[derive(Clone, Copy)]
struct Extents {
    outer: usize,
    rows: usize,
    positions: usize,
    inner: usize,
}

/// The operands of a kernel.
struct Launch<'a> {
    tensor: AxisView,
    indices: AxisView,
    extents: Extents,
    types: [ElemType; 2],
    flag: Option<Flag<'a>>,
}

impl Launch<'_> {
    /// The width of vectors along the inner axis, where one index names all elements of a vector.
    fn slice_width(&self) -> usize {
        if self.indices.strides[2] == 0 { self.tensor.vector_width(self.extents.inner) } else { 1 }
    }

    fn slices(&self, client: &Client, output: &TensorHandle, width: usize) {
        let extents = Extents { inner: self.extents.inner / width, ..self.extents };
        for (count, dim, unit) in axis_grids(extents.outer, extents.positions, extents.inner) {
            // SAFETY: units stop at the number of vectors of the result; the kernel reads the tensor only at rows below
            // `rows`, which its view covers in vectors, and a flag is in its buffer.
            unsafe {
                kernel::gather_slices::launch_unchecked(
                    client,
                    count,
                    dim,
                    width,
                    self.tensor.buffer(),
                    self.indices.buffer(),
                    output.clone().into_arg().into_buffer_arg(),
                    unit,
                    extents.rows as u32,
                    self.tensor.vector_strides(width as u32),
                    self.indices.strides(),
                    self.flag.map(Flag::buffer).into(),
                    self.flag.map_or(0, Flag::number),
                    self.types,
                );
            }
        }
    }

    fn elements(&self, client: &Client, output: &TensorHandle) {
        let Self { indices, extents, .. } = self;
        let along_axis = extents.inner == 1;
        let (length, read) = match along_axis {
            true => (extents.positions, indices.axis_vector_width(extents.positions)),
            false => (extents.inner, indices.vector_width(extents.inner)),
        };
        let width = read.min(vector_width(self.types[0], length, 1, []));
        let (extents, strides): (_, fn(&AxisView, u32) -> StridesLaunch) = match along_axis {
            true => (Extents { positions: extents.positions / width, ..*extents }, AxisView::axis_vector_strides),
            false => (Extents { inner: extents.inner / width, ..*extents }, AxisView::vector_strides),
        };
        for (count, dim, unit) in axis_grids(extents.outer, extents.positions, extents.inner) {
            // SAFETY: as above, with a vector of indices for each of the result.
            unsafe {
                kernel::gather_elements::launch_unchecked(
                    client,
                    count,
                    dim,
                    width,
                    self.tensor.buffer(),
                    indices.buffer(),
                    output.clone().into_arg().into_buffer_arg(),
                    unit,
                    extents.rows as u32,
                    self.tensor.strides(),
                    strides(indices, width as u32),
                    self.flag.map(Flag::buffer).into(),
                    self.flag.map_or(0, Flag::number),
                    along_axis,
                    self.types,
                );
            }
        }
    }
}
