//! Quotients and square roots of f32: the device's, or correctly rounded on a device whose own are not.
//!
//! Vulkan lets a quotient be 2.5 ULP off, and more where the divisor or its reciprocal is subnormal; a square root is a
//! reciprocal one and a division. The nearest float is unique, so that one which integers find from the device's is that
//! of every exact device. [`known_answer::quotients`](crate::known_answer::quotients) says what a device needs; a kernel
//! whose device is exact is compiled to its instruction alone.
//!
//! # Quotient
//!
//! `|a| = n 2^i` and `|b| = d 2^j` with integers `n` and `d` of 24 bits. With `s = 24`, or 25 where `n < d`, the number
//! `X / d`, `X = n 2^s`, lies in `2^24 .. 2^25`. Wanted is `q`, the integer part of `X / d`, and whether a rest is left:
//! that is the quotient's mantissa with a bit more than a float has, and so, with `i - j - s`, all that rounds it, also to
//! a subnormal number.
//!
//! 1. The device divides floats from 1 to 2 with the mantissas `n` and `d`: no operand and no result is near the ends of
//!    the range. Times `2^s`, cut to `2^24 .. 2^25 - 1`, it is an integer `c`. A unit in the last place of the device's
//!    result are 2 units of `c`, and less beyond a power of two, where the cut is: a result at most [`MAX_ULP`] from the
//!    nearest float has `|c - q| <= 2 MAX_ULP + 2 = 12`.
//! 2. So `p = c - 16` is below `q` by 4 to 28, and `X - p d` is in `0 .. 32 d`, which is below `2^29`. The integers modulo
//!    `2^32` that a device has give it exactly, though neither `X` nor `p d` fits.
//! 3. Five comparisons with `16 d`, `8 d`, .. `d` subtract what goes in, and add it to `p`: this ends with `X - p d` in
//!    `0 .. d`, and so with `p = q`.
//!
//! # Square root
//!
//! `a = m 2^(2 h - 23)` with an integer `m` in `2^23 .. 2^25`. Wanted is `r`, the integer part of the square root of `X = m
//! 2^25`, in `2^24 .. 2^25`; `c` is the device's root of the float `m 2^-23`, times `2^24`, cut and as near to `r` as
//! above. `p = c - 16`, and `X - p^2 < (p + 32)^2 - p^2 = 64 p + 1024`, which is below `2^31`: exact modulo `2^32`. Five
//! comparisons with `(p + k)^2 - p^2 = k (2 p + k)` add `k` = 16, 8, .. 1. The rest is rounded by the lowest bit of `r`: `X`
//! is even, and so is no square of an odd `r`: where that bit is set, the root lies above the middle of two floats.
//!
//! [`MAX_ULP`]: crate::known_answer::MAX_ULP

#![allow(missing_docs, reason = "`#[cube]` makes a module of each public function, without its documentation")]

use crate::dtype::F32;
use cubecl::prelude::*;

/// Which quotients and square roots of f32 a kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quotients {
    /// Those of the device.
    Device,
    /// The nearest floats, which integers find from those of the device.
    Corrected,
}

/// The bits of 1.
const ONE: u32 = 0x3f80_0000;
/// The bits of infinity, and the largest exponent.
const INFINITY: u32 = 0x7f80_0000;
/// The bits of the NaN that is given.
const NAN: u32 = 0x7fc0_0000;
/// The bits but for the sign.
const MAGNITUDE: u32 = 0x7fff_ffff;

/// `a / b`; `quotients` is of f32 alone.
#[cube]
pub fn divide<F: Numeric>(a: F, b: F, #[comptime] quotients: Quotients) -> F {
    let elem = elem_type_of::<F>();
    if comptime!(elem == F32 && quotients == Quotients::Corrected) {
        F::cast_from(corrected_quotient(f32::cast_from(a), f32::cast_from(b), 0i32))
    } else {
        a / b
    }
}

/// The square root of `a`.
#[cube]
pub fn sqrt(a: f32, #[comptime] quotients: Quotients) -> f32 {
    if comptime!(quotients == Quotients::Corrected) { corrected_root(a, 0i32) } else { a.sqrt() }
}

/// A positive finite number: `mantissa * 2^(exponent - 150)`, the mantissa of 24 bits.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) mantissa: u32,
    pub(crate) exponent: i32,
}

#[cube]
pub(crate) fn parts(magnitude: u32) -> Parts {
    let fraction = magnitude & 0x007f_ffffu32;
    let normal = magnitude >= 0x0080_0000u32;
    let places = (fraction | 1u32).leading_zeros() - 8u32;
    Parts {
        mantissa: select(normal, fraction | 0x0080_0000u32, fraction << places),
        exponent: i32::reinterpret(select(normal, magnitude >> 23u32, 1u32 - places)),
    }
}

