//! [`Plan::Privatised`](super::Plan::Privatised): each block of positions adds to totals of its own.
//!
//! An absent total is -0, which adds nothing to a float; for integers it is 0.

use super::combine::{Form, apply_lanes, combine_lanes};
use super::operands::{Layout, Scatter};
use super::plan::Problem;
use crate::arithmetic::negative_zero;
use crate::buffer::unwritten;
use crate::grid::{UnitPlace, axis_grids};
use crate::index::row_of;
use crate::index_check::{Flag, raise};
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Totals of a chain that are read before the first of them is added: a load takes longer than many additions.
const AHEAD: u32 = 16;

/// What adds nothing.
#[cube]
pub(super) fn identity<A: Numeric, N: Size>(#[comptime] form: Form) -> Vector<A, N> {
    if comptime!(form.is_float) {
        Vector::<A, N>::new(negative_zero::<A>())
    } else {
        Vector::<A, N>::new(A::from_int(0))
    }
}

/// A unit a block of positions and column: adds the block's values, ascending, to `totals[blocks, outer, rows, inner]`. Sets
/// `flags[flag]` if an index names no row, where there are flags.
#[cube(launch_unchecked)]
fn total_blocks<F: Numeric, A: Numeric, I: Int, N: Size>(
    indices: &[I],
    values: &[Vector<F, N>],
    totals: &mut [Vector<A, N>],
    layout: Layout,
    unit: UnitPlace,
    flags: ComptimeOption<&mut [u32]>,
    flag: u32,
    #[comptime] form: Form,
    #[define(F, A, I)] _types: [ElemType; 3],
) {
    let (outer, block, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let first = block * BLOCK_TERMS;
    let base = (block * layout.outer + outer) * layout.rows * layout.inner + inner;
    for row in 0..layout.rows {
        totals[(base + row * layout.inner) as usize] = identity::<A, N>(form);
    }
    let mut outside = false;
    for position in first..min(first + BLOCK_TERMS, layout.positions) {
        let row = row_of::<I>(indices[layout.indices.offset(outer, position, inner)], layout.rows);
        if row < layout.rows {
            let at = (base + row * layout.inner) as usize;
            let value = Vector::cast_from(values[layout.values.offset(outer, position, inner)]);
            totals[at] = combine_lanes::<A, N>(totals[at], value, form);
        } else {
            outside = true;
        }
    }
    if outside {
        raise(flags, flag);
    }
    keep_subnormals();
}

/// A unit a destination: chains the totals of its blocks, ascending, and adds the result.
#[cube(launch_unchecked)]
fn chain_totals<F: Numeric, A: Numeric, N: Size>(
    tensor: &[Vector<F, N>],
    totals: &[Vector<A, N>],
    output: &mut [Vector<F, N>],
    layout: Layout,
    unit: UnitPlace,
    #[comptime] form: Form,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let (outer, row, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let elements = layout.outer * layout.rows * layout.inner;
    let element = unit.index();
    let mut total = totals[element];
    let blocks = layout.positions.div_ceil(BLOCK_TERMS);
    let mut next = Array::<Vector<A, N>>::new(comptime!(AHEAD as usize));
    let whole = (blocks - 1) / AHEAD;
    for group in 0..whole {
        #[unroll]
        for nth in 0..AHEAD {
            let block = 1 + group * AHEAD + nth;
            next[comptime!(nth as usize)] = totals[block as usize * elements as usize + element];
        }
        #[unroll]
        for nth in 0..AHEAD {
            total = combine_lanes::<A, N>(total, next[comptime!(nth as usize)], form);
        }
    }
    for block in 1 + whole * AHEAD..blocks {
        total = combine_lanes::<A, N>(total, totals[block as usize * elements as usize + element], form);
    }
    let before = tensor[layout.tensor.offset(outer, row, inner)];
    output[element] = apply_lanes::<F, A, N>(before, total, form);
    keep_subnormals();
}

impl Scatter<'_> {
    pub(super) fn privatised(self) -> TensorHandle {
        let (output, width) = (self.output(), self.vector_width());
        let problem = &self.problem;
        let (outer, inner) = (problem.outer, problem.inner / width);
        let accumulator = self.types[1];
        let totals = unwritten(self.client, vec![problem.blocks(), problem.elements()], accumulator);
        for (count, dim, unit) in axis_grids(outer, problem.blocks(), inner) {
            // SAFETY: units stop at the number of blocks and columns, each of which has totals of its own; the views cover
            // what the extents and their strides reach, a row is compared with the extent before it addresses a total, and a flag is in its buffer.
            unsafe {
                total_blocks::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    width,
                    self.indices.buffer(),
                    self.values.buffer(),
                    totals.clone().into_arg().into_buffer_arg(),
                    self.layout(outer, inner, width),
                    unit,
                    self.flag.map(Flag::buffer).into(),
                    self.flag.map_or(0, Flag::number),
                    self.form(),
                    self.types,
                );
            }
        }
        self.chain_totals(&totals, &output, width);
        output
    }

    /// Updates each destination with `totals[blocks, outer, rows, inner]`, in vectors of `width`.
    pub(super) fn chain_totals(&self, totals: &TensorHandle, output: &TensorHandle, width: usize) {
        let Problem { outer, rows, .. } = self.problem;
        let inner = self.problem.inner / width;
        let [storage, accumulator, _] = self.types;
        for (count, dim, unit) in axis_grids(outer, rows, inner) {
            // SAFETY: units stop at the number of destinations, of which there is a total for each block.
            unsafe {
                chain_totals::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    width,
                    self.tensor.buffer(),
                    totals.clone().into_arg().into_buffer_arg(),
                    output.clone().into_arg().into_buffer_arg(),
                    self.layout(outer, inner, width),
                    unit,
                    self.form(),
                    [storage, accumulator],
                );
            }
        }
    }
}
