//! The device side. `output` is contiguous; the others are read through their strides.
//!
//! An index, or a tuple of them, that names no row reads zeros, and sets `flags[flag]` where there are flags.

use crate::grid::UnitPlace;
use crate::index::{row_of, row_of_tuple};
use crate::index_check::raise;
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

/// A unit a vector of `output[outer, positions, inner]`, whose elements have one index: the vector of
/// `tensor[outer, rows, inner]` at the row that `indices[outer, positions, inner]` names.
#[cube(launch_unchecked)]
pub(super) fn gather_slices<F: Numeric, I: Int, N: Size>(
    tensor: &[Vector<F, N>],
    indices: &[I],
    output: &mut [Vector<F, N>],
    unit: UnitPlace,
    rows: u32,
    tensor_strides: Strides,
    index_strides: Strides,
    flags: ComptimeOption<&mut [u32]>,
    flag: u32,
    #[define(F, I)] _dtypes: [ElemType; 2],
) {
    let (outer, source, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let row = row_of::<I>(indices[index_strides.offset(outer, source, inner)], rows);
    let inside = row < rows;
    let mut value = Vector::<F, N>::new(F::from_int(0));
    if inside {
        value = tensor[tensor_strides.offset(outer, row, inner)];
    }
    output[unit.index()] = value;
    if !inside {
        raise(flags, flag);
    }
    keep_subnormals();
}

/// A unit a vector of `output[positions, inner]`: the vector of `tensor[rows, inner]` at the row that the tuple
/// `indices[positions, parts]` names, part `j` of which counts along an axis of `sizes[j]`.
#[cube(launch_unchecked)]
pub(super) fn gather_tuples<F: Numeric, I: Int, N: Size>(
    tensor: &[Vector<F, N>],
    indices: &[I],
    output: &mut [Vector<F, N>],
    unit: UnitPlace,
    sizes: Sequence<u32>,
    tensor_strides: Strides,
    tuple_stride: u32,
    part_stride: u32,
    flags: ComptimeOption<&mut [u32]>,
    flag: u32,
    #[define(F, I)] _dtypes: [ElemType; 2],
) {
    let (source, inner) = (unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let (row, _, inside) = row_of_tuple::<I>(indices, source * tuple_stride, part_stride, &sizes);
    let mut value = Vector::<F, N>::new(F::from_int(0));
    if inside {
        value = tensor[tensor_strides.offset(0, row, inner)];
    }
    output[unit.index()] = value;
    if !inside {
        raise(flags, flag);
    }
    keep_subnormals();
}

/// A unit a vector of `output[outer, positions, inner]`, along the positions or the inner axis: the element of
/// `tensor[outer, rows, inner]` at each one's row. `indices[outer, positions, inner]` is read in vectors too.
#[cube(launch_unchecked)]
pub(super) fn gather_elements<F: Numeric, I: Int, N: Size>(
    tensor: &[F],
    indices: &[Vector<I, N>],
    output: &mut [Vector<F, N>],
    unit: UnitPlace,
    rows: u32,
    tensor_strides: Strides,
    index_strides: Strides,
    flags: ComptimeOption<&mut [u32]>,
    flag: u32,
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
    let mut outside = false;
    #[unroll]
    for lane in 0..width {
        let row = row_of::<I>(index.extract(lane), rows);
        let column =
            if comptime!(along_axis) { inner } else { inner * comptime!(width as u32) + comptime!(lane as u32) };
        let mut value = F::from_int(0);
        if row < rows {
            value = tensor[tensor_strides.offset(outer, row, column)];
        } else {
            outside = true;
        }
        values.insert(lane, value);
    }
    output[unit.index()] = values;
    if outside {
        raise(flags, flag);
    }
    keep_subnormals();
}
