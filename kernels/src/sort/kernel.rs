//! The kernels of enumeration sorts, and what radix sorts of lines need around them.
//!
//! Elements are compared by integer words, never as floats. `input[outer, length, inner]` is read through its strides;
//! `values` and `indices`, `[outer, kept, inner]`, are contiguous, and not written where they are not asked for.

use super::comparison::{Form, Order};
use crate::grid::UnitPlace;
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

/// Neighbours along the axis that one unit ranks: each element it reads is compared with all of them.
pub(super) const RANKED: usize = 8;

/// An index that no element has.
pub(super) const NONE: u32 = u32::MAX;

/// `tensor[outer, length, inner]`, of each line of which the first `kept` in order are asked for.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(super) struct Extents {
    pub(super) length: u32,
    pub(super) inner: u32,
    pub(super) kept: u32,
}

/// Which results are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub values: bool,
    pub indices: bool,
}

/// The low and the high word by which an element is compared, unsigned; elements of one word have it low.
#[cube]
pub(super) fn words_of<F: Numeric>(value: F, #[comptime] form: Form) -> (u32, u32) {
    let elem = elem_type_of::<F>();
    let shift = comptime!(32 - form.bits);
    let sign = 0x8000_0000u32;
    let mut low = 0u32;
    if comptime!(form.wide) {
        low = u32::cast_from(i64::cast_from(value) & 0xffff_ffffi64);
    }
    let mut high = if comptime!(form.wide) {
        u32::cast_from((i64::cast_from(value) >> 32i64) & 0xffff_ffffi64)
    } else if comptime!(elem.is_float()) {
        u32::reinterpret(f32::cast_from(value))
    } else if comptime!(elem.size() == 4) {
        u32::cast_from(value)
    } else {
        u32::reinterpret(i32::cast_from(value)) << shift
    };
    // Now the sign, if there is one, is the first bit of the high word.
    match comptime!(form.order) {
        Order::Float => {
            let infinity = comptime!(if form.wide { 0x7ff0_0000u32 } else { 0x7f80_0000u32 });
            let magnitude = high & 0x7fff_ffffu32;
            let nan = magnitude > infinity || (magnitude == infinity && low != 0);
            high = select(nan, 0x7fff_ffffu32, high);
            low = select(nan, 0u32, low);
            // All bits if there is a sign, and none if there is none.
            let mask = 0u32 - (high >> 31);
            low ^= mask;
            high ^= mask | sign;
        }
        Order::Signed => {
            high ^= sign;
        }
        Order::Unsigned => {}
    }
    if comptime!(form.descending) {
        low = !low;
        high = !high;
    }
    if comptime!(!form.wide) {
        low = high >> shift;
        high = 0u32;
    }
    (low, high)
}

/// Whether the element with these words comes before a different one.
#[cube]
pub(super) fn precedes(low: u32, high: u32, their_low: u32, their_high: u32, #[comptime] form: Form) -> bool {
    let before = low < their_low;
    if comptime!(form.wide) { high < their_high || (high == their_high && before) } else { before }
}

