//! Updates without a sort where there are many lines: one unit takes a line's sources in their order, each into the
//! running tree of its row.

use crate::launch::core_grid;
use crate::scatter::CHUNK;
use crate::scatter::Update;
use crate::scatter::accepts::Types;
use crate::scatter::axes::AxisView;
use crate::scatter::kernel::{Extent, Strides, row_of};
use crate::scatter::plan::Problem;
use crate::scatter::segment::words;
use crate::scatter::tree::{State, levels, take, updated};
use crate::scatter::update::{Operands, extent};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// One unit per line: clears the states of its rows, takes its sources, and updates its elements.
///
/// Vectors are of neighbours along the axis.
#[cube(launch_unchecked)]
fn update_lines<F: Numeric, A: Numeric, I: Int, N: Size>(
    tensor: &[Vector<F, N>],
    indices: &[Vector<I, N>],
    values: &[Vector<F, N>],
    states: &mut [State],
    totals: &mut [A],
    output: &mut [Vector<F, N>],
    extent: Extent,
    tensor_strides: Strides,
    index_strides: Strides,
    value_strides: Strides,
    #[comptime] levels: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A, I)] _dtypes: [ElemType; 3],
) {
    let line = ABSOLUTE_POS as u32;
    if line >= extent.outer * extent.inner {
        terminate!();
    }
    let width = N::value();
    let (outer, inner) = (line / extent.inner, line % extent.inner);
    let first = outer * extent.rows * extent.inner + inner;
    let places = extent.outer * extent.rows * extent.inner;
    for row in 0..extent.rows {
        states[(first + row * extent.inner) as usize] = State::new(0u32);
    }
    for at in 0..extent.sources / comptime!(width as u32) {
        let index = indices[index_strides.offset(outer, at, inner)];
        let value = values[value_strides.offset(outer, at, inner)];
        #[unroll]
        for lane in 0..width {
            let row = row_of::<I>(index.extract(lane), extent.rows);
            if row < extent.rows {
                let place = first + row * extent.inner;
                let value = A::cast_from(value.extract(lane));
                take::<A>(states, totals, place, value, places, levels, chunk_length, update, is_float);
            }
        }
    }
    for at in 0..extent.rows / comptime!(width as u32) {
        let before = tensor[tensor_strides.offset(outer, at, inner)];
        let mut after = Vector::<F, N>::empty();
        let place = first + at * comptime!(width as u32) * extent.inner;
        #[unroll]
        for lane in 0..width {
            let place = place + comptime!(lane as u32) * extent.inner;
            let before = before.extract(lane);
            let element =
                updated::<F, A>(before, &*states, &*totals, place, places, levels, chunk_length, update, is_float);
            after.insert(lane, element);
        }
        output[(place / comptime!(width as u32)) as usize] = after;
    }
}

/// Updates the lines of `problem`.
pub(super) fn update(
    client: &Client,
    operands: &Operands,
    indices: &AxisView,
    problem: &Problem,
    types: Types,
    update: Update,
) -> TensorHandle {
    let places = problem.elements();
    let states = words(client, 2 * places);
    let levels = levels(problem.sources);
    let totals_length = (levels as usize * places).max(1);
    let totals = client.empty(totals_length * types.accumulator.size());
    let views = [&operands.tensor, indices, &operands.values];
    let fours = [problem.rows, problem.sources].iter().all(|length| length.is_multiple_of(4))
        && problem.inner == 1
        && views.iter().all(|view| view.has_axis_in_vectors(4));
    let width = if fours { 4 } else { 1 };
    let output = operands.output(client);
    let (count, dim) = core_grid(problem.columns());
    // SAFETY: units stop at the number of lines, whose elements, states and totals are their own; the views cover what
    // the extent and their strides reach, and a row is compared with the extent before it addresses a state.
    unsafe {
        update_lines::launch_unchecked(
            client,
            count,
            dim,
            width,
            operands.tensor.buffer(),
            indices.buffer(),
            operands.values.buffer(),
            BufferArg::from_raw_parts(states, places),
            BufferArg::from_raw_parts(totals, totals_length),
            output.clone().into_arg().into_buffer_arg(),
            extent(problem),
            operands.tensor.axis_vector_strides(width as u32),
            indices.axis_vector_strides(width as u32),
            operands.values.axis_vector_strides(width as u32),
            levels,
            CHUNK as u32,
            update,
            types.is_float(),
            [types.storage, types.accumulator, types.index],
        );
    }
    output
}
