//! How an update is launched; every plan gives the same bits.

use crate::launch::{MAX_CUBES_PER_AXIS, MAX_ITERATIONS, UNITS};
use crate::reduce::plan::Machine;
use crate::scatter::accepts::accumulator;
use crate::scatter::chains::LEVELS;
use crate::scatter::kernel::TileLaunch;
use crate::scatter::{CHUNK, RUN, Update};
use cubecl::prelude::{CubeCount, CubeDim, ElemType};

/// Steps of a walk (destination elements times sources) up to which one launch beats sorting.
const WALK_STEPS: u64 = 1 << 20;

/// Most sources the walk takes: its running tree has two levels.
const MOST_WALKED: usize = CHUNK * CHUNK;

/// Most rows along the axis whose sums go run by run: the totals are then at most about half as many as the values.
pub const MOST_RUN_ROWS: usize = RUN / 2;

/// Most sources that are sorted by comparing each with all others.
const MOST_RANKED: usize = 2048;

/// Most sources that are linked: the levels of the tree that a row keeps have room for as many in one row.
const MOST_LINKED: usize = CHUNK.pow(LEVELS);

/// Fewest rows whose sources are linked rather than sorted: with fewer, one unit could have most of the work.
const FEWEST_LINKED_ROWS: usize = 1024;

/// Fewest lines of which each has a unit: enough for the vector registers of a processor's cores.
const FEWEST_LINES: usize = 128;

/// Longest run of sources that one unit links.
const LONGEST_RUN: usize = 1023 * 16;

/// Most sources and runs whose links one launch follows, where one run has no more.
const MOST_FOLLOWED: usize = 56_000;

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
    /// Every line's sources are taken in their order by one unit, which keeps a running tree for each row. One launch.
    Lines,
    /// Every source finds its place in the stable order by comparing with all others. Three to five launches.
    Rank,
    /// Stable radix passes over blocks of sources. Four launches a pass, and two to seven others.
    Radix(Radix),
    /// Single elements are updated along links between sources, without sorting them. Three launches, and one for every
    /// 50,000 sources or so.
    Chains(Chains),
}

/// The geometry of the links between sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chains {
    /// Low bits of a row, by which one unit's rows differ from another's.
    pub bin_bits: u32,
    /// Neighbouring sources that one unit links.
    pub run: usize,
}

impl Chains {
    /// Bits of a row that are not low bits.
    pub(super) fn row_bits(&self, rows: usize) -> u32 {
        (usize::BITS - (rows.max(1) - 1).leading_zeros()).saturating_sub(self.bin_bits)
    }

    /// Runs whose links one launch follows: a unit's loops then end in time if all their sources are in its bin.
    pub(super) fn window(&self) -> usize {
        (MOST_FOLLOWED / (self.run + 1)).max(1)
    }

    /// Loop iterations of the unit that has the most of them.
    pub(super) fn iterations(&self) -> usize {
        // A step for each source and each run, and two loops are left and entered for each chunk.
        let window = self.window() * self.run;
        (window + self.window() + 4 * window.div_ceil(CHUNK)).max((1 << self.bin_bits) + self.run)
    }

    /// What of a problem these links are not for, if anything.
    pub(super) fn refuses(&self, problem: &Problem, dtype: ElemType) -> Option<String> {
        let Problem { rows, sources, .. } = *problem;
        let bits = self.row_bits(rows) + usize::BITS - self.run.leading_zeros();
        let fits = problem.columns() == 1 && sources <= MOST_LINKED && self.run > 0 && bits <= u32::BITS;
        (!fits || accumulator(dtype).size() != size_of::<u32>()).then(|| {
            let wanted = format!("one column of at most {MOST_LINKED} sources, totals and links of 32 bits");
            format!("{self:?} for {dtype} in {problem:?}, want {wanted}")
        })
    }

    /// The geometry for so many sources.
    fn new(sources: usize) -> Self {
        // Bins and runs are to keep the units of software drivers busy, and to be fewer, multiplied, than the sources.
        let bits = (sources.max(1).ilog2().saturating_sub(5) / 2).clamp(4, 7);
        // An odd number of cache lines.
        let run = ((sources >> bits).div_ceil(16) | 1) * 16;
        Self { bin_bits: bits, run: run.min(LONGEST_RUN) }
    }
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

    /// Counters of a pass over `sources` keys: one for each digit of each run.
    pub(super) fn counters(&self, sources: usize) -> usize {
        self.bins() * sources.div_ceil(self.run)
    }

    /// Counters that one unit of the scan adds up.
    pub(super) fn scan_block(counters: usize) -> usize {
        // Blocks as many as they are long, to the next power of two: the scan's two loops then cost the same.
        1 << counters.ilog2().div_ceil(2).max(6)
    }

