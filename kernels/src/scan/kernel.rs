//! The three kernels of a scan: reduce each block, chain the blocks' totals, scan each block.
//!
//! `input[outer, length, inner]` is read through its strides; `output[outer, length, inner]` and `totals[outer, blocks,
//! inner]` are contiguous, with `blocks = ceil(length / 1024)`.

use super::operation::Operation;
use crate::dtype::key::{KeyFor, float_key};
use crate::grid::UnitPlace;
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

/// `tensor[outer, length, inner]` in blocks of [`BLOCK_TERMS`] elements along the axis.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(super) struct Extents {
    pub length: u32,
    inner: u32,
}

#[cube]
impl Extents {
    /// Blocks of one line.
    pub fn blocks(&self) -> u32 {
        self.length.div_ceil(BLOCK_TERMS)
    }
}

/// Elements that a unit reads before it goes on with its chain, so that it waits for memory once for all of them.
pub(super) const AHEAD: u32 = 8;

/// What an element is compared by.
#[cube]
fn key<A: Numeric, K: Numeric>(value: A, #[comptime] operation: Operation) -> K {
    let elem = elem_type_of::<A>();
    let purpose = comptime!(if operation == Operation::Min { KeyFor::Minimum } else { KeyFor::Maximum });
    if comptime!(elem.is_float()) { float_key::<A, K>(value, purpose, true) } else { K::cast_from(value) }
}

/// `left + right` of the order contract.
#[cube]
pub(super) fn combine<A: Numeric, K: Numeric>(left: A, right: A, #[comptime] operation: Operation) -> A {
    match comptime!(operation) {
        Operation::Sum => left + right,
        Operation::Prod => left * right,
        Operation::Min => select(key::<A, K>(right, operation) < key::<A, K>(left, operation), right, left),
        Operation::Max => select(key::<A, K>(right, operation) > key::<A, K>(left, operation), right, left),
    }
}

/// The elements `at ..` of a line.
#[cube]
fn read_ahead<F: Numeric, A: Numeric>(
    input: &[F],
    ahead: &mut Array<A>,
    strides: &Strides,
    outer: u32,
    at: u32,
    inner: u32,
) {
    #[unroll]
    for nth in 0..AHEAD {
        ahead[comptime!(nth as usize)] = A::cast_from(input[strides.offset(outer, at + nth, inner)]);
    }
}

/// The result where the chain of a block has come to `local`, and the block before it, if it is not the first one,
/// ended with the result `before`.
#[cube]
pub(super) fn after<A: Numeric, K: Numeric>(
    before: A,
    local: A,
    is_first: bool,
    #[comptime] operation: Operation,
) -> A {
    if is_first { local } else { combine::<A, K>(before, local, operation) }
}

/// A unit a block of a line: the last value of its chain, in `totals[outer, blocks, inner]`.
#[cube(launch_unchecked)]
pub(super) fn reduce_blocks<F: Numeric, A: Numeric, K: Numeric>(
    input: &[F],
    totals: &mut [A],
    extents: Extents,
    unit: UnitPlace,
    strides: Strides,
    #[comptime] operation: Operation,
    #[define(F, A, K)] _dtypes: [ElemType; 3],
) {
    let (outer, block, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let start = block * BLOCK_TERMS;
    let end = min(start + BLOCK_TERMS, extents.length);
    let mut local = A::cast_from(input[strides.offset(outer, start, inner)]);
    let mut at = start + 1;
    let mut ahead = Array::<A>::new(comptime!(AHEAD as usize));
    for _ in 0..(end - at) / AHEAD {
        read_ahead::<F, A>(input, &mut ahead, &strides, outer, at, inner);
        #[unroll]
        for nth in 0..AHEAD {
            local = combine::<A, K>(local, ahead[comptime!(nth as usize)], operation);
        }
        at += AHEAD;
    }
    for at in at..end {
        let value = A::cast_from(input[strides.offset(outer, at, inner)]);
        local = combine::<A, K>(local, value, operation);
    }
    totals[unit.index()] = local;
    keep_subnormals();
}

/// A unit a line: makes of the totals of the blocks `first_block .. end_block` the results at their last elements,
/// those before being made already.
#[cube(launch_unchecked)]
pub(super) fn chain_totals<A: Numeric, K: Numeric>(
    totals: &mut [A],
    extents: Extents,
    unit: UnitPlace,
    first_block: u32,
    end_block: u32,
    #[comptime] operation: Operation,
    #[define(A, K)] _dtypes: [ElemType; 2],
) {
    let (outer, inner) = (unit.outer(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let first = outer * extents.blocks() * extents.inner + inner;
    let mut result = totals[(first + (first_block - 1) * extents.inner) as usize];
    for block in first_block..end_block {
        let at = (first + block * extents.inner) as usize;
        result = combine::<A, K>(result, totals[at], operation);
        totals[at] = result;
    }
    keep_subnormals();
}

/// A unit a block of a line: goes on from the last result of the block before it.
#[cube(launch_unchecked)]
pub(super) fn scan_blocks<F: Numeric, A: Numeric, K: Numeric>(
    input: &[F],
    totals: &[A],
    output: &mut [F],
    extents: Extents,
    unit: UnitPlace,
    strides: Strides,
    #[comptime] operation: Operation,
    #[define(F, A, K)] _dtypes: [ElemType; 3],
) {
    let (outer, block, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let start = block * BLOCK_TERMS;
    let mut before = A::from_int(0);
    if block > 0 {
        before = totals[((outer * extents.blocks() + block - 1) * extents.inner + inner) as usize];
    }
    let first = outer * extents.length * extents.inner + inner;
    let end = min(start + BLOCK_TERMS, extents.length);
    let mut local = A::cast_from(input[strides.offset(outer, start, inner)]);
    output[(first + start * extents.inner) as usize] =
        F::cast_from(after::<A, K>(before, local, block == 0, operation));
    let mut at = start + 1;
    let mut ahead = Array::<A>::new(comptime!(AHEAD as usize));
    for _ in 0..(end - at) / AHEAD {
        read_ahead::<F, A>(input, &mut ahead, &strides, outer, at, inner);
        #[unroll]
        for nth in 0..AHEAD {
            local = combine::<A, K>(local, ahead[comptime!(nth as usize)], operation);
            let result = after::<A, K>(before, local, block == 0, operation);
            output[(first + (at + nth) * extents.inner) as usize] = F::cast_from(result);
        }
        at += AHEAD;
    }
    for at in at..end {
        let value = A::cast_from(input[strides.offset(outer, at, inner)]);
        local = combine::<A, K>(local, value, operation);
        let result = after::<A, K>(before, local, block == 0, operation);
        output[(first + at * extents.inner) as usize] = F::cast_from(result);
    }
    keep_subnormals();
}
