//! [`Pass::FourElements`](crate::reduce::plan::Pass::FourElements): a unit reads four neighbours of one output at a
//! time.

use super::accumulator::{lower, step, step_lanes};
use super::source::{Source, elements};
use crate::elementwise::{Inputs, Outputs};
use crate::order::{COLUMNS, COLUMNS_BLOCK};
use crate::quotient::Quotients;
use crate::reduce::operation::Operation;
use crate::reduce::view::View;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Vectors of four in a row of a block.
const VECTORS: u32 = COLUMNS / 4;

/// Four chains that begin with `next`, or go on with it.
#[cube]
fn begun_or_stepped<A: Numeric>(
    begin: bool,
    chains: Vector<A, Const<4>>,
    next: Vector<A, Const<4>>,
    #[comptime] operation: Operation,
) -> Vector<A, Const<4>> {
    let stepped = step_lanes::<A, Const<4>>(chains, next, operation);
    let mut result = Vector::<A, Const<4>>::empty();
    #[unroll]
    for lane in 0..4usize {
        result.insert(lane, select(begin, next.extract(lane), stepped.extract(lane)));
    }
    result
}

/// Reduces each block of each output's elements to one value, by one unit a block and `width` blocks a cube: row by row,
/// with the chains of all columns at once.
///
/// `stored` is what the view addresses, in [vectors of elements](crate::reduce::plan::View::has_elements_in_vectors), or
/// `inputs` and `outputs` are a program's; `output` is `[outputs, blocks]`.
#[cube(launch_unchecked)]
pub fn reduce_four_elements<I: Numeric, A: Numeric, O: Numeric, B: Int>(
    stored: &[Vector<I, Const<4>>],
    inputs: &Inputs<B, f32, Const<4>>,
    outputs: &mut Outputs<B, f32, Const<4>>,
    output: &mut [O],
    view: View,
    blocks: u32,
    divisor: InputScalar,
    #[comptime] width: u32,
    #[comptime] operation: Operation,
    #[comptime] quotients: Quotients,
    #[comptime] source: Source,
    #[define(I, A, O, B)] _dtypes: [ElemType; 4],
) {
    let at = CUBE_POS as u32 * width + UNIT_POS_X;
    let out = at % view.outputs;
    let block = at / view.outputs;
    if block >= blocks {
        terminate!();
    }
    let first = block * COLUMNS_BLOCK;
    let length = min(view.axis - first, COLUMNS_BLOCK);
    // Columns from here on have a row less.
    let longer = length % COLUMNS;

    let mut row = (view.base(out) + first) / 4;
    let mut chains = Array::<Vector<A, Const<4>>>::new(comptime!(VECTORS as usize));
    if comptime!(source == Source::Stored) {
        #[unroll]
        for v in 0..VECTORS {
            chains[v as usize] =
                elements::<I, A, B, Const<4>>(stored, inputs, outputs, row + v, operation, comptime!(source.clone()));
        }
        for _ in 1..length / COLUMNS {
            row += VECTORS;
            #[unroll]
            for v in 0..VECTORS {
                let next = elements::<I, A, B, Const<4>>(
                    stored,
                    inputs,
                    outputs,
                    row + v,
                    operation,
                    comptime!(source.clone()),
                );
                chains[v as usize] = step_lanes::<A, Const<4>>(chains[v as usize], next, operation);
            }
        }
        row += VECTORS;
        #[unroll]
        for v in 0..VECTORS {
            if v * 4 < longer {
                let next = elements::<I, A, B, Const<4>>(
                    stored,
                    inputs,
                    outputs,
                    row + v,
                    operation,
                    comptime!(source.clone()),
                );
                chains[v as usize] = step_lanes::<A, Const<4>>(chains[v as usize], next, operation);
            }
        }
    } else {
        // The same with one copy of the program a column: a compiler takes long for more.
        for r in 0..length.div_ceil(COLUMNS) {
            #[unroll]
            for v in 0..VECTORS {
                if r * COLUMNS + v * 4 < length {
                    let next = elements::<I, A, B, Const<4>>(
                        stored,
                        inputs,
                        outputs,
                        row + v,
                        operation,
                        comptime!(source.clone()),
                    );
                    chains[v as usize] = begun_or_stepped::<A>(r == 0, chains[v as usize], next, operation);
                }
            }
            row += VECTORS;
        }
    }

    let mut total = chains[0].extract(0usize);
    #[unroll]
    for c in 1..COLUMNS {
        let chain = chains[comptime!((c / 4) as usize)].extract(comptime!((c % 4) as usize));
        total = step::<A>(total, chain, operation);
    }
    output[(out * blocks + block) as usize] = lower::<A, O>(total, divisor.get::<A>(), operation, quotients);
    keep_subnormals();
}
