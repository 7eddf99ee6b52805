//! Launch geometry. Nothing here can change a result: see the contract in [`super`].

use super::shape::{Axis, Geometry};
use crate::device::Machine;
use crate::grid::{MAX_ITERATIONS, cubes};
use crate::order::BLOCK;
use cubecl::prelude::*;
use std::ops::Range;

/// Units in a cube: on a software driver few enough that a small layer still spreads over its cores.
pub(super) fn cube_units(machine: Machine) -> u32 {
    match machine {
        Machine::Software => 32,
        Machine::Gpu => 64,
    }
}

/// Which operand of `output = convolution(input, weight)` is computed from the two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// A forward pass; the input gradient of a transposed convolution.
    ToOutput,
    /// An input gradient; the forward pass of a transposed convolution.
    ToInput,
    /// A weight gradient.
    ToWeight,
}

/// A pass as the plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The operation, as errors name it.
    pub kernel: &'static str,
    /// Which operand is computed.
    pub pass: Pass,
    /// Spatial axes of the operands, up to 3.
    pub rank: usize,
    /// The convolution.
    pub geometry: Geometry,
}

impl Problem {
    /// Blocks in the longest chain of the pass; an empty chain is one empty block.
    pub fn blocks(&self) -> usize {
        let g = &self.geometry;
        let terms = match self.pass {
            Pass::ToOutput => g.axes.iter().map(|axis| axis.taps).product::<usize>() * g.inputs,
            Pass::ToInput => {
                g.axes.iter().map(|axis| axis.taps.div_ceil(axis.tap_step())).product::<usize>() * g.outputs
            }
            Pass::ToWeight => g.terms(),
        };
        terms.div_ceil(BLOCK).max(1)
    }
}

/// The tile of results one unit computes: its loads serve `rows * columns` multiply-adds a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitTile {
    /// Channels of the side that is computed; output channels in a weight gradient.
    pub rows: usize,
    /// Batch entries; input channels in a weight gradient.
    pub columns: usize,
}

impl UnitTile {
    /// Every tile.
    pub const ALL: [Self; 12] = [
        Self { rows: 16, columns: 16 },
        Self { rows: 8, columns: 8 },
        Self { rows: 8, columns: 4 },
        Self { rows: 8, columns: 2 },
        Self { rows: 8, columns: 1 },
        Self { rows: 4, columns: 4 },
        Self { rows: 4, columns: 2 },
        Self { rows: 4, columns: 1 },
        Self { rows: 1, columns: 8 },
        Self { rows: 1, columns: 4 },
        Self { rows: 1, columns: 2 },
        Self { rows: 1, columns: 1 },
    ];
}

/// A launch. Any tile covers any pass: what hangs over an edge is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// [`Pass::ToOutput`] and [`Pass::ToInput`]: a unit computes all blocks of its chains.
    Activations {
        /// The results of one unit.
        tile: UnitTile,
    },
    /// [`Pass::ToWeight`]: a unit computes one block of its chains. The blocks of a round lie side by side in scratch
    /// memory, and a second kernel adds them to the totals before the next round.
    Weight {
        /// The results of one unit.
        tile: UnitTile,
        /// Blocks of a round, `1 ..= min(blocks, MAX_SPAN)`.
        span: usize,
    },
}

/// Most blocks of a round: a unit of the kernel that adds them loops over them all, after the total.
pub const MAX_SPAN: usize = MAX_ITERATIONS - 1;

/// Elements of scratch memory that a round fills if weights are few: 4 MiB of f32.
const SCRATCH: usize = 1 << 20;

impl Plan {
    /// Every tile, and for a weight gradient each of them with rounds of one block, of two, and of all that fit.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let mut spans = vec![1, 2, widest_span(problem)];
        spans.retain(|&span| span <= widest_span(problem));
        spans.dedup();
        let plans = |tile| match problem.pass {
            Pass::ToOutput | Pass::ToInput => vec![Self::Activations { tile }],
            Pass::ToWeight => spans.iter().map(|&span| Self::Weight { tile, span }).collect(),
        };
        UnitTile::ALL.into_iter().flat_map(plans).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let applies = match (*self, problem.pass) {
            (Self::Activations { tile }, Pass::ToOutput | Pass::ToInput) => UnitTile::ALL.contains(&tile),
            (Self::Weight { tile, span }, Pass::ToWeight) => {
                let scratch = (span + 1).checked_mul(problem.geometry.weights());
                UnitTile::ALL.contains(&tile)
                    && (1..=problem.blocks().min(MAX_SPAN)).contains(&span)
                    && scratch.is_some_and(|elements| elements < u32::MAX as usize)
            }
            _ => false,
        };
        (!applies).then(|| format!("{self:?} does not apply to {problem:?}"))
    }
}

