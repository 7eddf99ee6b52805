//! How an update is launched; every plan gives the same bits.

use crate::device::Machine;
use crate::launch::{MAX_CUBES_PER_AXIS, MAX_ITERATIONS, UNITS};
use crate::scatter::accepts::accumulator;
use crate::scatter::bins::{LINE, STEP};
use crate::scatter::kernel::TileLaunch;
use crate::scatter::lists;
use crate::scatter::tree::MOST_LEVELS;
use crate::scatter::{CHUNK, RUN, Update};
use cubecl::prelude::{CubeCount, CubeDim, ElemType};

/// Steps of a walk (destination elements times sources) up to which one launch beats several.
fn walk_steps(machine: Machine) -> u64 {
    match machine {
        Machine::Gpu => 1 << 20,
        Machine::Software => 1 << 17,
    }
}

/// Fewest elements of which copying them and a second launch cost less on a software driver than a walk of each.
const FEWEST_COPIED: usize = 1 << 16;

/// Most sources the walk takes: its running tree has two levels.
const MOST_WALKED: usize = CHUNK * CHUNK;

/// Most rows along the axis whose sums go run by run: the totals are then at most about half as many as the values.
pub const MOST_RUN_ROWS: usize = RUN / 2;

/// Most sources that are sorted by comparing each with all others.
const MOST_RANKED: usize = 2048;

/// Most sources that go by bins: the levels of the tree that a row keeps have room for as many in one row.
const MOST_BINNED: usize = CHUNK.pow(MOST_LEVELS + 1);

/// Most sources that go by lists: a unit takes all of them, if they are for one row.
const MOST_LISTED: usize = 200_000;

/// Most sources of single elements that go by lists rather than bins, which cost several launches.
const MOST_LISTED_SINGLY: usize = 4096;

/// Rows for each source from which on going through all rows costs more than their sources.
const MANY_ROWS_A_SOURCE: usize = 16;

/// Steps of sources that walk those of their line up to which that beats linking them.
const TOUCHED_STEPS: u64 = 1 << 18;

/// The same where all lines have the same indices, which are linked once.
const TOUCHED_STEPS_OF_ROWS: u64 = 1 << 16;

/// Fewest rows whose sources go by bins, or by lists if they are many: with fewer, one unit could have most of the work.
const FEWEST_OWNED_ROWS: usize = 256;

/// Longest run of sources that one unit puts into bins.
const LONGEST_RUN: usize = 1023 * LINE_WORDS;

/// Most bits of a row that tell its bin, in a plan that a caller makes: a unit keeps a counter for each bin.
const MOST_BIN_BITS: u32 = 10;

/// Most bits in a plan made here: the lines that a vector of units writes to, one for each unit and bin, then fit a core's
/// first cache.
const MOST_PLANNED_BIN_BITS: u32 = 6;

/// Words in a cache line.
const LINE_WORDS: usize = 16;

/// Fewest lines of which each has a unit: enough for the vector registers of a processor's cores.
const FEWEST_LINES: usize = 128;

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
    /// The tensor is copied, and every source walks all sources of its line: the first that is for a row updates it. Two
    /// launches.
    Touched,
    /// Every line's sources are taken in their order by one unit, which keeps a running tree for each row. One launch.
    Lines,
    /// Every source finds its place in the stable order by comparing with all others. Three to five launches.
    Rank,
    /// Stable radix passes over blocks of sources. Four launches a pass, and two to seven others.
    Radix(Radix),
    /// The values of single elements' sources are put side by side for each bin of rows, and taken in their order by one
    /// unit a bin. Five launches, and one for every 700,000 sources or so begun.
    Bins(Bins),
    /// Each row's sources are linked to a list in their order, which its destination elements go through. One launch, and one for
    /// every 55,000 sources or so begun; one more where few rows of many have any, to copy the tensor.
    Lists,
}

/// The geometry of bins of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bins {
    /// Low bits of a row, by which one unit's rows differ from another's.
    pub bin_bits: u32,
    /// Neighbouring sources that one unit counts and places.
    pub run: usize,
}

impl Bins {
    /// How many there are.
    pub(super) fn bins(&self) -> usize {
        1 << self.bin_bits
    }

    /// Runs of so many sources.
    pub(super) fn runs(&self, sources: usize) -> usize {
        sources.div_ceil(self.run)
    }

    /// Counters: one for each bin of each run.
    pub(super) fn counters(&self, sources: usize) -> usize {
        self.bins() * self.runs(sources)
    }

    /// Places for the states of one bin's rows, and for one row more, which stands for none.
    pub(super) fn places(&self, rows: usize) -> usize {
        odd_lines((rows + 1).div_ceil(self.bins()), LINE)
    }

    /// Iterations of one launch that take values.
    pub(super) fn iterations_a_launch(&self, rows: usize) -> usize {
        MAX_ITERATIONS - self.clearing(rows) - 2
    }

    /// Iterations that take all of so many values, if they are in one bin: a further chunk ends one early.
    pub(super) fn most_iterations(sources: usize) -> usize {
        sources.div_ceil(STEP) + sources / CHUNK
    }