/// For [`RANKED`] neighbours along the axis: the place of each in its line is the number of elements that come before it,
/// of equal ones those before it along the axis.
#[cube(launch_unchecked)]
pub(super) fn rank_lines<F: Numeric, X: Int>(
    input: &[F],
    values: &mut [F],
    indices: &mut [X],
    extents: Extents,
    unit: UnitPlace,
    strides: Strides,
    #[comptime] form: Form,
    #[comptime] wanted: Wanted,
    #[define(F, X)] _dtypes: [ElemType; 2],
) {
    let (outer, inner) = (unit.outer(), unit.inner());
    let from = unit.axis() * comptime!(RANKED as u32);
    if !unit.exists() {
        terminate!();
    }
    let first = strides.offset(outer, 0, inner);
    let step = strides.offset(0, 1, 0);
    let mut lows = Array::<u32>::new(RANKED);
    let mut highs = Array::<u32>::new(RANKED);
    let mut ranks = Array::<u32>::new(RANKED);
    #[unroll]
    for own in 0..RANKED {
        let at = from + comptime!(own as u32);
        let exists = at < extents.length;
        let (low, high) = words_of::<F>(input[first + min(at, extents.length - 1) as usize * step], form);
        // A place past the end of the line comes before none.
        lows[own] = select(exists, low, NONE);
        highs[own] = select(exists, high, NONE);
        ranks[own] = 0;
    }
    for other in 0..from {
        let (low, high) = words_of::<F>(input[first + other as usize * step], form);
        #[unroll]
        for own in 0..RANKED {
            ranks[own] += u32::cast_from(!precedes(lows[own], highs[own], low, high, form));
        }
    }
    for other in min(from + comptime!(RANKED as u32), extents.length)..extents.length {
        let (low, high) = words_of::<F>(input[first + other as usize * step], form);
        #[unroll]
        for own in 0..RANKED {
            ranks[own] += u32::cast_from(precedes(low, high, lows[own], highs[own], form));
        }
    }
    #[unroll]
    for own in 1..RANKED {
        #[unroll]
        for other in 0..own {
            let overtakes = precedes(lows[own], highs[own], lows[other], highs[other], form);
            ranks[other] += u32::cast_from(overtakes);
            ranks[own] += u32::cast_from(!overtakes);
        }
    }
    #[unroll]
    for own in 0..RANKED {
        let at = from + comptime!(own as u32);
        let rank = ranks[own];
        if at < extents.length && rank < extents.kept {
            let place = ((outer * extents.kept + rank) * extents.inner + inner) as usize;
            if comptime!(wanted.values) {
                values[place] = input[first + at as usize * step];
            }
            if comptime!(wanted.indices) {
                indices[place] = X::cast_from(at);
            }
        }
    }
    keep_subnormals();
}

/// A unit an element: its words, line after line, in `lows[outer, inner, length]` and, of elements of two words,
/// `highs[outer, inner, length]`.
#[cube(launch_unchecked)]
pub(super) fn line_keys<F: Numeric>(
    input: &[F],
    lows: &mut [u32],
    highs: &mut [u32],
    extents: Extents,
    unit: UnitPlace,
    strides: Strides,
    #[comptime] form: Form,
    #[define(F)] _dtype: ElemType,
) {
    let (outer, at, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let (low, high) = words_of::<F>(input[strides.offset(outer, at, inner)], form);
    let key = ((outer * extents.inner + inner) * extents.length + at) as usize;
    lows[key] = low;
    if comptime!(form.wide) {
        highs[key] = high;
    }
    keep_subnormals();
}

/// `keys[p] = of[positions[p]]`, a unit a key; each buffer is `[elements]`, and `positions` a permutation.
#[cube(launch_unchecked)]
pub(super) fn gather_keys(of: &[u32], positions: &[u32], keys: &mut [u32], elements: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= elements {
        terminate!();
    }
    keys[unit as usize] = of[positions[unit as usize] as usize];
    keep_subnormals();
}

/// Segment ids, a unit a key: `keys[p] = positions[p] / length`, the line of the element at `positions[p]`; both are `[elements]`.
#[cube(launch_unchecked)]
pub(super) fn segment_ids(positions: &[u32], keys: &mut [u32], length: u32, elements: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= elements {
        terminate!();
    }
    keys[unit as usize] = positions[unit as usize] / length;
    keep_subnormals();
}

/// Applies a permutation, a unit an element kept: element `r` of a line in order is the one at `positions[outer, inner, r]`, counted
/// over `[outer, inner, length]`.
#[cube(launch_unchecked)]
pub(super) fn permute<F: Numeric, X: Int>(
    input: &[F],
    positions: &[u32],
    values: &mut [F],
    indices: &mut [X],
    extents: Extents,
    unit: UnitPlace,
    strides: Strides,
    #[comptime] wanted: Wanted,
    #[define(F, X)] _dtypes: [ElemType; 2],
) {
    let (outer, rank, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let first = (outer * extents.inner + inner) * extents.length;
    let at = positions[(first + rank) as usize] - first;
    let place = unit.index();
    if comptime!(wanted.values) {
        values[place] = input[strides.offset(outer, at, inner)];
    }
    if comptime!(wanted.indices) {
        indices[place] = X::cast_from(at);
    }
    keep_subnormals();
}
