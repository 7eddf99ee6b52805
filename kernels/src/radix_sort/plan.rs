//! How keys are sorted; every plan gives the same result.

use super::tile::{MOST_WORDS, UNITS};
use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;

/// Most keys that are ranked: each is compared with all others.
const MOST_RANKED: usize = 2048;

/// Most bits of one radix digit.
const MOST_DIGIT_BITS: u32 = 10;

/// Keys that a cube sorts at once.
pub(super) const TILE: usize = (UNITS * MOST_WORDS) as usize;

/// Most bits of a digit of tiles: a unit of the cube looks after each of its values.
const MOST_TILE_BITS: u32 = UNITS.ilog2();

/// Words in a cache line.
const LINE_WORDS: usize = 16;

/// How keys are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Enumeration sort: the rank of a key is the number of keys that come before it. One launch, `n^2` comparisons.
    Rank,
    /// Least-significant-digit radix sort by units that each have a chunk of the keys. Four launches a pass.
    Radix(Radix),
    /// Least-significant-digit radix sort by cubes that each sort a tile of the keys in shared memory. Three launches a pass.
    Tiles(Tiles),
}

impl Plan {
    /// Every plan that sorts `keys` keys in `0..=rows`.
    pub fn candidates(rows: usize, keys: usize) -> Vec<Self> {
        let radix = Radix::new(rows, keys);
        // Other digits and other chunks, as edges.
        let by_bit = Radix { passes: key_bits(rows), digit_bits: 1, chunk: 7 };
        let tiles_by_bit = Tiles { passes: key_bits(rows), digit_bits: 1 };
        let tiles = [Tiles::new(rows), tiles_by_bit].map(Self::Tiles);
        let all = [Self::Rank, Self::Radix(radix), Self::Radix(by_bit)].into_iter().chain(tiles);
        all.filter(|plan| plan.refuses(rows, keys).is_none()).collect()
    }

    /// Why this plan does not sort `keys` keys in `0..=rows`, if it does not.
    pub fn refuses(&self, rows: usize, keys: usize) -> Option<String> {
        match self {
            Self::Rank if keys < MAX_ITERATIONS => None,
            Self::Rank => Some(format!("a rank of {keys} keys, want less than {MAX_ITERATIONS}")),
            Self::Radix(radix) => radix.refuses(rows, keys),
            Self::Tiles(tiles) => tiles.refuses(rows, keys),
        }
    }

    /// The plan of the same kind for other keys that it is to sort next.
    pub(crate) fn for_others(&self, rows: usize, keys: usize) -> Self {
        match self {
            Self::Tiles(_) => Self::Tiles(Tiles::new(rows)),
            Self::Radix(_) | Self::Rank => Self::Radix(Radix::new(rows, keys)),
        }
    }
}

/// The plan for `keys` keys in `0..=rows` on `machine`.
pub fn plan(rows: usize, keys: usize, machine: Machine) -> Plan {
    match machine {
        _ if keys <= MOST_RANKED => Plan::Rank,
        Machine::Gpu => Plan::Tiles(Tiles::new(rows)),
        // A cube is one thread there, which a chunk suits.
        Machine::Software => Plan::Radix(Radix::new(rows, keys)),
    }
}

/// The geometry of the passes by tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// Passes over the keys.
    pub passes: u32,
    /// Bits of the key that a pass sorts by.
    pub digit_bits: u32,
}

impl Tiles {
    /// The geometry for keys in `0..=rows`.
    pub fn new(rows: usize) -> Self {
        let bits = key_bits(rows);
        let passes = bits.div_ceil(MOST_TILE_BITS);
        Self { passes, digit_bits: bits.div_ceil(passes) }
    }

    /// Values of a digit.
    pub(super) fn digits(&self) -> usize {
        1 << self.digit_bits
    }

