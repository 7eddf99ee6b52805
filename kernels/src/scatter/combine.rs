//! The operations of updates, and the blocked order of values that come one by one.

use super::update::Update;
use cubecl::prelude::*;

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub update: Update,
    pub is_float: bool,
    /// Whether all positions are of one block.
    pub one_block: bool,
}

#[cube]
fn is_nan<A: Numeric>(value: A) -> bool {
    // Compared as bits, since shader compilers may assume that no float is NaN.
    (u32::reinterpret(f32::cast_from(value)) & 0x7fff_ffffu32) > 0x7f80_0000u32
}

/// Whether a float is -0.
#[cube]
fn is_negative_zero<A: Numeric>(value: A) -> bool {
    // Compared as bits, since -0 equals +0. Casting to f32 can underflow a small f64 to -0, so equality with zero is tested
    // too.
    value == A::from_int(0) && u32::reinterpret(f32::cast_from(value)) == 0x8000_0000u32
}

/// `left + right` of the order contract.
#[cube]
pub(super) fn combine<A: Numeric>(left: A, right: A, #[comptime] form: Form) -> A {
    match comptime!(form.update) {
        Update::Add => {
            if comptime!(form.is_float) {
                // A device that flushes subnormal numbers would flush `left` in `left + -0`.
                let sum = select(is_negative_zero::<A>(left), right, left + right);
                select(is_negative_zero::<A>(right), left, sum)
            } else {
                left + right
            }
        }
        Update::Mul => left * right,
        Update::Assign => right,
        Update::Or => {
            let zero = A::from_int(0);
            select(left == zero && right == zero, zero, A::from_int(1))
        }
        Update::Min | Update::Max => {
            let beyond = if comptime!(form.update == Update::Max) { right > left } else { right < left };
            if comptime!(form.is_float) {
                let takes = is_nan::<A>(right) || (beyond && !is_nan::<A>(left));
                select(takes, right, left)
            } else {
                select(beyond, right, left)
            }
        }
    }
}

/// `before` updated by the total of its values.
#[cube]
fn apply<F: Numeric, A: Numeric>(before: F, total: A, #[comptime] form: Form) -> F {
    let after = F::cast_from(combine::<A>(A::cast_from(before), total, form));
    if comptime!(form.is_float && form.update == Update::Add) {
        // Not by way of the accumulator, which may not keep every bit of a NaN.
        select(is_negative_zero::<A>(total), before, after)
    } else {
        after
    }
}

/// [`apply`] of each lane.
#[cube]
pub(super) fn apply_lanes<F: Numeric, A: Numeric, N: Size>(
    before: Vector<F, N>,
    total: Vector<A, N>,
    #[comptime] form: Form,
) -> Vector<F, N> {
    let mut after = Vector::<F, N>::empty();
    #[unroll]
    for lane in 0..N::value() {
        after.insert(lane, apply::<F, A>(before.extract(lane), total.extract(lane), form));
    }
    after
}

/// [`combine`] of each lane.
#[cube]
pub(super) fn combine_lanes<A: Numeric, N: Size>(
    left: Vector<A, N>,
    right: Vector<A, N>,
    #[comptime] form: Form,
) -> Vector<A, N> {
    let mut combined = Vector::<A, N>::empty();
    #[unroll]
    for lane in 0..N::value() {
        combined.insert(lane, combine::<A>(left.extract(lane), right.extract(lane), form));
    }
    combined
}

/// The blocked order of one destination's values, which come by ascending position: the reduction of the current block, and
/// the reduction of the blocks before it.
#[derive(CubeType)]
pub(super) struct Accumulator<A: Numeric, N: Size> {
    /// One more than the number of the current block; 0 before the first value.
    block: u32,
    /// Whether there is a block before the current one.
    has_total: bool,
    partial: Vector<A, N>,
    total: Vector<A, N>,
}

#[cube]
impl<A: Numeric, N: Size> Accumulator<A, N> {
    /// No value yet.
    pub fn new() -> Accumulator<A, N> {
        Accumulator::<A, N> {
            block: 0u32,
            has_total: false,
            partial: Vector::<A, N>::new(A::from_int(0)),
            total: Vector::<A, N>::new(A::from_int(0)),
        }
    }

    /// Takes a value of `block`, or the reduction of all of a block's values. Blocks do not descend.
    pub fn take(&mut self, block: u32, value: Vector<A, N>, #[comptime] form: Form) {
        if self.block == block + 1 {
            self.partial = combine_lanes::<A, N>(self.partial, value, form);
        } else {
            if comptime!(!form.one_block) {
                self.close(form);
            }
            self.partial = value;
            self.block = block + 1;
        }
    }

    /// Chains the current block, if there is one, to those before it.
    fn close(&mut self, #[comptime] form: Form) {
        if self.has_total {
            self.total = combine_lanes::<A, N>(self.total, self.partial, form);
        } else if self.block != 0 {
            self.total = self.partial;
            self.has_total = true;
        }
    }

    /// The element that the values make of `before`.
    pub fn update<F: Numeric>(&mut self, before: Vector<F, N>, #[comptime] form: Form) -> Vector<F, N> {
        if comptime!(!form.one_block) {
            self.close(form);
        } else {
            self.total = self.partial;
        }
        let mut after = before;
        if self.block != 0 {
            after = apply_lanes::<F, A, N>(before, self.total, form);
        }
        after
    }
}
