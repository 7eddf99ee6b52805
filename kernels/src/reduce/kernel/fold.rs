//! One pass of a fold.

use super::Geometry;
use super::source::{Source, element};
use crate::dtype::key::{float_key, float_of_key};
use crate::elementwise::{Inputs, Outputs};
use crate::order::COLUMNS;
use crate::reduce::Operation;
use cubecl::prelude::*;

/// An element as the accumulator holds it. Lifting what is already an accumulator changes nothing.
#[cube]
pub(super) fn lift<I: Numeric, A: Numeric>(value: I, #[comptime] operation: Operation) -> A {
    let from = elem_type_of::<I>();
    let to = elem_type_of::<A>();
    match comptime!(operation) {
        Operation::Sum | Operation::Mean | Operation::Prod => A::cast_from(value),
        Operation::Any | Operation::All => select(value == I::from_int(0), A::from_int(0), A::from_int(1)),
        _ => {
            if comptime!(from.is_float() && to.is_int()) {
                float_key::<I, A>(value, operation, false)
            } else if comptime!(matches!(operation, Operation::MaxAbs) && to.is_signed_int()) {
                let wide = A::cast_from(value);
                select(wide < A::from_int(0), A::from_int(0) - wide, wide)
            } else {
                A::cast_from(value)
            }
        }
    }
}

/// One step of a chain.
#[cube]
pub(super) fn step<A: Numeric>(chain: A, next: A, #[comptime] operation: Operation) -> A {
    match comptime!(operation) {
        Operation::Sum | Operation::Mean => chain + next,
        Operation::Prod => chain * next,
        Operation::Min | Operation::All => select(next < chain, next, chain),
        _ => select(next > chain, next, chain),
    }
}

/// One step of four chains.
#[cube]
pub(super) fn step_four<A: Numeric>(
    chains: Vector<A, Const<4>>,
    next: Vector<A, Const<4>>,
    #[comptime] operation: Operation,
) -> Vector<A, Const<4>> {
    let mut stepped = Vector::<A, Const<4>>::empty();
    #[unroll]
    for lane in 0..4usize {
        stepped.insert(lane, step::<A>(chains.extract(lane), next.extract(lane), operation));
    }
    stepped
}

/// The accumulator as a result.
#[cube]
pub(super) fn lower<A: Numeric, O: Numeric>(value: A, divisor: A, #[comptime] operation: Operation) -> O {
    let from = elem_type_of::<A>();
    let to = elem_type_of::<O>();
    match comptime!(operation) {
        Operation::Mean => O::cast_from(value / divisor),
        Operation::Max | Operation::Min | Operation::MaxAbs => {
            if comptime!(from.is_int() && to.is_float()) {
                float_of_key::<A, O>(value)
            } else {
                O::cast_from(value)
            }
        }
        _ => O::cast_from(value),
    }
}

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

/// Folds one block of the axis for each output: a cube of `width` outputs by `groups` units that share the columns.
///
/// With one group the unit walks its columns in order; with more, the column chains meet in shared memory.
#[cube(launch_unchecked)]
pub fn fold_blocks<I: Numeric, A: Numeric, O: Numeric, B: Int>(
    stored: &[I],
    inputs: &Inputs<B>,
    outputs: &mut Outputs<B>,
    output: &mut [O],
    geometry: Geometry,
    divisor: InputScalar,
    #[comptime] width: u32,
    #[comptime] groups: u32,
    #[comptime] split: bool,
    #[comptime] operation: Operation,
    #[comptime] source: Source,
    #[define(I, A, O, B)] _dtypes: [ElemType; 4],
) {
    // Blocks of the same number lie side by side, one for each output.
    let at = CUBE_POS as u32 * width + UNIT_POS_X;
    let out = at % geometry.outputs;
    let block = at / geometry.outputs;
    let first = block * comptime!(COLUMNS * COLUMNS);
    // A result has as many blocks as its outputs lie apart; a larger grid may number blocks that do not exist.
    let inside = block < geometry.output_stride;

    let base = geometry.base(out);
    let length = min(geometry.axis - first, comptime!(COLUMNS * COLUMNS));
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