/// Chooses a launch.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let g = &problem.geometry;
    let extent = |of: fn(&Axis) -> usize| g.groups * g.axes.iter().map(of).product::<usize>();
    let tile = |rows, columns, steps, lanes| tile(rows, columns, steps, lanes, machine);
    match problem.pass {
        Pass::ToOutput => Plan::Activations { tile: tile(g.outputs, g.batch, g.inputs, extent(|axis| axis.output)) },
        Pass::ToInput => Plan::Activations { tile: tile(g.inputs, g.batch, g.outputs, extent(|axis| axis.input)) },
        Pass::ToWeight => {
            let span = widest_span(problem);
            Plan::Weight { tile: tile(g.outputs, g.inputs, BLOCK, span * extent(|axis| axis.taps)), span }
        }
    }
}

/// The most blocks of a round that [`SCRATCH`] holds.
fn widest_span(problem: &Problem) -> usize {
    (SCRATCH / problem.geometry.weights().max(1)).clamp(1, problem.blocks().min(MAX_SPAN))
}

/// At least this many steps: a wide tile.
const WIDE_STEPS: usize = 8;

/// The tile for `lanes` independent problems of `rows` by `columns` results, whose innermost loop takes `steps`.
fn tile(rows: usize, columns: usize, steps: usize, lanes: usize, machine: Machine) -> UnitTile {
    // Units from which a wider tile still fills a device.
    let enough = match machine {
        Machine::Software => 64,
        Machine::Gpu => 1 << 14,
    };
    let fills = |tile: UnitTile| lanes * rows.div_ceil(tile.rows) * columns.div_ceil(tile.columns) >= enough;
    // 64 accumulators pay where the loop over channels is long enough to hide the tile's own cost. 256 fit no GPU's
    // registers. A software driver loads lane by lane, which costs more than accumulators in its cache: without the
    // widest tile the passes of examples/digits_convnet between its 32 and 64 channels take 1.4 to 1.6 times as long.
    let widest = UnitTile { rows: 16, columns: 16 };
    let wide = UnitTile { rows: 8, columns: 8 };
    let computed = |tile: UnitTile| rows.next_multiple_of(tile.rows) * columns.next_multiple_of(tile.columns);
    // What hangs over an edge is computed too.
    let fits = rows >= 16 && columns >= 16 && 4 * computed(widest) <= 5 * computed(wide);
    if steps >= WIDE_STEPS && fits && machine == Machine::Software && fills(widest) {
        return widest;
    }
    if steps >= WIDE_STEPS && rows > 4 && columns > 4 && fills(wide) {
        return wide;
    }
    // Where a tap has one channel, what it costs to find its place counts more than the loads.
    let long = UnitTile { rows: 1, columns: 8 };
    if rows <= 2 && columns > 4 && fills(long) {
        return long;
    }
    UnitTile {
        rows: match rows {
            0..=2 => 1,
            3..=4 => 4,
            _ => 8,
        },
        columns: match columns {
            0..=1 => 1,
            2 => 2,
            _ => 4,
        },
    }
}

/// The blocks of each launch of a pass between activations, below [`MAX_ITERATIONS`]: a block of chains over taps of
/// `channels` channels is an iteration, one for each of its taps and terms, and an end of each loop over them.
pub(super) fn launches(blocks: usize, channels: usize) -> impl Iterator<Item = Range<usize>> {
    let taps = BLOCK / channels.max(1) + 2;
    let most = MAX_ITERATIONS / (BLOCK + 2 * taps + 2);
    (0..blocks).step_by(most).map(move |first| first..blocks.min(first + most))
}

// A block whose terms lie in rows touches at most one row for each of its terms. A row of a weight gradient is an
// iteration, one more for each of its terms, and one to leave their loop.
const _: () = assert!(3 * BLOCK + 8 <= MAX_ITERATIONS);

/// The grid that covers `units` units in cubes of `of_cube`, or nothing if 32-bit indices cannot count them.
pub(super) fn grid(units: usize, of_cube: u32) -> Option<(u32, CubeCount, CubeDim)> {
    let units = u32::try_from(units).ok().filter(|&units| units < u32::MAX / 2)?;
    Some((units, cubes(units.div_ceil(of_cube) as usize), CubeDim::new_1d(of_cube)))
}

#[cfg(test)]
mod tests {
    use super::launches;

    #[test]
    fn launches_cover_the_blocks_in_order() {
        for (blocks, channels) in [(1, 0), (1, 7), (19, 1), (20, 1), (69, 70_001), (500, 3)] {
            let launches: Vec<_> = launches(blocks, channels).collect();
            assert!(launches.iter().all(|launch| launch.len() * 1028 <= super::MAX_ITERATIONS));
            assert!(launches.into_iter().flatten().eq(0..blocks), "{blocks} {channels}");
        }
    }
}
