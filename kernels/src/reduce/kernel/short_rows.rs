//! [`Pass::ShortRows`](crate::reduce::plan::Pass::ShortRows): a cube reads rows together, and a unit reduces one of them.

use super::accumulator::{lower, step};
use super::source::{Source, elements};
use crate::elementwise::{Inputs, Outputs};
use crate::quotient::Quotients;
use crate::reduce::operation::Operation;
use crate::reduce::view::View;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Units of a cube, and rows.
pub const ROWS: u32 = 64;

/// Columns that a cube has in shared memory at a time, of each row: as many neighbours are read by as many units.
const WIDTH: u32 = 32;

/// From row to row in shared memory: units that read one column of their rows read different banks.
const PITCH: u32 = WIDTH + 1;

/// Elements in shared memory.
pub const STAGED: usize = (ROWS * PITCH) as usize;

/// Elements that a unit reads before it stores them.
const READS: u32 = 8;

/// What the kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShortForm {
    /// Whether outputs are two nested loops, not one.
    pub outputs_split: bool,
    pub operation: Operation,
    pub quotients: Quotients,
    pub source: Source,
}

/// Reduces rows of at most [`COLUMNS`](crate::order::COLUMNS) neighbouring elements, [`ROWS`] of them a cube: an output is one
/// chain over its row.
///
/// `stored` is what `view` addresses, or `inputs` and `outputs` are a program's, one element at a time.
#[cube(launch_unchecked)]
pub fn reduce_short_rows<I: Numeric, A: Numeric, O: Numeric, B: Int, N: Size>(
    stored: &[Vector<I, N>],
    inputs: &Inputs<B, f32, N>,
    outputs: &mut Outputs<B, f32, N>,
    output: &mut [O],
    view: View,
    divisor: InputScalar,
    #[comptime] form: ShortForm,
    #[define(I, A, O, B)] _dtypes: [ElemType; 4],
) {
    let operation = comptime!(form.operation);
    let source = comptime!(form.source.clone());
    let first_row = CUBE_POS as u32 * ROWS;
    let mut staged = Shared::<[A]>::new_slice(STAGED);
    let mut total = A::from_int(0);
    let column = UNIT_POS % WIDTH;
    for part in 0..view.axis.div_ceil(WIDTH) {
        let first_column = part * WIDTH;
        // What was staged before is added.
        sync_cube();
        for some in 0..comptime!(WIDTH / READS) {
            // What is not read is staged, and not added.
            let mut next = Array::<A>::new(comptime!(READS as usize));
            #[unroll]
            for i in 0..READS {
                let row = first_row + (some * READS + i) * comptime!(ROWS / WIDTH) + UNIT_POS / WIDTH;
                if row < view.outputs && first_column + column < view.axis {
                    let base = if comptime!(form.outputs_split) { view.base(row) } else { row * view.inner_stride };
                    let at = base + first_column + column;
                    let element =
                        elements::<I, A, B, N>(stored, inputs, outputs, at, operation, comptime!(source.clone()));
                    next[i as usize] = element.extract(0usize);
                }
            }
            #[unroll]
            for i in 0..READS {
                let row = (some * READS + i) * comptime!(ROWS / WIDTH) + UNIT_POS / WIDTH;
                staged[(row * PITCH + column) as usize] = next[i as usize];
            }
        }
        sync_cube();
        let columns = min(view.axis - first_column, WIDTH);
        if part == 0 {
            total = staged[(UNIT_POS * PITCH) as usize];
        } else {
            total = step::<A>(total, staged[(UNIT_POS * PITCH) as usize], operation);
        }
        for c in 1..columns {
            total = step::<A>(total, staged[(UNIT_POS * PITCH + c) as usize], operation);
        }
    }
    let row = first_row + UNIT_POS;
    if row < view.outputs {
        output[row as usize] = lower::<A, O>(total, divisor.get::<A>(), operation, comptime!(form.quotients));
    }
    keep_subnormals();
}
