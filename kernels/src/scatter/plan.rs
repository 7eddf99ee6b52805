//! How an update is launched; every plan gives the same bits.

use crate::launch::UNITS;
use crate::scatter::CHUNK;
use crate::scatter::kernel::TileLaunch;
use cubecl::prelude::{CubeCount, CubeDim};

/// Steps of a walk (destination elements times sources) up to which one launch beats sorting.
const WALK_STEPS: u64 = 1 << 20;

/// Most sources the walk takes: its running tree has two levels.
const MOST_WALKED: usize = CHUNK * CHUNK;

/// Most sources that are sorted by comparing each with all others.
const MOST_RANKED: usize = 2048;

/// Most bits of one radix digit.
const MOST_DIGIT_BITS: u32 = 10;

/// `tensor[outer, rows, inner]` updated by `values[outer, sources, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Lines before the scattered axis.
    pub outer: usize,
    /// Length of the tensor along the scattered axis.
    pub rows: usize,
    /// Length of the values along the scattered axis.
    pub sources: usize,
    /// Lines after the scattered axis.
    pub inner: usize,
}

impl Problem {
    /// Elements of one row of updates.
    pub(super) fn columns(&self) -> usize {
        self.outer * self.inner
    }

    /// Elements of the tensor.
    pub(super) fn elements(&self) -> usize {
        self.outer * self.rows * self.inner
    }

    /// The same update with a key for every value that names its destination element.
    pub(super) fn flattened(&self) -> Self {
        Self { outer: 1, rows: self.elements(), sources: self.outer * self.sources * self.inner, inner: 1 }
    }
}

/// The way from indices to updated elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Every destination element walks all sources of its line. One launch.
    Walk,
    /// Every source finds its place in the stable order by comparing with all others. Three to five launches.
    Rank,
    /// Stable radix passes over blocks of sources. Four launches a pass, and two to seven others.
    Radix(Radix),
}

/// The geometry of the radix passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Radix {
    /// Passes over the keys.
    pub passes: u32,
    /// Bits of the key that a pass sorts by.
    pub digit_bits: u32,
    /// Neighbouring sources that one unit counts and places.
    pub run: usize,
}

impl Radix {
    /// Digits a pass tells apart.
    pub(super) fn bins(&self) -> usize {
        1 << self.digit_bits
    }

    /// The geometry for `sources` keys in `0..=rows`.
    pub fn new(rows: usize, sources: usize) -> Self {
        let key_bits = (usize::BITS - rows.leading_zeros()).max(1);
        // Counters (bins times runs) are to stay below the sources, and the runs to be many: a few hundred at least
        // from 2^15 sources on.
        let most = (sources.max(1).ilog2().saturating_sub(9)).clamp(4, MOST_DIGIT_BITS);
        let passes = key_bits.div_ceil(most);
        let digit_bits = key_bits.div_ceil(passes);
        let run = (4usize << digit_bits).max(64);
        Self { passes, digit_bits, run }
    }
}

/// Whether every destination element can walk its sources at less than the cost of sorting.
pub(super) fn walks(problem: &Problem) -> bool {
    let steps = problem.elements() as u64 * problem.sources as u64;
    problem.sources <= MOST_WALKED && steps <= WALK_STEPS
}

/// Whether so few rows are updated that copying the tensor and going by source beats going by row.
pub(super) fn touches_few(rows: usize, sources: usize) -> bool {
    rows > sources.saturating_mul(4)
}

/// The plan of [`select_assign`](super::select_assign) and [`scatter_nd`](super::scatter_nd).
pub fn plan(problem: &Problem) -> Plan {
    match (walks(problem), problem.sources <= MOST_RANKED) {
        (true, _) => Plan::Walk,
        (false, true) => Plan::Rank,
        (false, false) => Plan::Radix(Radix::new(problem.rows, problem.sources)),
    }
}

/// The plan of [`scatter`](super::scatter): it walks its lines, or sorts all updates by destination element.
pub fn plan_scatter(problem: &Problem) -> Plan {
    if walks(problem) {
        return Plan::Walk;
    }
    let flat = problem.flattened();
    match flat.sources <= MOST_RANKED {
        true => Plan::Rank,
        false => Plan::Radix(Radix::new(flat.rows, flat.sources)),
    }
}

/// The grid over `[outer, axis, inner]` of cubes of [`UNITS`] units, and how a cube's units cover it.
pub(super) fn axis_grid(outer: usize, axis: usize, inner: usize) -> (CubeCount, CubeDim, TileLaunch) {
    const MOST_CUBES: usize = 65_535;
    let bits = |length: usize, most: u32| length.next_power_of_two().ilog2().min(most);
    // Along the inner axis as far as neighbours share a cache line or a warp, then along the others.
    let inner_bits = bits(inner, 5);
    let axis_bits = bits(axis, UNITS.ilog2() - inner_bits);
    let outer_bits = UNITS.ilog2() - inner_bits - axis_bits;
    let cubes = |length: usize, bits: u32| length.div_ceil(1 << bits).clamp(1, MOST_CUBES) as u32;
    let count =
        CubeCount::Static(inner.div_ceil(1 << inner_bits) as u32, cubes(axis, axis_bits), cubes(outer, outer_bits));
    (count, CubeDim::new_1d(UNITS), TileLaunch::new(inner_bits, axis_bits, outer_bits))
}
