//! [`Pass::FourElements`](crate::reduce::plan::Pass::FourElements): a unit reads four neighbours of one output at a
//! time.

use super::Geometry;
use super::operation::{lower, step, step_four};
use super::source::{Source, element_four};
use crate::elementwise::{Inputs, Outputs};
use crate::order::{COLUMNS, COLUMNS_BLOCK};
use crate::reduce::Operation;
use cubecl::prelude::*;

/// Vectors of four in a row of a block.
const FOURS: u32 = COLUMNS / 4;

/// Four chains that begin with `next`, or go on with it.
#[cube]
fn begun_or_stepped<A: Numeric>(
    begin: bool,
    chains: Vector<A, Const<4>>,
    next: Vector<A, Const<4>>,
    #[comptime] operation: Operation,
) -> Vector<A, Const<4>> {
    let stepped = step_four::<A>(chains, next, operation);
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
/// `stored` is what the view addresses, in [fours of elements](crate::reduce::plan::View::has_elements_in_fours), or
/// `inputs` and `outputs` are a program's; `output` is `[outputs, blocks]`.
#[cube(launch_unchecked)]
pub fn reduce_four_elements<I: Numeric, A: Numeric, O: Numeric, B: Int>(
    stored: &[Vector<I, Const<4>>],
    inputs: &Inputs<B>,
    outputs: &mut Outputs<B>,
    output: &mut [O],
    geometry: Geometry,
    divisor: InputScalar,
    #[comptime] width: u32,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
    #[define(I, A, O, B)] _dtypes: [ElemType; 4],
) {
    let at = CUBE_POS as u32 * width + UNIT_POS_X;
    let out = at % geometry.outputs;
    let block = at / geometry.outputs;
    if block >= geometry.output_stride {
        terminate!();
    }
    let first = block * COLUMNS_BLOCK;
    let length = min(geometry.axis - first, COLUMNS_BLOCK);
    // Columns from here on have a row less.
    let longer = length % COLUMNS;

    let mut row = (geometry.base(out) + first) / 4;
    let mut chains = Array::<Vector<A, Const<4>>>::new(comptime!(FOURS as usize));
    if comptime!(source == Source::Stored) {
        #[unroll]
        for v in 0..FOURS {
            chains[v as usize] =
                element_four::<I, A, B>(stored, inputs, outputs, row + v, operation, comptime!(source.clone()));
        }
        for _ in 1..length / COLUMNS {
            row += FOURS;
            #[unroll]
            for v in 0..FOURS {
                let next =
                    element_four::<I, A, B>(stored, inputs, outputs, row + v, operation, comptime!(source.clone()));
                chains[v as usize] = step_four::<A>(chains[v as usize], next, operation);
            }
        }
        row += FOURS;
        #[unroll]
        for v in 0..FOURS {
            if v * 4 < longer {
                let next =
                    element_four::<I, A, B>(stored, inputs, outputs, row + v, operation, comptime!(source.clone()));
                chains[v as usize] = step_four::<A>(chains[v as usize], next, operation);
            }
        }
    } else {
        // The same with one copy of the program a column: a compiler takes long for more.
        for r in 0..length.div_ceil(COLUMNS) {
            #[unroll]
            for v in 0..FOURS {
                if r * COLUMNS + v * 4 < length {
                    let next =
                        element_four::<I, A, B>(stored, inputs, outputs, row + v, operation, comptime!(source.clone()));
                    chains[v as usize] = begun_or_stepped::<A>(r == 0, chains[v as usize], next, operation);
                }
            }
            row += FOURS;
        }
    }

    let mut total = chains[0].extract(0usize);
    #[unroll]
    for c in 1..COLUMNS {
        let chain = chains[comptime!((c / 4) as usize)].extract(comptime!((c % 4) as usize));
        total = step::<A>(total, chain, operation);
    }
    output[(out * geometry.output_stride + block) as usize] = lower::<A, O>(total, divisor.get::<A>(), operation);
}
