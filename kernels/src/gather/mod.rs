//! Indexed reads: `gather`, `select` and `gather_nd`. No arithmetic, so no order.
//!
//! An index outside its axis, a negative one among them, reads zero, and sets the [flag](crate::index_check) that a caller
//! gives. One launch; tensor and indices are read in place where their other axes collapse to one before and
//! one after the indexed ones.

use crate::KernelError;
use crate::buffer::{unwritten, words_arg};
use crate::device::require_units;
use crate::dtype::{U32, supported};
use crate::error::require_shapes;
use crate::grid::{UNITS, UnitPlace, axis_grids};
use crate::index::{require_indices, row_of, tuple_axes, tuple_rows};
use crate::index_check::{Flag, check};
use crate::view::{AxisView, Strides, StridesLaunch, checked_elements, vector_width};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::ops::Range;

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
    let read = Read { kernel: KERNEL, axes: dim..dim + 1, along: Some(dim), shape, positions: dim..dim + 1, flag };
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
    let read = Read { kernel: KERNEL, axes: dim..dim + 1, along: Some(0), shape, positions: dim..dim + 1, flag };
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
    let read = Read { kernel: KERNEL, axes: 0..parts, along: None, shape, positions: 0..batch, flag };
    read.run(client, tensor, indices)
}

/// A read along `axes` of a tensor into a result of `shape`, whose axes `positions` are those of the indices.
struct Read<'a> {
    kernel: &'static str,
    axes: Range<usize>,
    /// The axis of the indices whose places are positions: none where they are tuples.
    along: Option<usize>,
    shape: Vec<usize>,
    positions: Range<usize>,
    flag: Option<Flag<'a>>,
}

impl Read<'_> {
    fn run(self, client: &Client, tensor: TensorHandle, indices: TensorHandle) -> Result<TensorHandle, KernelError> {
        let Self { kernel, axes, along, shape, positions, flag } = self;
        let dtype = tensor.dtype;
        require_units(client, kernel, UNITS)?;
        supported(client, kernel, dtype, "read f64, f32, f16, bf16 or an integer type that the device has")?;
        let elements = checked_elements(kernel, &shape)?;
        let extents = Extents {
            outer: shape[..positions.start].iter().product(),
            rows: tensor.shape()[axes.clone()].iter().product(),
            positions: shape[positions.clone()].iter().product(),
            inner: shape[positions.end..].iter().product(),
        };
        let output = unwritten(client, shape, dtype);
        if elements == 0 {
            flag.map_or(Ok(()), |flag| check(client, indices, &tensor.shape()[axes], flag))?;
            return Ok(output);
        }
        require_indices(client, kernel, &indices)?;
        let (indices, axis) = match along {
            Some(axis) => (indices, axis),
            None => (tuple_rows(client, kernel, indices, &tensor.shape()[axes.clone()])?, 0),
        };
        let indices = AxisView::new(client, kernel, indices, axis..axis + 1)?;
        let tensor = AxisView::new(client, kernel, tensor, axes)?;
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
    /// The buffer of flags, the place in it, and whether a kernel sets it: one that does not binds something else.
    fn flag(&self, client: &Client) -> (BufferArg, u32, bool) {
        match self.flag {
            Some(flag) => (flag.buffer(), flag.number(), true),
            None => (words_arg(&unwritten(client, vec![1], U32).handle, 1), 0, false),
        }
    }

    /// The width of vectors along the inner axis, where one index names all elements of a vector.
    fn slice_width(&self) -> usize {
        if self.indices.strides[2] == 0 { self.tensor.vector_width(self.extents.inner) } else { 1 }
    }

    fn slices(&self, client: &Client, output: &TensorHandle, width: usize) {
        let extents = Extents { inner: self.extents.inner / width, ..self.extents };
        for (count, dim, unit) in axis_grids(extents.outer, extents.positions, extents.inner) {
            let (flags, flag, has_flag) = self.flag(client);
            // SAFETY: units stop at the number of vectors of the result; the kernel reads the tensor only at rows below
            // `rows`, which its view covers in vectors, and a flag is in its buffer.
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
                    flags,
                    flag,
                    has_flag,
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
            let (flags, flag, has_flag) = self.flag(client);
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
                    flags,
                    flag,
                    has_flag,
                    along_axis,
                    self.types,
                );
            }
        }
    }
}

/// A unit a vector of `output[outer, positions, inner]`, whose elements have one index: the vector of
/// `tensor[outer, rows, inner]` at that row. `indices[outer, positions, inner]`, read through its strides. A row that does not
/// exist sets `flags[flag]`, if the read `has_flag`.
#[cube(launch_unchecked)]
fn gather_slices<F: Numeric, I: Int, N: Size>(
    tensor: &[Vector<F, N>],
    indices: &[I],
    output: &mut [Vector<F, N>],
    unit: UnitPlace,
    rows: u32,
    tensor_strides: Strides,
    index_strides: Strides,
    flags: &mut [u32],
    flag: u32,
    #[comptime] has_flag: bool,
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
    } else if comptime!(has_flag) {
        flags[flag as usize] = 1u32;
    }
    output[unit.index()] = value;
}

/// A unit a vector of `output[outer, positions, inner]`, along the positions or the inner axis: the element of
/// `tensor[outer, rows, inner]` at each one's row. `indices[outer, positions, inner]` is read in vectors too. The flag is set as by [`gather_slices`].
#[cube(launch_unchecked)]
fn gather_elements<F: Numeric, I: Int, N: Size>(
    tensor: &[F],
    indices: &[Vector<I, N>],
    output: &mut [Vector<F, N>],
    unit: UnitPlace,
    rows: u32,
    tensor_strides: Strides,
    index_strides: Strides,
    flags: &mut [u32],
    flag: u32,
    #[comptime] has_flag: bool,
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
        } else if comptime!(has_flag) {
            flags[flag as usize] = 1u32;
        }
        values.insert(lane, value);
    }
    output[unit.index()] = values;
}
