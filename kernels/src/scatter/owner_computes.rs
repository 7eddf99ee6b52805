//! [`Plan::OwnerComputes`](super::Plan::OwnerComputes): a unit owns all rows of a column, and takes the column's sources
//! in order.

use super::combine::{apply, combine};
use super::operands::{Form, Layout, Scatter};
use crate::buffer::{words, words_arg};
use crate::grid::{Tile, axis_grids};
use crate::index::row_of;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The accumulator of one row: as [`Accumulator`](super::combine::Accumulator), in memory.
///
/// Word 0 is one more than the current block, with the highest bit set where there is a block before it, and 0 before the
/// first value; words 1 and 2 are the fold of the current block and of those before it.
type State = Vector<u32, Const<4>>;

/// The bit that says that there is a block before the current one.
const HAS_TOTAL: u32 = 1 << 31;

/// A unit a column of `[outer, rows, inner]`. `states[outer, rows, inner]`.
#[cube(launch_unchecked)]
fn owner_computes<F: Numeric, A: Numeric, I: Int>(
    tensor: &[F],
    indices: &[I],
    values: &[F],
    states: &mut [State],
    output: &mut [F],
    layout: Layout,
    tile: Tile,
    #[comptime] form: Form,
    #[define(F, A, I)] _types: [ElemType; 3],
) {
    let (outer, inner) = (tile.outer(), tile.inner());
    if outer >= layout.outer || tile.axis() >= 1 || inner >= layout.inner {
        terminate!();
    }
    let base = outer * layout.rows * layout.inner + inner;
    for row in 0..layout.rows {
        states[(base + row * layout.inner) as usize] = State::new(0u32);
    }
    for position in 0..layout.positions {
        let row = row_of::<I>(indices[layout.indices.offset(outer, position, inner)], layout.rows);
        if row < layout.rows {
            let at = (base + row * layout.inner) as usize;
            let value = A::cast_from(values[layout.values.offset(outer, position, inner)]);
            let state = states[at];
            let (before, partial, total) = parts::<A>(state);
            let block = position / form.block + 1;
            let same = before & comptime!(HAS_TOTAL - 1) == block;
            let mut flags = before & HAS_TOTAL;
            let mut chained = total;
            if comptime!(!form.one_block) {
                chained = select(same || before == 0, total, chain::<A>(before, partial, total, form));
                flags = select(same || before == 0, flags, HAS_TOTAL.runtime());
            }
            let mut next = State::empty();
            next.insert(0usize, block | flags);
            next.insert(1usize, u32::reinterpret(select(same, combine::<A>(partial, value, form), value)));
            next.insert(2usize, u32::reinterpret(chained));
            next.insert(3usize, 0u32);
            states[at] = next;
        }
    }
    for row in 0..layout.rows {
        let element = (base + row * layout.inner) as usize;
        let (flags, partial, total) = parts::<A>(states[element]);
        let before = tensor[layout.tensor.offset(outer, row, inner)];
        let total = chain::<A>(flags, partial, total, form);
        output[element] = select(flags == 0, before, apply::<F, A>(before, total, form));
    }
}

/// Word 0, and the folds of the current block and of those before it.
#[cube]
fn parts<A: Numeric>(state: State) -> (u32, A, A) {
    (state.extract(0usize), A::reinterpret(state.extract(1usize)), A::reinterpret(state.extract(2usize)))
}

/// The current block chained to those before it.
#[cube]
fn chain<A: Numeric>(flags: u32, partial: A, total: A, #[comptime] form: Form) -> A {
    if comptime!(form.one_block) {
        partial
    } else {
        select(flags & HAS_TOTAL == 0, partial, combine::<A>(total, partial, form))
    }
}

impl Scatter<'_> {
    pub(super) fn owner_computes(self) -> TensorHandle {
        let Some(problem) = self.problem() else { return self.copy() };
        let output = self.output();
        let states = words(self.client, 4 * problem.elements());
        for (count, dim, tile) in axis_grids(problem.outer, 1, problem.inner) {
            // SAFETY: units stop at the number of columns, of which each has a state for every row; a row is compared with
            // the extent before it addresses a state, and the views cover what the extents and their strides reach.
            unsafe {
                owner_computes::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    self.tensor.buffer(),
                    self.indices.buffer(),
                    self.values.buffer(),
                    words_arg(&states, problem.elements()),
                    output.clone().into_arg().into_buffer_arg(),
                    self.layout(1),
                    tile,
                    self.form(),
                    self.types,
                );
            }
        }
        output
    }
}
