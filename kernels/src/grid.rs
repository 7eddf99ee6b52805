//! Launch grids.
//!
//! In a kernel one unit owns an output element, or a few, and computes the same chain of operations for each on every
//! grid: nothing here can change a result.

use cubecl::prelude::*;

/// Units in a cube. 256 is what every supported device offers (SwiftShader has no more).
pub const UNITS: u32 = 256;

/// Cubes along one axis that every supported device accepts.
pub const MAX_CUBES_PER_AXIS: u32 = 65_535;

/// Most loop iterations of one unit in one launch: the sum over all its loops, each nested loop counted as often as it runs.
///
/// Mesa's llvmpipe ends every loop of a shader invocation after 65535 iterations in total and reports nothing: a longer
/// chain would silently end early. The units of a SIMD vector share one counter, which also counts the test that leaves or
/// skips a loop. So a plan bounds the longest path through each loop, plus one for each time a loop is entered, and every
/// plan, on every device, stays below this number: long chains are cut into launches that continue each other. The rest up
/// to 65535 is for loops that no plan counts, those over the axes of a shape.
pub const MAX_ITERATIONS: usize = 60_000;

/// The grid of [`UNITS`]-unit cubes that covers `units` units, one or two axes deep.
///
/// A kernel launched with it must compare `ABSOLUTE_POS` with the number of units it needs: the grid may be larger. It
/// has at most 2^32 units, so that `ABSOLUTE_POS as u32` numbers each of them once.
///
/// # Panics
///
/// Above 2^32 units.
pub fn grid(units: usize) -> (CubeCount, CubeDim) {
    assert!(units <= 1 << 32, "a grid of {units} units, want at most 2^32");
    (cubes(units.div_ceil(UNITS as usize)), CubeDim::new_1d(UNITS))
}

/// At least `count` cubes `[x, y]`, and at most `y - 1` more.
///
/// A kernel launched with it must compare `CUBE_POS` with the number of cubes it needs. `y` is a power of two, so that
/// the grid has no more cubes than the next power of two from `count` on: where that many cubes have at most 2^32
/// units, no two of them have one 32-bit number.
///
/// # Panics
///
/// Above `2^15 * 65,535` cubes.
pub fn cubes(count: usize) -> CubeCount {
    let [x, y] = axes(count);
    CubeCount::Static(x, y, 1)
}

/// The cubes along the two axes of [`cubes`].
fn axes(count: usize) -> [u32; 2] {
    let count = count.max(1);
    let y = count.div_ceil(MAX_CUBES_PER_AXIS as usize).next_power_of_two();
    assert!(y < MAX_CUBES_PER_AXIS as usize, "a grid of {count} cubes, want at most 2^15 * {MAX_CUBES_PER_AXIS}");
    [count.div_ceil(y) as u32, y as u32]
}

/// A unit's place in `[outer, axis, inner]`.
///
/// A cube covers a box of `2^inner_bits` places along the inner axis, `2^axis_bits` along the axis and `2^outer_bits` along
/// the outer one; the boxes of the cubes along X, Y and Z lie side by side along inner, axis and outer, from the first place
/// of the launch on. So no unit divides to find its place, which software drivers do slowly. The units of a cube are all along
/// X, since some of these drivers vectorise that axis alone.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct UnitPlace {
    inner_bits: u32,
    axis_bits: u32,
    outer_bits: u32,
    first_inner: u32,
    first_axis: u32,
    first_outer: u32,
    outer_extent: u32,
    axis_extent: u32,
    inner_extent: u32,
}

#[cube]
impl UnitPlace {
    /// Whether there is such a place: a grid may cover more.
    pub(crate) fn exists(&self) -> bool {
        self.outer() < self.outer_extent && self.axis() < self.axis_extent && self.inner() < self.inner_extent
    }

    /// Its row-major index in `[outer, axis, inner]`.
    pub(crate) fn index(&self) -> usize {
        ((self.outer() * self.axis_extent + self.axis()) * self.inner_extent + self.inner()) as usize
    }