    /// Loop iterations of the unit that has the most of them.
    pub(crate) fn iterations(&self, sources: usize) -> usize {
        let counters = self.counters(sources);
        let block = Self::scan_block(counters);
        (self.bins() + self.run).max(counters.div_ceil(block) + block)
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

/// Whether the contract sums the values of runs of sources: a choice of order, made by shape and type alone.
pub(super) fn sums_runs(problem: &Problem, update: Update, is_float: bool) -> bool {
    update == Update::Add && is_float && problem.rows <= MOST_RUN_ROWS && problem.sources > MOST_WALKED
}

/// The plan of [`select_assign`](super::select_assign) and [`scatter_nd`](super::scatter_nd) for elements of `dtype`.
pub fn plan(problem: &Problem, dtype: ElemType, machine: Machine) -> Plan {
    match walks(problem) {
        true => Plan::Walk,
        false => plan_by_key(problem, dtype, machine),
    }
}

/// The plan of [`scatter`](super::scatter): it walks its lines, goes through them one by one, or takes all updates by
/// destination element.
pub fn plan_scatter(problem: &Problem, dtype: ElemType, machine: Machine) -> Plan {
    match walks(problem) {
        _ if machine == Machine::Software && goes_by_line(problem, dtype) => Plan::Lines,
        true => Plan::Walk,
        false => plan_by_key(&problem.flattened(), dtype, machine),
    }
}

/// Whether one unit a line is enough of them, and has less to do than if each of its rows looked for its sources.
fn goes_by_line(problem: &Problem, dtype: ElemType) -> bool {
    let Problem { rows, sources, .. } = *problem;
    let walk = rows as u64 * sources as u64;
    // In accesses to memory: four to clear and read a row's state and its element, six to take a value.
    let line = 4 * rows as u64 + 6 * sources as u64;
    problem.columns() >= FEWEST_LINES
        && line < walk
        && !touches_few(rows, sources)
        && line_iterations(problem) <= MAX_ITERATIONS
        && line_refuses(dtype).is_none()
}

/// Loop iterations of a unit that goes through a line.
pub(super) fn line_iterations(problem: &Problem) -> usize {
    2 * problem.rows + problem.sources
}

/// Why lines of elements of `dtype` are not gone through one by one, if they are not.
pub(super) fn line_refuses(dtype: ElemType) -> Option<String> {
    let fits = accumulator(dtype).size() == size_of::<u32>();
    (!fits).then(|| format!("lines of {dtype}, want totals of 32 bits"))
}

fn plan_by_key(problem: &Problem, dtype: ElemType, machine: Machine) -> Plan {
    let Problem { rows, sources, .. } = *problem;
    // Few units follow links: enough for a processor's cores, of which each has a cache for what is not near.
    let links = machine == Machine::Software && rows >= FEWEST_LINKED_ROWS && !touches_few(rows, sources);
    let chains = Chains::new(sources);
    match sources <= MOST_RANKED {
        true => Plan::Rank,
        false if links && chains.refuses(problem, dtype).is_none() => Plan::Chains(chains),
        false => Plan::Radix(Radix::new(rows, sources)),
    }
}

/// The grids over `[outer, axis, inner]` of cubes of [`UNITS`] units, and how a cube's units cover it: one, unless the
/// tensor has more cubes along an axis than a grid takes.
pub(crate) fn axis_grids(
    outer: usize,
    axis: usize,
    inner: usize,
) -> impl Iterator<Item = (CubeCount, CubeDim, TileLaunch)> {
    let bits = |length: usize, most: u32| length.next_power_of_two().ilog2().min(most);
    // Along the inner axis as far as neighbours share a cache line or a warp, then along the others.
    let inner_bits = bits(inner, 5);
    let axis_bits = bits(axis, UNITS.ilog2() - inner_bits);
    let outer_bits = UNITS.ilog2() - inner_bits - axis_bits;
    pieces(outer, outer_bits)
        .flat_map(move |z| pieces(axis, axis_bits).map(move |y| (y, z)))
        .flat_map(move |(y, z)| pieces(inner, inner_bits).map(move |x| (x, y, z)))
        .map(move |(x, y, z)| {
            let tile = TileLaunch::new(inner_bits, axis_bits, outer_bits, x.0, y.0, z.0);
            (CubeCount::Static(x.1, y.1, z.1), CubeDim::new_1d(UNITS), tile)
        })
}

/// The pieces of an axis that cubes of `2^bits` elements cover in one grid each: the first element and the cubes.
fn pieces(length: usize, bits: u32) -> impl Iterator<Item = (u32, u32)> {
    let most = (MAX_CUBES_PER_AXIS as usize) << bits;
    (0..length).step_by(most).map(move |first| (first as u32, (length - first).min(most).div_ceil(1 << bits) as u32))
}

#[cfg(test)]
mod tests {
    use super::{MAX_ITERATIONS, Radix, pieces};

    #[test]
    fn pieces_cover_an_axis() {
        assert_eq!(pieces(0, 3).count(), 0);
        assert_eq!(pieces(1, 8).collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(pieces(65_535 * 8, 3).collect::<Vec<_>>(), [(0, 65_535)]);
        assert_eq!(pieces(65_535 * 8 + 9, 3).collect::<Vec<_>>(), [(0, 65_535), (65_535 * 8, 2)]);
        let last = pieces(u32::MAX as usize, 5).last().unwrap();
        assert!(u64::from(last.0) + (u64::from(last.1) << 5) >= u64::from(u32::MAX));
    }

    #[test]
    fn planned_sorts_stay_below_the_limit() {
        for bits in 0..31 {
            for sources in [1usize << bits, (2 << bits) - 1] {
                for rows in [1, 1 << 10, 1 << 20, u32::MAX as usize] {
                    let radix = Radix::new(rows, sources);
                    let iterations = radix.iterations(sources);
                    assert!(iterations <= MAX_ITERATIONS, "{radix:?} of {sources} sources: {iterations}");
                }
            }
        }
    }
}
