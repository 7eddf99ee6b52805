//! How a draw is launched. No plan changes a value: element `i` takes its words by `i` alone.

use super::source::BLOCK_WORDS;

/// What a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Elements to draw.
    pub elements: u32,
    /// Words an element takes: 1, 2 or 4.
    pub words: u32,
}

/// How a draw is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Units in a cube; a unit computes one block.
    pub units: u32,
    /// Elements in one store: 1, 2 or 4, a divisor of the number of elements.
    pub vector_width: usize,
}

/// Below this many blocks a cube is small, so that a mask for dropout still reaches more than a few processors.
const FEW_BLOCKS: u32 = 1 << 16;

/// The plan for `problem`, on every machine. It [applies](Plan::refuses).
pub fn plan(problem: &Problem) -> Plan {
    Plan {
        units: if problem.blocks() < FEW_BLOCKS { 64 } else { 256 },
        vector_width: if problem.elements.is_multiple_of(4) { 4 } else { 1 },
    }
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let of_width = |vector_width| [32, 64, 256].map(|units| Self { units, vector_width });
        [1, 2, 4].into_iter().flat_map(of_width).filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let Self { units, vector_width } = *self;
        let divides = [1, 2, 4].contains(&vector_width) && problem.elements.is_multiple_of(vector_width as u32);
        (units == 0 || !divides).then(|| {
            format!("{self:?} for {problem:?}, want units, and a width of 1, 2 or 4 that divides the elements")
        })
    }

    /// Cubes that have a unit for each block.
    pub(super) fn cubes(&self, problem: &Problem) -> usize {
        problem.blocks().div_ceil(self.units) as usize
    }
}

impl Problem {
    /// Blocks of [`BLOCK_WORDS`] words that hold those of all elements.
    fn blocks(&self) -> u32 {
        self.elements.div_ceil(BLOCK_WORDS as u32 / self.words)
    }
}
