//! How a pass is launched; every plan gives the same bits.

use super::super::plan::{MAX_SPAN, TILED_SCRATCH};
use crate::matmul::plan::{MAX_TILES, Problem};
use crate::matmul::tensor_cores::plan::{ENOUGH, Tile};

/// How the products of a pass are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The outputs of a cube; the tile for each product's size if there is none.
    pub tile: Option<Tile>,
    /// Blocks that are computed side by side, before a second kernel adds them; 1 where each launch continues the sums of the one
    /// before, as in an input gradient with a stride.
    pub span: usize,
}

impl Plan {
    /// Every plan that applies to products of these sizes.
    pub fn candidates(sizes: &[Problem]) -> Vec<Self> {
        let blocks = blocks(sizes);
        let mut spans = vec![1, 2, blocks];
        spans.dedup();
        let tiles = [None].into_iter().chain(Tile::ALL.map(Some));
        let plans = tiles.flat_map(|tile| spans.iter().map(move |&span| Self { tile, span }));
        plans.filter(|plan| plan.refuses(sizes).is_none()).collect()
    }

    /// The tile of a product.
    pub(super) fn tile_of(&self, size: &Problem) -> Tile {
        self.tile.unwrap_or_else(|| Tile::of(size, self.span))
    }

    /// Why this plan does not apply to products of these sizes, if it does not.
    pub fn refuses(&self, sizes: &[Problem]) -> Option<String> {
        let parts = self.span + usize::from(self.span > 1);
        let wanted = if self.tile.is_some_and(|tile| !Tile::ALL.contains(&tile)) {
            "a known tile".to_string()
        } else if !(1..=blocks(sizes).min(MAX_SPAN)).contains(&self.span) {
            "one block to all".to_string()
        } else if self.span > 1 && sizes.len() > 1 {
            "one product to have blocks side by side".to_string()
        } else if sizes.iter().any(|size| parts.saturating_mul(size.outputs()) >= u32::MAX as usize / 2) {
            "fewer than 2^31 sums of blocks".to_string()
        } else if sizes.iter().any(|size| self.span.saturating_mul(self.tile_of(size).count(size)) > MAX_TILES) {
            format!("at most {MAX_TILES} tiles")
        } else {
            return None;
        };
        Some(format!("{self:?} for {sizes:?}, want {wanted}"))
    }
}

/// Blocks of the longest chains. Empty ones have an empty block.
pub(super) fn blocks(sizes: &[Problem]) -> usize {
    sizes.iter().map(Problem::blocks).max().unwrap_or(1).max(1)
}

/// The plan for products of these sizes. It [applies](Plan::refuses), unless no plan does.
pub fn plan(sizes: &[Problem]) -> Plan {
    let span = match sizes {
        [size] if Tile::of(size, 1).count(size) < ENOUGH => {
            let room = (TILED_SCRATCH / size.outputs().max(1)).saturating_sub(1);
            room.clamp(1, size.blocks().clamp(1, MAX_SPAN))
        }
        _ => 1,
    };
    Plan { tile: None, span }
}
