//! Launch geometry. Nothing here can change a result: see the contract in [`super`].

use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;
use crate::order::{BLOCK, COLUMNS, COLUMNS_BLOCK};

/// Attention as the plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Batches times heads.
    pub heads: usize,
    /// Queries of a head.
    pub queries: usize,
    /// Keys of a head.
    pub keys: usize,
    /// Elements of a query and of a key.
    pub width: usize,
    /// Elements of a value.
    pub columns: usize,
    /// Elements of a vector in which queries and keys are read.
    pub narrow: usize,
}

/// What a unit keeps in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Queries of a unit.
    pub rows: u32,
    /// Keys whose scores are computed together, a multiple of four.
    pub keys: u32,
    /// Columns of the values that are weighed together, a multiple of four.
    pub columns: u32,
}

impl Plan {
    /// Units of a cube: the vector lanes of the software drivers.
    pub const UNITS: u32 = 8;

    /// Eight queries a unit: most arithmetic for what is read.
    pub const MANY: Self = Self { rows: 8, keys: 16, columns: 8 };
    /// Four queries a unit.
    pub const FEW: Self = Self { rows: 4, keys: 16, columns: 16 };
    /// One query a unit.
    pub const ONE: Self = Self { rows: 1, keys: 16, columns: 32 };
    /// Every plan, for tests that force one.
    pub const ALL: [Self; 3] = [Self::MANY, Self::FEW, Self::ONE];

    /// Units that have queries.
    pub fn units(self, heads: usize, queries: usize) -> usize {
        heads * queries.div_ceil(self.rows as usize)
    }

    /// Cubes of these units.
    pub(super) fn cubes(self, heads: usize, queries: usize) -> usize {
        self.units(heads, queries).div_ceil(Self::UNITS as usize)
    }

    /// Loop iterations of a unit, each loop's end counted as one.
    pub fn iterations(self, problem: Problem) -> usize {
        let Problem { keys, width, columns, narrow, .. } = problem;
        let fours = keys.div_ceil(4);
        let scores = keys.div_ceil(self.keys as usize) * (width / narrow + 2);
        let powers = fours + keys.div_ceil(COLUMNS_BLOCK as usize) * (2 * (COLUMNS as usize / 4) + 2);
        let weighing = fours + 3 + keys.div_ceil(BLOCK) * 3 + 1;
        scores + powers + fours + columns.div_ceil(self.columns as usize) * (weighing + 1) + 4
    }
}

/// Chooses a launch; none where the steps of the contract, as kernels of their own, are faster or needed: on a GPU,
/// where this kernel would read keys and values once for a few queries, and where a unit would walk too far.
pub fn plan(problem: Problem, machine: Machine) -> Option<Plan> {
    let Problem { heads, queries, keys, width, columns, .. } = problem;
    let empty = [heads, queries, keys, width, columns].contains(&0);
    if machine == Machine::Gpu || empty || width > BLOCK {
        return None;
    }
    let plan = match queries {
        1 => Plan::ONE,
        8.. if Plan::MANY.cubes(heads, queries) >= ENOUGH_CUBES => Plan::MANY,
        _ => Plan::FEW,
    };
    (plan.iterations(problem) <= MAX_ITERATIONS).then_some(plan)
}

/// Cubes that keep a software driver busy.
const ENOUGH_CUBES: usize = 16;
