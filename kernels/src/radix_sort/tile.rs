//! Sorting a tile of words in shared memory, by one cube of [`UNITS`] units.
//!
//! The radix rank of a block of threads (Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore
//! GPUs", 2009): each unit counts the digits of its own consecutive words in counters of its own, so that no two units write to one
//! place; the exclusive scan of the counters in the order `[digit, unit]` and a word's number among the unit's words of its
//! digit are its place in the stable order.

use cubecl::prelude::*;

/// Units of a cube that sorts a tile.
pub(crate) const UNITS: u32 = crate::grid::UNITS;

/// Bits of the digit that a round sorts by.
pub(crate) const ROUND_BITS: u32 = 4;

/// Words that hold a unit's counters: two digits to a word. Their prefix sums stay below 2^16.
const COUNTERS: u32 = 1 << (ROUND_BITS - 1);

/// Most words of a unit.
pub(crate) const MOST_WORDS: u32 = COUNTERS;

/// Units whose values one unit of a scan adds up: the square root of their number.
const GROUP: u32 = 16;

/// The shared memory in which a cube sorts: `words`, and `sums` for its scans.
#[derive(CubeType)]
pub(crate) struct Stage {
    words: Shared<[u32]>,
    sums: Shared<[u32]>,
}

/// Where a word is in shared memory: one word of padding for every 32, so that neither neighbours nor words 8 apart share banks.
#[cube]
fn padded(place: u32) -> usize {
    (place + (place >> 5)) as usize
}

#[cube]
impl Stage {
    /// Memory for a tile of at most [`MOST_WORDS`] words a unit, and the counters.
    pub(crate) fn new() -> Stage {
        let words = comptime!((UNITS * MOST_WORDS / 32 * 33) as usize);
        let sums = comptime!((UNITS + 2 * UNITS / GROUP) as usize);
        Stage { words: Shared::<[u32]>::new_slice(words), sums: Shared::<[u32]>::new_slice(sums) }
    }

    /// The word at a place of the tile.
    pub(crate) fn word(&self, place: u32) -> u32 {
        self.words[padded(place)]
    }

    /// Puts a word at a place of the tile.
    pub(crate) fn put(&mut self, place: u32, word: u32) {
        self.words[padded(place)] = word;
    }

    /// What [`share`](Self::share) put there.
    pub(crate) fn shared(&self, place: u32) -> u32 {
        self.sums[place as usize]
    }

    /// Puts a value in memory for [`UNITS`] values besides the tile's, which scans overwrite.
    pub(crate) fn share(&mut self, place: u32, value: u32) {
        self.sums[place as usize] = value;
    }

    /// The sum of the values of the units before this one, and that of all. A barrier is to follow before the next use of
    /// what units share besides the tile.
    pub(crate) fn exclusive_scan(&mut self, value: u32) -> (u32, u32) {
        let unit = UNIT_POS_X;
        let own = (unit + unit / GROUP) as usize;
        let groups = comptime!(UNITS / GROUP);
        let totals = comptime!(UNITS + UNITS / GROUP);
        self.sums[own] = value;
        sync_cube();
        if unit < groups {
            let mut sum = 0u32;
            #[unroll]
            for nth in 0..GROUP {
                let at = (unit * comptime!(GROUP + 1) + nth) as usize;
                let value = self.sums[at];
                self.sums[at] = sum;
                sum += value;
            }
            self.sums[(totals + unit) as usize] = sum;
        }
        sync_cube();
        let mut before = self.sums[own];
        let mut total = 0u32;
        #[unroll]
        for group in 0..groups {
            let sum = self.sums[(totals + group) as usize];
            before += select(group < unit / GROUP, sum, 0u32);
            total += sum;
        }
        (before, total)
    }

    /// Sorts the tile, `per_unit` words for each unit, by `rounds` digits of [`ROUND_BITS`] bits from bit `low` on. Stable.
    /// Begins and ends with a barrier.
    pub(crate) fn sort(&mut self, low: u32, rounds: u32, #[comptime] per_unit: u32) {
        let unit = UNIT_POS_X;
        let mut words = Array::<u32>::new(comptime!(per_unit as usize));
        let mut ranks = Array::<u32>::new(comptime!(per_unit as usize));
        let mut before = Array::<u32>::new(comptime!(COUNTERS as usize));
        sync_cube();
        for round in 0..rounds {
            let shift = low + round * ROUND_BITS;
            #[unroll]
            for nth in 0..per_unit {
                words[comptime!(nth as usize)] = self.word(unit * per_unit + nth);
            }
            sync_cube();
            #[unroll]
            for counter in 0..COUNTERS {
                self.put(counter * UNITS + unit, 0u32);
            }
            #[unroll]
            for nth in 0..per_unit {
                let digit = words[comptime!(nth as usize)] >> shift;
                let half = (digit & COUNTERS) * comptime!(16 / COUNTERS);
                let at = (digit & comptime!(COUNTERS - 1)) * UNITS + unit;
                let counters = self.word(at);
                ranks[comptime!(nth as usize)] = (counters >> half) & 0xffffu32;
                self.put(at, counters + (1u32 << half));
            }
            sync_cube();
            let mut sum = 0u32;
            #[unroll]
            for counter in 0..COUNTERS {
                before[comptime!(counter as usize)] = sum;
                sum += self.word(unit * COUNTERS + counter);
            }
            let (units_before, total) = self.exclusive_scan(sum);
            // The digits of the upper halves come after all of the lower halves.
            let base = units_before + (total << 16);
            #[unroll]
            for counter in 0..COUNTERS {
                self.put(unit * COUNTERS + counter, base + before[comptime!(counter as usize)]);
            }
            sync_cube();
            #[unroll]
            for nth in 0..per_unit {
                let digit = words[comptime!(nth as usize)] >> shift;
                let half = (digit & COUNTERS) * comptime!(16 / COUNTERS);
                let counters = self.word((digit & comptime!(COUNTERS - 1)) * UNITS + unit);
                ranks[comptime!(nth as usize)] += (counters >> half) & 0xffffu32;
            }
            sync_cube();
            #[unroll]
            for nth in 0..per_unit {
                self.put(ranks[comptime!(nth as usize)], words[comptime!(nth as usize)]);
            }
            sync_cube();
        }
    }

    /// The first place of the sorted tile, `per_unit` words for each unit, whose word is not below `word`.
    pub(crate) fn first_from(&self, word: u32, #[comptime] per_unit: u32) -> u32 {
        let length = comptime!(UNITS * per_unit);
        let mut first = 0u32;
        #[unroll]
        for bit in 0..comptime!(length.ilog2()) {
            let step = comptime!(length >> (bit + 1));
            first += select(self.word(first + comptime!(step - 1)) < word, step, 0u32);
        }
        first + u32::cast_from(self.word(first) < word)
    }
}
