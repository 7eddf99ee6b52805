//! How the vectors of words of tensors are split over cubes; every plan gives the same digests.

use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;

/// Units of a cube.
pub(super) const UNITS: usize = crate::grid::UNITS as usize;

/// Vectors that a unit takes before another cube is launched, where a cube adds its units' sums.
const VECTORS_A_UNIT: usize = 8;

/// The same where it does not: more, because the host adds those of each unit.
const VECTORS_OF_A_SUM: usize = 64;

/// Cubes for one tensor at most.
const MAX_CUBES: usize = 256;

/// Vectors that a unit takes at most: it loops over them, and over its cube's sums.
const MAX_VECTORS_A_UNIT: usize = MAX_ITERATIONS - UNITS - 2;

/// Vectors of a tensor at most.
pub(super) const MAX_VECTORS: usize = MAX_CUBES * UNITS * MAX_VECTORS_A_UNIT;

const _: () = assert!(
    MAX_VECTORS + MAX_CUBES * UNITS <= u32::MAX as usize,
    "a unit counts vectors in 32 bits, and one round more"
);

/// The tensors of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Vectors of words of the longest one.
    pub vectors: usize,
}

/// How a launch splits the vectors of each tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Cubes for each tensor.
    pub cubes: usize,
    /// Whether a cube adds its units' sums in shared memory; if not, the host adds them.
    pub adds: bool,
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let planned = [Machine::Gpu, Machine::Software].map(|machine| plan(problem, machine));
        let edges = [(1, true), (3, false), (MAX_CUBES, true)].map(|(cubes, adds)| Self { cubes, adds });
        let all = planned.into_iter().chain(edges);
        all.filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        if !(1..=MAX_CUBES).contains(&self.cubes) {
            return Some(format!("{self:?}, want 1 to {MAX_CUBES} cubes"));
        }
        let vectors = problem.vectors.div_ceil(self.cubes * UNITS);
        (vectors > MAX_VECTORS_A_UNIT).then(|| {
            format!("{self:?} for {problem:?} has {vectors} vectors a unit, want at most {MAX_VECTORS_A_UNIT}")
        })
    }

    /// Sums of each tensor that the host adds.
    pub(super) fn parts(&self) -> usize {
        if self.adds { self.cubes } else { self.cubes * UNITS }
    }
}

/// The plan for `problem` on `machine`. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    // A barrier costs a software driver more than the host's sums.
    let (adds, vectors_a_unit) = match machine {
        Machine::Gpu => (true, VECTORS_A_UNIT),
        Machine::Software => (false, VECTORS_OF_A_SUM),
    };
    Plan { cubes: problem.vectors.div_ceil(UNITS * vectors_a_unit).clamp(1, MAX_CUBES), adds }
}
