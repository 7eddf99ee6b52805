//! How a product is launched; every plan gives the same bits.

use crate::device::Machine;
use crate::grid::{MAX_CUBES_PER_AXIS, MAX_ITERATIONS};
use crate::order::BLOCK;
use crate::outer_product::has_places;

/// A matmul as the plan sees it, after broadcasting: `batch` products of `[m, k] x [k, n]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Number of products.
    pub batch: usize,
    /// Rows of the output.
    pub m: usize,
    /// Length of the chains.
    pub k: usize,
    /// Columns of the output.
    pub n: usize,
    /// Bytes of an element of the operands.
    pub element: usize,
    /// Bytes of an accumulator.
    pub accumulator: usize,
    /// Which vectors of four the operands of the product offer.
    pub vectors: Vectors,
    /// Which those of the transposed product offer.
    pub swapped_vectors: Vectors,
}

impl Problem {
    /// Blocks of `k`.
    pub fn blocks(&self) -> usize {
        self.k.div_ceil(BLOCK)
    }

    pub(super) fn outputs(&self) -> usize {
        self.batch * self.m * self.n
    }
}

/// The vectors of four elements in which a unit can read the operands of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vectors {
    /// None.
    None,
    /// Neighbouring columns of `rhs`.
    Columns,
    /// Neighbouring steps of `k`, in both operands.
    Steps,
}

/// How one cube holds its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CubeTile {
    /// Registers only: a unit owns `rows x columns` outputs, [`CubeTile::DIRECT_UNITS`] units a cube along the columns.
    /// It reads the [vectors](Vectors) that the operands offer.
    Direct {
        /// Rows of a unit.
        rows: u32,
        /// Columns of a unit, a multiple of four.
        columns: u32,
    },
    /// Registers only, for a product with few outputs: each of [`CubeTile::DIRECT_UNITS`] units a cube has a tile of
    /// its own, so that the lanes of a software driver compute other products or blocks of `k` side by side.
    Separate {
        /// Rows and columns of a unit.
        side: u32,
    },
    /// Both operands staged in shared memory: a unit owns `4 vectors[0] x 4 vectors[1]` outputs.
    Tiled {
        /// Units along the rows and along the columns of the tile.
        sides: [u32; 2],
        /// Blocks of 4 outputs of a unit along the rows and along the columns.
        vectors: [u32; 2],
        /// Steps of `k` staged at a time.
        depth: u32,
    },
    /// Both operands staged in shared memory by [`CubeTile::SINGLE_UNITS`] units, of which each owns one output or none.
    Single {
        /// Rows and columns of the tile.
        sides: [u32; 2],
        /// Steps of `k` staged at a time.
        depth: u32,
    },
}

impl CubeTile {
    /// Units of a direct cube: the vector lanes of the software drivers.
    pub const DIRECT_UNITS: u32 = 8;

    /// Copies of the staged steps: one is multiplied while the next is written.
    pub(super) const STAGES: u32 = 2;

    /// Units of a cube whose units own one output.
    pub const SINGLE_UNITS: u32 = 128;

    /// Most vectors of four elements that a unit of such a cube stages at a time: they are in registers.
    const MOST_FOURS: u32 = 9;

    /// Most outputs of a unit: it has a register or two for each, and its kernel is unrolled over them.
    pub const MOST_OUTPUTS: u32 = 128;

    /// Most units of a cube that any device has.
    const MOST_UNITS: u32 = 1024;

    /// Every tile of a plan.
    const ALL: [Self; 16] = [
        Self::Direct { rows: 16, columns: 8 },
        Self::Direct { rows: 4, columns: 8 },
        Self::Direct { rows: 8, columns: 16 },
        Self::Direct { rows: 1, columns: 32 },
        Self::Direct { rows: 1, columns: 64 },
        Self::Direct { rows: 1, columns: 8 },
        Self::Direct { rows: 1, columns: 4 },
        Self::Separate { side: 1 },
        Self::Separate { side: 4 },
        Self::LARGE,
        Self::MIDDLE,
        Self::MIDDLE_OF_8_BYTES,
        Self::SMALL,
        Self::single(1, 2, 4),
        Self::single(2, 1, 4),
        Self::single(2, 2, 4),
    ];

