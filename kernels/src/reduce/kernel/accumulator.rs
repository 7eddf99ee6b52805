//! The arithmetic of reductions: elements to accumulators, a step of a chain, accumulators to results.

use crate::dtype::F32;
use crate::dtype::key::{float_key, float_of_key};
use crate::elementwise::rounding::narrowed;
use crate::quotient::{Quotients, divide};
use crate::reduce::operation::Operation;
use cubecl::prelude::*;

/// An element in the type of the accumulator: widened, as 0 or 1, or as its key. An accumulator stays as it is.
#[cube]
pub(crate) fn lift<I: Numeric, A: Numeric>(value: I, #[comptime] operation: Operation) -> A {
    let from = elem_type_of::<I>();
    let to = elem_type_of::<A>();
    match comptime!(operation) {
        Operation::Sum | Operation::Mean | Operation::Prod => A::cast_from(value),
        Operation::Any | Operation::All => select(value == I::from_int(0), A::from_int(0), A::from_int(1)),
        _ => {
            if comptime!(from.is_float() && to.is_int()) {
                float_key::<I, A>(value, comptime!(operation.key()), false)
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
pub(crate) fn step<A: Numeric>(chain: A, next: A, #[comptime] operation: Operation) -> A {
    match comptime!(operation) {
        Operation::Sum | Operation::Mean => chain + next,
        Operation::Prod => chain * next,
        Operation::Min | Operation::All => select(next < chain, next, chain),
        _ => select(next > chain, next, chain),
    }
}

/// [`step`] of each lane.
#[cube]
pub(super) fn step_lanes<A: Numeric, N: Size>(
    chains: Vector<A, N>,
    next: Vector<A, N>,
    #[comptime] operation: Operation,
) -> Vector<A, N> {
    let mut stepped = Vector::<A, N>::empty();
    #[unroll]
    for lane in 0..N::value() {
        stepped.insert(lane, step::<A>(chains.extract(lane), next.extract(lane), operation));
    }
    stepped
}

/// The result of an accumulator: divided, narrowed, or the float of its key.
#[cube]
pub(crate) fn lower<A: Numeric, O: Numeric>(
    value: A,
    divisor: A,
    #[comptime] operation: Operation,
    #[comptime] quotients: Quotients,
) -> O {
    let from = elem_type_of::<A>();
    let to = elem_type_of::<O>();
    match comptime!(operation) {
        Operation::Mean => rounded::<A, O>(divide::<A>(value, divisor, quotients)),
        Operation::Max | Operation::Min | Operation::MaxAbs => {
            if comptime!(from.is_int() && to.is_float()) {
                float_of_key::<A, O>(value)
            } else {
                O::cast_from(value)
            }
        }
        _ => rounded::<A, O>(value),
    }
}

/// An accumulator in the type of the result. The rounding to a half type is spelled by integers, as that of element-wise results:
/// a driver's cast need not be to nearest.
#[cube]
fn rounded<A: Numeric, O: Numeric>(value: A) -> O {
    let from = elem_type_of::<A>();
    if comptime!(from == F32) { narrowed::<O>(f32::cast_from(value)) } else { O::cast_from(value) }
}

/// [`lift`] of each lane.
#[cube]
pub(super) fn lift_lanes<I: Numeric, A: Numeric, N: Size>(
    elements: Vector<I, N>,
    #[comptime] operation: Operation,
) -> Vector<A, N> {
    let mut lifted = Vector::<A, N>::empty();
    #[unroll]
    for lane in 0..N::value() {
        lifted.insert(lane, lift::<I, A>(elements.extract(lane), operation));
    }
    lifted
}
