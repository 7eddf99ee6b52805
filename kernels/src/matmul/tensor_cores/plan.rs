//! Which tiles a product has; every plan gives the same bits.

use super::super::plan::{MAX_PARTS, MAX_TILES, Problem, WORKSPACE};
use crate::order::BLOCK;

/// Units of a warp.
pub(super) const WARP: u32 = 32;

/// Bytes of a vector of elements, which a unit reads and stages at once.
pub(crate) const VECTOR: u32 = 16;

/// The outputs of a cube.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Warps along the rows and along the columns.
    pub warps: [u32; 2],
    /// Fragments of 16 x 16 outputs of a warp along the rows and along the columns.
    pub fragments: [u32; 2],
}

impl Tile {
    /// Rows and columns of a fragment.
    pub(super) const SIDE: u32 = 16;

    /// Copies of the staged steps: one is multiplied while the next is written.
    pub(super) const STAGES: u32 = 2;

    /// 128 x 128 outputs of 8 warps, 64 x 32 each.
    pub const LARGE: Self = Self { warps: [2, 4], fragments: [4, 2] };

    /// 64 x 128 outputs of 4 warps, 64 x 32 each: for few rows.
    pub const WIDE: Self = Self { warps: [1, 4], fragments: [4, 2] };

    /// 64 x 64 outputs of 4 warps, 32 x 32 each.
    pub const SMALL: Self = Self { warps: [2, 2], fragments: [2, 2] };

    /// Every tile, the larger ones first.
    pub const ALL: [Self; 3] = [Self::LARGE, Self::WIDE, Self::SMALL];

    /// Rows and columns.
    pub const fn sides(self) -> [u32; 2] {
        let Self { warps, fragments } = self;
        [warps[0] * fragments[0] * Self::SIDE, warps[1] * fragments[1] * Self::SIDE]
    }

    /// Units of a cube.
    pub const fn units(self) -> u32 {
        self.warps[0] * self.warps[1] * WARP
    }

    /// Tiles that cover the outputs.
    pub(crate) fn count(self, problem: &Problem) -> usize {
        let [rows, columns] = self.sides().map(|side| side as usize);
        problem.batch * problem.m.div_ceil(rows) * problem.n.div_ceil(columns)
    }

    /// The tile for `problem`, whose outputs have `parts` each: the largest one of which there are enough, and which covers at most a
    /// third more outputs than the small one.
    pub(crate) fn of(problem: &Problem, parts: usize) -> Self {
        let covered =
            |tile: Self| tile.count(problem) * tile.sides().map(|side| side as usize).iter().product::<usize>();
        let fits =
            |tile: &Self| parts * tile.count(problem) >= ENOUGH && 3 * covered(*tile) <= 4 * covered(Self::SMALL);
        Self::ALL.into_iter().find(fits).unwrap_or(Self::SMALL)
    }

    /// Bytes of shared memory at most: the stages of both operands, the longer of their two layouts, a fragment of f32 of each warp, and
    /// a place for each step of a block where an operand is gathered.
    pub(crate) fn shared_bytes(self, gathered: bool) -> usize {
        let places = if gathered { BLOCK * size_of::<u32>() } else { 0 };
        let stage = |side: u32| {
            let of = |along_k| Stage { side, units: self.units(), along_k, bytes: 2 };
            of(false).elements().max(of(true).elements()) * 2 * Self::STAGES
        };
        let staged = self.sides().map(stage).iter().sum::<u32>() + self.units() / WARP * Self::SIDE * Self::SIDE * 4;
        staged as usize + places
    }
}

/// How an operand's next steps are staged: for each of `side` places across the tile, 64 bytes of neighbouring steps (`along_k`), or
/// else for each step all places. Sixteen bytes more keep neighbouring lines off each other's shared-memory banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stage {
    /// Places across the tile.
    pub side: u32,
    /// Units that stage them.
    pub units: u32,
    /// Whether neighbours in memory are steps.
    pub along_k: bool,
    /// Bytes of an element: 2 or 4.
    pub bytes: u32,
}

impl Stage {
    /// Elements of a vector.
    pub const fn vector(self) -> u32 {
        VECTOR / self.bytes
    }

    /// Steps staged at a time.
    pub const fn depth(self) -> u32 {
        Self::depth_of(self.bytes)
    }

    /// The same, of elements of so many bytes.
    pub const fn depth_of(bytes: u32) -> u32 {
        64 / bytes
    }

    /// Steps of a fragment.
    pub const fn steps(self) -> u32 {
        32 / self.bytes
    }

    /// Elements from line to line.
    pub const fn pitch(self) -> u32 {
        self.vector() + if self.along_k { self.depth() } else { self.side }
    }

    /// Elements.
    pub const fn elements(self) -> u32 {
        self.pitch() * if self.along_k { self.side } else { self.depth() }
    }

    /// Vectors.
    pub const fn vectors(self) -> u32 {
        self.elements() / self.vector()
    }

    /// Vectors of each unit.
    pub const fn vectors_of_unit(self) -> u32 {
        self.side * self.depth() / self.vector() / self.units
    }
}

/// How a product is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The outputs of a cube.
    pub tile: Tile,
    /// Whether each block of `k` gets cubes of its own, and a second kernel adds their results.
    pub split: bool,
}

impl Plan {
    /// Every plan that applies to `problem`.
    pub fn candidates(problem: &Problem) -> Vec<Self> {
        Tile::ALL
            .into_iter()
            .flat_map(|tile| [false, true].map(|split| Self { tile, split }))
            .filter(|plan| plan.refuses(problem).is_none())
            .collect()
    }

    /// Why this plan does not apply to `problem`, if it does not.
    pub fn refuses(&self, problem: &Problem) -> Option<String> {
        let blocks = problem.blocks();
        let wanted = if !Tile::ALL.contains(&self.tile) {
            "a known tile".to_string()
        } else if self.split && !(2..=MAX_PARTS).contains(&blocks) {
            format!("2 to {MAX_PARTS} blocks to split")
        } else if self.parts(problem).saturating_mul(problem.outputs()) > u32::MAX as usize {
            "fewer than 2^32 sums of blocks".to_string()
        } else if self.tiles(problem) > MAX_TILES {
            format!("at most {MAX_TILES} tiles")
        } else {
            return None;
        };
        Some(format!("{self:?} for {problem:?}, want {wanted}"))
    }

    /// Sums that an output has before they are added.
    pub(super) fn parts(&self, problem: &Problem) -> usize {
        if self.split { problem.blocks() } else { 1 }
    }

    /// Tiles of the launch, a cube each.
    pub(super) fn tiles(&self, problem: &Problem) -> usize {
        self.parts(problem) * self.tile.count(problem)
    }
}

/// Cubes that keep a GPU busy.
pub(crate) const ENOUGH: usize = 128;

/// The plan for `problem`. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem) -> Plan {
    let blocks = problem.blocks();
    let is_small = Tile::of(problem, 1).count(problem) < ENOUGH && blocks * problem.outputs() <= WORKSPACE;
    let split = is_small && (2..=MAX_PARTS).contains(&blocks);
    Plan { tile: Tile::of(problem, if split { blocks } else { 1 }), split }
}
