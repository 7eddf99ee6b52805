//! The kernel of selections by units: one keeps the first elements of a chunk of a line.

use super::comparison::Form;
use super::kernel::{Extents, NONE, Wanted, words_of};
use crate::grid::UnitPlace;
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

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

/// The index at a position along the axis: the position itself, or the candidate `at` its place; `NONE` where there is none.
#[allow(clippy::let_and_return, reason = "only a statement has an attribute")]
#[cube]
fn index_at(candidates: ComptimeOption<&[u32]>, at: u32, position: u32) -> u32 {
    #[comptime]
    let index = match candidates {
        ComptimeOption::Some(candidates) => candidates[at as usize],
        ComptimeOption::None => position,
    };
    index
}

/// The element at an offset of what is read in vectors.
#[cube]
pub(super) fn element<F: Numeric, N: Size>(input: &[Vector<F, N>], offset: usize) -> F {
    let width = N::value();
    lane_of::<F, N>(input[offset / width], offset % width)
}

/// One lane of a vector.
#[cube]
pub(super) fn lane_of<F: Numeric, N: Size>(vector: Vector<F, N>, lane: usize) -> F {
    let mut value = vector.extract(0usize);
    #[unroll]
    for other in 1..N::value() {
        value = select(lane == other, vector.extract(other), value);
    }
    value
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
    candidates: ComptimeOption<&[u32]>,
    left: ComptimeOption<&mut [u32]>,
    values: &mut [F],
    indices: &mut [X],
    extents: Extents,
    unit: UnitPlace,
    strides: Strides,
    positions: u32,
    chunk: u32,
    group: u32,
    #[comptime] slots: u32,
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
        let mut present = false;
        let start = from + number * group;
        for vector in 0..(min(start + group, to) - start) / comptime!(width as u32) {
            let position = start + vector * comptime!(width as u32);
            let place = (outer * positions + position) * extents.inner + inner;
            let index = index_at(candidates, place, position);
            if index != NONE {
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
                let index = index_at(candidates, place, position);
                if index != NONE {
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
    #[comptime]
    if let ComptimeOption::Some(left) = left {
        let first = (outer * chunks + at) * slots;
        #[unroll]
        for slot in 0..slots {
            let place = (first + slot) * extents.inner + inner;
            left[place as usize] = kept.indices[comptime!(slot as usize)];
        }
    } else {
        let of_line = outer * extents.kept;
        #[unroll]
        for slot in 0..slots {
            if slot < extents.kept {
                let index = kept.indices[comptime!(slot as usize)];
                let place = ((of_line + slot) * extents.inner + inner) as usize;
                if comptime!(wanted.values) {
                    values[place] = element::<F, N>(input, first + index as usize * step);
                }
                if comptime!(wanted.indices) {
                    indices[place] = X::cast_from(index);
                }
            }
        }
    };
    keep_subnormals();
}
