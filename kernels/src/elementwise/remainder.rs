//! The remainder of floats, by integers: no quotient is rounded.

use crate::arithmetic::held;
use crate::function::constants::{INFINITY, MAGNITUDE, NAN, SIGN};
use cubecl::prelude::*;

/// What is left of `a` by a division by `b` that rounds down: `r = fmod(a, b)`, which is exact, and `r + b`, rounded, where
/// the signs of `r` and `b` differ. A zero has the sign of `b`. NaN where `a` is infinite or `b` is zero.
#[cube]
pub(super) fn remainder(a: f32, b: f32) -> f32 {
    let a_bits = u32::reinterpret(a);
    let b_bits = u32::reinterpret(b);
    let x = a_bits & MAGNITUDE;
    let y = b_bits & MAGNITUDE;
    let exponent = exponent_of(y);
    // Zero has no remainders: the result is another one then.
    let divisor = max(digits_of(y), 1u32);
    let mut places = max(exponent_of(x), exponent) - exponent;
    let mut rest = digits_of(x) % divisor;
    // At most 32 times: digits are below 2^24, so 8 more fit into a word.
    while places > 0u32 {
        let step = min(places, 8u32);
        rest = (rest << step) % divisor;
        places -= step;
    }
    let exact = select(x < y, x, float_of(rest, exponent));
    let differ = (a_bits ^ b_bits) >= SIGN;
    let sum = u32::reinterpret(held(f32::reinterpret(y) - f32::reinterpret(exact)));
    let magnitude = select(differ && exact != 0u32, sum, exact);
    let undefined = x >= INFINITY || y > INFINITY || y == 0u32;
    f32::reinterpret(select(undefined, NAN, magnitude | (b_bits & SIGN)))
}

/// The exponent of a magnitude, of which subnormal numbers have the smallest: `digits 2^(exponent - 150)`.
#[cube]
fn exponent_of(magnitude: u32) -> u32 {
    max(magnitude >> 23u32, 1u32)
}

/// The digits of a magnitude, an integer below 2^24.
#[cube]
fn digits_of(magnitude: u32) -> u32 {
    let fraction = magnitude & 0x007f_ffffu32;
    select(magnitude < 0x0080_0000u32, fraction, fraction | 0x0080_0000u32)
}

/// The bits of `digits 2^(exponent - 150)`.
#[cube]
fn float_of(digits: u32, exponent: u32) -> u32 {
    // The exponent of the digits themselves tells how far the highest is from place 23.
    let highest = u32::reinterpret(f32::cast_from(i32::reinterpret(digits))) >> 23u32;
    let places = min(min(150u32 - highest, exponent - 1u32), 23u32);
    // The highest digit of a normal number adds one to the exponent; a subnormal number has exponent 1 and no such digit.
    let bits = (digits << places) + ((exponent - places - 1u32) << 23u32);
    select(digits == 0u32, 0u32, bits)
}
