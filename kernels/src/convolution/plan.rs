//! Launch geometry. Nothing here can change a result: see the contract in [`super`].

use super::shape::{Axis, Geometry};
use crate::arithmetic::Products;
use crate::device::Machine;
use crate::grid::{MAX_CUBES_PER_AXIS, MAX_ITERATIONS, UNITS, cubes};
use crate::order::BLOCK;
use crate::outer_product;
use cubecl::prelude::*;
use std::ops::Range;

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

/// Consecutive terms that a unit fetches for a column.
pub(super) const SHARE: u32 = 8;

/// Terms whose places a cube finds at a time: a multiple of each tile's depth and of its units.
pub(super) const WINDOW: u32 = 128;

/// Terms in the table: one window is read while the next is found.
pub(super) const RING: u32 = 2 * WINDOW;

/// Bytes of that table: five words a term.
const TERM_BYTES: usize = RING as usize * 5 * size_of::<u32>();

/// Copies of the staged steps in a pass between activations.
pub(super) const STAGES: u32 = 2;

/// Channels that are neighbours in a [packed](super::tiled_kernel::pack_weight) weight, whatever its tile.
pub(super) const PACKED: u32 = 32;

/// A pass as the plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Which operand is computed.
    pub pass: Pass,
    /// Spatial axes of the operands, up to 3.
    pub rank: usize,
    /// The convolution.
    pub geometry: Geometry,
    /// How products are added.
    pub products: Products,
}

impl Problem {
    /// Channels of a group that a pass between activations computes.
    pub(super) fn channels(&self) -> usize {
        if self.pass == Pass::ToInput { self.geometry.inputs } else { self.geometry.outputs }
    }

    /// Channels of a group that it reads.
    pub(super) fn source_channels(&self) -> usize {
        if self.pass == Pass::ToInput { self.geometry.outputs } else { self.geometry.inputs }
    }

    /// Whether target positions meet other taps by their phase.
    pub(super) fn phased(&self) -> bool {
        self.pass == Pass::ToInput && self.geometry.axes.iter().any(|axis| axis.stride > 1)
    }

    /// Phases of its target positions.
    fn phases(&self) -> usize {
        let phases = |axis: &Axis| axis.stride.min(axis.input).max(1);
        if self.phased() { self.geometry.axes.iter().map(phases).product() } else { 1 }
    }

    /// Positions that it computes, those beyond the last one of a phase included.
    pub(super) fn positions(&self) -> usize {
        let positions = |axis: &Axis| if self.pass == Pass::ToInput { axis.phased_inputs() } else { axis.output };
        self.geometry.axes.iter().map(positions).product()
    }

    /// Elements of the result; of an input gradient with a stride, positions beyond the last one of a phase included.
    pub(super) fn results(&self) -> usize {
        match self.pass {
            Pass::ToWeight => self.geometry.weights(),
            Pass::ToOutput | Pass::ToInput => {
                self.geometry.batch * self.geometry.groups * self.channels() * self.positions()
            }
        }
    }

    /// Elements of a [packed](super::tiled_kernel::pack_weight) weight.
    pub(super) fn packed(&self) -> usize {
        self.geometry.groups
            * self.geometry.taps()
            * self.source_channels()
            * self.channels().next_multiple_of(PACKED as usize)
    }

    /// Blocks in the longest chain of the pass; an empty chain is one empty block.
    pub fn blocks(&self) -> usize {
        self.terms().div_ceil(BLOCK).max(1)
    }

    /// Terms in the longest chain of the pass.
    fn terms(&self) -> usize {
        let g = &self.geometry;
        match self.pass {
            Pass::ToOutput => g.taps() * g.inputs,
            Pass::ToInput => {
                g.axes.iter().map(|axis| axis.taps.div_ceil(axis.tap_step())).product::<usize>() * g.outputs
            }
            Pass::ToWeight => g.terms(),
        }
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

/// The tile of results one cube computes from shared memory: a unit owns `4 vectors x 4 vectors` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CubeTile {
    /// Units along the channels.
    pub side_rows: u32,
    /// Units along the columns: positions of batch entries.
    pub side_columns: u32,
    /// Blocks of 4 results of a unit along each edge.
    pub vectors: u32,
}

impl CubeTile {
    /// Steps of a chain of a weight gradient that are staged at a time.
    pub(super) const WEIGHT_DEPTH: u32 = 16;

    /// Every tile, the larger ones first: 64 channels by 128 columns, 32 by 64, 32 by 32.
    pub const ALL: [Self; 3] = [
        Self { side_rows: 8, side_columns: 16, vectors: 2 },
        Self { side_rows: 8, side_columns: 16, vectors: 1 },
        Self { side_rows: 8, side_columns: 8, vectors: 1 },
    ];