    /// Loop iterations that clear the states of a bin.
    fn clearing(&self, rows: usize) -> usize {
        self.places(rows) / LINE
    }

    /// Loop iterations of the unit that has the most of them, but for those that take values.
    pub(super) fn iterations(&self, sources: usize) -> usize {
        (2 * self.bins() + self.run + 3).max(scan_iterations(self.counters(sources)))
    }

    /// What of a problem these bins are not for, if anything.
    pub(super) fn refuses(&self, problem: &Problem, dtype: ElemType) -> Option<String> {
        let Problem { rows, sources, .. } = *problem;
        let wanted = if self.run == 0 || self.bin_bits > MOST_BIN_BITS {
            format!("runs of at least 1 source and bins of at most {MOST_BIN_BITS} bits")
        } else if problem.columns() != 1 || accumulator(dtype).size() != size_of::<u32>() {
            "single elements with totals of 32 bits".into()
        } else if sources > MOST_BINNED || !levels_reach(rows.max(sources)) {
            format!("at most {MOST_BINNED} sources, and as many rows as can be numbered with their totals")
        } else if self.clearing(rows) > MAX_ITERATIONS / 2 {
            format!("bins of at most {} rows", MAX_ITERATIONS / 2 * LINE)
        } else {
            return None;
        };
        Some(format!("{self:?} for {dtype} in {problem:?}, want {wanted}"))
    }

