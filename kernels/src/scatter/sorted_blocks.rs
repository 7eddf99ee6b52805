//! [`Plan::SortedBlocks`](super::Plan::SortedBlocks): a cube sorts a block of positions by row in shared memory, and each
//! destination's values in the block are adjacent then.
//!
//! CUB's `BlockHistogram` does the same by `BLOCK_HISTO_SORT`: a sort in shared memory makes one run of each bin. Sorted are words
//! of a row and a position in the block. Where there are several blocks, their totals are chained as those of
//! [`privatised`](super::privatised); an absent one is the same.

use super::combine::{Form, apply_lanes, combine_lanes};
use super::operands::{Layout, Scatter};
use super::plan::{MOST_SORTED_ROWS, Problem};
use super::privatised::identity;
use crate::buffer::unwritten;
use crate::grid::cubes;
use crate::index::row_of;
use crate::index_check::{Flag, raise};
use crate::order::BLOCK_TERMS;
use crate::radix_sort::{SORT_UNITS, Stage, sort_rounds};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Positions of a block that each unit has.
const PER_UNIT: u32 = BLOCK_TERMS / SORT_UNITS;

/// Bits of a position in its block.
const POSITION_BITS: u32 = BLOCK_TERMS.ilog2();

const _: () = assert!((MOST_SORTED_ROWS << POSITION_BITS) - 1 == u32::MAX as usize);

/// The work of the cubes: `[outer, blocks, inner, slices]`, of which `inner` counts columns with indices of their own only. A
/// slice is every `slices`th group of [`SORT_UNITS`] destinations.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
struct Cubes {
    blocks: u32,
    inner: u32,
    slices: u32,
    count: u32,
}

/// Unit `u` of a cube of slice `s` totals destinations `256 s + u`, `256 (s + slices) + u`, ..: the values of its block whose index
/// names them. Destinations are `[rows, inner]` in vectors, or `[rows]` of a column with indices of its own. Writes
/// `totals[blocks, outer, rows, inner]`, or `output[outer, rows, inner]` where there is one block. Sets `flags[flag]` if an
/// index names no row, where there are flags.
#[cube(launch_unchecked)]
fn update_blocks<F: Numeric, A: Numeric, I: Int, N: Size>(
    tensor: &[Vector<F, N>],
    indices: &[I],
    values: &[Vector<F, N>],
    totals: &mut [Vector<A, N>],
    output: &mut [Vector<F, N>],
    layout: Layout,
    cubes: Cubes,
    rounds: u32,
    flags: ComptimeOption<&mut [u32]>,
    flag: u32,
    #[comptime] form: Form,
    #[comptime] keyed_inner: bool,
    #[define(F, A, I)] _types: [ElemType; 3],
) {
    let (cube, unit) = (CUBE_POS as u32, UNIT_POS_X);
    let slice = cube % cubes.slices;
    let rest = cube / cubes.slices;
    let column = rest % cubes.inner;
    let rest = rest / cubes.inner;
    let block = rest % cubes.blocks;
    let outer = rest / cubes.blocks;
    let exists = cube < cubes.count;
    let first = block * BLOCK_TERMS;
    let mut stage = Stage::new();
    let mut outside = false;
    #[unroll]
    for nth in 0..PER_UNIT {
        let place = nth * SORT_UNITS + unit;
        let mut row = layout.rows;
        if exists && first + place < layout.positions {
            row = row_of::<I>(indices[layout.indices.offset(outer, first + place, column)], layout.rows);
            outside = outside || row == layout.rows;
        }
        stage.put(place, (row << POSITION_BITS) | place);
    }
    if outside {
        raise(flags, flag);
    }
    stage.sort(POSITION_BITS, rounds, PER_UNIT);
    let columns = if comptime!(keyed_inner) { 1u32.runtime() } else { layout.inner };
    let mut elements = layout.rows * columns;
    if !exists {
        elements = 0u32;
    }
    let mut element = slice * SORT_UNITS + unit;
    while element < elements {
        let row = element / columns;
        let inner = if comptime!(keyed_inner) { column } else { element % columns };
        let mut place = stage.first_from(row << POSITION_BITS, PER_UNIT);
        let mut is_present = false.runtime();
        let mut total = identity::<A, N>(form);
        // There is a word after the last one; it belongs to no row.
        while place < BLOCK_TERMS && stage.word(place) >> POSITION_BITS == row {
            let position = first + (stage.word(place) & comptime!(BLOCK_TERMS - 1));
            let value = Vector::cast_from(values[layout.values.offset(outer, position, inner)]);
            if is_present {
                total = combine_lanes::<A, N>(total, value, form);
            } else {
                total = value;
            }
            is_present = true;
            place += 1;
        }
        let at = (outer * layout.rows + row) * layout.inner + inner;
        if comptime!(form.one_block) {
            let mut after = tensor[layout.tensor.offset(outer, row, inner)];
            if is_present {
                after = apply_lanes::<F, A, N>(after, total, form);
            }
            output[at as usize] = after;
        } else {
            totals[(block * (layout.outer * layout.rows * layout.inner) + at) as usize] = total;
        }
        element += cubes.slices * SORT_UNITS;
    }
    keep_subnormals();
}

impl Scatter<'_> {
    pub(super) fn sorted_blocks(self) -> TensorHandle {
        let (output, width) = (self.output(), self.vector_width());
        let problem = &self.problem;
        let Problem { outer, rows, .. } = *problem;
        let inner = problem.inner / width;
        let [storage, accumulator, index] = self.types;
        let keyed_inner = problem.keyed().inner;
        let [_, columns] = problem.keyed_extents();
        let (blocks, slices) = (problem.blocks(), problem.slices());
        let count = problem.sorting_cubes();
        // With one block no total is written, but a vector has to be there to bind.
        let extents = if problem.has_one_block() { vec![width] } else { vec![blocks, problem.elements()] };
        let totals = unwritten(self.client, extents, accumulator);
        let work = CubesLaunch::new(blocks as u32, columns as u32, slices as u32, count as u32);
        // SAFETY: cubes past the last one and units past the last destination touch no memory; each block has a total for
        // every destination. The views cover what the extents and their strides reach, and positions of words are
        // of the block: no destination has the row of a place past the last position. A flag is in its buffer.
        unsafe {
            update_blocks::launch_unchecked(
                self.client,
                cubes(count),
                CubeDim::new_1d(SORT_UNITS),
                width,
                self.tensor.buffer(),
                self.indices.buffer(),
                self.values.buffer(),
                totals.clone().into_arg().into_buffer_arg(),
                output.clone().into_arg().into_buffer_arg(),
                self.layout(outer, inner, width),
                work,
                sort_rounds(rows),
                self.flag.map(Flag::buffer).into(),
                self.flag.map_or(0, Flag::number),
                self.form(),
                keyed_inner,
                [storage, accumulator, index],
            );
        }
        if !problem.has_one_block() {
            self.chain_totals(&totals, &output, width);
        }
        output
    }
}
