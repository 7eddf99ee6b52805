//! How a scan is laid over the device; the block length is part of the order contract, the rest cannot change a result.

use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;

/// Elements of the shortest block.
const SHORTEST_BLOCK: usize = 64;

/// Most elements of an axis: a block, and a line's number of blocks, then stay below the bound of a loop.
pub const MOST_ELEMENTS: usize = 1 << 30;
const _: () = assert!(block_length(MOST_ELEMENTS) < MAX_ITERATIONS);
const _: () = assert!(MOST_ELEMENTS / block_length(MOST_ELEMENTS) < MAX_ITERATIONS);

/// Most elements of a line that one unit walks.
pub const MOST_WALKED: usize = MAX_ITERATIONS - 2;

/// Lines that keep a device busy with one unit each.
const MANY_LINES: [usize; 2] = [1 << 13, 1 << 7];

/// Elements of one block of an axis of `length`: the power of two that is not below its square root, 64 at least.
pub const fn block_length(length: usize) -> usize {
    let bits = usize::BITS - length.saturating_sub(1).leading_zeros();
    let block = 1 << bits.div_ceil(2);
    if block < SHORTEST_BLOCK { SHORTEST_BLOCK } else { block }
}

/// `tensor[outer, length, inner]`, scanned along the axis in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lines {
    /// Lines before the axis.
    pub outer: usize,
    /// Elements along the axis.
    pub length: usize,
    /// Lines after the axis.
    pub inner: usize,
}

impl Lines {
    /// Whether a unit may walk a whole line.
    pub(super) fn can_walk(&self) -> bool {
        self.length <= MOST_WALKED
    }
}

/// The way from elements to results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// A unit a line. One launch.
    Walk,
    /// A unit a block. Three launches.
    Blocks,
}

impl Plan {
    /// Every plan, for tests that force one.
    pub const ALL: [Self; 2] = [Self::Walk, Self::Blocks];
}

/// The plan for `lines`.
pub fn plan(lines: &Lines, machine: Machine) -> Plan {
    let [gpu, software] = MANY_LINES;
    let many = if machine == Machine::Gpu { gpu } else { software };
    let one_block = lines.length <= block_length(lines.length);
    match lines.can_walk() && (one_block || lines.outer * lines.inner >= many) {
        true => Plan::Walk,
        false => Plan::Blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, MOST_ELEMENTS, Plan, block_length, plan};
    use crate::device::Machine;
    use crate::grid::MAX_ITERATIONS;

    #[test]
    fn blocks_are_near_the_square_root() {
        let lengths = [0, 1, 64, 65, 4096, 4097, 1 << 14, (1 << 14) + 1, 1 << 20, MOST_ELEMENTS];
        let blocks = [64, 64, 64, 64, 64, 128, 128, 256, 1 << 10, 1 << 15];
        assert_eq!(lengths.map(block_length), blocks);
    }

    #[test]
    fn planned_scans_stay_below_the_limit() {
        for bits in 0..=30 {
            for length in [1usize << bits, (1 << bits) - 1, MOST_ELEMENTS.min((1 << bits) + 1)] {
                for outer in [1, 1000, 1 << 20] {
                    for machine in [Machine::Gpu, Machine::Software] {
                        let iterations = match plan(&Lines { outer, length, inner: 1 }, machine) {
                            Plan::Walk => length,
                            Plan::Blocks => block_length(length).max(length.div_ceil(block_length(length))),
                        };
                        assert!(iterations < MAX_ITERATIONS, "{length}: {iterations}");
                    }
                }
            }
        }
    }
}
