//! Thread coarsening: a unit computes several elements one after the other, so that index work they share is done once.
//!
//! The plan of families whose elements share that work across channels or images; every plan gives the same bits.

use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;

/// What a plan may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Elements of the result.
    pub elements: usize,
    /// Elements that share their index work: those at one place in all channels, or in all images.
    pub shared: usize,
    /// Loop iterations that an element takes.
    pub iterations: usize,
}

/// How elements are given to units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Elements that one unit computes, of those that share their index work.
    pub span: usize,
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let planned = [Machine::Gpu, Machine::Software].map(|machine| plan(problem, machine).span);
        let mut spans = [[1, 2, problem.shared.max(1)].as_slice(), &planned].concat();
        spans.sort();
        spans.dedup();
        spans.into_iter().map(|span| Self { span }).filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let most = most(problem);
        (!(1..=most).contains(&self.span)).then(|| format!("{self:?} for {problem:?}, want a span of 1 to {most}"))
    }
}

/// Most elements of a unit: one more iteration leaves its loop over them.
fn most(problem: &Problem) -> usize {
    (MAX_ITERATIONS - 1) / problem.iterations.max(1)
}

/// The plan for `problem` on `machine`: as many elements a unit as leave enough units. It [applies](Plan::refuses), unless
/// no plan does.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let enough = match machine {
        Machine::Gpu => 1 << 16,
        // 64 cubes keep its threads busy.
        Machine::Software => 1 << 14,
    };
    Plan { span: (problem.elements / enough).min(problem.shared).min(most(problem)).max(1) }
}
