//! The device side.

use crate::arithmetic::{multiply_add, multiply_rounded};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Value `k` of a line of `real` and `imaginary`, `[outer, length, inner]`: +0 from `length` on; `mirrored`, the conjugate of
/// value `n - k` in the second half.
#[cube]
pub(super) fn value_of<E: Float, A: Float>(
    real: &[E],
    imaginary: &[E],
    line: u32,
    k: u32,
    length: u32,
    inner: u32,
    n: u32,
    #[comptime] mirrored: bool,
) -> (A, A) {
    let outer = line / inner;
    let within = line - outer * inner;
    let first_half = k <= n / 2;
    let place = if comptime!(mirrored) { if first_half { k } else { n - k } } else { k };
    let mut re = A::new(0.0);
    let mut im = A::new(0.0);
    if place < length {
        let at = ((outer * length + place) * inner + within) as usize;
        re = A::cast_from(real[at]);
        if comptime!(mirrored) {
            im = A::cast_from(imaginary[at]);
            if !first_half {
                im = -im;
            }
        }
    }
    (re, im)
}

/// `a + w b` and `a - w b`, real and imaginary parts, of the root of unity `w` with this cosine and sine.
#[cube]
pub(super) fn butterfly<A: Float>(
    a: (A, A),
    b: (A, A),
    cosine: A,
    sine: A,
    #[comptime] inverse: bool,
) -> ((A, A), (A, A)) {
    let sine = if comptime!(inverse) { sine } else { -sine };
    let t_re = multiply_add::<A>(-sine, b.1, multiply_rounded::<A>(cosine, b.0));
    let t_im = multiply_add::<A>(sine, b.0, multiply_rounded::<A>(cosine, b.1));
    ((a.0 + t_re, a.1 + t_im), (a.0 - t_re, a.1 - t_im))
}

/// One unit an element of `to_real` and `to_imaginary`, `[lines, n]`: value `k` of its line of `real` and `imaginary`,
/// `[outer, length, inner]`, +0 from `length` on; `mirrored`, the conjugate of value `n - k` in the second half.
#[cube(launch_unchecked)]
pub fn spread<E: Float, A: Float>(
    real: &[E],
    imaginary: &[E],
    to_real: &mut [A],
    to_imaginary: &mut [A],
    length: u32,
    inner: u32,
    n: u32,
    units: u32,
    #[comptime] mirrored: bool,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let line = unit / n;
    let k = unit - line * n;
    let (re, im) = value_of::<E, A>(real, imaginary, line, k, length, inner, n, mirrored);
    to_real[unit as usize] = re;
    to_imaginary[unit as usize] = im;
    keep_subnormals();
}

/// One unit a butterfly: two values each of `real`, `imaginary` and of `to_real`, `to_imaginary`, all `[lines, n]`.
/// `twiddles[n / 2, 2]` has cosines and sines.
#[cube(launch_unchecked)]
pub fn combine<A: Float>(
    real: &[A],
    imaginary: &[A],
    twiddles: &[A],
    to_real: &mut [A],
    to_imaginary: &mut [A],
    m: u32,
    n: u32,
    units: u32,
    #[comptime] inverse: bool,
    #[define(A)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let half = n / 2;
    let line = unit / half;
    let pair = unit - line * half;
    let q = pair / m;
    let j = pair - q * m;
    let base = line * n;
    let a = (base + pair) as usize;
    let b = (base + half + pair) as usize;
    let turn = (j * (half / m) * 2) as usize;
    let (first, second) =
        butterfly::<A>((real[a], imaginary[a]), (real[b], imaginary[b]), twiddles[turn], twiddles[turn + 1], inverse);
    let to = (base + q * 2 * m + j) as usize;
    let beyond = to + m as usize;
    to_real[to] = first.0;
    to_imaginary[to] = first.1;
    to_real[beyond] = second.0;
    to_imaginary[beyond] = second.1;
    keep_subnormals();
}

/// One unit an element of `output[outer, length, inner]`: value `k` of its line in `lines[outer * inner, n]`,
/// multiplied by a power of two.
#[cube(launch_unchecked)]
pub fn collect<O: Float, A: Float>(
    lines: &[A],
    output: &mut [O],
    length: u32,
    inner: u32,
    n: u32,
    factor: f32,
    units: u32,
    #[define(O, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let row = unit / inner;
    let within = unit - row * inner;
    let outer = row / length;
    let k = row - outer * length;
    let line = outer * inner + within;
    let value = multiply_rounded::<A>(lines[(line * n + k) as usize], A::cast_from(factor));
    output[unit as usize] = O::cast_from(value);
    keep_subnormals();
}
