//! How a scan is launched; every plan gives the same bits.

use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;
use crate::order::BLOCK;

/// Most elements of an axis: 2^20 blocks, whose totals are chained by 18 launches.
const MOST_ELEMENTS: usize = 1 << 30;

/// Most blocks whose totals one launch chains.
const MOST_CHAINED: usize = MAX_ITERATIONS - 2;

/// Lines that keep a device busy with one unit each.
const MANY_LINES: [usize; 2] = [1 << 13, 1 << 7];

/// `tensor[outer, length, inner]`, scanned along the axis in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Product of the sizes before the axis.
    pub outer: usize,
    /// Elements along the axis.
    pub length: usize,
    /// Product of the sizes after the axis.
    pub inner: usize,
}

impl Problem {
    /// Blocks of one line.
    pub(super) fn blocks(&self) -> usize {
        self.length.div_ceil(BLOCK)
    }
}

/// How a scan is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// A unit a line: one read and one write an element. One launch.
    Sequential,
    /// Reduce-then-scan: a unit a block reduces it, a unit a line chains the blocks' totals, a unit a block scans it. Two
    /// reads and one write an element. Two launches, and one for every `chained` blocks of a line begun.
    ReduceThenScan {
        /// Blocks whose totals one launch chains, at most 59,998.
        chained: usize,
    },
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let all =
            [Self::Sequential, Self::ReduceThenScan { chained: MOST_CHAINED }, Self::ReduceThenScan { chained: 2 }];
        all.into_iter().filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let most = match self {
            Self::Sequential => MAX_ITERATIONS - 2,
            Self::ReduceThenScan { chained: 1..=MOST_CHAINED } => MOST_ELEMENTS,
            Self::ReduceThenScan { .. } => return Some(format!("{self:?}, want 1 to {MOST_CHAINED} chained")),
        };
        let length = problem.length;
        (length > most).then(|| format!("{self:?} of {length} elements along the axis, want at most {most}"))
    }
}

/// The plan for `problem` on `machine`. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let [gpu, software] = MANY_LINES;
    let many = if machine == Machine::Gpu { gpu } else { software };
    let one_block = problem.length <= BLOCK;
    match one_block || (Plan::Sequential.refuses(problem).is_none() && problem.outer * problem.inner >= many) {
        true => Plan::Sequential,
        false => Plan::ReduceThenScan { chained: MOST_CHAINED },
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_CHAINED, MOST_ELEMENTS, Plan, Problem, plan};
    use crate::device::Machine;

    #[test]
    fn planned_scans_are_taken() {
        for bits in 0..=30 {
            for length in [1usize << bits, (1 << bits) - 1, MOST_ELEMENTS.min((1 << bits) + 1)] {
                for (outer, machine) in
                    [1, 1000, 1 << 20].into_iter().flat_map(|n| [(n, Machine::Gpu), (n, Machine::Software)])
                {
                    let problem = Problem { outer, length, inner: 1 };
                    let plan = plan(&problem, machine);
                    assert_eq!(plan.refuses(&problem), None);
                    assert!(Plan::candidates(&problem).contains(&plan));
                }
            }
        }
        assert_eq!(Plan::candidates(&Problem { outer: 1, length: MOST_ELEMENTS + 1, inner: 1 }), []);
    }

    #[test]
    fn plans_are_pinned() {
        let problem = |outer, length| Problem { outer, length, inner: 1 };
        let blocks = Plan::ReduceThenScan { chained: MOST_CHAINED };
        for machine in [Machine::Gpu, Machine::Software] {
            assert_eq!(plan(&problem(1, 1024), machine), Plan::Sequential);
            assert_eq!(plan(&problem(1, 1025), machine), blocks);
        }
        assert_eq!(plan(&problem(128, 5000), Machine::Software), Plan::Sequential);
        assert_eq!(plan(&problem(128, 5000), Machine::Gpu), blocks);
        assert_eq!(plan(&problem(1 << 13, 59_999), Machine::Gpu), blocks);
    }
}
