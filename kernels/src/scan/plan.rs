//! How a scan is launched; every plan gives the same bits.

use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;
use crate::order::BLOCK;

/// Most elements of an axis: 2^20 blocks, whose totals are chained by 18 launches.
const MOST_ELEMENTS: usize = 1 << 30;

/// Most blocks whose totals one launch chains.
const MOST_CHAINED: usize = MAX_ITERATIONS - 2;

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
pub struct Plan {
    /// Whether the units of a cube read the elements of several blocks side by side, for lines whose elements are
    /// neighbours: `inner` is 1. Else a unit reads its own block.
    pub staged: bool,
    /// Blocks whose totals one launch chains, at most 59,998.
    pub chained: usize,
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let Self { chained, .. } = plan(problem, Machine::Gpu);
        [(false, chained), (true, chained), (false, 2), (true, 2)]
            .map(|(staged, chained)| Self { staged, chained })
            .into_iter()
            .filter(|plan| plan.refuses(problem).is_none())
            .collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        if !(1..=MOST_CHAINED).contains(&self.chained) {
            return Some(format!("{self:?}, want 1 to {MOST_CHAINED} chained"));
        }
        if self.staged && problem.inner != 1 {
            return Some(format!("{self:?} of {problem:?}, want lines whose elements are neighbours"));
        }
        let length = problem.length;
        (length > MOST_ELEMENTS)
            .then(|| format!("{self:?} of {length} elements along the axis, want at most {MOST_ELEMENTS}"))
    }
}

/// Elements of a line from which on a unit's own block is far from its neighbour's.
const FAR: usize = 64;

/// The plan for `problem`: as few launches as chain the totals. It [applies](Plan::refuses), unless no plan does.
///
/// A software driver gains nothing from neighbours that read neighbours.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let staged = machine == Machine::Gpu && problem.inner == 1 && problem.length >= FAR;
    Plan { staged, chained: problem.blocks().clamp(1, MOST_CHAINED) }
}