    /// Its index along the inner axis.
    pub(crate) fn inner(&self) -> u32 {
        self.first_inner + (CUBE_POS_X << self.inner_bits) + (UNIT_POS_X & ((1u32 << self.inner_bits) - 1))
    }

    /// Its index along the axis.
    pub(crate) fn axis(&self) -> u32 {
        let within = (UNIT_POS_X >> self.inner_bits) & ((1u32 << self.axis_bits) - 1);
        self.first_axis + (CUBE_POS_Y << self.axis_bits) + within
    }

    /// Its index along the outer axis.
    pub(crate) fn outer(&self) -> u32 {
        self.first_outer + (CUBE_POS_Z << self.outer_bits) + (UNIT_POS_X >> (self.inner_bits + self.axis_bits))
    }
}

/// The grids of [`UNITS`]-unit cubes that cover `[outer, axis, inner]`, with the [`UnitPlace`] of their units: one grid, unless
/// there are more cubes along an axis than a grid takes.
pub(crate) fn axis_grids(
    outer: usize,
    axis: usize,
    inner: usize,
) -> impl Iterator<Item = (CubeCount, CubeDim, UnitPlaceLaunch)> {
    let bits = |length: usize, most: u32| length.next_power_of_two().ilog2().min(most);
    // Along the inner axis as far as neighbours share a cache line or a warp, then along the others.
    let inner_bits = bits(inner, 5);
    let axis_bits = bits(axis, UNITS.ilog2() - inner_bits);
    let outer_bits = UNITS.ilog2() - inner_bits - axis_bits;
    pieces(outer, outer_bits)
        .flat_map(move |z| pieces(axis, axis_bits).map(move |y| (y, z)))
        .flat_map(move |(y, z)| pieces(inner, inner_bits).map(move |x| (x, y, z)))
        .map(move |(x, y, z)| {
            let [outer, axis, inner] = [outer, axis, inner].map(|extent| extent as u32);
            let unit = UnitPlaceLaunch::new(inner_bits, axis_bits, outer_bits, x.0, y.0, z.0, outer, axis, inner);
            (CubeCount::Static(x.1, y.1, z.1), CubeDim::new_1d(UNITS), unit)
        })
}

/// The pieces of an axis that a grid each covers, by cubes of `2^bits` elements: the first element, and the number of cubes.
fn pieces(length: usize, bits: u32) -> impl Iterator<Item = (u32, u32)> {
    let most = (MAX_CUBES_PER_AXIS as usize) << bits;
    (0..length).step_by(most).map(move |first| (first as u32, (length - first).min(most).div_ceil(1 << bits) as u32))
}

#[cfg(test)]
mod tests {
    use super::{MAX_CUBES_PER_AXIS, axes, pieces};

    #[test]
    fn cubes_exceed_their_count_by_less_than_a_column() {
        assert_eq!([0, 1, 65_535, 65_536].map(axes), [[1, 1], [1, 1], [65_535, 1], [32_768, 2]]);
        for count in (2..=32).flat_map(|bits| [(1usize << bits) - 1, (1 << bits) / 3 * 2, 1 << bits]) {
            if count > (1 << 15) * MAX_CUBES_PER_AXIS as usize {
                continue;
            }
            let [x, y] = axes(count);
            assert!(x <= MAX_CUBES_PER_AXIS && y <= MAX_CUBES_PER_AXIS, "{count}");
            let cubes = x as usize * y as usize;
            assert!((count..count + y as usize).contains(&cubes) && cubes <= count.next_power_of_two(), "{count}");
        }
    }

    #[test]
    fn pieces_cover_an_axis() {
        assert_eq!(pieces(0, 3).count(), 0);
        assert_eq!(pieces(1, 8).collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(pieces(65_535 * 8, 3).collect::<Vec<_>>(), [(0, 65_535)]);
        assert_eq!(pieces(65_535 * 8 + 9, 3).collect::<Vec<_>>(), [(0, 65_535), (65_535 * 8, 2)]);
        let last = pieces(u32::MAX as usize, 5).last().unwrap();
        assert!(u64::from(last.0) + (u64::from(last.1) << 5) >= u64::from(u32::MAX));
    }
}
