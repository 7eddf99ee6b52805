//! How a pass is launched; every plan gives the same bits.

use super::super::plan::{MAX_SPAN, Pass, Problem, TILED_SCRATCH};
use super::product::{copied, products};
use crate::matmul::plan as matmul;
use crate::matmul::tensor_cores::plan::{ENOUGH, Tile, VECTOR};
use cubecl::ir::ElemType;

/// How the products of a pass are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// The outputs of a cube; the tile for each product's size if there is none.
    pub tile: Option<Tile>,
    /// Blocks that are computed side by side, before a second kernel adds them; 1 where each launch continues the sums of the one
    /// before, as in an input gradient with a stride.
    pub span: usize,
    /// Samples whose source is copied at a time: of a weight gradient, all.
    pub samples: usize,
}

/// A copy has fewer elements, so that 32-bit indices reach all.
pub(super) const MAX_COPIED: usize = u32::MAX as usize / 2;

impl Plan {
    /// Plans that apply: every tile, with blocks one after the other, two side by side and all, for all samples at once and each by
    /// itself.
    pub fn candidates(problem: &Problem, dtype: ElemType) -> Vec<Self> {
        let blocks = blocks(&sizes(problem, dtype, problem.geometry.batch));
        let [mut spans, mut runs] = [vec![1, 2, blocks], vec![1, problem.geometry.batch]];
        spans.sort();
        spans.dedup();
        runs.dedup();
        let tiles = [None].into_iter().chain(Tile::ALL.map(Some));
        let spans = tiles.flat_map(|tile| spans.iter().map(move |&span| (tile, span)));
        let plans = spans.flat_map(|(tile, span)| runs.iter().map(move |&samples| Self { tile, span, samples }));
        plans.filter(|plan| plan.refuses(problem, dtype).is_none()).collect()
    }

    /// The tile of a product.
    pub(super) fn tile_of(&self, size: &matmul::Problem) -> Tile {
        self.tile.unwrap_or_else(|| Tile::of(size, self.span))
    }

    /// Why this plan does not apply to `problem`, of elements of this type, if it does not.
    pub fn refuses(&self, problem: &Problem, dtype: ElemType) -> Option<String> {
        let batch = problem.geometry.batch;
        let fewest = if problem.pass == Pass::ToWeight { batch } else { 1 };
        let sizes = sizes(problem, dtype, self.samples.min(batch));
        let blocks = blocks(&sizes).min(MAX_SPAN);
        let sums = problem.results().saturating_mul(self.span + usize::from(self.span > 1));
        let tiles = |size: &matmul::Problem| self.span.saturating_mul(self.tile_of(size).count(size));
        let wanted = if self.tile.is_some_and(|tile| !Tile::ALL.contains(&tile)) {
            "a known tile".to_string()
        } else if !(fewest..=batch).contains(&self.samples) {
            format!("{fewest} to {batch} samples at a time")
        } else if copied(problem, self.samples, VECTOR as usize / dtype.size())
            .is_none_or(|elements| elements >= MAX_COPIED)
        {
            format!("samples whose copy has less than {MAX_COPIED} elements")
        } else if !(1..=blocks).contains(&self.span) {
            format!("a span of 1 to {blocks} blocks")
        } else if self.span > 1 && sizes.len() > 1 {
            "a span of 1 block, in an input gradient of several phases".to_string()
        } else if self.span > 1 && sums >= MAX_COPIED {
            "a smaller span: fewer than 2^31 sums of blocks".to_string()
        } else if sizes.iter().any(|size| tiles(size) > matmul::MAX_TILES) {
            format!("at most {} tiles", matmul::MAX_TILES)
        } else {
            return None;
        };
        Some(format!("{self:?} for {problem:?}, want {wanted}"))
    }
}

/// Sizes of the products of so many samples.
fn sizes(problem: &Problem, dtype: ElemType, samples: usize) -> Vec<matmul::Problem> {
    products(problem, 0..samples, VECTOR as usize / dtype.size()).into_iter().map(|product| product.size).collect()
}

/// Blocks of the longest chains. Empty ones have an empty block.
pub(super) fn blocks(sizes: &[matmul::Problem]) -> usize {
    sizes.iter().map(matmul::Problem::blocks).max().unwrap_or(1).max(1)
}

/// The plan for `problem`, of elements of this type. It [applies](Plan::refuses), unless no plan does.
pub fn plan(problem: &Problem, dtype: ElemType) -> Plan {
    let batch = problem.geometry.batch;
    let samples = match copied(problem, 1, VECTOR as usize / dtype.size()) {
        Some(elements) if problem.pass != Pass::ToWeight => ((MAX_COPIED - 1) / elements.max(1)).clamp(1, batch.max(1)),
        _ => batch,
    };
    let sizes = sizes(problem, dtype, samples.min(batch));
    let span = match &sizes[..] {
        [size] if samples == batch && Tile::of(size, 1).count(size) < ENOUGH => {
            let room = (TILED_SCRATCH / problem.results().max(1)).saturating_sub(1);
            room.clamp(1, size.blocks().clamp(1, MAX_SPAN))
        }
        _ => 1,
    };
    Plan { tile: None, span, samples }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::Products;
    use crate::convolution::{ConvolutionParams, Geometry};
    use cubecl::ir::FloatKind;

    /// Layers of residual networks, of few samples and of many.
    #[test]
    fn chosen_plans_apply() {
        for (batch, channels, image, stride) in
            [(1, 64, 56, 1), (32, 512, 7, 1), (256, 64, 56, 1), (256, 512, 7, 1), (1024, 128, 28, 2), (4096, 64, 14, 1)]
        {
            let params = ConvolutionParams { stride: [stride; 2], padding: [(1, 1); 2], dilation: [1; 2], groups: 1 };
            let (input, weight) = ([batch, channels, image, image], [channels, channels, 3, 3]);
            let geometry = Geometry::new("test", &input, &weight, &params).expect("they fit");
            for pass in [Pass::ToOutput, Pass::ToInput, Pass::ToWeight] {
                let problem = Problem { pass, rank: 2, geometry, products: Products::Native };
                for dtype in [FloatKind::F16, FloatKind::F32].map(ElemType::Float) {
                    assert_eq!(plan(&problem, dtype).refuses(&problem, dtype), None);
                }
            }
        }
    }
}
