//! Launch geometry shared by kernels in which one unit owns one output element.
//!
//! Such a kernel computes the same chain of operations for an element whatever the geometry is, so nothing here can
//! change a result.

use cubecl::prelude::*;

/// Units in a cube. 256 is what every supported device offers (SwiftShader has no more).
pub const UNITS: u32 = 256;

/// Cubes along one axis that every supported device accepts.
const MAX_CUBES_PER_AXIS: u32 = 65_535;

/// The grid of [`UNITS`]-unit cubes that covers `units` units, one or two axes deep.
///
/// A kernel launched with it must compare `ABSOLUTE_POS` with the number of units it needs: the grid may be larger.
pub fn grid(units: usize) -> (CubeCount, CubeDim) {
    let count = u32::try_from(units.div_ceil(UNITS as usize)).expect("a grid of less than 2^32 cubes");
    (cubes(count), CubeDim::new_1d(UNITS))
}

/// At least `count` cubes, one or two axes deep.
///
/// A kernel launched with it must compare `CUBE_POS` with `count`: the grid may be larger.
pub fn cubes(count: u32) -> CubeCount {
    let x = count.clamp(1, MAX_CUBES_PER_AXIS);
    let y = count.div_ceil(x).max(1);
    CubeCount::Static(x, y, 1)
}
