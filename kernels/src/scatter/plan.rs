//! Which launches compute an update; every plan gives the same bits.

use super::update::Update;
use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;
use crate::order::BLOCK;
use crate::radix_sort::{self, SORT_UNITS};
use cubecl::prelude::ElemType;

/// At most this many reads of indices in all: one launch.
const FEW_READS: u64 = 1 << 20;

/// Most positions of [`Plan::BruteForce`].
const MOST_READ: usize = 1 << 12;

/// Positions of a line that each destination reads on a GPU, however many destinations there are: a sort of them by a cube for each
/// line would keep most of its units idle.
const FEW_POSITIONS: usize = 16;

/// Units that keep a software driver busy.
const MANY_UNITS: usize = 1 << 4;

/// Rows, and one for indices that name none, which [`Plan::SortedBlocks`] tells apart: the bits of a word that a position in a
/// block leaves.
pub(super) const MOST_SORTED_ROWS: usize = (u32::MAX as usize + 1) / BLOCK;

/// Cubes that keep a GPU busy.
const MANY_CUBES: usize = 1 << 10;

/// What has an index of its own in `values[outer, positions, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Indexed {
    /// Each position: `indices[positions]`.
    Position,
    /// Each position of each batch: `indices[outer, positions]`.
    Batch,
    /// Each value: `indices[outer, positions, inner]`.
    Value,
}

/// `tensor[outer, rows, inner]` updated by `values[outer, positions, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Product of the sizes before the scattered axis.
    pub outer: usize,
    /// Size of the tensor along the scattered axis.
    pub rows: usize,
    /// Size of the values along the scattered axis.
    pub positions: usize,
    /// Product of the sizes after the scattered axis.
    pub inner: usize,
    /// What has an index of its own.
    pub indexed: Indexed,
    /// The operation.
    pub update: Update,
    /// The element type of the tensor and the values.
    pub dtype: ElemType,
}

impl Problem {
    /// Values of one position.
    pub fn columns(&self) -> usize {
        self.outer * self.inner
    }

    /// Destination elements.
    pub fn elements(&self) -> usize {
        self.columns() * self.rows
    }

    /// Over which of the outer and the inner axis the keys of a sort by destination run, besides the positions.
    pub(super) fn keyed(&self) -> Keyed {
        Keyed {
            outer: self.indexed != Indexed::Position && self.outer > 1,
            inner: self.indexed == Indexed::Value && self.inner > 1,
        }
    }

    /// The sort of the sources by destination.
    pub(super) fn keys(&self) -> radix_sort::Problem {
        let [outer, inner] = self.keyed_extents();
        radix_sort::Problem { length: outer * inner * self.positions, rows: outer * inner * self.rows }
    }

    /// The extents of the outer and the inner axis, 1 for one that is not keyed.
    pub(super) fn keyed_extents(&self) -> [usize; 2] {
        let keyed = self.keyed();
        [if keyed.outer { self.outer } else { 1 }, if keyed.inner { self.inner } else { 1 }]
    }

    /// Blocks of positions.
    pub(super) fn blocks(&self) -> usize {
        self.positions.div_ceil(BLOCK)
    }

    /// Whether all positions are of one block.
    pub(super) fn has_one_block(&self) -> bool {
        self.positions <= BLOCK
    }

    /// Cubes that share the destinations of one block and column in [`Plan::SortedBlocks`]. Each sorts the block.
    pub(super) fn slices(&self) -> usize {
        let [_, columns] = self.keyed_extents();
        let (cubes, destinations) = (self.outer * columns * self.blocks(), self.rows * (self.inner / columns));
        MANY_CUBES.div_ceil(cubes.max(1)).min(destinations.div_ceil(SORT_UNITS as usize)).max(1)
    }

    /// Cubes of [`Plan::SortedBlocks`].
    pub(super) fn sorting_cubes(&self) -> usize {
        let [_, columns] = self.keyed_extents();
        self.outer * columns * self.blocks() * self.slices()
    }

    /// Windows of sorted keys, in each of which at most one long run begins, in [`Plan::Segmented`].
    pub(super) fn windows(&self) -> usize {
        if self.has_one_block() { 0 } else { self.keys().length.div_ceil(self.shortest_run()) }
    }

    /// Fewest sources of one destination in one block whose total is computed by a unit of its own, in
    /// [`Plan::Segmented`]: a power of two, smaller for more blocks, so that what is left to the destination's unit stays
    /// bounded. Where all positions are of one block there is no such total.
    pub(super) fn shortest_run(&self) -> usize {
        ((1usize << 24) / self.positions.max(1)).clamp(1, 16).next_power_of_two()
    }
}

/// Axes that the keys of a sort by destination run over, besides the positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Keyed {
    pub outer: bool,
    pub inner: bool,
}