    /// 32 channels by 32 columns.
    pub const SMALLEST: Self = Self::ALL[2];

    /// Every tile of a weight gradient, output channels by [columns](WeightColumns): 64 by 64, 32 by 32.
    pub const WEIGHT: [Self; 2] =
        [Self { side_rows: 8, side_columns: 8, vectors: 2 }, Self { side_rows: 8, side_columns: 8, vectors: 1 }];

    /// Whether each unit has a [place](crate::outer_product::unit_place) of its own.
    const fn has_places(self) -> bool {
        outer_product::has_places([self.side_rows, self.side_columns])
    }

    /// Units of a cube.
    pub(super) const fn units(self) -> u32 {
        self.side_rows * self.side_columns
    }

    /// Channels and columns of a cube.
    pub fn extent(self) -> [usize; 2] {
        [self.side_rows, self.side_columns].map(|side| (side * self.vectors * 4) as usize)
    }

    /// Steps of a chain between activations that are staged at a time: a unit with 64 results has few registers left for the
    /// next ones.
    pub(super) const fn depth(self) -> u32 {
        if self.vectors == 1 { 16 } else { 8 }
    }

    /// Vectors of four rows, and of four columns, of a cube.
    pub(super) fn fours(self) -> [u32; 2] {
        [self.side_rows, self.side_columns].map(|side| side * self.vectors)
    }

    /// Fours of channels of a stage of the weight that a unit fetches.
    pub(super) fn weight_fetches(self) -> u32 {
        self.fours()[0] * self.depth() / self.units()
    }

    /// Bytes that a cube keeps in shared memory in a pass between activations, of elements of so many bytes.
    pub(super) fn shared_memory(self, bytes: usize) -> usize {
        let [rows, columns] = self.extent();
        (rows + columns) * (self.depth() * STAGES) as usize * bytes + TERM_BYTES
    }

    /// Bytes that a cube keeps in shared memory in a weight gradient, of elements of so many bytes: each step has a slot of four
    /// more for each operand, and pairs have a table.
    pub(super) fn weight_shared_memory(self, bytes: usize, of: WeightColumns) -> usize {
        let [rows, columns] = self.extent();
        (rows + 4 + columns + 4) * Self::WEIGHT_DEPTH as usize * bytes + of.table(self) * size_of::<[u32; 4]>()
    }

    /// Cubes that cover the results of a pass between activations.
    pub(super) fn cubes(self, problem: &Problem) -> usize {
        let [rows, columns] = self.extent();
        let phases = problem.phases();
        let of_phase = problem.geometry.batch * (problem.positions() / phases);
        problem.geometry.groups * phases * problem.channels().div_ceil(rows) * of_phase.div_ceil(columns)
    }

    /// Cubes that cover a block of a weight gradient.
    pub(super) fn weight_cubes(self, problem: &Problem, columns: WeightColumns) -> usize {
        let [rows, tile_columns] = self.extent();
        let Geometry { groups, outputs, .. } = problem.geometry;
        let (width, taps) = columns.extent(problem);
        groups * outputs.div_ceil(rows) * width.div_ceil(tile_columns) * taps
    }
}

// A cube has a unit for each of its columns, which describes a pair.
const _: () = {
    let [large, small] = CubeTile::WEIGHT;
    assert!(large.side_rows >= 4 * large.vectors && small.side_rows >= 4 * small.vectors);
    assert!(large.has_places() && small.has_places());
};

/// What the columns of a weight gradient are that a cube computes a tile of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeightColumns {
    /// Input channels, at one tap: whether a position exists is the same for all of them.
    Channels,
    /// Pairs of an input channel and a tap, as a row of the result has them.
    Pairs,
}

impl WeightColumns {
    /// Every kind of columns.
    pub const ALL: [Self; 2] = [Self::Channels, Self::Pairs];

    /// Columns of a group, and taps with columns of their own.
    pub(super) fn extent(self, problem: &Problem) -> (usize, usize) {
        let (inputs, taps) = (problem.geometry.inputs, problem.geometry.taps());
        match self {
            Self::Channels => (inputs, taps),
            Self::Pairs => (inputs * taps, 1),
        }
    }

    /// Entries of the table in shared memory that describes the pairs of a `tile`: no array is empty.
    pub(super) fn table(self, tile: CubeTile) -> usize {
        match self {
            Self::Channels => 1,
            Self::Pairs => tile.extent()[1],
        }
    }
}