    fn refuses(&self, rows: usize, keys: usize) -> Option<String> {
        let Self { passes, digit_bits } = *self;
        let bits = key_bits(rows);
        if !(1..=MOST_TILE_BITS).contains(&digit_bits) || passes.saturating_mul(digit_bits) < bits {
            return Some(format!("{self:?}, want passes by 1 to {MOST_TILE_BITS} of {bits} bits"));
        }
        // A shift by a word's bits and more is undefined.
        if (passes - 1).saturating_mul(digit_bits) >= u32::BITS {
            return Some(format!("{self:?}, want passes that begin within 32 bits"));
        }
        // Units number places past the last key, up to the end of its tile.
        let tiles = keys.div_ceil(TILE);
        if u32::try_from(tiles.saturating_mul(TILE)).is_err() {
            return Some(format!("{self:?} of {keys} keys, want less than 2^32 with what pads them"));
        }
        let iterations = tiles.div_ceil(UNITS as usize);
        (iterations > MAX_ITERATIONS)
            .then(|| format!("{self:?} of {keys} keys loops {iterations} times, want at most {MAX_ITERATIONS}"))
    }
}

/// The geometry of the radix passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Radix {
    /// Passes over the keys.
    pub passes: u32,
    /// Bits of the key that a pass sorts by.
    pub digit_bits: u32,
    /// Neighbouring keys that one unit counts and places.
    pub chunk: usize,
}

impl Radix {
    /// The geometry for `keys` keys in `0..=rows`.
    pub fn new(rows: usize, keys: usize) -> Self {
        let key_bits = key_bits(rows);
        // Counters (digits times chunks) are to stay below the keys, and the chunks to be many: a few hundred at least from
        // 2^15 keys on.
        let most = (keys.max(1).ilog2().saturating_sub(9)).clamp(4, MOST_DIGIT_BITS);
        let passes = key_bits.div_ceil(most);
        let digit_bits = key_bits.div_ceil(passes);
        let chunk = (4usize << digit_bits).max(64);
        Self { passes, digit_bits, chunk }
    }

    /// Values of a digit.
    pub(super) fn digits(&self) -> usize {
        1 << self.digit_bits
    }

    /// Counters of a pass over `keys` keys: `[digits, chunks]`, with the chunks padded.
    pub(super) fn counters(&self, keys: usize) -> usize {
        self.digits() * padded_chunks(keys, self.chunk)
    }

    /// Loop iterations of the unit that has the most of them.
    pub(crate) fn iterations(&self, keys: usize) -> usize {
        (self.digits() + self.chunk).max(scan_iterations(self.counters(keys)))
    }

    fn refuses(&self, rows: usize, keys: usize) -> Option<String> {
        let Self { passes, digit_bits, chunk } = *self;
        let bits = key_bits(rows);
        if chunk == 0 || !(1..=MOST_DIGIT_BITS).contains(&digit_bits) || passes.saturating_mul(digit_bits) < bits {
            return Some(format!(
                "{self:?}, want chunks of 1 key and more, and passes by 1 to {MOST_DIGIT_BITS} of {bits} bits"
            ));
        }
        // A shift by a word's bits and more is undefined.
        if (passes - 1).saturating_mul(digit_bits) >= u32::BITS {
            return Some(format!("{self:?}, want passes that begin within 32 bits"));
        }
        // Units number keys past the last one, up to the end of the chunks that pad the others.
        if u32::try_from(padded_chunks(keys, chunk).saturating_mul(chunk)).is_err() {
            return Some(format!("{self:?} of {keys} keys, want less than 2^32 with what pads them"));
        }
        let iterations = self.iterations(keys);
        (iterations > MAX_ITERATIONS)
            .then(|| format!("{self:?} of {keys} keys loops {iterations} times, want at most {MAX_ITERATIONS}"))
    }
}

/// Bits of keys in `0..=rows`.
pub(super) fn key_bits(rows: usize) -> u32 {
    (usize::BITS - rows.leading_zeros()).max(1)
}

/// Chunks of `chunk` keys that hold `keys`, padded so that a row of the counters `[digits, chunks]` is an odd number of cache
/// lines. Whole lines, because cores that write to one line wait for each other; an odd number, because rows a power of two
/// apart would share the sets of a cache and evict each other.
pub(super) fn padded_chunks(keys: usize, chunk: usize) -> usize {
    (keys.div_ceil(chunk).div_ceil(LINE_WORDS) | 1) * LINE_WORDS
}

/// Counters of a block of the scan, which one unit adds up: about the square root of their number, a power of two. A unit of
/// the scan loops over the blocks before its own and over its block, and this makes the two about as many.
pub(super) fn scan_block(counters: usize) -> usize {
    1 << counters.ilog2().div_ceil(2).max(6)
}

fn scan_iterations(counters: usize) -> usize {
    let block = scan_block(counters);
    counters.div_ceil(block) + block
}
