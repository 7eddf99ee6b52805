//! [`Plan::BruteForce`](super::Plan::BruteForce): each destination reads all indices of its line.

use super::combine::{Accumulator, Form};
use super::operands::{Layout, Scatter};
use crate::grid::{UnitPlace, axis_grids};
use crate::index::row_of;
use crate::index_check::{Flag, raise};
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// A unit a vector of `output[outer, rows, inner]`. Each sets `flags[flag]` if an index of its line names no row, where there are flags.
#[cube(launch_unchecked)]
fn brute_force<F: Numeric, A: Numeric, I: Int, N: Size>(
    tensor: &[Vector<F, N>],
    indices: &[I],
    values: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    layout: Layout,
    unit: UnitPlace,
    flags: ComptimeOption<&mut [u32]>,
    flag: u32,
    #[comptime] form: Form,
    #[define(F, A, I)] _types: [ElemType; 3],
) {
    let (outer, row, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let mut accumulator = Accumulator::<A, N>::new();
    let mut outside = false;
    for position in 0..layout.positions {
        let named = row_of::<I>(indices[layout.indices.offset(outer, position, inner)], layout.rows);
        outside = outside || named == layout.rows;
        if named == row {
            let value = values[layout.values.offset(outer, position, inner)];
            accumulator.take(position / BLOCK_TERMS, Vector::cast_from(value), form);
        }
    }
    let before = tensor[layout.tensor.offset(outer, row, inner)];
    output[unit.index()] = accumulator.update::<F>(before, form);
    if outside {
        raise(flags, flag);
    }
    keep_subnormals();
}

impl Scatter<'_> {
    pub(super) fn brute_force(self) -> TensorHandle {
        let (output, width) = (self.output(), self.vector_width());
        let (outer, inner) = (self.problem.outer, self.problem.inner / width);
        for (count, dim, unit) in axis_grids(outer, self.problem.rows, inner) {
            // SAFETY: units stop at the number of destinations; the views cover what the extents and their strides reach,
            // no index addresses memory, and a flag is in its buffer.
            unsafe {
                brute_force::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    width,
                    self.tensor.buffer(),
                    self.indices.buffer(),
                    self.values.buffer(),
                    output.clone().into_arg().into_buffer_arg(),
                    self.layout(outer, inner, width),
                    unit,
                    self.flag.map(Flag::buffer).into(),
                    self.flag.map_or(0, Flag::number),
                    self.form(),
                    self.types,
                );
            }
        }
        output
    }
}