/// A launch. Tiles need not divide a result: what hangs over an edge is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// [`Pass::ToOutput`] and [`Pass::ToInput`]: a unit computes all blocks of its chains.
    Activations {
        /// The results of one unit.
        tile: UnitTile,
        /// Units of a cube.
        units: u32,
    },
    /// [`Pass::ToOutput`] and [`Pass::ToInput`], over one or more terms: both operands staged in shared memory.
    Tiled {
        /// The results of one cube.
        tile: CubeTile,
        /// Whether each block of the chains gets cubes of its own, and a second kernel adds their results: `2 ..=
        /// `[`MAX_PARTS`] blocks, and not in an input gradient with a stride, whose chains have other numbers of blocks.
        split: bool,
        /// Whether a launch before packs the weight, whose channels are then read four at a time. Without, the smallest tile reads
        /// element by element.
        packs: bool,
    },
    /// [`Pass::ToWeight`]: a unit computes one block of its chains. The blocks of a round lie side by side in scratch
    /// memory, and a second kernel adds them to the totals before the next round.
    Weight {
        /// The results of one unit.
        tile: UnitTile,
        /// Blocks of a round, `1 ..= min(blocks, MAX_SPAN)`.
        span: usize,
        /// Units of a cube.
        units: u32,
    },
    /// [`Pass::ToWeight`]: the same rounds, both operands staged in shared memory.
    TiledWeight {
        /// The results of one cube, of [`CubeTile::WEIGHT`].
        tile: CubeTile,
        /// What its columns are.
        columns: WeightColumns,
        /// Blocks of a round, `1 ..= min(blocks, MAX_SPAN)`.
        span: usize,
    },
}

/// Units of a cube whose units share nothing.
const CUBE_UNITS: u32 = 64;

/// The same on a software driver: few enough that a small layer still spreads over its cores.
const CUBE_UNITS_SOFTWARE: u32 = 32;

/// Most blocks of a round: a unit of the kernel that adds them loops over them all, after the total.
pub const MAX_SPAN: usize = MAX_ITERATIONS - 1;

/// Most blocks of a chain that are split: a unit of the kernel that adds them reads them all.
pub const MAX_PARTS: usize = MAX_ITERATIONS;

/// Most cubes of a launch.
const MAX_CUBES: usize = MAX_CUBES_PER_AXIS as usize * (1 << 15);

/// Stages of all cubes of the smallest tile, up to which these read the weight element by element: 512 from as many places a stage, 128
/// cycles of a multiprocessor's cache. On 132 of them this many stages take 4000 cycles, as long as a launch that packs the weight.
const UNPACKED_STAGES: usize = 1 << 12;

/// Elements of scratch memory that a round fills if weights are few: 4 MiB of f32.
const SCRATCH: usize = 1 << 20;

/// The same, where cubes compute them: 64 MiB of f32.
pub(super) const TILED_SCRATCH: usize = 1 << 24;

