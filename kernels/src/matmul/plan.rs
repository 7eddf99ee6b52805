//! Launch geometry. Nothing here can change a result: see the contract in [`super`].

use super::BLOCK;
use crate::device::Machine;
use crate::grid::MAX_ITERATIONS;

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
    /// Bytes of an accumulator.
    pub accumulator: usize,
    /// How the operands of the product lie.
    pub fours: Fours,
    /// How those of the transposed product do.
    pub swapped_fours: Fours,
    /// Where it runs.
    pub machine: Machine,
}

/// Which elements of the operands of a product lie so that a unit can read them four at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fours {
    /// None.
    No,
    /// Neighbouring columns of `rhs`.
    Columns,
    /// Neighbouring steps of `k`, in both operands.
    Steps,
}

/// How one cube holds its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tile {
    /// Registers only: a unit owns `rows x columns` outputs, [`Tile::DIRECT_UNITS`] units side by side. It reads four
    /// elements at a time where they [lie so](Fours).
    Direct {
        /// Rows of a unit.
        rows: u32,
        /// Columns of a unit, a multiple of four.
        columns: u32,
    },
    /// Shared memory: `side x side` units, a unit owns `4 fours x 4 fours` outputs.
    Tiled {
        /// Units along each edge of the tile.
        side: u32,
        /// Blocks of 4 outputs of a unit along each edge.
        fours: u32,
    },
}

impl Tile {
    /// Units of a direct cube: the vector lanes of the software drivers.
    pub const DIRECT_UNITS: u32 = 8;

    /// Rows and columns of a cube's outputs.
    pub fn extent(self) -> [usize; 2] {
        match self {
            Self::Direct { rows, columns } => [rows as usize, (columns * Self::DIRECT_UNITS) as usize],
            Self::Tiled { side, fours } => [(side * fours * 4) as usize; 2],
        }
    }

    /// Units of a cube.
    pub fn units(self) -> u32 {
        match self {
            Self::Direct { .. } => Self::DIRECT_UNITS,
            Self::Tiled { side, .. } => side * side,
        }
    }

    /// Elements that a cube keeps in shared memory to stage `depth` steps of `k`.
    pub(super) fn staged(self, depth: u32) -> usize {
        match self {
            Self::Direct { .. } => 0,
            // Two operands, and a slot of four more a row.
            Self::Tiled { side, fours } => (2 * (side * fours + 1) * depth * 4) as usize,
        }
    }

    /// Cubes that cover `batch` outputs of `[m, n]`.
    pub fn cubes(self, batch: usize, m: usize, n: usize) -> usize {
        let [rows, columns] = self.extent();
        batch * m.div_ceil(rows) * n.div_ceil(columns)
    }
}

/// A launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// How one cube holds its outputs.
    pub tile: Tile,
    /// Whether the transposed product is computed, `out^T = rhs^T lhs^T`: the same chains, other lanes.
    pub swap: bool,
    /// Whether each block of `k` gets cubes of its own, and a second kernel adds their results; up to [`MAX_PARTS`].
    pub split: bool,
}

/// Cubes that keep a machine busy.
fn enough_cubes(machine: Machine) -> usize {
    match machine {
        Machine::Software => 16,
        Machine::Gpu => 256,
    }
}

/// Elements a split may keep in its workspace, 64 MiB of f32: beyond it the outputs are many enough.
const WORKSPACE: usize = 1 << 24;

/// Most blocks that are split: the kernel that adds them walks them all.
pub const MAX_PARTS: usize = MAX_ITERATIONS;

/// Chooses a launch.
pub fn plan(problem: Problem) -> Plan {
    let Problem { batch, m, k, n, accumulator, fours, swapped_fours, machine } = problem;
    let enough = enough_cubes(machine);
    let (tile, swap) = match machine {
        Machine::Software => {
            let tile = software_tile([batch, m, k, n], fours);
            let swapped = software_tile([batch, n, k, m], swapped_fours);
            let cost = |tile: Tile, m, n, fours| {
                let [rows, columns] = tile.extent();
                // Single loads take a driver a quarter longer.
                tile.cubes(batch, m, n) * rows * columns * if fours == Fours::No { 5 } else { 4 }
            };
            match cost(swapped, n, m, swapped_fours) < cost(tile, m, n, fours) {
                true => (swapped, true),
                false => (tile, false),
            }
        }
        Machine::Gpu => {
            let large = Tile::Tiled { side: 16, fours: 2 };
            let middle = Tile::Tiled { side: 16, fours: 1 };
            let small = Tile::Tiled { side: 8, fours: 1 };
            // The large tile of 8-byte accumulators would not fit 32 KiB of shared memory.
            let tile = [large, middle]
                .into_iter()
                .find(|&tile| tile.cubes(batch, m, n) >= enough && (tile != large || accumulator <= 4))
                .unwrap_or(small);
            (tile, false)
        }
    };
    let blocks = k.div_ceil(BLOCK);
    let cubes = if swap { tile.cubes(batch, n, m) } else { tile.cubes(batch, m, n) };
    let split = (2..=MAX_PARTS).contains(&blocks) && cubes < enough && blocks * batch * m * n <= WORKSPACE;
    Plan { tile, swap, split }
}

/// The tile of `batch` products of `[m, k] x [k, n]` on a software driver.
///
/// Loads cost a driver more than multiply-adds, so the tile is as large as its registers and compile time allow, unless
/// a product with few rows or columns would waste most of it.
fn software_tile([batch, m, k, n]: [usize; 4], fours: Fours) -> Tile {
    let direct = |rows, columns| Tile::Direct { rows, columns };
    let cubes = |tile: Tile| tile.cubes(batch, m, n);
    match (m.min(n), fours) {
        // A unit walks rows of the matrix: few of them, so that they stay in the cache.
        (0..=1, Fours::Steps) if cubes(direct(1, 8)) >= enough_cubes(Machine::Software) => direct(1, 8),
        (0..=1, Fours::Steps) => direct(1, 4),
        // A vector's product is wide instead: it reads a stretch of each row of the matrix, each of another page.
        (0..=1, Fours::Columns) if cubes(direct(1, 64)) * k.div_ceil(BLOCK) >= 8 => direct(1, 64),
        (0..=1, _) => direct(1, 32),
        (2..=4, _) => direct(4, 8),
        // Twice as wide where that wastes no more columns.
        (_, Fours::Columns) if n.div_ceil(64).is_multiple_of(2) => direct(8, 16),
        _ => direct(16, 8),
    }
}