    /// 128 x 128 outputs of 128 units, 16 x 8 each.
    pub const LARGE: Self = Self::Tiled { sides: [8, 16], vectors: [4, 2], depth: 8 };

    /// 64 x 64 outputs of 128 units, 8 x 4 each.
    pub const MIDDLE: Self = Self::Tiled { sides: [8, 16], vectors: [2, 1], depth: 16 };

    /// The same for accumulators of 8 bytes, whose stages would not fit 32 KiB of shared memory.
    pub const MIDDLE_OF_8_BYTES: Self = Self::Tiled { sides: [8, 16], vectors: [2, 1], depth: 8 };

    /// 32 x 32 outputs of 64 units, 4 x 4 each.
    pub const SMALL: Self = Self::Tiled { sides: [8; 2], vectors: [1; 2], depth: 16 };

    /// The tile of units with one output for products of `[m, k] x [k, n]` with accumulators of so many bytes: enough elements
    /// of a vector's factor are fetched at once to hide what a fetch takes.
    const fn single(m: usize, n: usize, accumulator: usize) -> Self {
        let deep = if accumulator <= 4 { 128 } else { 64 };
        match (m, n) {
            (_, 1) => Self::Single { sides: [16, 1], depth: deep },
            (1, _) => Self::Single { sides: [1, 32], depth: deep },
            _ => Self::Single { sides: [8, 16], depth: 64 },
        }
    }

    /// What a tile has to be, if it is not.
    fn unmet(self) -> Option<&'static str> {
        let [rows, columns] = self.unit();
        match self {
            _ if rows.saturating_mul(columns) > Self::MOST_OUTPUTS => Some("at most 128 outputs a unit"),
            Self::Direct { rows, columns } if rows == 0 || columns == 0 || !columns.is_multiple_of(4) => {
                Some("rows, and columns in vectors")
            }
            Self::Separate { side: 0 } => Some("rows and columns"),
            Self::Tiled { sides: [rows, columns], .. } if rows.saturating_mul(columns) > Self::MOST_UNITS => {
                Some("at most 1024 units")
            }
            // Of 32 units 4 are along the rows, and 8 along the columns. A unit stages 4 x 4 elements.
            Self::Tiled { sides: [rows, columns], vectors: [of_rows, of_columns], depth }
                if rows * columns * of_rows * of_columns == 0
                    || !has_places([rows, columns])
                    || depth == 0
                    || !depth.is_multiple_of(4)
                    || u64::from(rows * columns)
                        < (u64::from(rows) * u64::from(of_rows) + u64::from(columns) * u64::from(of_columns))
                            * u64::from(depth / 4) =>
            {
                Some("units in fours and eights along its edges, and enough to stage it in fours of steps")
            }
            Self::Single { sides: [rows, columns], .. }
                if rows.saturating_mul(columns) == 0 || rows.saturating_mul(columns) > Self::SINGLE_UNITS =>
            {
                Some("1 to 128 outputs")
            }
            Self::Single { sides: [rows, columns], depth }
                if depth == 0
                    || !depth.is_multiple_of(8)
                    || depth > BLOCK as u32
                    || (rows + columns) * depth / 4 > Self::MOST_FOURS * Self::SINGLE_UNITS =>
            {
                Some("steps in eights, and at most 9 vectors a unit to stage them")
            }
            _ => None,
        }
    }

    /// Rows and columns of a unit's outputs.
    pub(super) fn unit(self) -> [u32; 2] {
        match self {
            Self::Direct { rows, columns } => [rows, columns],
            Self::Separate { side } => [side; 2],
            Self::Tiled { vectors, .. } => vectors.map(|vectors| vectors.saturating_mul(4)),
            Self::Single { .. } => [1; 2],
        }
    }

    /// Rows and columns of a tile's outputs.
    pub fn extent(self) -> [usize; 2] {
        match self {
            Self::Direct { rows, columns } => [rows as usize, (columns * Self::DIRECT_UNITS) as usize],
            Self::Separate { side } => [side as usize; 2],
            Self::Tiled { sides, vectors, .. } => [0, 1].map(|axis| (sides[axis] * vectors[axis] * 4) as usize),
            Self::Single { sides, .. } => sides.map(|side| side as usize),
        }
    }

    /// Units of a cube.
    pub fn units(self) -> u32 {
        match self {
            Self::Direct { .. } | Self::Separate { .. } => Self::DIRECT_UNITS,
            Self::Tiled { sides: [rows, columns], .. } => rows * columns,
            Self::Single { .. } => Self::SINGLE_UNITS,
        }
    }

    /// Elements that a cube keeps in shared memory.
    pub(super) fn staged(self) -> usize {
        match self {
            Self::Direct { .. } | Self::Separate { .. } => 0,
            // A slot of four more a step.
            Self::Tiled { depth, .. } => {
                let [rows, columns] = self.extent();
                (rows + 4 + columns + 4) * (depth * Self::STAGES) as usize
            }
            // Four more a place.
            Self::Single { sides: [rows, columns], depth } => ((rows + columns) * (depth + 4)) as usize,
        }
    }

    /// Tiles of a cube.
    fn tiles_a_cube(self) -> usize {
        match self {
            Self::Separate { .. } => Self::DIRECT_UNITS as usize,
            Self::Direct { .. } | Self::Tiled { .. } | Self::Single { .. } => 1,
        }
    }

    /// Tiles that cover `batch` outputs of `[m, n]`.
    pub fn tiles(self, batch: usize, m: usize, n: usize) -> usize {
        let [rows, columns] = self.extent();
        batch * m.div_ceil(rows) * n.div_ceil(columns)
    }
}