impl Plan {
    /// Every plan that applies: every tile, of a unit and of a cube, split or not, for a weight gradient with rounds of one
    /// block, of two, and of all that fit; every other tile of a unit with the cubes of a software driver, and those that are chosen.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let spans = |scratch| {
            let widest = widest_span(problem, scratch);
            let mut spans = vec![1, 2, widest];
            spans.retain(|&span| span <= widest);
            spans.dedup();
            spans
        };
        let plans = |(tile, units)| match problem.pass {
            Pass::ToOutput | Pass::ToInput => vec![Self::Activations { tile, units }],
            Pass::ToWeight => spans(SCRATCH).into_iter().map(|span| Self::Weight { tile, span, units }).collect(),
        };
        let of_units = UnitTile::ALL.into_iter().zip([CUBE_UNITS_SOFTWARE, CUBE_UNITS].into_iter().cycle());
        let ways = [[false, true], [true, true], [false, false], [true, false]];
        let tiled = |tile| ways.map(|[split, packs]| Self::Tiled { tile, split, packs });
        let tiled = CubeTile::ALL.into_iter().flat_map(tiled);
        let of_tile = |(tile, columns)| {
            spans(TILED_SCRATCH).into_iter().map(move |span| Self::TiledWeight { tile, columns, span })
        };
        let of_weight = CubeTile::WEIGHT.into_iter().flat_map(|tile| WeightColumns::ALL.map(|columns| (tile, columns)));
        let tiled = tiled.chain(of_weight.flat_map(of_tile));
        let tiled = tiled.filter(|plan| plan.refuses(problem).is_none());
        let mut plans: Vec<Self> = of_units.flat_map(plans).chain(tiled).collect();
        for chosen in [Machine::Software, Machine::Gpu].map(|machine| plan(problem, machine)) {
            if !plans.contains(&chosen) {
                plans.push(chosen);
            }
        }
        plans
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let to_weight = problem.pass == Pass::ToWeight;
        let wanted = match *self {
            Self::Activations { .. } | Self::Tiled { .. } if to_weight => "an activation to compute",
            Self::Weight { .. } | Self::TiledWeight { .. } if !to_weight => "a weight gradient",
            Self::Activations { tile, .. } | Self::Weight { tile, .. } if !UnitTile::ALL.contains(&tile) => {
                "a known tile"
            }
            Self::Activations { units, .. } | Self::Weight { units, .. } if !(1..=UNITS).contains(&units) => {
                "1 to 256 units a cube"
            }
            Self::Tiled { tile, .. } if !CubeTile::ALL.contains(&tile) => "a known tile",
            Self::TiledWeight { tile, .. } if !CubeTile::WEIGHT.contains(&tile) => "a known tile",
            Self::Weight { span, .. } | Self::TiledWeight { span, .. } if !spans(problem, span) => {
                "rounds of one block to all, of fewer than 2^32 sums"
            }
            Self::TiledWeight { tile, columns, span }
                if span.saturating_mul(tile.weight_cubes(problem, columns)) > MAX_CUBES =>
            {
                "fewer cubes"
            }
            Self::Tiled { .. } if problem.source_channels() == 0 => "channels to read",
            Self::Tiled { split: true, .. } if problem.phased() => "chains of equal blocks to split",
            Self::Tiled { split: true, .. } if !(2..=MAX_PARTS).contains(&problem.blocks()) => "blocks to split",
            Self::Tiled { tile, packs: false, .. } if tile != CubeTile::SMALLEST => {
                "the smallest tile, or a packed weight"
            }
            Self::Tiled { tile, split, packs } => {
                let parts = if split { problem.blocks() } else { 1 };
                match () {
                    () if parts.saturating_mul(problem.results()) >= u32::MAX as usize / 2 => "fewer than 2^31 results",
                    () if packs && problem.packed() >= u32::MAX as usize => "fewer than 2^32 packed weights",
                    () if parts.saturating_mul(tile.cubes(problem)) > MAX_CUBES => "fewer cubes",
                    () => return None,
                }
            }
            _ => return None,
        };
        Some(format!("{self:?} for {problem:?}, want {wanted}"))
    }
}

/// Whether a round of a weight gradient can have `span` blocks.
fn spans(problem: &Problem, span: usize) -> bool {
    let scratch = (span + 1).checked_mul(problem.geometry.weights());
    (1..=problem.blocks().min(MAX_SPAN)).contains(&span) && scratch.is_some_and(|sums| sums < u32::MAX as usize)
}

/// Chooses a launch.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    if machine == Machine::Gpu
        && let Some(tiled) = if problem.pass == Pass::ToWeight { tiled_weight(problem) } else { tiled(problem) }
    {
        return tiled;
    }
    of_units(problem, machine, |rows, columns, steps, lanes| tile(rows, columns, steps, lanes, machine))
}

/// The plan whose units have the fewest products: for kernels whose products are many operations each
/// ([`subnormals`](crate::subnormals)).
pub fn of_few_products(problem: &Problem, machine: Machine) -> Plan {
    of_units(problem, machine, |_, _, _, _| UnitTile { rows: 1, columns: 1 })
}

/// A launch whose units have the tile that `tile` gives: of rows and columns of results, steps of a chain, and lanes.
fn of_units(problem: &Problem, machine: Machine, tile: impl Fn(usize, usize, usize, usize) -> UnitTile) -> Plan {
    let g = &problem.geometry;
    let extent = |of: fn(&Axis) -> usize| g.groups * g.axes.iter().map(of).product::<usize>();
    let units = match machine {
        Machine::Software => CUBE_UNITS_SOFTWARE,
        Machine::Gpu => CUBE_UNITS,
    };
    match problem.pass {
        Pass::ToOutput => {
            Plan::Activations { tile: tile(g.outputs, g.batch, g.inputs, extent(|axis| axis.output)), units }
        }
        Pass::ToInput => {
            Plan::Activations { tile: tile(g.inputs, g.batch, g.outputs, extent(|axis| axis.input)), units }
        }
        Pass::ToWeight => {
            let span = widest_span(problem, SCRATCH);
            Plan::Weight { tile: tile(g.outputs, g.inputs, BLOCK, span * extent(|axis| axis.taps)), span, units }
        }
    }
}

