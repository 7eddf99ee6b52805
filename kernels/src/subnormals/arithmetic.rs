//! f32 arithmetic with subnormal numbers, on a device that takes them for zero.
//!
//! Integers decide whether an operand or the result may be subnormal. If none is, the result is the device's. Otherwise:
//!
//! - **`a + b`**, both below `2^-100`: the device adds `a 2^64` and `b 2^64`, which are normal numbers or 0. No sum of
//!   two such numbers is subnormal, and it is rounded where `a + b` is: a sum below `2^-126` is a multiple of `2^-149`, and
//!   exact.
//! - **`a * b`**, the device's product at most `2^-126`, infinite or NaN: the product of the mantissas, 48 bits, rounded once.
//! - **`a < b`** and its like, both below `2^-100`: the order of the signed magnitudes as integers.
//!
//! A multiply-add is a rounded product and a rounded sum ([`Products::Rounded`](crate::arithmetic::Products)).

use crate::arithmetic::multiply_rounded;
use crate::function::constants::{INFINITY, MAGNITUDE, NORMAL, SIGN};
use crate::quotient::{parts, rounded};
use cubecl::prelude::*;

/// The bits of `2^-100`. A subnormal operand does not change a sum with a number from here on.
const SMALL: u32 = 27 << 23;
/// A factor `2^64`, and `2^85`, which is `2^149 / 2^64`, in the exponent's field.
const UP: u32 = 64 << 23;
const TO_INTEGER: u32 = 85 << 23;

/// `a + b`, rounded to nearest.
#[cube]
pub(super) fn added(a: f32, b: f32) -> f32 {
    let scaled = up(u32::reinterpret(a)) + up(u32::reinterpret(b));
    select(both_small(a, b), down(u32::reinterpret(scaled)), a + b)
}

/// `a - b`, rounded to nearest.
#[cube]
pub(super) fn subtracted(a: f32, b: f32) -> f32 {
    added(a, negated(b))
}

/// `a * b`, rounded to nearest.
#[cube]
pub(super) fn multiplied(a: f32, b: f32) -> f32 {
    let mut product = multiply_rounded::<f32>(a, b);
    let (a_bits, b_bits) = (u32::reinterpret(a), u32::reinterpret(b));
    let (a_magnitude, b_magnitude) = (a_bits & MAGNITUDE, b_bits & MAGNITUDE);
    // 0 to 2^-126, and from infinity on; the product of a subnormal number, taken for zero, and infinity is NaN.
    let is_extreme = (u32::reinterpret(product) & MAGNITUDE) - (NORMAL + 1u32) >= INFINITY - (NORMAL + 1u32);
    let is_number = a_magnitude <= INFINITY && b_magnitude <= INFINITY;
    if is_extreme && is_number && a_magnitude != 0u32 && b_magnitude != 0u32 {
        let a = parts(a_magnitude);
        let b = parts(b_magnitude);
        let (a_high, a_low) = (a.mantissa >> 12u32, a.mantissa & 0xfffu32);
        let (b_high, b_low) = (b.mantissa >> 12u32, b.mantissa & 0xfffu32);
        let middle = a_high * b_low + a_low * b_high;
        let low = a_low * b_low + ((middle & 0xfffu32) << 12u32);
        // The mantissas' product is `high * 2^24 + low`, from 2^46 to 2^48; the quotient, its upper 25 bits.
        let high = a_high * b_high + (middle >> 12u32) + (low >> 24u32);
        let low = low & 0x00ff_ffffu32;
        let places = select(high >= 0x0080_0000u32, 23u32, 22u32);
        let upper = (high << (24u32 - places)) | (low >> places);
        let rest = low & ((1u32 << places) - 1u32);
        let exponent = a.exponent + b.exponent + i32::reinterpret(places) - 149i32;
        let bits = rounded(upper, rest != 0u32, exponent);
        let bits = select(max(a_magnitude, b_magnitude) == INFINITY, INFINITY, bits);
        product = f32::reinterpret(bits | ((a_bits ^ b_bits) & SIGN));
    }
    product
}

/// `a * b`, rounded, plus `c`, rounded.
#[cube]
pub(super) fn multiplied_and_added(a: f32, b: f32, c: f32) -> f32 {
    added(multiplied(a, b), c)
}

