//! [`Pass::AllBlocks`](crate::reduce::plan::Pass::AllBlocks): a cube has all blocks of an output, and a unit a column of one.

use super::accumulator::step_lanes;
use super::single::{Form, column, write};
use crate::elementwise::{Inputs, Outputs};
use crate::order::{COLUMNS, COLUMNS_BLOCK};
use crate::reduce::view::View;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Reduces the elements of each output to one value: what two passes of [`reduce_single`](super::single::reduce_single) do. One unit
/// of a block adds its columns in order, and the first unit of the cube adds the blocks' values.
///
/// Units are `[COLUMNS, blocks]`, `blocks` at most [`COLUMNS`].
#[cube(launch_unchecked)]
pub fn reduce_all_blocks<I: Numeric, A: Numeric, O: Numeric, B: Int, N: Size>(
    stored: &[Vector<I, N>],
    inputs: &Inputs<B, f32, N>,
    outputs: &mut Outputs<B, f32, N>,
    output: &mut [O],
    view: View,
    divisor: InputScalar,
    #[comptime] blocks: u32,
    #[comptime] form: Form,
    #[define(I, A, O, B)] _dtypes: [ElemType; 4],
) {
    let operation = comptime!(form.operation);
    let out = CUBE_POS as u32;
    // The grid may number more outputs than there are.
    let inside = out < view.outputs;
    let first = UNIT_POS_Y * COLUMNS_BLOCK;
    let length = min(view.axis - first, COLUMNS_BLOCK);
    let columns = min(length, COLUMNS);
    let slot = (UNIT_POS_Y * COLUMNS) as usize;

    let mut shared = Shared::<[Vector<A, N>]>::new_slice(comptime!((COLUMNS * blocks) as usize));
    if inside && UNIT_POS_X < columns {
        let rows = (length - UNIT_POS_X).div_ceil(COLUMNS);
        shared[slot + UNIT_POS_X as usize] = column::<I, A, B, N>(
            stored,
            inputs,
            outputs,
            view.base(out),
            first + UNIT_POS_X,
            rows,
            &view,
            comptime!(form.clone()),
        );
    }
    sync_cube();
    if inside && UNIT_POS_X == 0 {
        let mut totals = shared[slot];
        for c in 1..columns {
            totals = step_lanes::<A, N>(totals, shared[slot + c as usize], operation);
        }
        shared[slot] = totals;
    }
    sync_cube();
    if inside && UNIT_POS_X == 0 && UNIT_POS_Y == 0 {
        let mut totals = shared[0];
        #[unroll]
        for block in 1..blocks {
            totals = step_lanes::<A, N>(totals, shared[comptime!((block * COLUMNS) as usize)], operation);
        }
        write::<A, O, N>(output, totals, out, 0, 1, divisor.get::<A>(), operation, comptime!(form.quotients));
    }
    keep_subnormals();
}
