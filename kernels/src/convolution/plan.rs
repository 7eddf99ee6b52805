//! Launch geometry: which tile of results one unit owns. No choice here can change a result.

use super::shape::Geometry;
use cubecl::prelude::*;

/// Units in a cube: few enough that a small layer still spreads over the cores of a software driver.
const UNITS: u32 = 64;

/// Cubes along one axis that every supported device accepts.
const MAX_CUBES_PER_AXIS: u32 = 65_535;

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
    pub const ALL: [Self; 7] = [
        Self { rows: 8, columns: 8 },
        Self { rows: 8, columns: 4 },
        Self { rows: 8, columns: 1 },
        Self { rows: 4, columns: 4 },
        Self { rows: 4, columns: 1 },
        Self { rows: 1, columns: 4 },
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
                0..=2 => 1,
                _ => 4,
            },
        };
        // 64 accumulators pay where the loop over channels is long enough to hide the tile's own cost, and where there
        // are enough tiles left for the device.
        let wide = Self { rows: 8, columns: 8 };
        let tiles = lanes * rows.div_ceil(wide.rows) * columns.div_ceil(wide.columns);
        match rows > 4 && columns > 4 && steps >= WIDE_STEPS && tiles >= WIDE_TILES {
            true => wide,
            false => plan,
        }
    }
}

/// Steps of the innermost loop from which the widest tile is faster.
const WIDE_STEPS: usize = 8;

/// Tiles from which the widest tile still fills a device.
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

/// The grid that covers `units` units, or nothing if 32-bit indices cannot count them.
pub(super) fn grid(units: usize) -> Option<(u32, CubeCount, CubeDim)> {
    let units = u32::try_from(units).ok().filter(|&units| units < u32::MAX / 2)?;
    let cubes = units.div_ceil(UNITS);
    let x = cubes.clamp(1, MAX_CUBES_PER_AXIS);
    Some((units, CubeCount::Static(x, cubes.div_ceil(x).max(1), 1), CubeDim::new_1d(UNITS)))
}