/// How a product is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// How one cube holds its outputs.
    pub tile: CubeTile,
    /// Whether the transposed product is computed, `out^T = rhs^T lhs^T`: the same chains, other lanes.
    pub swap: bool,
    /// Whether each block of `k` gets cubes of its own, and a second kernel adds their results: `2 ..= `[`MAX_PARTS`]
    /// blocks.
    pub split: bool,
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        let launches = [(false, false), (true, false), (false, true), (true, true)];
        let of_tile = |tile| launches.map(|(swap, split)| Self { tile, swap, split });
        CubeTile::ALL.into_iter().flat_map(of_tile).filter(|plan| plan.refuses(problem).is_none()).collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let blocks = problem.blocks();
        let wanted = match self.tile.unmet() {
            Some(unmet) => unmet.to_string(),
            None if self.split && !(2..=MAX_PARTS).contains(&blocks) => format!("2 to {MAX_PARTS} blocks to split"),
            None if self.parts(problem).saturating_mul(problem.outputs()) > u32::MAX as usize => {
                "fewer than 2^32 sums of blocks".to_string()
            }
            None if self.tiles(problem) > MAX_TILES => format!("at most {MAX_TILES} tiles"),
            None => return None,
        };
        Some(format!("{self:?} for {problem:?}, want {wanted}"))
    }

    /// Sums that an output has before they are added.
    pub(super) fn parts(&self, problem: &Problem) -> usize {
        if self.split { problem.blocks() } else { 1 }
    }

    /// Tiles of the launch.
    pub(super) fn tiles(&self, problem: &Problem) -> usize {
        let Problem { batch, m, n, .. } = *problem;
        let [m, n] = if self.swap { [n, m] } else { [m, n] };
        self.tile.tiles(self.parts(problem) * batch, m, n)
    }

    /// The same, with cubes of their own for the blocks of `k` where it has less than `enough` cubes.
    fn split(self, problem: &Problem, enough: usize) -> Self {
        let blocks = problem.blocks();
        let is_small = self.cubes(problem) < enough && blocks * problem.outputs() <= WORKSPACE;
        Self { split: is_small && (2..=MAX_PARTS).contains(&blocks), ..self }
    }

    /// Cubes of the launch.
    pub(super) fn cubes(&self, problem: &Problem) -> usize {
        self.tiles(problem).div_ceil(self.tile.tiles_a_cube())
    }
}

/// Most tiles of a launch: as many cubes fit a grid, and units are counted in 32 bits.
pub(crate) const MAX_TILES: usize = MAX_CUBES_PER_AXIS as usize * (1 << 15);

/// Cubes that keep a machine busy.
fn enough_cubes(machine: Machine) -> usize {
    match machine {
        Machine::Software => 16,
        Machine::Gpu => 256,
    }
}

