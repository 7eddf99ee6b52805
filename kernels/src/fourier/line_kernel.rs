//! The device side of transforms in shared memory.

use super::kernel::{butterfly, value_of};
use crate::arithmetic::multiply_rounded;
use crate::grid::UNITS;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// What [`transform`] is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineVariant {
    /// Values of a transform: a power of two, at least 2.
    pub n: u32,
    /// Lines of a cube: `lines * n / 2` is a multiple of the units.
    pub lines: u32,
    /// From frequency to time.
    pub inverse: bool,
}

/// The transforms of whole lines, [`UNITS`] units a cube: what [`spread`](super::kernel::spread),
/// [`combine`](super::kernel::combine) for each stage and [`collect`](super::kernel::collect) compute.
///
/// Operands are `[outer, length, inner]`, results `[outer, to_length, inner]`; an inverse transform writes the real part only.
/// A unit reads its butterflies of a stage, and writes them once all units have read theirs.
#[cube(launch_unchecked)]
pub fn transform<E: Float, A: Float>(
    real: &[E],
    imaginary: &[E],
    twiddles: &[A],
    to_real: &mut [E],
    to_imaginary: &mut [E],
    length: u32,
    to_length: u32,
    inner: u32,
    all_lines: u32,
    factor: f32,
    cubes: u32,
    #[comptime] variant: LineVariant,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    if CUBE_POS as u32 >= cubes {
        terminate!();
    }
    let LineVariant { n, lines, inverse } = comptime!(variant);
    let half = comptime!(n / 2);
    let butterflies = comptime!(lines * half / UNITS);
    let first_line = CUBE_POS as u32 * lines;
    let mut re = Shared::<[A]>::new_slice(comptime!((lines * n) as usize));
    let mut im = Shared::<[A]>::new_slice(comptime!((lines * n) as usize));
    #[unroll]
    for f in 0..comptime!(2 * butterflies) {
        let at = f * UNITS + UNIT_POS;
        // A line beyond the last one repeats that, and is not stored.
        let line = min(first_line + at / n, all_lines - 1);
        let (x, y) = value_of::<E, A>(real, imaginary, line, at % n, length, inner, n, inverse);
        re[at as usize] = x;
        im[at as usize] = y;
    }
    sync_cube();

    let mut values = Array::<A>::new(comptime!((4 * butterflies) as usize));
    #[unroll]
    for stage in 0..comptime!(n.ilog2()) {
        let m = comptime!(1u32 << stage);
        #[unroll]
        for f in 0..butterflies {
            let nth = f * UNITS + UNIT_POS;
            let pair = nth % half;
            let a = nth / half * n + pair;
            let b = a + half;
            let turn = pair % m * comptime!(half / m * 2);
            let (first, second) = butterfly::<A>(
                (re[a as usize], im[a as usize]),
                (re[b as usize], im[b as usize]),
                twiddles[turn as usize],
                twiddles[(turn + 1) as usize],
                inverse,
            );
            values[comptime!((4 * f) as usize)] = first.0;
            values[comptime!((4 * f + 1) as usize)] = first.1;
            values[comptime!((4 * f + 2) as usize)] = second.0;
            values[comptime!((4 * f + 3) as usize)] = second.1;
        }
        sync_cube();
        #[unroll]
        for f in 0..butterflies {
            let nth = f * UNITS + UNIT_POS;
            let pair = nth % half;
            let to = nth / half * n + pair / m * comptime!(2 * m) + pair % m;
            let beyond = to + m;
            re[to as usize] = values[comptime!((4 * f) as usize)];
            im[to as usize] = values[comptime!((4 * f + 1) as usize)];
            re[beyond as usize] = values[comptime!((4 * f + 2) as usize)];
            im[beyond as usize] = values[comptime!((4 * f + 3) as usize)];
        }
        sync_cube();
    }

    let here = min(lines, all_lines - first_line);
    let results = here * to_length;
    for f in 0..results.div_ceil(UNITS) {
        let nth = f * UNITS + UNIT_POS;
        if nth < results {
            let line = nth / to_length;
            let k = nth - line * to_length;
            let outer = (first_line + line) / inner;
            let within = first_line + line - outer * inner;
            let from = (line * n + k) as usize;
            let to = ((outer * to_length + k) * inner + within) as usize;
            to_real[to] = E::cast_from(multiply_rounded::<A>(re[from], A::cast_from(factor)));
            if comptime!(!inverse) {
                to_imaginary[to] = E::cast_from(multiply_rounded::<A>(im[from], A::cast_from(factor)));
            }
        }
    }
    keep_subnormals();
}
