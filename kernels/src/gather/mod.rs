//! Indexed reads: `gather`, `select` and `gather_nd`. No arithmetic, so no order.
//!
//! An index outside its axis, a negative one among them, reads zero; [`index_check`](crate::index_check) tells whether
//! there was one. One launch; tensor and indices are read in place where their other axes collapse to one before and
//! one after the indexed ones.

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::require_units;
use crate::dtype::supported;
use crate::error::require_shapes;
use crate::grid::{UNITS, UnitPlace, axis_grids};
use crate::index::{Indices, row_of, tuple_axes};
use crate::view::{AxisView, Strides, StridesLaunch, checked_elements, vector_width};
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
    const KERNEL: &str = "gather::gather";
    let (from, to) = (tensor.shape().as_slice(), indices.shape().as_slice());
    let fits =
        dim < from.len() && from.len() == to.len() && (0..from.len()).all(|axis| axis == dim || from[axis] == to[axis]);
    require_shapes(KERNEL, fits, || {
        format!("indices {to:?} into tensor {from:?} along axis {dim}, want equal other axes")
    })?;
    let shape = to.to_vec();
    let axis = dim..dim + 1;
    launch(client, KERNEL, tensor, axis.clone(), shape, axis, || Indices::along(client, KERNEL, indices, dim))
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
    const KERNEL: &str = "gather::select";
    if dim >= tensor.shape().len() || indices.shape().len() != 1 {
        let (from, by) = (tensor.shape().as_slice(), indices.shape().as_slice());
        let reason = format!("indices {by:?} into tensor {from:?} along axis {dim}, want one axis of indices");
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    let mut shape = tensor.shape().to_vec();
    shape[dim] = indices.shape()[0];
    let axis = dim..dim + 1;
    launch(client, KERNEL, tensor, axis.clone(), shape, axis, || Indices::along(client, KERNEL, indices, 0))
}

/// The slices of `tensor` that the tuples along the last axis of `indices[.., k]` name by their position in the first
/// `k` axes, in a result of shape `indices[..] ++ tensor[k..]`.
///
/// # Errors
///
/// Shapes that do not fit together or are too large, or an element type without a kernel on this device.
pub fn gather_nd(client: &Client, tensor: TensorHandle, indices: TensorHandle) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "gather::gather_nd";
    let batch = tuple_axes(KERNEL, tensor.shape(), indices.shape())?;
    let parts = indices.shape()[batch];
    let shape: Vec<usize> = indices.shape()[..batch].iter().chain(&tensor.shape()[parts..]).copied().collect();
    let sizes = tensor.shape()[..parts].to_vec();
    launch(client, KERNEL, tensor, 0..parts, shape, 0..batch, || Indices::of_tuples(client, KERNEL, indices, &sizes))
}

/// Reads along `axes` of the tensor into a result of `shape`, whose `out_axes` are those of the indices.
fn launch(
    client: &Client,
    kernel: &'static str,
    tensor: TensorHandle,
    axes: std::ops::Range<usize>,
    shape: Vec<usize>,
    out_axes: std::ops::Range<usize>,
    indices: impl FnOnce() -> Result<Indices, KernelError>,
) -> Result<TensorHandle, KernelError> {
    let dtype = tensor.dtype;
    require_units(client, kernel, UNITS)?;
    supported(client, kernel, dtype, "read f64, f32, f16, bf16 or an integer type that the device has")?;
    let elements = checked_elements(kernel, &shape)?;
    let extents = Extents {
        outer: shape[..out_axes.start].iter().product(),
        rows: tensor.shape()[axes.clone()].iter().product(),
        positions: shape[out_axes.clone()].iter().product(),
        inner: shape[out_axes.end..].iter().product(),
    };
    let output = unwritten(client, shape, dtype);
    if elements == 0 {
        return Ok(output);
    }
    let indices = indices()?;
    let tensor = AxisView::new(client, kernel, tensor, axes)?;
    let read = Read { tensor, types: [dtype, indices.dtype], indices: indices.view, extents };
    match read.slice_width() {
        1 => read.elements(client, &output),
        width => read.slices(client, &output, width),
    }
    Ok(output)
}

/// `tensor[outer, rows, inner]`, read into `output[outer, positions, inner]`.
#[derive(Clone, Copy)]
struct Extents {
    outer: usize,
    rows: usize,
    positions: usize,
    inner: usize,
}

/// A read of elements along an axis.
struct Read {
    tensor: AxisView,
    indices: AxisView,
    extents: Extents,
    types: [ElemType; 2],
}

impl Read {
    /// The width of vectors along the inner axis, where one index names all elements of a vector.
    fn slice_width(&self) -> usize {
        if self.indices.strides[2] == 0 { self.tensor.vector_width(self.extents.inner) } else { 1 }
    }

    fn slices(&self, client: &Client, output: &TensorHandle, width: usize) {
        let extents = Extents { inner: self.extents.inner / width, ..self.extents };
        for (count, dim, unit) in axis_grids(extents.outer, extents.positions, extents.inner) {
            // SAFETY: units stop at the number of vectors of the result; the kernel reads the tensor only at rows below
            // `rows`, which its view covers in vectors.
            unsafe {
                gather_slices::launch_unchecked(
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
                gather_elements::launch_unchecked(
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
                    along_axis,
                    self.types,
                );
            }
        }
    }
}

/// A unit a vector of `output[outer, positions, inner]`, whose elements have one index: the vector of
/// `tensor[outer, rows, inner]` at that row. `indices[outer, positions, inner]`, read through its strides.
#[cube(launch_unchecked)]
fn gather_slices<F: Numeric, I: Int, N: Size>(
    tensor: &[Vector<F, N>],
    indices: &[I],
    output: &mut [Vector<F, N>],
    unit: UnitPlace,
    rows: u32,
    tensor_strides: Strides,
    index_strides: Strides,
    #[define(F, I)] _dtypes: [ElemType; 2],
) {
    let (outer, source, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let row = row_of::<I>(indices[index_strides.offset(outer, source, inner)], rows);
    let mut value = Vector::<F, N>::new(F::from_int(0));
    if row < rows {
        value = tensor[tensor_strides.offset(outer, row, inner)];
    }
    output[unit.index()] = value;
}

/// A unit a vector of `output[outer, positions, inner]`, along the positions or the inner axis: the element of
/// `tensor[outer, rows, inner]` at each one's row. `indices[outer, positions, inner]` is read in vectors too.
#[cube(launch_unchecked)]
fn gather_elements<F: Numeric, I: Int, N: Size>(
    tensor: &[F],
    indices: &[Vector<I, N>],
    output: &mut [Vector<F, N>],
    unit: UnitPlace,
    rows: u32,
    tensor_strides: Strides,
    index_strides: Strides,
    #[comptime] along_axis: bool,
    #[define(F, I)] _dtypes: [ElemType; 2],
) {
    let (outer, source, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let index = indices[index_strides.offset(outer, source, inner)];
    let width = N::value();
    let mut values = Vector::<F, N>::empty();
    #[unroll]
    for lane in 0..width {
        let row = row_of::<I>(index.extract(lane), rows);
        let column =
            if comptime!(along_axis) { inner } else { inner * comptime!(width as u32) + comptime!(lane as u32) };
        let mut value = F::from_int(0);
        if row < rows {
            value = tensor[tensor_strides.offset(outer, row, column)];
        }
        values.insert(lane, value);
    }
    output[unit.index()] = values;
}
