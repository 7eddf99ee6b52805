//! The kernel of selections by cubes: the units of one keep the first elements of a chunk of a line together.
//!
//! ```text
//! kept[u] = the first `slots` of the vectors u, u + 64, .. of the chunk, in order              unit u
//! for half in 32, 16, 8, 4, 2, 1: kept[u] = the first `slots` of kept[u] and kept[u + half]    unit u < half
//! ```
//!
//! Two lists are merged as by K. E. Batcher ("Sorting networks and their applications", 1968): the smaller one of each element
//! of a list and its mirror image in the other are the first elements of both, a bitonic sequence, which `log2(slots)` rounds of
//! comparisons bring in order. Elements are compared by their words and then by their index, so that no two are equal and the
//! order in which they meet does not matter. Slots without an element hold `NONE` and come last.

use super::comparison::Form;
use super::kernel::{NONE, Wanted, precedes, words_of};
use super::plan::UNITS_OF_CUBE;
use super::selection_kernel::{element, lane_of};
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

/// Units of a cube.
pub(super) const UNITS: u32 = UNITS_OF_CUBE as u32;

/// A chunk of the `positions` of a line, of which `kept` elements are asked for in the end.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(super) struct Chunks {
    positions: u32,
    chunk: u32,
    kept: u32,
    cubes: u32,
}

/// An element by its words and its index; without one, `NONE`.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Entry {
    low: u32,
    high: u32,
    index: u32,
}

#[cube]
impl Entry {
    /// Whether it comes before another one, of those with equal words the one with the lower index.
    fn comes_before(&self, other: Entry, #[comptime] form: Form) -> bool {
        let mut equal = self.low == other.low;
        if comptime!(form.wide) {
            equal = equal && self.high == other.high;
        }
        precedes(self.low, self.high, other.low, other.high, form) || (equal && self.index < other.index)
    }
}

/// Elements in order.
#[derive(CubeType)]
struct List {
    lows: Array<u32>,
    highs: Array<u32>,
    indices: Array<u32>,
}

#[cube]
impl List {
    /// Slots without an element.
    fn new(#[comptime] slots: usize) -> List {
        let mut lows = Array::<u32>::new(slots);
        let mut highs = Array::<u32>::new(slots);
        let mut indices = Array::<u32>::new(slots);
        #[unroll]
        for slot in 0..slots {
            lows[slot] = NONE;
            highs[slot] = NONE;
            indices[slot] = NONE;
        }
        List { lows, highs, indices }
    }

    fn entry(&self, #[comptime] slot: usize) -> Entry {
        Entry { low: self.lows[slot], high: self.highs[slot], index: self.indices[slot] }
    }

    /// Puts an element in a slot if it comes before the one that is there, and returns the other one.
    fn exchange(&mut self, #[comptime] slot: usize, entry: Entry, #[comptime] form: Form) -> Entry {
        let own = self.entry(slot);
        let before = entry.comes_before(own, form);
        self.lows[slot] = select(before, entry.low, own.low);
        self.indices[slot] = select(before, entry.index, own.index);
        let mut high = entry.high;
        if comptime!(form.wide) {
            self.highs[slot] = select(before, entry.high, own.high);
            high = select(before, own.high, entry.high);
        }
        Entry { low: select(before, own.low, entry.low), high, index: select(before, own.index, entry.index) }
    }

    /// Puts an element in its slot, from where each one moves on by one.
    fn put(&mut self, entry: Entry, #[comptime] slots: usize, #[comptime] form: Form) {
        if entry.comes_before(self.entry(comptime!(slots - 1)), form) {
            let mut low = entry.low;
            let mut high = entry.high;
            let mut index = entry.index;
            #[unroll]
            for slot in 0..slots {
                let later = self.exchange(slot, Entry { low, high, index }, form);
                low = later.low;
                high = later.high;
                index = later.index;
            }
        }
    }

    /// Keeps the first elements of this list and that of a unit in shared memory.
    fn merge(&mut self, stage: &Shared<[u32]>, unit: u32, #[comptime] slots: usize, #[comptime] form: Form) {
        #[unroll]
        for slot in 0..slots {
            let mirrored = comptime!(slots - 1 - slot);
            let low = stage[place(unit, mirrored)];
            let index = stage[place(unit, comptime!(slots + mirrored))];
            let mut high = 0u32;
            if comptime!(form.wide) {
                high = stage[place(unit, comptime!(2 * slots + mirrored))];
            }
            self.exchange(slot, Entry { low, high, index }, form);
        }
        #[unroll]
        for round in 0..comptime!(slots.ilog2()) {
            let apart = comptime!(slots >> (round + 1));
            #[unroll]
            for slot in 0..slots {
                if comptime!(slot & apart == 0) {
                    let above = comptime!(slot + apart);
                    let entry = self.entry(above);
                    let later = self.exchange(slot, entry, form);
                    self.lows[above] = later.low;
                    self.indices[above] = later.index;
                    if comptime!(form.wide) {
                        self.highs[above] = later.high;
                    }
                }
            }
        }
    }

