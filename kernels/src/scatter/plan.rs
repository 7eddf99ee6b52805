//! Which launches compute an update; every plan gives the same bits.

use super::update::Update;
use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;
use crate::order::BLOCK;
use crate::radix_sort;
use cubecl::prelude::ElemType;

/// At most this many reads of indices in all: one launch.
const FEW_READS: u64 = 1 << 20;

/// Most positions of [`Plan::BruteForce`].
const MOST_READ: usize = 1 << 12;

/// Units that keep a device busy.
const MANY_UNITS: [usize; 2] = [1 << 10, 1 << 4];

/// What has an index of its own in `values[outer, positions, inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Indexed {
    /// Each position: `indices[positions]`.
    Position,
    /// Each position of each line: `indices[outer, positions]`.
    Line,
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

    /// Keys of a sort by destination, and how many destinations they tell apart.
    pub(super) fn keys(&self) -> (usize, usize) {
        let [outer, inner] = self.keyed_extents();
        (outer * inner * self.positions, outer * inner * self.rows)
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

    /// Windows of sorted keys, in each of which at most one long run begins, in [`Plan::Segmented`].
    pub(super) fn windows(&self) -> usize {
        if self.has_one_block() { 0 } else { self.keys().0.div_ceil(self.shortest_run()) }
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
    /// Sources are sorted by destination; each destination reduces its segment.
    Segmented(radix_sort::Plan),
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let (keys, rows) = problem.keys();
        let sorts = radix_sort::Plan::candidates(rows, keys).into_iter().map(Self::Segmented);
        let all = [Self::BruteForce, Self::Privatised].into_iter().chain(sorts);
        all.filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let unmet = match self {
            Self::Privatised if problem.update != Update::Add => Some("sums"),
            Self::Privatised if problem.blocks().saturating_mul(problem.elements()) > u32::MAX as usize => {
                Some("fewer than 2^32 totals")
            }
            Self::Segmented(_) if problem.windows() > u32::MAX as usize / 2 => Some("fewer than 2^31 windows"),
            _ => None,
        };
        if let Some(wanted) = unmet {
            return Some(format!("{self:?} for {problem:?}, want {wanted}"));
        }
        let (keys, rows) = problem.keys();
        if let Self::Segmented(sort) = self
            && let Some(reason) = sort.refuses(rows, keys)
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
            // What is left of a destination: its runs' totals, and sources of shorter runs.
            Self::Segmented(_) if problem.has_one_block() => positions + 1,
            Self::Segmented(_) => problem.blocks() * problem.shortest_run() + BLOCK + 2,
        }
    }
}

/// The plan for `problem` on `machine`. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let Problem { rows, positions, .. } = *problem;
    let reads = problem.elements() as u64 * positions as u64;
    let [gpu, software] = MANY_UNITS;
    let many = if machine == Machine::Gpu { gpu } else { software };
    // The totals are at most as many as the values, which are read once; a sort costs several times that.
    let few_totals = problem.blocks() * rows <= positions && problem.blocks() * problem.columns() >= many;
    let (keys, destinations) = problem.keys();
    let segmented = Plan::Segmented(radix_sort::plan::plan(destinations, keys, machine));
    let by_cost = if positions <= MOST_READ && reads <= FEW_READS {
        [Plan::BruteForce, Plan::Privatised, segmented]
    } else if few_totals {
        [Plan::Privatised, segmented, Plan::BruteForce]
    } else {
        [segmented, Plan::Privatised, Plan::BruteForce]
    };
    by_cost.into_iter().find(|plan| plan.refuses(problem).is_none()).unwrap_or(by_cost[0])
}
