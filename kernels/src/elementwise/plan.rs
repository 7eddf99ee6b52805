//! How a program is launched; every plan gives the same bits.

/// What a plan may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Elements of the program's shape.
    pub elements: usize,
    /// Whether some operand can be read in vectors of four.
    pub has_vectors: bool,
}

/// How a program is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Neighbouring elements that a unit computes: 1 or 4.
    pub width: usize,
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        [1, 4].map(|width| Self { width }).into_iter().filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let applies = [1, 4].contains(&self.width) && problem.elements.is_multiple_of(self.width);
        (!applies).then(|| format!("{self:?} for {problem:?}, want a width of 1 or 4 that divides the elements"))
    }
}

/// The plan for `problem`, on every machine. It [applies](Plan::refuses).
pub fn plan(problem: &Problem) -> Plan {
    Plan { width: if problem.has_vectors && problem.elements.is_multiple_of(4) { 4 } else { 1 } }
}
