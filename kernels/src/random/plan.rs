//! The launch geometry of a draw, which cannot change a value: element `i` takes its words by `i` alone.

use super::BLOCK_WORDS;

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
    /// Cubes along the first two axes.
    pub cubes: (u32, u32),
    /// Elements in one store: 1, 2 or 4, a divisor of the number of elements.
    pub vector_width: usize,
}

/// Cubes along one axis that every supported device accepts.
const MAX_CUBES_PER_AXIS: u32 = 65_535;

/// Below this many blocks a cube is small, so that a mask for dropout still reaches more than a few processors.
const FEW_BLOCKS: u32 = 1 << 16;

/// Chooses the geometry.
pub fn plan(problem: Problem) -> Plan {
    let blocks = blocks(problem.elements, problem.words);
    let units = if blocks < FEW_BLOCKS { 64 } else { 256 };
    let cubes = blocks.div_ceil(units);
    let x = cubes.clamp(1, MAX_CUBES_PER_AXIS);
    Plan {
        units,
        cubes: (x, cubes.div_ceil(x).max(1)),
        vector_width: if problem.elements.is_multiple_of(4) { 4 } else { 1 },
    }
}

impl Plan {
    /// Whether the plan has a unit for every block.
    pub(super) fn covers(&self, elements: u32, words: u32) -> bool {
        let units = u64::from(self.units) * u64::from(self.cubes.0) * u64::from(self.cubes.1);
        u64::from(blocks(elements, words)) <= units
    }
}

/// Blocks that hold the words of `elements` elements.
fn blocks(elements: u32, words: u32) -> u32 {
    elements.div_ceil(BLOCK_WORDS as u32 / words)
}
