//! How keys are sorted; every plan gives the same result.

use super::tile::{MOST_WORDS, UNITS};
use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;

/// Most keys that are ranked: each is compared with all others.
const MOST_RANKED: usize = 2048;

/// Most bits of a digit of chunks.
const MOST_DIGIT_BITS: u32 = 10;

/// Keys that a cube sorts at once.
pub(super) const TILE: usize = (UNITS * MOST_WORDS) as usize;

/// Most bits of a digit of tiles: a unit of the cube looks after each of its values.
const MOST_TILE_BITS: u32 = UNITS.ilog2();

/// Words in a cache line.
const LINE_WORDS: usize = 16;

/// `length` keys in `0..=rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The number of keys.
    pub length: usize,
    /// The largest key that there may be.
    pub rows: usize,
}

/// How keys are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Enumeration sort: the rank of a key is the number of keys that come before it. One launch, `n^2` comparisons.
    Rank,
    /// Least-significant-digit radix sort by units that each have a chunk of the keys. Four launches a pass.
    Chunks(Chunks),
    /// Least-significant-digit radix sort by cubes that each sort a tile of the keys in shared memory. Three launches a pass.
    Tiles(Tiles),
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        // Digits of one bit and chunks of seven keys, as edges.
        let (passes, digit_bits) = (key_bits(problem.rows), 1);
        let all = [
            Self::Rank,
            Self::Chunks(Chunks::new(problem)),
            Self::Chunks(Chunks { passes, digit_bits, chunk: 7 }),
            Self::Tiles(Tiles::new(problem)),
            Self::Tiles(Tiles { passes, digit_bits }),
        ];
        all.into_iter().filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        match self {
            Self::Rank if problem.length < MAX_ITERATIONS => None,
            Self::Rank => Some(format!("a rank of {} keys, want less than {MAX_ITERATIONS}", problem.length)),
            Self::Chunks(chunks) => chunks.refuses(problem),
            Self::Tiles(tiles) => tiles.refuses(problem),
        }
    }

    /// The plan for the next problem of a chain of sorts, whose keys have positions: of the same kind, but no rank.
    pub(crate) fn for_next(&self, problem: &Problem) -> Self {
        match self {
            Self::Tiles(_) => Self::Tiles(Tiles::new(problem)),
            Self::Chunks(_) | Self::Rank => Self::Chunks(Chunks::new(problem)),
        }
    }
}

/// The plan for `problem` on `machine`. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    match machine {
        _ if problem.length <= MOST_RANKED => Plan::Rank,
        Machine::Gpu => Plan::Tiles(Tiles::new(problem)),
        // A cube is one thread there, which a chunk suits: sorts of a million values by tiles take 7 to 12 times as long.
        Machine::Software => Plan::Chunks(Chunks::new(problem)),
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
    fn new(problem: &Problem) -> Self {
        let (passes, digit_bits) = passes_of(key_bits(problem.rows), MOST_TILE_BITS);
        Self { passes, digit_bits }
    }

    /// Values of a digit.
    pub(super) fn digits(&self) -> usize {
        1 << self.digit_bits
    }

    fn refuses(&self, problem: &Problem) -> Option<String> {
        let Problem { length, rows } = *problem;
        if let Some(wanted) = unmet(self.passes, self.digit_bits, key_bits(rows), MOST_TILE_BITS) {
            return Some(format!("{self:?}, want {wanted}"));
        }
        // Units number places past the last key, up to the end of its tile.
        let tiles = length.div_ceil(TILE);
        if u32::try_from(tiles.saturating_mul(TILE)).is_err() {
            return Some(format!("{self:?} of {length} keys, want less than 2^32 with what pads them"));
        }
        let iterations = tiles.div_ceil(UNITS as usize);
        (iterations > MAX_ITERATIONS)
            .then(|| format!("{self:?} of {length} keys loops {iterations} times, want at most {MAX_ITERATIONS}"))
    }
}

/// The geometry of the passes by chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunks {
    /// Passes over the keys.
    pub passes: u32,
    /// Bits of the key that a pass sorts by.
    pub digit_bits: u32,
    /// Neighbouring keys that one unit counts and places.
    pub chunk: usize,
}

impl Chunks {
    fn new(problem: &Problem) -> Self {
        // Counters (digits times chunks) are to stay below the keys, and the chunks to be many: a few hundred at least from
        // 2^15 keys on.
        let most = (problem.length.max(1).ilog2().saturating_sub(9)).clamp(4, MOST_DIGIT_BITS);
        let (passes, digit_bits) = passes_of(key_bits(problem.rows), most);
        Self { passes, digit_bits, chunk: (4usize << digit_bits).max(64) }
    }

    /// Values of a digit.
    pub(super) fn digits(&self) -> usize {
        1 << self.digit_bits
    }

    /// Counters of a pass over `length` keys: `[digits, chunks]`, with the chunks padded.
    pub(super) fn counters(&self, length: usize) -> usize {
        self.digits() * padded_chunks(length, self.chunk)
    }

    fn refuses(&self, problem: &Problem) -> Option<String> {
        let Problem { length, rows } = *problem;
        if self.chunk == 0 {
            return Some(format!("{self:?}, want chunks of 1 key and more"));
        }
        if let Some(wanted) = unmet(self.passes, self.digit_bits, key_bits(rows), MOST_DIGIT_BITS) {
            return Some(format!("{self:?}, want {wanted}"));
        }
        // Units number keys past the last one, up to the end of the chunks that pad the others.
        if u32::try_from(padded_chunks(length, self.chunk).saturating_mul(self.chunk)).is_err() {
            return Some(format!("{self:?} of {length} keys, want less than 2^32 with what pads them"));
        }
        let iterations = (self.digits() + self.chunk).max(scan_iterations(self.counters(length)));
        (iterations > MAX_ITERATIONS)
            .then(|| format!("{self:?} of {length} keys loops {iterations} times, want at most {MAX_ITERATIONS}"))
    }
}

/// The fewest passes over keys of `bits` bits by digits of at most `most` bits, and the bits of their digits.
fn passes_of(bits: u32, most: u32) -> (u32, u32) {
    let passes = bits.div_ceil(most);
    (passes, bits.div_ceil(passes))
}

/// What passes over keys of `bits` bits have to be, if these are not.
fn unmet(passes: u32, digit_bits: u32, bits: u32, most: u32) -> Option<String> {
    if !(1..=most).contains(&digit_bits) || passes.saturating_mul(digit_bits) < bits {
        return Some(format!("passes by 1 to {most} of {bits} bits"));
    }
    // A shift by a word's bits and more is undefined.
    ((passes - 1).saturating_mul(digit_bits) >= u32::BITS).then(|| "passes that begin within 32 bits".to_owned())
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