/// `-a`.
#[cube]
pub(super) fn negated(a: f32) -> f32 {
    f32::reinterpret(u32::reinterpret(a) ^ SIGN)
}

/// `|a|`.
#[cube]
pub(super) fn magnitude(a: f32) -> f32 {
    f32::reinterpret(u32::reinterpret(a) & MAGNITUDE)
}

#[cube]
pub(super) fn less(a: f32, b: f32) -> bool {
    select(both_small(a, b), order(a) < order(b), a < b)
}

#[cube]
pub(super) fn less_or_equal(a: f32, b: f32) -> bool {
    select(both_small(a, b), order(a) <= order(b), a <= b)
}

#[cube]
pub(super) fn greater(a: f32, b: f32) -> bool {
    less(b, a)
}

#[cube]
pub(super) fn greater_or_equal(a: f32, b: f32) -> bool {
    less_or_equal(b, a)
}

#[cube]
pub(super) fn equal(a: f32, b: f32) -> bool {
    select(both_small(a, b), order(a) == order(b), a == b)
}

#[cube]
pub(super) fn not_equal(a: f32, b: f32) -> bool {
    select(both_small(a, b), order(a) != order(b), a != b)
}

/// The smaller one; of two zeros the device's, and of a number and a NaN the number.
#[cube]
pub(super) fn smaller(a: f32, b: f32) -> f32 {
    select(less(a, b), a, select(less(b, a), b, unordered(a, b, min(a, b))))
}

/// The larger one; of two zeros the device's, and of a number and a NaN the number.
#[cube]
pub(super) fn larger(a: f32, b: f32) -> f32 {
    select(less(a, b), b, select(less(b, a), a, unordered(a, b, max(a, b))))
}

/// The extreme of two numbers of which none is less: `of_zeros`, which is the device's, of zeros.
#[cube]
fn unordered(a: f32, b: f32, of_zeros: f32) -> f32 {
    let (a_magnitude, b_magnitude) = (u32::reinterpret(a) & MAGNITUDE, u32::reinterpret(b) & MAGNITUDE);
    let of_equals = select(a_magnitude == 0u32, of_zeros, a);
    select(a_magnitude > INFINITY, b, select(b_magnitude > INFINITY, a, of_equals))
}

/// `a`, and the least normal number with its sign for a subnormal one: it lies between the same integers.
#[cube]
pub(super) fn between_integers(a: f32) -> f32 {
    let bits = u32::reinterpret(a);
    let is_subnormal = (bits & MAGNITUDE) - 1u32 < NORMAL - 1u32;
    f32::reinterpret(select(is_subnormal, NORMAL | (bits & SIGN), bits))
}

#[cube]
pub(super) fn is_not_zero(a: f32) -> bool {
    u32::reinterpret(a) & MAGNITUDE != 0u32
}

#[cube]
fn both_small(a: f32, b: f32) -> bool {
    max(u32::reinterpret(a) & MAGNITUDE, u32::reinterpret(b) & MAGNITUDE) < SMALL
}

/// An integer that orders like a number below `2^-100`; 0 for both zeros.
#[cube]
fn order(a: f32) -> i32 {
    let bits = u32::reinterpret(a);
    let magnitude = i32::reinterpret(bits & MAGNITUDE);
    select(bits & SIGN != 0u32, -magnitude, magnitude)
}

/// A number below `2^-100`, times `2^64`.
#[cube]
fn up(bits: u32) -> f32 {
    let magnitude = bits & MAGNITUDE;
    // A subnormal number is its bits times 2^-149.
    let float = u32::reinterpret(f32::cast_from(i32::reinterpret(magnitude & (NORMAL - 1u32))));
    let scaled = select(magnitude == 0u32, 0u32, float - TO_INTEGER);
    let scaled = select(magnitude < NORMAL, scaled, magnitude + UP);
    f32::reinterpret(scaled | (bits & SIGN))
}

/// A sum of such numbers, times `2^-64`.
#[cube]
fn down(bits: u32) -> f32 {
    let magnitude = bits & MAGNITUDE;
    let integer = i32::cast_from(f32::reinterpret(magnitude + TO_INTEGER));
    let small = select(magnitude == 0u32, 0u32, u32::reinterpret(integer));
    let small = select(magnitude < NORMAL + UP, small, magnitude - UP);
    f32::reinterpret(small | (bits & SIGN))
}