    /// The geometry for so many sources.
    fn new(sources: usize) -> Self {
        // Bins and runs are to keep the units of software drivers busy, and to be fewer, multiplied, than the sources.
        let bits = (sources.max(1).ilog2().saturating_sub(4) / 2).clamp(4, MOST_PLANNED_BIN_BITS);
        let run = odd_lines(sources >> (bits + 1), LINE_WORDS);
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

    /// Counters of a pass over `sources` keys: one for each digit of each run, and what pads the runs.
    pub(super) fn counters(&self, sources: usize) -> usize {
        self.bins() * padded_runs(sources, self.run)
    }

    /// Why these passes do not sort `sources` keys in `0..=rows`, if they do not.
    pub(super) fn refuses(&self, rows: usize, sources: usize) -> Option<String> {
        let Self { passes, digit_bits, run } = *self;
        let bits = key_bits(rows);
        let made = run > 0 && (1..=MOST_DIGIT_BITS).contains(&digit_bits);
        let sorts = u64::from(passes) * u64::from(digit_bits) >= u64::from(bits);
        // Units number sources past the last one, up to the end of the runs that pad the others.
        let numbers = || u32::try_from(padded_runs(sources, run) * run).is_ok();
        (!made || !sorts || !numbers()).then(|| {
            let wanted = format!("runs of at least 1 source, and passes by 1 to {MOST_DIGIT_BITS} of {bits} bits");
            format!("{self:?} for {sources} sources, want {wanted}, and less than 2^32 sources with what pads them")
        })
    }

    /// Loop iterations of the unit that has the most of them.
    pub(crate) fn iterations(&self, sources: usize) -> usize {
        (self.bins() + self.run).max(scan_iterations(self.counters(sources)))
    }

    /// The geometry for `sources` keys in `0..=rows`.
    pub fn new(rows: usize, sources: usize) -> Self {
        let key_bits = key_bits(rows);
        // Counters (bins times runs) are to stay below the sources, and the runs to be many: a few hundred at least
        // from 2^15 sources on.
        let most = (sources.max(1).ilog2().saturating_sub(9)).clamp(4, MOST_DIGIT_BITS);
        let passes = key_bits.div_ceil(most);
        let digit_bits = key_bits.div_ceil(passes);
        let run = (4usize << digit_bits).max(64);
        Self { passes, digit_bits, run }
    }
}

/// Bits of keys in `0..=rows`.
fn key_bits(rows: usize) -> u32 {
    (usize::BITS - rows.leading_zeros()).max(1)
}

/// Runs of `sources`, padded so that the counters of a digit fill cache lines, and two cores count into none together.
pub(super) fn padded_runs(sources: usize, run: usize) -> usize {
    odd_lines(sources.div_ceil(run), LINE_WORDS)
}

/// `length` padded to an odd number of cache lines of so many, so that neighbours meet in no cache set.
fn odd_lines(length: usize, line: usize) -> usize {
    (length.div_ceil(line) | 1) * line
}

/// Counters that one unit of their scan adds up.
pub(super) fn scan_block(counters: usize) -> usize {
    // Blocks as many as they are long, to the next power of two: the scan's two loops then cost the same.
    1 << counters.ilog2().div_ceil(2).max(6)
}

/// Loop iterations of the unit of a scan that has the most of them.
fn scan_iterations(counters: usize) -> usize {
    let block = scan_block(counters);
    counters.div_ceil(block) + block
}

/// Whether every destination element can walk its sources at less than the cost of other ways.
fn walks(problem: &Problem, machine: Machine) -> bool {
    let steps = problem.elements() as u64 * problem.sources as u64;
    problem.sources <= MOST_WALKED && steps <= walk_steps(machine)
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
    match walks(problem, machine) {
        _ if machine == Machine::Software && goes_by_touched(problem, TOUCHED_STEPS_OF_ROWS) => Plan::Touched,
        true => Plan::Walk,
        false => plan_by_key(problem, dtype, machine),
    }
}

/// The plan of [`scatter`](super::scatter): it walks its lines, goes through them one by one, updates what is touched, or
/// takes all updates by destination element.
pub fn plan_scatter(problem: &Problem, dtype: ElemType, machine: Machine) -> Plan {
    match walks(problem, machine) {
        _ if machine == Machine::Software && goes_by_touched(problem, TOUCHED_STEPS) => Plan::Touched,
        _ if machine == Machine::Software && goes_by_line(problem, dtype) => Plan::Lines,
        true => Plan::Walk,
        false => plan_by_key(&problem.flattened(), dtype, machine),
    }
}

/// Whether sources that walk the sources of their line, in so many steps at most, are few beside the elements.
fn goes_by_touched(problem: &Problem, most: u64) -> bool {
    let steps = problem.columns() as u64 * (problem.sources as u64).pow(2);
    let (walked, elements) = (problem.sources <= MOST_WALKED, problem.elements());
    touches_few(problem.rows, problem.sources) && walked && elements >= FEWEST_COPIED && steps <= most
}

/// Whether one unit a line is enough of them, and has less to do than if each of its rows looked for its sources.
fn goes_by_line(problem: &Problem, dtype: ElemType) -> bool {
    let Problem { rows, sources, .. } = *problem;
    let walk = rows as u64 * sources as u64;
    // In accesses to memory: four to clear and read a row's state and its element, six to take a value.
    let line = 4 * rows as u64 + 6 * sources as u64;
    problem.columns() >= FEWEST_LINES
        && line < walk
        && rows <= MANY_ROWS_A_SOURCE * sources
        && line_iterations(problem) <= MAX_ITERATIONS
        && line_refuses(problem, dtype).is_none()
}

/// Loop iterations of a unit that goes through a line.
pub(super) fn line_iterations(problem: &Problem) -> usize {
    2 * problem.rows + problem.sources + 3
}

/// Why the lines of `problem` with elements of `dtype` are not gone through one by one, if they are not.
pub(super) fn line_refuses(problem: &Problem, dtype: ElemType) -> Option<String> {
    let fits = accumulator(dtype).size() == size_of::<u32>() && levels_reach(problem.elements());
    (!fits).then(|| format!("lines of {dtype} in {problem:?}, want totals of 32 bits and as many as can be numbered"))
}

/// Whether 32-bit indices reach the totals of so many elements on all levels, padding included.
fn levels_reach(elements: usize) -> bool {
    elements <= u32::MAX as usize / (2 * (MOST_LEVELS as usize + 1))
}

fn plan_by_key(problem: &Problem, dtype: ElemType, machine: Machine) -> Plan {
    let Problem { rows, sources, .. } = *problem;
    let bins = Bins::new(sources);
    match machine {
        Machine::Software if goes_by_list(problem) => Plan::Lists,
        Machine::Software if rows >= FEWEST_OWNED_ROWS && bins.refuses(problem, dtype).is_none() => Plan::Bins(bins),
        _ if sources <= MOST_RANKED => Plan::Rank,
        _ => Plan::Radix(Radix::new(rows, sources)),
    }
}

/// Whether few units that look at all sources, and one for each row, have less to do than with bins or a sort.
fn goes_by_list(problem: &Problem) -> bool {
    let Problem { rows, sources, .. } = *problem;
    let few = sources <= MOST_LISTED_SINGLY;
    let many_rows = rows >= MANY_ROWS_A_SOURCE * sources || problem.columns() > 1 && rows >= FEWEST_OWNED_ROWS;
    (few || many_rows) && list_refuses(problem).is_none()
}

/// Why the sources of `problem` are not linked to lists, if they are not.
pub(super) fn list_refuses(problem: &Problem) -> Option<String> {
    let Problem { rows, sources, .. } = *problem;
    (sources > MOST_LISTED || lists::clearing(rows) > MAX_ITERATIONS / 2).then(|| {
        let most = MAX_ITERATIONS / 2 * lists::CLEARED_ROWS;
        format!("lists for {problem:?}, want at most {MOST_LISTED} sources and {most} rows")
    })
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
    use super::{Bins, MAX_ITERATIONS, MOST_BINNED, MOST_LISTED, Radix, lists, pieces};

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
                let bins = Bins::new(sources);
                let iterations = if sources <= MOST_BINNED { bins.iterations(sources) } else { 0 };
                assert!(iterations <= MAX_ITERATIONS, "{bins:?} of {sources} sources: {iterations}");
            }
        }
        for sources in [1, 25_000, 25_001, MOST_LISTED] {
            assert!(lists::iterations(sources) <= MAX_ITERATIONS, "lists of {sources} sources");
        }
    }
}
