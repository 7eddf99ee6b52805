//! The kernels of enumeration sorts, selections, and what radix sorts of lines need around them.
//!
//! Elements are compared by integer words, never as floats. `input[outer, length, inner]` is read through its strides;
//! `values` and `indices`, `[outer, kept, inner]`, are contiguous, and not written where they are not asked for.

use super::comparison::{Form, Order};
use crate::grid::UnitPlace;
use crate::view::Strides;
use cubecl::prelude::*;

/// Neighbours along the axis that one unit ranks: each element it reads is compared with all of them.
pub(super) const RANKED: usize = 8;

/// An index that no element has.
const NONE: u32 = u32::MAX;

/// `tensor[outer, length, inner]`, of each line of which the first `kept` in order are asked for.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(super) struct Extents {
    length: u32,
    inner: u32,
    kept: u32,
}

/// Which results are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub values: bool,
    pub indices: bool,
}

/// The low and the high word by which an element is compared, unsigned; elements of one word have it low.
#[cube]
fn words_of<F: Numeric>(value: F, #[comptime] form: Form) -> (u32, u32) {
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
fn precedes(low: u32, high: u32, their_low: u32, their_high: u32, #[comptime] form: Form) -> bool {
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
}

/// `keys[p] = of[positions[p]]`, a unit a key; each buffer is `[elements]`, and `positions` a permutation.
#[cube(launch_unchecked)]
pub(super) fn gather_keys(of: &[u32], positions: &[u32], keys: &mut [u32], elements: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= elements {
        terminate!();
    }
    keys[unit as usize] = of[positions[unit as usize] as usize];
}

/// Segment ids, a unit a key: `keys[p] = positions[p] / length`, the line of the element at `positions[p]`; both are `[elements]`.
#[cube(launch_unchecked)]
pub(super) fn segment_ids(positions: &[u32], keys: &mut [u32], length: u32, elements: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= elements {
        terminate!();
    }
    keys[unit as usize] = positions[unit as usize] / length;
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
}

/// The first elements in order of those that were put there, by their words and indices.
///
/// A slot without an element holds `NONE`, which no index is.
#[derive(CubeType)]
struct Slots {
    lows: Array<u32>,
    highs: Array<u32>,
    indices: Array<u32>,
}

#[cube]
impl Slots {
    /// Slots without an element.
    fn new(#[comptime] slots: usize) -> Slots {
        let mut lows = Array::<u32>::new(slots);
        let mut highs = Array::<u32>::new(slots);
        let mut indices = Array::<u32>::new(slots);
        #[unroll]
        for slot in 0..slots {
            lows[slot] = NONE;
            highs[slot] = NONE;
            indices[slot] = NONE;
        }
        Slots { lows, highs, indices }
    }

    /// Puts an element in its slot, from where each one moves on by one. It comes before equal ones that are there.
    fn put(&mut self, low: u32, high: u32, index: u32, #[comptime] slots: usize, #[comptime] form: Form) {
        let mut low = low;
        let mut high = high;
        let mut index = index;
        #[unroll]
        for slot in 0..slots {
            let (their_low, their_high, theirs) = (self.lows[slot], self.highs[slot], self.indices[slot]);
            let mut before = low <= their_low;
            if comptime!(form.wide) {
                before = high < their_high || (high == their_high && before);
                self.highs[slot] = select(before, high, their_high);
                high = select(before, their_high, high);
            }
            self.lows[slot] = select(before, low, their_low);
            low = select(before, their_low, low);
            self.indices[slot] = select(before, index, theirs);
            index = select(before, theirs, index);
        }
    }
}

/// The index at a position along the axis, and whether there is one: the position itself, or the candidate `at` its
/// place.
#[cube]
fn index_at(candidates: &[u32], at: u32, position: u32, #[comptime] all: bool) -> (u32, bool) {
    if comptime!(all) {
        (position, true.runtime())
    } else {
        let index = candidates[at as usize];
        (index, index != NONE)
    }
}

/// A unit a chunk of the positions of a line: the first `slots` of its elements in order, by their indices in
/// `left[outer, chunks, slots, inner]`; or, of a line of one chunk, the result.
///
/// Positions are places along the axis in the first pass, and in the others places in `candidates[outer, positions, inner]`,
/// which is what the pass before has left; equal elements have ascending indices in both. A chunk is read twice, since its
/// first `slots` elements are all in the `slots` groups of neighbours whose own first elements come first (Gaihre et al.,
/// "Dr. Top-k: delegate-centric top-k on GPUs", 2021):
///
/// ```text
/// for each group of the chunk, descending:        put its first element into `groups`
/// for each group in `groups`, descending:
///     for each element of the group, descending:  put it into `kept`
/// ```
///
/// An element that is put comes before equal ones that are there, hence the descending loops. Vectors are of neighbours along
/// the axis, of which chunks and groups have whole ones.
#[cube(launch_unchecked)]
pub(super) fn keep_first<F: Numeric, X: Int, N: Size>(
    input: &[Vector<F, N>],
    candidates: &[u32],
    left: &mut [u32],
    values: &mut [F],
    indices: &mut [X],
    extents: Extents,
    unit: UnitPlace,
    strides: Strides,
    positions: u32,
    chunk: u32,
    group: u32,
    #[comptime] slots: u32,
    #[comptime] all: bool,
    #[comptime] last: bool,
    #[comptime] wanted: Wanted,
    #[comptime] form: Form,
    #[define(F, X)] _dtypes: [ElemType; 2],
) {
    let (outer, at, inner) = (unit.outer(), unit.axis(), unit.inner());
    let chunks = positions.div_ceil(chunk);
    if !unit.exists() {
        terminate!();
    }
    let width = N::value();
    let from = at * chunk;
    let to = min(from + chunk, positions);
    let first = strides.offset(outer, 0, inner);
    let step = strides.offset(0, 1, 0);
    let mut groups = Slots::new(comptime!(slots as usize));
    let count = (to - from).div_ceil(group);
    for nth in 0..count {
        let number = count - 1 - nth;
        let mut low = NONE.runtime();
        let mut high = NONE.runtime();
        let mut present = comptime!(all).runtime();
        let start = from + number * group;
        for vector in 0..(min(start + group, to) - start) / comptime!(width as u32) {
            let position = start + vector * comptime!(width as u32);
            let place = (outer * positions + position) * extents.inner + inner;
            let (index, exists) = index_at(candidates, place, position, all);
            if exists {
                present = true;
                let values = input[(first + index as usize * step) / width];
                #[unroll]
                for lane in 0..width {
                    let (their_low, their_high) = words_of::<F>(values.extract(lane), form);
                    if comptime!(form.wide) {
                        let before = their_high < high || (their_high == high && their_low < low);
                        low = select(before, their_low, low);
                        high = select(before, their_high, high);
                    } else {
                        low = min(low, their_low);
                    }
                }
            }
        }
        if present {
            groups.put(low, high, number, comptime!(slots as usize), form);
        }
    }
    let mut kept = Slots::new(comptime!(slots as usize));
    let mut end = NONE.runtime();
    for _ in 0..slots {
        // One more than the number of the last chosen group that is left.
        let mut next = 0u32;
        #[unroll]
        for slot in 0..slots {
            let number = groups.indices[comptime!(slot as usize)] + 1;
            next = select(number < end, max(next, number), next);
        }
        end = next;
        if end > 0 {
            let number = end - 1;
            let start = from + number * group;
            let vectors = (min(start + group, to) - start) / comptime!(width as u32);
            for nth in 0..vectors {
                let position = start + (vectors - 1 - nth) * comptime!(width as u32);
                let place = (outer * positions + position) * extents.inner + inner;
                let (index, exists) = index_at(candidates, place, position, all);
                if exists {
                    let values = input[(first + index as usize * step) / width];
                    #[unroll]
                    for lane in 0..width {
                        let lane = comptime!(width - 1 - lane);
                        let (low, high) = words_of::<F>(values.extract(lane), form);
                        kept.put(low, high, index + comptime!(lane as u32), comptime!(slots as usize), form);
                    }
                }
            }
        }
    }
    #[unroll]
    for slot in 0..slots {
        let index = kept.indices[comptime!(slot as usize)];
        if comptime!(!last) {
            left[(((outer * chunks + at) * slots + slot) * extents.inner + inner) as usize] = index;
        } else if slot < extents.kept {
            let place = ((outer * extents.kept + slot) * extents.inner + inner) as usize;
            if comptime!(wanted.values) {
                let offset = first + index as usize * step;
                let neighbours = input[offset / width];
                let mut value = neighbours.extract(0usize);
                #[unroll]
                for lane in 1..width {
                    value = select(offset % width == lane, neighbours.extract(lane), value);
                }
                values[place] = value;
            }
            if comptime!(wanted.indices) {
                indices[place] = X::cast_from(index);
            }
        }
    }
}