/// The plan from shared memory for a GPU, where channels and columns are enough to fill half a tile and terms a stage of it.
fn tiled(problem: &Problem) -> Option<Plan> {
    let columns = problem.geometry.batch * problem.positions() / problem.phases();
    let pays = problem.channels() >= 16 && problem.terms() >= 16 && columns >= 16;
    if !pays {
        return None;
    }
    // Cubes that keep a GPU busy.
    let enough = 256;
    let results = problem.geometry.batch * problem.geometry.groups * problem.channels() * problem.positions();
    // Beyond this much scratch memory, 64 MiB of f32, results are many enough.
    let splits = |split: bool| !split || problem.blocks() * results <= 1 << 24;
    let of = |(tile, split): (CubeTile, bool)| {
        let parts = if split { problem.blocks() } else { 1 };
        let of_cube = problem.terms().div_ceil(parts).div_ceil(tile.depth() as usize);
        let stages = of_cube.saturating_mul(parts).saturating_mul(tile.cubes(problem));
        let packs = tile != CubeTile::SMALLEST || stages > UNPACKED_STAGES;
        Plan::Tiled { tile, split, packs }
    };
    let applies = |&launch: &(CubeTile, bool)| splits(launch.1) && of(launch).refuses(problem).is_none();
    let fills = |&(tile, split): &(CubeTile, bool)| {
        let [tile_rows, tile_columns] = tile.extent();
        let parts = if split { problem.blocks() } else { 1 };
        // More than half of the tile, but for the smallest.
        let is_used = tile == CubeTile::SMALLEST || 2 * problem.channels() > tile_rows && 2 * columns > tile_columns;
        is_used && parts * tile.cubes(problem) >= enough
    };
    let all = CubeTile::ALL.into_iter().flat_map(|tile| [(tile, false), (tile, true)]);
    let smallest = [true, false].map(|split| (CubeTile::SMALLEST, split));
    let chosen = all.filter(applies).find(fills).or_else(|| smallest.into_iter().find(applies));
    chosen.map(of)
}

/// The plan of a weight gradient from shared memory for a GPU, where a group has columns and output channels to fill a
/// quarter of a tile's edges.
fn tiled_weight(problem: &Problem) -> Option<Plan> {
    let outputs = problem.geometry.outputs;
    let (all_columns, _) = WeightColumns::Pairs.extent(problem);
    if outputs < 8 || all_columns < 8 {
        return None;
    }
    let span = widest_span(problem, TILED_SCRATCH);
    // Pairs cost more to fetch, which pays where they take a quarter fewer cubes.
    let of_tile = |tile: CubeTile| {
        let [channels, pairs] = WeightColumns::ALL.map(|columns| tile.weight_cubes(problem, columns));
        let columns = if 4 * pairs <= 3 * channels { WeightColumns::Pairs } else { WeightColumns::Channels };
        (tile, columns)
    };
    // From which on a GPU has enough of the larger cubes.
    let fills = |&(tile, columns): &(CubeTile, WeightColumns)| {
        let (width, _) = columns.extent(problem);
        width > 32 && outputs > 32 && span * tile.weight_cubes(problem, columns) >= 512
    };
    let [large, small] = CubeTile::WEIGHT.map(of_tile);
    let (tile, columns) = if fills(&large) { large } else { small };
    let plan = Plan::TiledWeight { tile, columns, span };
    plan.refuses(problem).is_none().then_some(plan)
}

/// The most blocks of a round that `scratch` elements hold.
fn widest_span(problem: &Problem, scratch: usize) -> usize {
    (scratch / problem.geometry.weights().max(1)).clamp(1, problem.blocks().min(MAX_SPAN))
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

// What `convolve_tiled` relies on: a unit fetches whole shares of one column, and whole vectors of weights; a window of terms has
// several stages, and each unit finds as many terms of it; two stages take turns, each of pairs of steps.
const _: () = {
    assert!(STAGES == 2);
    let mut nth = 0;
    while nth < CubeTile::ALL.len() {
        let tile = CubeTile::ALL[nth];
        assert!(tile.units() * SHARE == tile.side_columns * tile.vectors * 4 * tile.depth());
        assert!((tile.side_rows * tile.vectors * tile.depth()).is_multiple_of(tile.units()));
        assert!(WINDOW.is_multiple_of(tile.units()) && WINDOW.is_multiple_of(tile.depth()));
        assert!(tile.depth() < WINDOW && tile.depth().is_multiple_of(2) && tile.has_places());
        nth += 1;
    }
};

// A launch from shared memory computes one block: a stage of 8 terms is an iteration, and each four of the last ones.
const _: () = assert!(BLOCK / 8 + 4 <= MAX_ITERATIONS);

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
