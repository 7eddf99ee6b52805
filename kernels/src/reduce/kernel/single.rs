//! [`Pass::Single`](crate::reduce::plan::Pass::Single): units read one element at a time.

use super::Geometry;
use super::operation::{lower, step};
use super::source::{Source, element};
use crate::elementwise::{Inputs, Outputs};
use crate::order::{COLUMNS, COLUMNS_BLOCK};
use crate::reduce::Operation;
use crate::reduce::plan::Cube;
use cubecl::prelude::*;

/// The ascending chain over one column: elements `first`, `first + 64`, .. of the axis, `rows` of them.
#[cube]
fn column<I: Numeric, A: Numeric, B: Int>(
    stored: &[I],
    inputs: &Inputs<B>,
    outputs: &mut Outputs<B>,
    base: u32,
    first: u32,
    rows: u32,
    geometry: &Geometry,
    #[comptime] split: bool,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
) -> A {
    if comptime!(split) {
        let mut rest = first % geometry.axis_inner;
        let mut at = base + (first / geometry.axis_inner) * geometry.axis_outer_stride + rest * geometry.axis_stride;
        let rest_step = COLUMNS % geometry.axis_inner;
        let at_step = (COLUMNS / geometry.axis_inner) * geometry.axis_outer_stride + rest_step * geometry.axis_stride;
        // Wraps where the outer stride is the smaller one; unsigned arithmetic makes it right again.
        let carry = geometry.axis_outer_stride - geometry.axis_inner * geometry.axis_stride;
        let mut chain = element::<I, A, B>(stored, inputs, outputs, at, operation, comptime!(source.clone()));
        for _ in 1..rows {
            rest += rest_step;
            at += at_step;
            if rest >= geometry.axis_inner {
                rest -= geometry.axis_inner;
                at += carry;
            }
            chain = step::<A>(
                chain,
                element::<I, A, B>(stored, inputs, outputs, at, operation, comptime!(source.clone())),
                operation,
            );
        }
        chain
    } else {
        let mut at = base + first * geometry.axis_stride;
        let at_step = COLUMNS * geometry.axis_stride;
        let mut chain = element::<I, A, B>(stored, inputs, outputs, at, operation, comptime!(source.clone()));
        for _ in 1..rows {
            at += at_step;
            chain = step::<A>(
                chain,
                element::<I, A, B>(stored, inputs, outputs, at, operation, comptime!(source.clone())),
                operation,
            );
        }
        chain
    }
}

/// Reduces each block of each output's elements to one value, by `groups` units a block and `width` blocks a cube.
///
/// `stored` is what the view addresses, or `inputs` and `outputs` are a program's; `output` is `[outputs, blocks]`. One
/// unit adds its columns in order; several units put theirs into shared memory, `[COLUMNS, width]`, where the first
/// adds them.
#[cube(launch_unchecked)]
pub fn reduce_single<I: Numeric, A: Numeric, O: Numeric, B: Int>(
    stored: &[I],
    inputs: &Inputs<B>,
    outputs: &mut Outputs<B>,
    output: &mut [O],
    geometry: Geometry,
    divisor: InputScalar,
    #[comptime] cube: Cube,
    #[comptime] split: bool,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
    #[define(I, A, O, B)] _dtypes: [ElemType; 4],
) {
    let width = comptime!(cube.width);
    let groups = comptime!(cube.groups);
    // Units are numbered output first, then block.
    let at = CUBE_POS as u32 * width + UNIT_POS_X;
    let out = at % geometry.outputs;
    let block = at / geometry.outputs;
    let first = block * COLUMNS_BLOCK;
    // The grid may number more blocks than there are.
    let inside = block < geometry.output_stride;

    let base = geometry.base(out);
    let length = min(geometry.axis - first, COLUMNS_BLOCK);
    let columns = min(length, COLUMNS);
    let target = (out * geometry.output_stride + block) as usize;

    if comptime!(groups == 1) {
        if inside {
            let rows = length.div_ceil(COLUMNS);
            let mut total = column::<I, A, B>(
                stored,
                inputs,
                outputs,
                base,
                first,
                rows,
                &geometry,
                split,
                operation,
                comptime!(source.clone()),
            );
            for c in 1..columns {
                let rows = (length - c).div_ceil(COLUMNS);
                let next = column::<I, A, B>(
                    stored,
                    inputs,
                    outputs,
                    base,
                    first + c,
                    rows,
                    &geometry,
                    split,
                    operation,
                    comptime!(source.clone()),
                );
                total = step::<A>(total, next, operation);
            }
            output[target] = lower::<A, O>(total, divisor.get::<A>(), operation);
        }
    } else {
        let mut shared = Shared::<[A]>::new_slice(comptime!((COLUMNS * width) as usize));
        if inside {
            let mut c = UNIT_POS_Y;
            while c < columns {
                let rows = (length - c).div_ceil(COLUMNS);
                shared[(c * width + UNIT_POS_X) as usize] = column::<I, A, B>(
                    stored,
                    inputs,
                    outputs,
                    base,
                    first + c,
                    rows,
                    &geometry,
                    split,
                    operation,
                    comptime!(source.clone()),
                );
                c += groups;
            }
        }
        sync_cube();
        if inside && UNIT_POS_Y == 0 {
            let mut total = shared[UNIT_POS_X as usize];
            for c in 1..columns {
                total = step::<A>(total, shared[(c * width + UNIT_POS_X) as usize], operation);
            }
            output[target] = lower::<A, O>(total, divisor.get::<A>(), operation);
        }
    }
}
