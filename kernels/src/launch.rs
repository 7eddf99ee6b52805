//! Launch geometry shared by kernels in which one unit owns one output element.
//!
//! Such a kernel computes the same chain of operations for an element whatever the geometry is, so nothing here can
//! change a result.

use crate::device::Machine;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Units in a cube. 256 is what every supported device offers (SwiftShader has no more).
pub const UNITS: u32 = 256;

/// Cubes along one axis that every supported device accepts.
pub const MAX_CUBES_PER_AXIS: u32 = 65_535;

/// Most loop iterations of one unit in one launch, all its loops together, nested ones counted each time they run.
///
/// Mesa's llvmpipe leaves every loop of an invocation after 65535 iterations in total and reports nothing: a longer
/// chain would silently end early. It counts for the units of a vector together, and one iteration more each time a
/// loop is left or skipped, so a bound has to hold for the longest way through each loop and include those. Every plan
/// stays below this number, on every device, by cutting long chains into launches that continue each other; what is
/// left up to 65535 is for single loops and for those over the axes of a shape.
pub const MAX_ITERATIONS: usize = 60_000;

/// The grid of [`UNITS`]-unit cubes that covers `units` units, one or two axes deep.
///
/// A kernel launched with it must compare `ABSOLUTE_POS` with the number of units it needs: the grid may be larger.
///
/// # Panics
///
/// From 2^32 cubes on.
pub fn grid(units: usize) -> (CubeCount, CubeDim) {
    (cubes(units.div_ceil(UNITS as usize)), CubeDim::new_1d(UNITS))
}

/// Units of a cube that is one core's work: a vector register of most CPUs.
const CORE_UNITS: u32 = 8;

/// The grid of cubes of few units that covers `units` units with much to do each.
///
/// A kernel launched with it must compare `ABSOLUTE_POS` with the number of units it needs: the grid may be larger.
pub(crate) fn core_grid(units: usize) -> (CubeCount, CubeDim) {
    (cubes(units.div_ceil(CORE_UNITS as usize)), CubeDim::new_1d(CORE_UNITS))
}

/// At least `count` cubes, one or two axes deep.
///
/// A kernel launched with it must compare `CUBE_POS` with the number of cubes it needs: there may be more.
///
/// # Panics
///
/// From 2^32 cubes on.
pub fn cubes(count: usize) -> CubeCount {
    let count = u32::try_from(count).expect("a grid of less than 2^32 cubes");
    let x = count.clamp(1, MAX_CUBES_PER_AXIS);
    CubeCount::Static(x, count.div_ceil(x).max(1), 1)
}

/// How many of `shared` elements that differ in one place only a unit computes, so that what they have in common is
/// computed once: as many as leave enough of `units` in all for the device.
pub(crate) fn elements_a_unit(client: &Client, units: usize, shared: usize) -> usize {
    let enough = match Machine::of(client) {
        Machine::Gpu => 1 << 16,
        // 64 cubes keep its threads busy.
        Machine::Software => 1 << 14,
    };
    (units / enough).clamp(1, shared.clamp(1, MAX_ITERATIONS - 1))
}

/// A dense tensor for a kernel to write; one element of memory where it has none, since no device binds less.
pub(crate) fn unwritten(client: &Client, shape: Vec<usize>, dtype: ElemType) -> TensorHandle {
    let elements: usize = shape.iter().product();
    TensorHandle::new_contiguous(shape, client.empty(elements.max(1) * dtype.size()), dtype)
}