/// How an update is launched: see the table in [`super`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Each destination reads all indices of its line.
    BruteForce,
    /// Each block of positions has a total of its own for every row; the blocks' totals are then chained.
    Privatised,
    /// Each block of positions is sorted by row, which has a total of its own; the blocks' totals are then chained.
    SortedBlocks,
    /// Sources are sorted by destination; each destination reduces its segment.
    Segmented(radix_sort::Plan),
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let sorts = radix_sort::Plan::candidates(&problem.keys()).into_iter().map(Self::Segmented);
        let all = [Self::BruteForce, Self::Privatised, Self::SortedBlocks].into_iter().chain(sorts);
        all.filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let unmet = match self {
            Self::Privatised if problem.update != Update::Add => Some("sums"),
            Self::Privatised if problem.blocks().saturating_mul(problem.elements()) > u32::MAX as usize => {
                Some("fewer than 2^32 totals")
            }
            Self::SortedBlocks if problem.update != Update::Add && !problem.has_one_block() => {
                Some("sums, or one block")
            }
            Self::SortedBlocks if problem.rows >= MOST_SORTED_ROWS => Some("fewer than 2^22 rows"),
            Self::SortedBlocks if problem.blocks().saturating_mul(problem.elements()) > u32::MAX as usize => {
                Some("fewer than 2^32 totals")
            }
            Self::SortedBlocks if problem.sorting_cubes() > 1 << 24 => Some("at most 2^24 cubes"),
            Self::Segmented(_) if problem.windows() > u32::MAX as usize / 2 => Some("fewer than 2^31 windows"),
            _ => None,
        };
        if let Some(wanted) = unmet {
            return Some(format!("{self:?} for {problem:?}, want {wanted}"));
        }
        if let Self::Segmented(sort) = self
            && let Some(reason) = sort.refuses(&problem.keys())
        {
            return Some(reason);
        }
        let iterations = self.iterations(problem);
        (iterations > MAX_ITERATIONS)
            .then(|| format!("{self:?} for {problem:?} loops {iterations} times, want at most {MAX_ITERATIONS}"))
    }

    /// Loop iterations of the unit that has the most of them, with one for the end of each loop.
    fn iterations(&self, problem: &Problem) -> usize {
        let Problem { rows, positions, .. } = *problem;
        match self {
            Self::BruteForce => positions + 1,
            Self::Privatised => (rows + BLOCK + 2).max(problem.blocks() + 1),
            // A unit meets a row once for each cube-wide stretch of its elements.
            Self::SortedBlocks => {
                let units = SORT_UNITS as usize;
                let destinations = (rows * problem.inner).div_ceil(problem.slices() * units);
                let sums = 2 * destinations + BLOCK * problem.inner.div_ceil(units);
                (sums + 16).max(problem.blocks() + 2)
            }
            // What is left of a destination: its runs' totals, and sources of shorter runs.
            Self::Segmented(_) if problem.has_one_block() => positions + 1,
            Self::Segmented(_) => problem.blocks() * problem.shortest_run() + BLOCK + 2,
        }
    }
}

/// The plan for `problem` on `machine`: of those that [apply](Plan::refuses) the one of least cost. There is none for more
/// sources than any plan takes.
pub fn plan(problem: &Problem, machine: Machine) -> Option<Plan> {
    let Problem { rows, positions, .. } = *problem;
    let reads = problem.elements() as u64 * positions as u64;
    let segmented = Plan::Segmented(radix_sort::plan::plan(&problem.keys(), machine));
    // At most as many as the values, which are read once; a sort of all costs several times that.
    let few_totals = problem.blocks() * rows <= positions;
    let (brute_force, privatised, sorted_blocks) = (Plan::BruteForce, Plan::Privatised, Plan::SortedBlocks);
    let by_cost = match machine {
        _ if positions <= MOST_READ && reads <= FEW_READS => [brute_force, privatised, segmented, sorted_blocks],
        // All units of a line read the same few indices, from a cache.
        Machine::Gpu if positions <= FEW_POSITIONS => [brute_force, sorted_blocks, privatised, segmented],
        Machine::Gpu if few_totals || problem.has_one_block() => [sorted_blocks, privatised, segmented, brute_force],
        Machine::Software if few_totals && problem.blocks() * problem.columns() >= MANY_UNITS => {
            [privatised, segmented, brute_force, sorted_blocks]
        }
        _ => [segmented, privatised, sorted_blocks, brute_force],
    };
    by_cost.into_iter().find(|plan| plan.refuses(problem).is_none())
}

/// The plan whose units have the fewest operations, if one applies: for kernels whose operations are many each
/// ([`subnormals`](crate::subnormals)). The totals of blocks are chained sixteen at a time by [`Plan::Privatised`].
pub fn of_few_operations(problem: &Problem, machine: Machine) -> Option<Plan> {
    let segmented = Plan::Segmented(radix_sort::plan::plan(&problem.keys(), machine));
    let all = [segmented, Plan::BruteForce, Plan::SortedBlocks, Plan::Privatised];
    all.into_iter().find(|plan| plan.refuses(problem).is_none())
}