/// Cubes of the smallest tile of 4 x 4 outputs a unit that are too few for a GPU: one output a unit makes eight times as many.
const FEW_CUBES: usize = 128;

/// Elements a split may keep in its workspace, 64 MiB of f32: beyond it the outputs are many enough.
pub(super) const WORKSPACE: usize = 1 << 24;

/// Most blocks that are split: a unit of the kernel that adds them reads them all.
pub const MAX_PARTS: usize = MAX_ITERATIONS;

/// The plan for `problem` on `machine`. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem, machine: Machine) -> Plan {
    let Problem { batch, m, k, n, element, accumulator, vectors, swapped_vectors } = *problem;
    let enough = enough_cubes(machine);
    let (tile, swap) = match machine {
        Machine::Software => {
            let tile = software_tile([batch, m, k, n], vectors);
            let swapped = software_tile([batch, n, k, m], swapped_vectors);
            let cost = |tile: CubeTile, m, n, vectors| {
                let [rows, columns] = tile.extent();
                // Single loads take a driver a quarter longer.
                tile.tiles(batch, m, n) * rows * columns * if vectors == Vectors::None { 5 } else { 4 }
            };
            match cost(swapped, n, m, swapped_vectors) < cost(tile, m, n, vectors) {
                true => (swapped, true),
                false => (tile, false),
            }
        }
        Machine::Gpu => {
            let large: &[_] = match (element, accumulator) {
                (4.., 0..=4) => &[CubeTile::LARGE, CubeTile::MIDDLE],
                // NVIDIA's compiler unpacks vectors of half types where they are fetched: the large tile has too few units to
                // hide that wait.
                (_, 0..=4) => &[CubeTile::MIDDLE],
                _ => &[CubeTile::MIDDLE_OF_8_BYTES],
            };
            let tile = large.iter().find(|tile| tile.tiles(batch, m, n) >= enough);
            let tile = *tile.unwrap_or(&CubeTile::SMALL);
            // Of a vector's product a tile of 4 x 4 outputs a unit would waste most.
            match m.min(n) == 1 || tile.tiles(batch * problem.blocks(), m, n) < FEW_CUBES {
                true => (CubeTile::single(m, n, accumulator), false),
                false => (tile, false),
            }
        }
    };
    Plan { tile, swap, split: false }.split(problem, enough)
}

/// The plan whose units have the fewest products: for kernels whose products are many operations each
/// ([`subnormals`](crate::subnormals)).
pub fn of_few_products(problem: &Problem, machine: Machine) -> Plan {
    let tile = match machine {
        Machine::Software => CubeTile::Separate { side: 1 },
        Machine::Gpu => CubeTile::single(problem.m, problem.n, problem.accumulator),
    };
    Plan { tile, swap: false, split: false }.split(problem, enough_cubes(machine))
}

/// The tile of `batch` products of `[m, k] x [k, n]` on a software driver.
///
/// Loads cost a driver more than multiply-adds, so the tile is as large as its registers and compile time allow, unless
/// a product with few rows or columns would waste most of it.
fn software_tile([batch, m, k, n]: [usize; 4], vectors: Vectors) -> CubeTile {
    let direct = |rows, columns| CubeTile::Direct { rows, columns };
    let tiles = |tile: CubeTile| tile.tiles(batch, m, n);
    match (m.min(n), vectors) {
        _ if m.max(n) == 1 => CubeTile::Separate { side: 1 },
        _ if m.max(n) <= 4 => CubeTile::Separate { side: 4 },
        // A unit reads along rows of the matrix: few of them, so that they stay in the cache.
        (0..=1, Vectors::Steps) if tiles(direct(1, 8)) >= enough_cubes(Machine::Software) => direct(1, 8),
        (0..=1, Vectors::Steps) => direct(1, 4),
        // A vector's product is wide instead: it reads a stretch of each row of the matrix, each of another page.
        (0..=1, Vectors::Columns) if tiles(direct(1, 64)) * k.div_ceil(BLOCK) >= 8 => direct(1, 64),
        (0..=1, _) => direct(1, 32),
        (2..=4, _) => direct(4, 8),
        // Twice as wide where that wastes no more columns.
        (_, Vectors::Columns) if n.div_ceil(64).is_multiple_of(2) => direct(8, 16),
        _ => direct(16, 8),
    }
}
