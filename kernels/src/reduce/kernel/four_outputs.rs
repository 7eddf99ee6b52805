//! [`Pass::FourOutputs`](crate::reduce::plan::Pass::FourOutputs): a unit reads one element each of four neighbouring
//! outputs at a time.

use super::accumulator::{lift_vector, lower, step_vector};
use crate::order::{COLUMNS, COLUMNS_BLOCK};
use crate::reduce::operation::Operation;
use crate::reduce::view::View;
use cubecl::prelude::*;

/// The ascending chains of four outputs over one column: elements `first`, `first + 64`, .. of the axis, `rows` of
/// them.
#[cube]
fn column<I: Numeric, A: Numeric>(
    stored: &[Vector<I, Const<4>>],
    first: u32,
    rows: u32,
    stride: u32,
    #[comptime] operation: Operation,
) -> Vector<A, Const<4>> {
    let mut at = first;
    let mut chains = lift_vector::<I, A>(stored[at as usize], operation);
    for _ in 1..rows {
        at += COLUMNS * stride;
        chains = step_vector::<A>(chains, lift_vector::<I, A>(stored[at as usize], operation), operation);
    }
    chains
}

/// Reduces each block of each output's elements to one value, by one unit for the same block of four outputs, `width`
/// units a cube.
///
/// `stored` is what the view addresses, in [vectors of outputs](crate::reduce::plan::View::has_outputs_in_vectors);
/// `output` is `[outputs, blocks]`.
#[cube(launch_unchecked)]
pub fn reduce_four_outputs<I: Numeric, A: Numeric, O: Numeric>(
    stored: &[Vector<I, Const<4>>],
    output: &mut [O],
    view: View,
    blocks: u32,
    divisor: InputScalar,
    #[comptime] width: u32,
    #[comptime] operation: Operation,
    #[define(I, A, O)] _dtypes: [ElemType; 3],
) {
    let at = CUBE_POS as u32 * width + UNIT_POS_X;
    let vectors = view.outputs / 4;
    let out = at % vectors * 4;
    let block = at / vectors;
    if block >= blocks {
        terminate!();
    }
    let start = block * COLUMNS_BLOCK;
    let length = min(view.axis - start, COLUMNS_BLOCK);
    let stride = view.axis_stride / 4;
    let first = view.base(out) / 4 + start * stride;

    let mut totals = column::<I, A>(stored, first, length.div_ceil(COLUMNS), stride, operation);
    for c in 1..min(length, COLUMNS) {
        let rows = (length - c).div_ceil(COLUMNS);
        let chains = column::<I, A>(stored, first + c * stride, rows, stride, operation);
        totals = step_vector::<A>(totals, chains, operation);
    }
    let target = out * blocks + block;
    #[unroll]
    for lane in 0..4usize {
        let place = target + comptime!(lane as u32) * blocks;
        output[place as usize] = lower::<A, O>(totals.extract(lane), divisor.get::<A>(), operation);
    }
}
