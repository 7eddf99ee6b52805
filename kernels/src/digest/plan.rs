//! How the words of tensors are split over cubes; every plan gives the same digests.

use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;

/// Units of a cube.
pub(super) const UNITS: usize = crate::grid::UNITS as usize;

/// Words that a unit takes before another cube is launched, where a cube adds its units' sums.
const WORDS_A_UNIT: usize = 64;

/// The same where it does not: more, because the host adds those of each unit.
const WORDS_OF_A_SUM: usize = 256;

/// Cubes for one tensor at most.
const MAX_CUBES: usize = 256;

/// Words that a unit takes at most: it loops over them, and over its cube's sums.
const MAX_WORDS_A_UNIT: usize = MAX_ITERATIONS - UNITS - 2;

/// Words of a tensor at most.
pub(super) const MAX_WORDS: usize = MAX_CUBES * UNITS * MAX_WORDS_A_UNIT;

const _: () =
    assert!(MAX_WORDS + MAX_CUBES * UNITS <= u32::MAX as usize, "a unit counts words in 32 bits, and one round more");

/// The tensors of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Words of the longest one.
    pub words: usize,
}

/// How a launch splits the words of each tensor.
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
        let words = problem.words.div_ceil(self.cubes * UNITS);
        (words > MAX_WORDS_A_UNIT)
            .then(|| format!("{self:?} for {problem:?} has {words} words a unit, want at most {MAX_WORDS_A_UNIT}"))
    }

    /// Sums of each tensor that the host adds.
    pub(super) fn parts(&self) -> usize {
        if self.adds { self.cubes } else { self.cubes * UNITS }
    }
}

/// The plan for `problem` on `machine`. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    // A barrier costs a software driver more than the host's sums.
    let (adds, words_a_unit) = match machine {
        Machine::Gpu => (true, WORDS_A_UNIT),
        Machine::Software => (false, WORDS_OF_A_SUM),
    };
    Plan { cubes: problem.words.div_ceil(UNITS * words_a_unit).clamp(1, MAX_CUBES), adds }
}
