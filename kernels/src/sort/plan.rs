//! How a sort is laid over the device; every plan gives the same bits.

use crate::device::Machine;
use crate::radix_sort::Radix;

/// Length up to which ranking a line beats sorting it.
const MOST_RANKED: usize = 512;

/// Most elements of a line that are selected rather than sorted: a unit has a register or two for each.
const MOST_SELECTED: usize = 32;

/// Longest chunk of a line that one unit selects from.
const LONGEST_CHUNK: usize = 1 << 14;

/// Comparisons up to which one launch beats the passes of a sort.
const FEW_COMPARISONS: usize = 1 << 24;

/// `tensor[outer, length, inner]`, sorted along the axis in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lines {
    /// Lines before the axis.
    pub outer: usize,
    /// Elements along the axis.
    pub length: usize,
    /// Lines after the axis.
    pub inner: usize,
}

/// The geometry of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// Elements that a chunk keeps.
    pub slots: usize,
    /// Elements of a chunk.
    pub chunk: usize,
}

impl Choice {
    /// The geometry that keeps `kept` of `elements`.
    fn new(kept: usize, elements: usize, machine: Machine) -> Self {
        // In a long chunk few elements after its first ones are kept, even for a moment.
        let units = if machine == Machine::Gpu { 1 << 14 } else { 1 << 9 };
        Self { slots: kept, chunk: (elements / units).clamp(32 * kept, LONGEST_CHUNK).next_multiple_of(4) }
    }

    /// Neighbours of a chunk of a line whose first element stands for them: so many that there are about as many groups
    /// of them as elements in those that are read again.
    pub(super) fn group(&self, length: usize) -> usize {
        (self.chunk.min(length) / self.slots.max(1)).isqrt().max(1).next_multiple_of(4)
    }

    /// Loop iterations of the unit that has the most of them.
    pub(super) fn iterations(&self, length: usize) -> usize {
        let (longest, group) = (self.chunk.min(length), self.group(length));
        // Three for each loop over a group, and one for each element.
        longest + 3 * longest.div_ceil(group) + self.slots * (group + 3)
    }

    /// Whether the first `kept` elements of a line are among those its chunks keep, and chunks become fewer.
    pub(super) fn keeps(&self, kept: usize) -> bool {
        self.slots >= kept && 2 * self.slots <= self.chunk
    }
}

/// The way from elements to their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Every element finds its place by comparing with all others of its line. One launch.
    Rank,
    /// Chunks of a line keep their first elements, until one chunk is left. A launch a time.
    Select(Choice),
    /// Stable radix passes over all lines together, with this geometry for the elements' words.
    Radix(Radix),
}

/// The plan for the first `kept` elements of each of `lines`, which are compared by a word of `bits` bits, or by two.
pub fn plan(lines: &Lines, kept: usize, bits: u32, wide: bool, machine: Machine) -> Plan {
    let Lines { outer, length, inner } = *lines;
    let elements = outer * length * inner;
    let ranked = if wide { 2 * MOST_RANKED } else { MOST_RANKED };
    if kept <= MOST_SELECTED && 2 * kept <= length {
        Plan::Select(Choice::new(kept, elements, machine))
    } else if length <= ranked || (length <= 2048 && elements.saturating_mul(length) <= FEW_COMPARISONS) {
        Plan::Rank
    } else {
        Plan::Radix(Radix::new((u32::MAX >> (32 - bits)) as usize, elements))
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Plan, plan};
    use crate::device::Machine;
    use crate::grid::MAX_ITERATIONS;

    const MACHINES: [Machine; 2] = [Machine::Gpu, Machine::Software];

    #[test]
    fn planned_sorts_stay_below_the_limit() {
        for (outer, bits) in (0..31).map(|bits| (1usize << bits, bits)).flat_map(|(n, b)| [(1, b), (n, 31 - b)]) {
            for length in [1usize << bits, (1 << bits) - 1] {
                for (word, wide) in [(8, false), (16, false), (19, false), (32, false), (32, true)] {
                    let lines = Lines { outer, length, inner: 1 };
                    for (kept, machine) in [1, 5, 32, 33, length].into_iter().flat_map(|k| MACHINES.map(|m| (k, m))) {
                        let iterations = match plan(&lines, kept, word, wide, machine) {
                            Plan::Rank => length,
                            Plan::Select(choice) => {
                                assert!(choice.keeps(kept), "{choice:?}");
                                choice.iterations(length)
                            }
                            Plan::Radix(radix) => radix.iterations(outer * length),
                        };
                        assert!(iterations < MAX_ITERATIONS, "{lines:?}: {iterations}");
                    }
                }
            }
        }
    }
}