    /// Puts the list in shared memory, as that of a unit.
    fn share(&self, stage: &mut Shared<[u32]>, unit: u32, #[comptime] slots: usize, #[comptime] form: Form) {
        #[unroll]
        for slot in 0..slots {
            stage[place(unit, slot)] = self.lows[slot];
            stage[place(unit, comptime!(slots + slot))] = self.indices[slot];
            if comptime!(form.wide) {
                stage[place(unit, comptime!(2 * slots + slot))] = self.highs[slot];
            }
        }
    }
}

/// Where word `word` of the list of a unit is in shared memory: neighbours use neighbouring banks.
#[cube]
fn place(unit: u32, #[comptime] word: usize) -> usize {
    (unit + comptime!(word as u32 * UNITS)) as usize
}

/// A cube a chunk of the positions of a line of `input[outer, length]`, as [`keep_first`](super::selection_kernel::keep_first)
/// has a unit for it: the first `slots` of its elements in order, by their indices in `left[outer, chunks, slots]`; or, where
/// nothing is `left`, of a line of one chunk, the first ones in `values[outer, kept]` and `indices[outer, kept]`. Positions are
/// places along the axis, or in `candidates[outer, positions]`.
#[cube(launch_unchecked)]
pub(super) fn keep_first_by_cubes<F: Numeric, X: Int, N: Size>(
    input: &[Vector<F, N>],
    candidates: ComptimeOption<&[u32]>,
    left: ComptimeOption<&mut [u32]>,
    values: &mut [F],
    indices: &mut [X],
    strides: Strides,
    chunks: Chunks,
    #[comptime] slots: u32,
    #[comptime] shared_words: usize,
    #[comptime] wanted: Wanted,
    #[comptime] form: Form,
    #[define(F, X)] _dtypes: [ElemType; 2],
) {
    let cube = CUBE_POS as u32;
    if cube >= chunks.cubes {
        terminate!();
    }
    let width = N::value();
    let unit = UNIT_POS_X;
    let of_line = chunks.positions.div_ceil(chunks.chunk);
    let outer = cube / of_line;
    let from = (cube - outer * of_line) * chunks.chunk;
    let vectors = min(chunks.chunk, chunks.positions - from) / comptime!(width as u32);
    let first = strides.offset(outer, 0, 0);
    let step = strides.offset(0, 1, 0);
    let mut kept = List::new(comptime!(slots as usize));
    for nth in 0..(vectors + comptime!(UNITS - 1) - unit) / UNITS {
        let position = from + (nth * UNITS + unit) * comptime!(width as u32);
        #[comptime]
        let index = match candidates {
            ComptimeOption::Some(candidates) => candidates[(outer * chunks.positions + position) as usize],
            ComptimeOption::None => position,
        };
        if index != NONE {
            let neighbours = input[(first + index as usize * step) / width];
            // Not unrolled: a slot takes a dozen instructions.
            for lane in 0..width {
                let (low, high) = words_of::<F>(lane_of::<F, N>(neighbours, lane), form);
                kept.put(Entry { low, high, index: index + lane as u32 }, comptime!(slots as usize), form);
            }
        }
    }
    let mut stage = Shared::<[u32]>::new_slice(shared_words);
    let mut half = UNITS.runtime();
    for _ in 0..comptime!(UNITS.ilog2()) {
        half /= 2;
        if unit >= half && unit < 2 * half {
            kept.share(&mut stage, unit, comptime!(slots as usize), form);
        }
        sync_cube();
        if unit < half {
            kept.merge(&stage, unit + half, comptime!(slots as usize), form);
        }
    }
    // The result, whose elements a unit each writes.
    if unit == 0 {
        kept.share(&mut stage, 0u32, comptime!(slots as usize), form);
    }
    sync_cube();
    if unit < slots {
        let index = stage[((slots + unit) * UNITS) as usize];
        #[comptime]
        if let ComptimeOption::Some(left) = left {
            left[(cube * slots + unit) as usize] = index;
        } else if unit < chunks.kept {
            let place = (outer * chunks.kept + unit) as usize;
            if comptime!(wanted.values) {
                values[place] = element::<F, N>(input, first + index as usize * step);
            }
            if comptime!(wanted.indices) {
                indices[place] = X::cast_from(index);
            }
        };
    }
    keep_subnormals();
}
