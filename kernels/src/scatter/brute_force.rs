//! [`Plan::BruteForce`](super::Plan::BruteForce): each destination reads all indices of its line.

use super::combine::{Accumulator, Form};
use super::operands::{Layout, Scatter};
use crate::grid::{UnitPlace, axis_grids};
use crate::index::row_of;
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// A unit a vector of `output[outer, rows, inner]`.
#[cube(launch_unchecked)]
fn brute_force<F: Numeric, A: Numeric, I: Int, N: Size>(
    tensor: &[Vector<F, N>],
    indices: &[I],
    values: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    layout: Layout,
    unit: UnitPlace,
    #[comptime] form: Form,
    #[define(F, A, I)] _types: [ElemType; 3],
) {
    let (outer, row, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let mut accumulator = Accumulator::<A, N>::new();
    for position in 0..layout.positions {
        let index = indices[layout.indices.offset(outer, position, inner)];
        if row_of::<I>(index, layout.rows) == row {
            let value = values[layout.values.offset(outer, position, inner)];
            accumulator.take(position / BLOCK_TERMS, Vector::cast_from(value), form);
        }
    }
    let before = tensor[layout.tensor.offset(outer, row, inner)];
    output[unit.index()] = accumulator.update::<F>(before, form);
    keep_subnormals();
}

impl Scatter<'_> {
    pub(super) fn brute_force(self) -> TensorHandle {
        let (output, width) = (self.output(), self.vector_width());
        let (outer, inner) = (self.problem.outer, self.problem.inner / width);
        for (count, dim, unit) in axis_grids(outer, self.problem.rows, inner) {
            // SAFETY: units stop at the number of destinations; the views cover what the extents and their strides reach,
            // and no index addresses memory.
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
                    self.form(),
                    self.types,
                );
            }
        }
        output
    }
}