/// The float from 1 to 2 with a mantissa.
#[cube]
fn significand(mantissa: u32) -> u32 {
    (mantissa & 0x007f_ffffu32) | ONE
}

/// The integer of a positive float, times `2^places`, cut to 25 bits; less 16.
#[cube]
fn below(near: f32, places: u32, #[comptime] off: i32) -> u32 {
    let bits = u32::reinterpret(near) + comptime!(off.cast_unsigned()) + (places << 23u32);
    let whole = u32::reinterpret(i32::cast_from(f32::reinterpret(bits)));
    let whole = select(whole < 0x0100_0000u32, 0x0100_0000u32, whole);
    select(whole > 0x01ff_ffffu32, 0x01ff_ffffu32, whole) - 16u32
}

/// The float nearest to `a / b`, ties to even; NaN is `0x7fc0_0000`.
///
/// `off`, in ULP, is added to what the device divides: 0, but for tests.
#[cube]
pub fn corrected_quotient(a: f32, b: f32, #[comptime] off: i32) -> f32 {
    let (a_bits, b_bits) = (u32::reinterpret(a), u32::reinterpret(b));
    let (a_magnitude, b_magnitude) = (a_bits & MAGNITUDE, b_bits & MAGNITUDE);
    let n = parts(a_magnitude);
    let d = parts(b_magnitude);
    let places = select(n.mantissa < d.mantissa, 25u32, 24u32);

    let near = f32::reinterpret(significand(n.mantissa)) / f32::reinterpret(significand(d.mantissa));
    let mut quotient = below(near, places, off);
    let mut rest = (n.mantissa << places) - quotient * d.mantissa;
    #[unroll]
    for i in 0..5u32 {
        let step = comptime!(16u32 >> i);
        let part = d.mantissa << comptime!(4 - i);
        let enough = rest >= part;
        rest = select(enough, rest - part, rest);
        quotient = select(enough, quotient + step, quotient);
    }

    let exponent = n.exponent - d.exponent + 151i32 - i32::reinterpret(places);
    let bits = rounded(quotient, rest != 0u32, exponent);
    let bits = select(a_magnitude == 0u32 || b_magnitude == INFINITY, 0u32, bits);
    let bits = select(a_magnitude == INFINITY || b_magnitude == 0u32, INFINITY, bits);
    let bits = bits | ((a_bits ^ b_bits) & 0x8000_0000u32);
    let not_a_number = a_magnitude > INFINITY
        || b_magnitude > INFINITY
        || (a_magnitude == INFINITY && b_magnitude == INFINITY)
        || (a_magnitude == 0u32 && b_magnitude == 0u32);
    f32::reinterpret(select(not_a_number, NAN, bits))
}

/// The bits of the float nearest to `quotient * 2^(exponent - 151)`, and a little more where a rest is left.
#[cube]
pub(crate) fn rounded(quotient: u32, rest: bool, exponent: i32) -> u32 {
    // A subnormal number has fewer bits. From 25 on, nothing is left.
    let subnormal = exponent < 1i32;
    let lost = select(subnormal, select(exponent < -24i32, 25i32, 1i32 - exponent), 0i32);
    let lost = u32::reinterpret(lost);
    let kept = quotient >> (lost + 1u32);
    let left = quotient - (kept << (lost + 1u32));
    let half = 1u32 << lost;
    let up = left > half || (left == half && (rest || kept & 1u32 != 0u32));
    let field = select(subnormal, 0u32, u32::reinterpret(exponent - 1i32) << 23u32);
    let bits = field + kept + select(up, 1u32, 0u32);
    select(exponent > 254i32, INFINITY, bits)
}

/// The float nearest to the square root of `a`; NaN is `0x7fc0_0000`. `off` is as for [`corrected_quotient`].
#[cube]
pub fn corrected_root(a: f32, #[comptime] off: i32) -> f32 {
    let bits = u32::reinterpret(a);
    let x = parts(bits & MAGNITUDE);
    // 2 h + 276: positive.
    let exponent = u32::reinterpret(x.exponent + 149i32);
    let odd = exponent & 1u32;

    let near = f32::reinterpret(significand(x.mantissa) + (odd << 23u32)).sqrt();
    let mut root = below(near, 24u32, off);
    let mut rest = (x.mantissa << (25u32 + odd)) - root * root;
    #[unroll]
    for i in 0..5u32 {
        let step = comptime!(16u32 >> i);
        let part = (root << comptime!(5 - i)) + comptime!(step * step);
        let enough = rest >= part;
        rest = select(enough, rest - part, rest);
        root = select(enough, root + step, root);
    }

    let root = (((exponent >> 1u32) - 12u32) << 23u32) + (root >> 1u32) + (root & 1u32);
    let end = select(bits == INFINITY || bits & MAGNITUDE == 0u32, bits, NAN);
    // Positive, finite, and not 0.
    f32::reinterpret(select(bits - 1u32 < 0x7f7f_ffffu32, root, end))
}
