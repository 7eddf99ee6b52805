//! Launch geometry: which tile of results one unit owns. No choice here can change a result.

use super::shape::Geometry;
use crate::grid::{MAX_ITERATIONS, cubes};
use cubecl::prelude::*;
use std::ops::Range;

/// Units in a cube: few enough that a small layer still spreads over the cores of a software driver.
pub(super) const UNITS: u32 = 64;

/// The tile of results one unit computes: its loads serve `rows * columns` multiply-adds a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Output channels of the tile (channels of the side that is computed).
    pub rows: usize,
    /// Batch entries of the tile; input channels in a weight gradient.
    pub columns: usize,
}

impl Plan {
    /// Every tile a plan may choose.
    pub const ALL: [Self; 11] = [
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

    /// The tile for `lanes` independent problems of `rows` by `columns` results, whose innermost loop takes `steps`.
    fn filling(rows: usize, columns: usize, steps: usize, lanes: usize) -> Self {
        let plan = Self {
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
        };
        let fills = |tile: Self| lanes * rows.div_ceil(tile.rows) * columns.div_ceil(tile.columns) >= WIDE_TILES;
        // Where a tap has one channel, what it costs to find its place counts more than the loads.
        let long = Self { rows: 1, columns: 8 };
        if plan.rows == 1 && columns > 4 && fills(long) {
            return long;
        }
        // 64 accumulators pay where the loop over channels is long enough to hide the tile's own cost, and where there
        // are enough tiles left for the device.
        let wide = Self { rows: 8, columns: 8 };
        match rows > 4 && columns > 4 && steps >= WIDE_STEPS && fills(wide) {
            true => wide,
            false => plan,
        }
    }
}

/// Steps of the innermost loop from which the widest tile is faster.
const WIDE_STEPS: usize = 8;

/// Tiles from which a wider tile still fills a device.
const WIDE_TILES: usize = 512;

/// The tile of a forward pass.
pub fn forward(geometry: &Geometry) -> Plan {
    let positions = geometry.axes.iter().map(|axis| axis.output).product::<usize>();
    Plan::filling(geometry.outputs, geometry.batch, geometry.inputs, positions * geometry.groups)
}

/// The tile of an input gradient or a transposed forward pass.
pub fn input_gradient(geometry: &Geometry) -> Plan {
    let positions = geometry.axes.iter().map(|axis| axis.input).product::<usize>();
    Plan::filling(geometry.inputs, geometry.batch, geometry.outputs, positions * geometry.groups)
}

/// The tile of a weight gradient.
pub fn weight_gradient(geometry: &Geometry) -> Plan {
    let taps = geometry.axes.iter().map(|axis| axis.taps).product::<usize>();
    let lanes = geometry.blocks() * geometry.groups * taps;
    Plan::filling(geometry.outputs, geometry.inputs, geometry.block(), lanes)
}

/// The taps and the source channels of each launch of a pass between activations, in the order of its chains: all of
/// them in one launch unless that would pass [`MAX_ITERATIONS`].
pub(super) fn spans(taps: usize, channels: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let pieces = |length: usize, most: usize| {
        let piece = move |n: usize| n * most..length.min((n + 1) * most);
        (0..length.div_ceil(most).max(1)).map(piece)
    };
    // A tap is an iteration, one more for each of its channels, and one to leave their loop.
    match MAX_ITERATIONS / (channels + 2) {
        0 => (0..taps).flat_map(|tap| pieces(channels, MAX_ITERATIONS - 2).map(move |c| (tap..tap + 1, c))).collect(),
        most => pieces(taps, most).map(|taps| (taps, 0..channels)).collect(),
    }
}

/// The grid that covers `units` units, or nothing if 32-bit indices cannot count them.
pub(super) fn grid(units: usize) -> Option<(u32, CubeCount, CubeDim)> {
    let units = u32::try_from(units).ok().filter(|&units| units < u32::MAX / 2)?;
    Some((units, cubes(units.div_ceil(UNITS) as usize), CubeDim::new_1d(UNITS)))
}

#[cfg(test)]
mod tests {
    use super::{MAX_ITERATIONS, Range, spans};

    #[test]
    fn spans_follow_the_chain_and_stay_below_the_limit() {
        assert_eq!(spans(9, 512), [(0..9, 0..512)]);
        assert_eq!(spans(9, 0), [(0..9, 0..0)]);
        assert_eq!(spans(1, 59_998), [(0..1, 0..59_998)]);
        for (taps, channels) in
            [(1, 60_000), (3, 59_998), (3, 59_999), (3, 70_001), (343, 512), (70_001, 1), (2, 200_000)]
        {
            let spans = spans(taps, channels);
            let within = |span: &(Range<usize>, Range<usize>)| span.0.len() * (span.1.len() + 2) <= MAX_ITERATIONS;
            assert!(spans.iter().all(within), "{taps} taps of {channels} channels: {spans:?}");
            let chain = spans.into_iter().flat_map(|(t, c)| t.flat_map(move |tap| c.clone().map(move |c| (tap, c))));
            assert!(chain.eq((0..taps).flat_map(|tap| (0..channels).map(move |c| (tap, c)))), "{taps} {channels}");
        }
    }
}
