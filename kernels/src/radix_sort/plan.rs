//! How keys are sorted; every plan gives the same result.

use crate::grid::MAX_ITERATIONS;

/// Most keys that are ranked: each is compared with all others.
const MOST_RANKED: usize = 2048;

/// Most bits of one radix digit.
const MOST_DIGIT_BITS: u32 = 10;

/// Words in a cache line.
const LINE_WORDS: usize = 16;

/// How keys are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Enumeration sort: the rank of a key is the number of keys that come before it. One launch, `n^2` comparisons.
    Rank,
    /// Least-significant-digit radix sort. Four launches a pass.
    Radix(Radix),
}

impl Plan {
    /// Every plan that sorts `keys` keys in `0..=rows`.
    pub fn candidates(rows: usize, keys: usize) -> Vec<Self> {
        let radix = Radix::new(rows, keys);
        // Other digits and other runs, as edges.
        let by_bit = Radix { passes: key_bits(rows), digit_bits: 1, run: 7 };
        let all = [Self::Rank, Self::Radix(radix), Self::Radix(by_bit)];
        all.into_iter().filter(|plan| plan.refuses(rows, keys).is_none()).collect()
    }

    /// Why this plan does not sort `keys` keys in `0..=rows`, if it does not.
    pub fn refuses(&self, rows: usize, keys: usize) -> Option<String> {
        match self {
            Self::Rank if keys < MAX_ITERATIONS => None,
            Self::Rank => Some(format!("a rank of {keys} keys, want less than {MAX_ITERATIONS}")),
            Self::Radix(radix) => radix.refuses(rows, keys),
        }
    }
}

/// The plan for `keys` keys in `0..=rows`.
pub fn plan(rows: usize, keys: usize) -> Plan {
    if keys <= MOST_RANKED { Plan::Rank } else { Plan::Radix(Radix::new(rows, keys)) }
}

/// The geometry of the radix passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Radix {
    /// Passes over the keys.
    pub passes: u32,
    /// Bits of the key that a pass sorts by.
    pub digit_bits: u32,
    /// Neighbouring keys that one unit counts and places.
    pub run: usize,
}

impl Radix {
    /// The geometry for `keys` keys in `0..=rows`.
    pub fn new(rows: usize, keys: usize) -> Self {
        let key_bits = key_bits(rows);
        // Counters (digits times runs) are to stay below the keys, and the runs to be many: a few hundred at least from
        // 2^15 keys on.
        let most = (keys.max(1).ilog2().saturating_sub(9)).clamp(4, MOST_DIGIT_BITS);
        let passes = key_bits.div_ceil(most);
        let digit_bits = key_bits.div_ceil(passes);
        let run = (4usize << digit_bits).max(64);
        Self { passes, digit_bits, run }
    }

    /// Values of a digit.
    pub(super) fn digits(&self) -> usize {
        1 << self.digit_bits
    }

    /// Counters of a pass over `keys` keys: `[digits, runs]`, with the runs padded.
    pub(super) fn counters(&self, keys: usize) -> usize {
        self.digits() * padded_runs(keys, self.run)
    }

    /// Loop iterations of the unit that has the most of them.
    pub(crate) fn iterations(&self, keys: usize) -> usize {
        (self.digits() + self.run).max(scan_iterations(self.counters(keys)))
    }

    fn refuses(&self, rows: usize, keys: usize) -> Option<String> {
        let Self { passes, digit_bits, run } = *self;
        let bits = key_bits(rows);
        if run == 0 || !(1..=MOST_DIGIT_BITS).contains(&digit_bits) || passes.saturating_mul(digit_bits) < bits {
            return Some(format!(
                "{self:?}, want runs of 1 key and more, and passes by 1 to {MOST_DIGIT_BITS} of {bits} bits"
            ));
        }
        // A shift by a word's bits and more is undefined.
        if (passes - 1).saturating_mul(digit_bits) >= u32::BITS {
            return Some(format!("{self:?}, want passes that begin within 32 bits"));
        }
        // Units number keys past the last one, up to the end of the runs that pad the others.
        if u32::try_from(padded_runs(keys, run).saturating_mul(run)).is_err() {
            return Some(format!("{self:?} of {keys} keys, want less than 2^32 with what pads them"));
        }
        let iterations = self.iterations(keys);
        (iterations > MAX_ITERATIONS)
            .then(|| format!("{self:?} of {keys} keys loops {iterations} times, want at most {MAX_ITERATIONS}"))
    }
}

/// Bits of keys in `0..=rows`.
fn key_bits(rows: usize) -> u32 {
    (usize::BITS - rows.leading_zeros()).max(1)
}

/// Runs of so many keys, padded to an odd number of cache lines: two cores write to none together, and the counters of
/// neighbouring digits meet in no cache set.
pub(super) fn padded_runs(keys: usize, run: usize) -> usize {
    (keys.div_ceil(run).div_ceil(LINE_WORDS) | 1) * LINE_WORDS
}

/// Counters that one unit of their scan adds up: as many as there are such blocks, to the next power of two, since the
/// scan loops over both.
pub(super) fn scan_block(counters: usize) -> usize {
    1 << counters.ilog2().div_ceil(2).max(6)
}

fn scan_iterations(counters: usize) -> usize {
    let block = scan_block(counters);
    counters.div_ceil(block) + block
}

#[cfg(test)]
mod tests {
    use super::{Plan, plan};

    #[test]
    fn planned_sorts_are_taken() {
        for bits in 0..31 {
            for keys in [1usize << bits, (2 << bits) - 1] {
                for rows in [1, 1 << 10, 1 << 20, u32::MAX as usize] {
                    assert_eq!(plan(rows, keys).refuses(rows, keys), None, "{keys} keys in 0..={rows}");
                    assert!(Plan::candidates(rows, keys).contains(&plan(rows, keys)));
                }
            }
        }
    }

    #[test]
    fn a_plan_that_does_not_sort_is_refused() {
        let Plan::Radix(radix) = plan(1 << 20, 1 << 20) else { panic!("2^20 keys are not ranked") };
        for wrong in [
            super::Radix { passes: radix.passes - 1, ..radix },
            super::Radix { run: 0, ..radix },
            super::Radix { digit_bits: 11, ..radix },
            super::Radix { run: 1 << 20, ..radix },
            super::Radix { run: 1 << 60, ..radix },
            super::Radix { run: usize::MAX, ..radix },
            super::Radix { passes: 33, digit_bits: 1, run: 64 },
            super::Radix { passes: (1 << 31) + 1, digit_bits: 2, run: 64 },
            super::Radix { passes: u32::MAX, digit_bits: 10, run: 64 },
        ] {
            assert!(Plan::Radix(wrong).refuses(1 << 20, 1 << 20).is_some(), "{wrong:?}");
        }
        assert!(Plan::Rank.refuses(1, 1 << 20).is_some());
    }
}
