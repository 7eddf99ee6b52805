//! Launch geometry. Nothing here can change a result: see the contract in [`super`].

use super::BLOCK;
use crate::device::Machine;
use crate::launch::MAX_ITERATIONS;

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
    /// Where it runs.
    pub machine: Machine,
}

/// How one cube holds its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tile {
    /// Registers only: a unit owns `rows x columns` outputs, [`Tile::DIRECT_UNITS`] units side by side.
    Direct {
        /// Rows of a unit.
        rows: u32,
        /// Columns of a unit.
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
    let Problem { batch, m, k, n, accumulator, machine } = problem;
    let enough = enough_cubes(machine);
    let (tile, swap) = match machine {
        Machine::Software => {
            // Loads cost a driver more than multiply-adds, so the tile is as large as its registers and compile
            // time allow; a matrix-vector product would waste most of its rows.
            // A vector's product is wide instead: it reads a stretch of each row of the matrix.
            let (rows, columns) = match m.min(n) {
                0..=1 => (1, 32),
                2..=4 => (4, 8),
                _ => (16, 8),
            };
            let tile = Tile::Direct { rows, columns };
            (tile, tile.cubes(batch, n, m) < tile.cubes(batch, m, n))
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
    let split =
        (2..=MAX_PARTS).contains(&blocks) && tile.cubes(batch, m, n) < enough && blocks * batch * m * n <= WORKSPACE;
    Plan { tile, swap, split }
}
