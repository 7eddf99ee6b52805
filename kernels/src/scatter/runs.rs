//! Sums into few rows, run by run: no sort, each unit adds to totals of its own.

use crate::KernelError;
use crate::launch::{MAX_ITERATIONS, unwritten};
use crate::reduce;
use crate::scatter::RUN;
use crate::scatter::accepts::Types;
use crate::scatter::axes::AxisView;
use crate::scatter::kernel::{Extent, Strides, Tile, row_of};
use crate::scatter::plan::{MOST_RUN_ROWS, Problem, axis_grids};
use crate::scatter::update::{Operands, extent};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

// A unit clears a total for each row, then walks its run.
const _: () = assert!(MOST_RUN_ROWS + RUN <= MAX_ITERATIONS);

/// For each run of sources and column: the totals of all rows, as `totals[run, outer, row, inner]`.
#[cube(launch_unchecked)]
fn total_runs<F: Float, A: Float, I: Int>(
    indices: &[I],
    values: &[F],
    totals: &mut [A],
    extent: Extent,
    tile: Tile,
    index_strides: Strides,
    value_strides: Strides,
    #[comptime] length: u32,
    #[define(F, A, I)] _dtypes: [ElemType; 3],
) {
    let (outer, run, inner) = (tile.outer(), tile.axis(), tile.inner());
    let first = run * length;
    if outer >= extent.outer || first >= extent.sources || inner >= extent.inner {
        terminate!();
    }
    let base = (run * extent.outer + outer) * extent.rows * extent.inner + inner;
    for row in 0..extent.rows {
        totals[(base + row * extent.inner) as usize] = A::new(comptime!(-0.0f32));
    }
    for source in first..min(first + length, extent.sources) {
        let row = row_of::<I>(indices[index_strides.offset(outer, source, inner)], extent.rows);
        if row < extent.rows {
            let total = (base + row * extent.inner) as usize;
            totals[total] += A::cast_from(values[value_strides.offset(outer, source, inner)]);
        }
    }
}

/// For each destination element: adds its total, unless that is -0.
#[cube(launch_unchecked)]
fn add_totals<F: Float, A: Float>(
    tensor: &[F],
    totals: &[A],
    output: &mut [F],
    extent: Extent,
    tile: Tile,
    tensor_strides: Strides,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let (outer, row, inner) = (tile.outer(), tile.axis(), tile.inner());
    if outer >= extent.outer || row >= extent.rows || inner >= extent.inner {
        terminate!();
    }
    let element = ((outer * extent.rows + row) * extent.inner + inner) as usize;
    let before = tensor[tensor_strides.offset(outer, row, inner)];
    let total = totals[element];
    // Compared as bits, since -0 equals +0. An f64 is -0 if its f32 is, but for what is too small for one: that it equals
    // zero is asked as well.
    let nothing = total == A::new(0.0) && u32::reinterpret(f32::cast_from(total)) == 0x8000_0000u32;
    output[element] = if nothing { before } else { F::cast_from(A::cast_from(before) + total) };
}

/// Adds the values to the rows that `indices` name along the axis.
pub(super) fn add(
    client: &Client,
    operands: Operands,
    indices: &AxisView,
    problem: &Problem,
    types: Types,
) -> Result<TensorHandle, KernelError> {
    let runs = problem.sources.div_ceil(RUN);
    let shape = vec![runs, problem.elements()];
    let totals = unwritten(client, shape, types.accumulator);
    for (count, dim, tile) in axis_grids(problem.outer, runs, problem.inner) {
        // SAFETY: units stop at the number of runs and columns, and the totals of each are its own; the views cover what
        // the extent and their strides reach, and a row is compared with the extent before it addresses a total.
        unsafe {
            total_runs::launch_unchecked(
                client,
                count,
                dim,
                indices.buffer(),
                operands.values.buffer(),
                totals.clone().into_arg().into_buffer_arg(),
                extent(problem),
                tile,
                indices.strides(),
                operands.values.strides(),
                RUN as u32,
                [types.storage, types.accumulator, types.index],
            );
        }
    }
    let totals = reduce::sum(client, totals, &[0])?;
    let output = operands.output(client);
    for (count, dim, tile) in axis_grids(problem.outer, problem.rows, problem.inner) {
        // SAFETY: units stop at the number of destination elements, of which there is a total each; the view covers what
        // the extent and its strides reach.
        unsafe {
            add_totals::launch_unchecked(
                client,
                count,
                dim,
                operands.tensor.buffer(),
                totals.clone().into_arg().into_buffer_arg(),
                output.clone().into_arg().into_buffer_arg(),
                extent(problem),
                tile,
                operands.tensor.strides(),
                [types.storage, types.accumulator],
            );
        }
    }
    Ok(output)
}
