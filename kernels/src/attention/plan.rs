//! How attention is launched; every plan gives the same bits.

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
    /// Elements of a vector in which Q and K are read: 4, or 1.
    pub qk_lanes: usize,
}

impl Problem {
    /// Whether the kernel computes it: no extent is zero, and an inner product of a query and a key is one block.
    pub fn fits(&self) -> bool {
        let Self { heads, queries, keys, width, columns, .. } = *self;
        ![heads, queries, keys, width, columns].contains(&0) && width <= BLOCK
    }
}

/// What a unit of the kernel keeps in registers. A problem for which [`plan`] gives no plan is computed by the composed
/// steps: each step of the contract is a kernel of its own, which the caller launches; the bits are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Queries of a unit.
    pub rows: u32,
    /// Keys whose scores are computed together, a multiple of four.
    pub keys: u32,
    /// Columns of V that are multiplied together, a multiple of four.
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

    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        [Self::MANY, Self::FEW, Self::ONE].into_iter().filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let Self { rows, keys, columns } = *self;
        let in_fours = |count: u32| count > 0 && count.is_multiple_of(4);
        if rows == 0 || !in_fours(keys) || !in_fours(columns) {
            return Some(format!("{self:?}, want rows, and keys and columns in fours"));
        }
        if !problem.fits() {
            return Some(format!("{self:?} for {problem:?}, want no extent of zero and a width of at most {BLOCK}"));
        }
        let iterations = self.iterations(problem);
        (iterations > MAX_ITERATIONS)
            .then(|| format!("{self:?} for {problem:?} loops {iterations} times, want at most {MAX_ITERATIONS}"))
    }

    /// Units that have queries.
    pub(super) fn units(self, problem: &Problem) -> usize {
        problem.heads * problem.queries.div_ceil(self.rows as usize)
    }

    /// Cubes of these units.
    pub(super) fn cubes(self, problem: &Problem) -> usize {
        self.units(problem).div_ceil(Self::UNITS as usize)
    }

    /// Loop iterations of a unit, each loop's end counted as one.
    pub fn iterations(self, problem: &Problem) -> usize {
        let Problem { keys, width, columns, qk_lanes, .. } = *problem;
        let fours = keys.div_ceil(4);
        let scores = keys.div_ceil(self.keys as usize) * (width / qk_lanes + 2);
        let exps = fours + keys.div_ceil(COLUMNS_BLOCK as usize) * (2 * (COLUMNS as usize / 4) + 2);
        let values = fours + 3 + keys.div_ceil(BLOCK) * 3 + 1;
        scores + exps + fours + columns.div_ceil(self.columns as usize) * (values + 1) + 4
    }
}

/// The plan for `problem` on `machine`, or `None` for the composed steps. On a GPU these are faster, since this kernel
/// would read K and V once for a few queries; elsewhere they are needed where this kernel does not
/// [apply](Plan::refuses).
pub fn plan(problem: &Problem, machine: Machine) -> Option<Plan> {
    if machine == Machine::Gpu {
        return None;
    }
    let plan = match problem.queries {
        1 => Plan::ONE,
        8.. if Plan::MANY.cubes(problem) >= ENOUGH_CUBES => Plan::MANY,
        _ => Plan::FEW,
    };
    plan.refuses(problem).is_none().then_some(plan)
}

/// Cubes that keep a software driver busy.
const ENOUGH_CUBES: usize = 16;
