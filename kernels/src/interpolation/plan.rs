//! How a gradient is launched; every plan gives the same bits.

use crate::coarsening;
use crate::device::Machine;

/// What a plan may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Whether every output reads one input, with a weight of one: no two inputs have an output in common.
    pub nearest: bool,
    /// The images of a unit that computes both axes.
    pub images: coarsening::Problem,
}

/// How a gradient is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// A launch along the height, and one along the width.
    Separable,
    /// One launch for both axes, for the nearest filters: products with a weight of one are exact, and nothing is computed
    /// twice.
    Joint(coarsening::Plan),
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let joint = coarsening::Plan::candidates(&problem.images).into_iter().map(Self::Joint);
        [Self::Separable].into_iter().chain(joint).filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        match self {
            Self::Separable => None,
            Self::Joint(_) if !problem.nearest => Some(format!("{self:?} for {problem:?}, want a nearest filter")),
            Self::Joint(images) => images.refuses(&problem.images),
        }
    }
}

/// The plan for `problem` on `machine`. It [applies](Plan::refuses).
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let joint = Plan::Joint(coarsening::plan(&problem.images, machine));
    if joint.refuses(problem).is_none() { joint } else { Plan::Separable }
}
