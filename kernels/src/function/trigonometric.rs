//! Trigonometric functions, their inverses, and the error function. The functions say in
//! [`reference::trigonometric`](super::reference::trigonometric), which has the same lines in plain Rust, how they
//! compute.

use super::constants::trigonometric::*;
use super::constants::{INFINITY, MAGNITUDE, NAN, NORMAL, ONE, SIGN};
use super::{add, constant, div, flipped, float_of, mul, sub, times, whole_of};
use crate::arithmetic::{horner, multiply_add};
use crate::quotient::{Quotients, sqrt};
use cubecl::prelude::*;

/// Towards zero, below 2^31 in magnitude.
#[cube]
fn truncated(x: f32) -> i32 {
    i32::cast_from(x)
}

/// `x = quarter * pi/2 + r`, `|r| <= pi/4`, a little more by rounding; `r = high + low - tiny = near`, rounded.
#[derive(CubeType, Clone, Copy)]
struct Reduced {
    quarter: u32,
    near: f32,
    high: f32,
    low: f32,
    tiny: f32,
}

#[cube]
fn reduced(magnitude: u32) -> Reduced {
    let x = f32::reinterpret(magnitude);
    let whole = truncated(add(times(x, TWO_OVER_PI), f32::new(0.5f32)));
    let multiple = f32::cast_from(whole);
    let second = sub(sub(x, times(multiple, HALF_PI_1)), times(multiple, HALF_PI_2));
    let third = times(multiple, HALF_PI_3);
    let mut quarter = u32::reinterpret(whole);
    let mut near = sub(second, third);
    let mut high = times(f32::cast_from(truncated(times(near, 2048.0f32))), comptime!(1.0f32 / 2048.0));
    let mut low = sub(sub(second, high), third);
    let mut tiny = times(multiple, HALF_PI_4);
    if magnitude >= LARGE {
        let far = reduced_far(magnitude);
        quarter = far.quarter;
        near = far.near;
        high = far.high;
        low = far.low;
        tiny = far.tiny;
    }
    Reduced { quarter, near, high, low, tiny }
}

#[cube]
fn reduced_far(magnitude: u32) -> Reduced {
    // x = mantissa * 2^(exponent - 158), the bits of 2/pi behind 32 zeros: the window starts at bit exponent - 128.
    let mantissa = magnitude << 8u32 | SIGN;
    let start = (magnitude >> 23u32) - 128u32;
    let two = start & 64u32 != 0u32;
    let one = start & 32u32 != 0u32;
    let a0 = select(two, 0x4e44_1529u32, 0u32);
    let a1 = select(two, 0xfc27_57d1u32, 0xa2f9_836eu32);
    let a2 = select(two, 0xf534_ddc0u32, 0x4e44_1529u32);
    let a3 = select(two, 0xdb62_9599u32, 0xfc27_57d1u32);
    let a4 = select(two, 0x3c43_9041u32, 0xf534_ddc0u32);
    let b0 = select(one, a1, a0);
    let b1 = select(one, a2, a1);
    let b2 = select(one, a3, a2);
    let b3 = select(one, a4, a3);
    let shift = start & 31u32;
    let back = 31u32 - shift;
    let w0 = b0 << shift | (b1 >> 1u32) >> back;
    let w1 = b1 << shift | (b2 >> 1u32) >> back;
    let w2 = b2 << shift | (b3 >> 1u32) >> back;
    // x * 2/pi modulo 4, in units of 2^-30 (first) and 2^-62 (second).
    let part = u32::mul_hi(mantissa, w2);
    let second = mantissa * w1 + part;
    let carry = select(second < part, 1u32, 0u32);
    let first = mantissa * w0 + u32::mul_hi(mantissa, w1) + carry;
    let quarter = (first + 0x2000_0000u32) >> 30u32;
    // The fraction, between -1/2 and 1/2, as a sign and 62 bits.
    let fraction = first - (quarter << 30u32);
    let negative = fraction & SIGN;
    let flip = select(negative != 0u32, 0xffff_ffffu32, 0u32);
    let top = fraction ^ flip;
    let rest = second ^ flip;
    // Normalised to 32 bits (top is not 0 for any float), times pi/4.
    let zeros = top.leading_zeros() & 31u32;
    let normal = top << zeros | (rest >> 1u32) >> (31u32 - zeros);
    let r = u32::mul_hi(normal, 0xc90f_daa2u32);
    // |r| = r * 2^(-29 - zeros): the bits down to 2^-11, if there are any, and the others.
    let drop = (zeros + 18u32) & 31u32;
    let head = select(zeros < 14u32, (r >> drop) << drop, 0u32);
    let scale = f32::reinterpret((99u32 - zeros) << 23u32);
    let near = mul(float_of(r >> 1u32), scale);
    let high = mul(float_of(head >> 1u32), scale);
    let rest = r - head;
    // With 6 zeros or more the rest may have more than 24 bits.
    let last = rest & select(zeros < 6u32, 0u32, 0xffu32);
    let low = mul(float_of((rest - last) >> 1u32), scale);
    let tiny = mul(float_of(last << 7u32), times(scale, comptime!(1.0f32 / 256.0)));
    Reduced {
        quarter,
        near: flipped(near, negative),
        high: flipped(high, negative),
        low: flipped(low, negative),
        tiny: flipped(tiny, negative ^ SIGN),
    }
}

/// `sin(quarter * pi/2 + r)` but for the sign, which bit 1 of `quarter` gives.
#[cube]
fn wave(quarter: u32, r: &Reduced) -> f32 {
    let odd = quarter & 1u32 != 0u32;
    let square = mul(r.near, r.near);
    let factor = mul(square, select(odd, square, r.near));
    let c2 = select(odd, constant(COSINE_2), constant(SINE_2));
    let c1 = select(odd, constant(COSINE_1), constant(SINE_1));
    let c0 = select(odd, constant(COSINE_0), constant(SINE_0));
    let tail = sub(mul(factor, multiply_add::<f32>(multiply_add::<f32>(c2, square, c1), square, c0)), r.tiny);
    let half = times(r.high, -0.5f32);
    let base = select(odd, add(f32::new(1.0), mul(r.high, half)), r.high);
    let low = select(odd, mul(r.low, sub(half, times(r.near, 0.5f32))), r.low);
    add(base, add(low, tail))
}

#[cube]
pub(crate) fn sin(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let r = reduced(magnitude);
    let y = wave(r.quarter, &r);
    let sign = (bits ^ (r.quarter << 30u32)) & SIGN;
    let result = select(magnitude < SMALL, bits, u32::reinterpret(y) ^ sign);
    f32::reinterpret(select(magnitude >= INFINITY, NAN, result))
}

#[cube]
pub(crate) fn cos(x: f32) -> f32 {
    let magnitude = u32::reinterpret(x) & MAGNITUDE;
    let r = reduced(magnitude);
    let quarter = r.quarter + 1u32;
    let y = wave(quarter, &r);
    let sign = (quarter << 30u32) & SIGN;
    f32::reinterpret(select(magnitude >= INFINITY, NAN, u32::reinterpret(y) ^ sign))
}

/// Rounded to 12 significant bits: the product of two such numbers is exact.
#[cube]
fn short(x: f32) -> f32 {
    f32::reinterpret((u32::reinterpret(x) + 0x800u32) & 0xffff_f000u32)
}

#[cube]
pub(crate) fn tan(x: f32, #[comptime] quotients: Quotients) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let r = reduced(magnitude);
    let minus = u32::reinterpret(r.near) & SIGN;
    let steep = u32::reinterpret(r.near) & MAGNITUDE > EIGHTH_PI;
    let high = sub(flipped(r.high, minus), select(steep, constant(QUARTER_PI_HEAD), f32::new(0.0)));
    let low = sub(flipped(r.low, minus), select(steep, constant(QUARTER_PI_REST), f32::new(0.0)));
    let a = add(high, low);
    let square = mul(a, a);
    let tail = sub(mul(mul(square, a), horner(square, TANGENT)), flipped(r.tiny, minus));
    // With t = high + low + tail the tangent of a: 1 + t and 1 - t, or t and 1.
    let sum = add(high, select(steep, f32::new(1.0), f32::new(0.0)));
    let difference = sub(f32::new(1.0), select(steep, high, f32::new(0.0)));
    let less_low = select(steep, flipped(low, SIGN), f32::new(0.0));
    let less_tail = select(steep, flipped(tail, SIGN), f32::new(0.0));
    let odd = r.quarter & 1u32 != 0u32;
    let above = select(odd, difference, sum);
    let above_low = select(odd, less_low, low);
    let above_tail = select(odd, less_tail, tail);
    let below = select(odd, sum, difference);
    let below_low = select(odd, low, less_low);
    let below_tail = select(odd, tail, less_tail);
    let divisor = add(below, add(below_low, below_tail));
    let head_of_divisor = short(divisor);
    let second = add(add(sub(below, head_of_divisor), below_low), below_tail);
    let inverse = div(f32::new(1.0), divisor, quotients);
    let head = short(mul(add(above, add(above_low, above_tail)), inverse));
    let remainder = sub(add(add(sub(above, mul(head, head_of_divisor)), above_low), above_tail), mul(head, second));
    let quotient = add(head, mul(remainder, inverse));
    let sign = (bits ^ minus ^ (r.quarter << 31u32)) & SIGN;
    let finite = select(magnitude < SMALL, bits, u32::reinterpret(quotient) ^ sign);
    f32::reinterpret(select(magnitude >= INFINITY, NAN, finite))
}

#[cube]
pub(crate) fn erf(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let a = f32::reinterpret(magnitude);
    let near = magnitude < 0x3f40_0000u32;
    let far = magnitude >= 0x3fb0_0000u32;
    let t = select(near, mul(a, a), sub(a, select(far, f32::new(1.375), constant(ERF_CENTRE))));
    let mut p = erf_coefficient(far, near, 7usize);
    #[unroll]
    for i in 0..7usize {
        p = multiply_add::<f32>(p, t, erf_coefficient(far, near, comptime!(6 - i)));
    }
    let part = mul(p, select(far, p, select(near, a, t)));
    let base = select(near, a, constant(ERF_OF_CENTRE));
    let r = select(far, sub(f32::new(1.0), mul(part, part)), add(base, part));
    let mut result = select(magnitude < 0x407a_e148u32, u32::reinterpret(r), ONE) | (bits & SIGN);
    if magnitude - 0x0300_0000u32 > comptime!(INFINITY - 0x0300_0000) {
        result = erf_rare(bits);
    }
    f32::reinterpret(result)
}

#[cube]
fn erf_coefficient(far: bool, near: bool, #[comptime] i: usize) -> f32 {
    let lower = select(near, constant(comptime!(ERF_LOW[i])), constant(comptime!(ERF_MIDDLE[i])));
    select(far, constant(comptime!(ERF_HIGH[i])), lower)
}

#[cube]
fn erf_rare(bits: u32) -> u32 {
    let magnitude = bits & MAGNITUDE;
    let small = magnitude < 0x0100_0000u32;
    let above = f32::reinterpret((magnitude & 0x03ff_ffffu32) + comptime!(64u32 << 23));
    let scaled = select(small, float_of(magnitude & 0x00ff_ffffu32), above);
    let y = u32::reinterpret(add(scaled, times(scaled, TWO_OVER_ROOT_PI_LESS_1)));
    let lowered = y - select(small, comptime!(149u32 << 23), comptime!(64u32 << 23));
    // 2^23 units are the smallest normal number.
    let result = select(small && y < 0x4b00_0000u32, 0u32, lowered) | (bits & SIGN);
    select(magnitude > INFINITY, NAN, result)
}

#[cube]
fn joined(base: f32, base_low: f32, minus: u32, t: f32, t_low: f32, tail: f32) -> f32 {
    let t = flipped(t, minus);
    let high = times(f32::cast_from(truncated(times(t, 256.0f32))), comptime!(1.0f32 / 256.0));
    let rest = add(sub(t, high), add(flipped(tail, minus), add(flipped(t_low, minus), base_low)));
    add(add(base, high), rest)
}

#[cube]
fn turned(base: f32, base_low: f32, minus: u32, t: f32, t_low: f32) -> f32 {
    let high = u32::reinterpret(t) >= 0x3f0c_0000u32;
    let z = select(high, add(sub(t, constant(ATAN_CENTRE)), t_low), mul(t, t));
    let mut p = arc_coefficient(high, 5usize);
    #[unroll]
    for i in 0..5usize {
        p = multiply_add::<f32>(p, z, arc_coefficient(high, comptime!(4 - i)));
    }
    let tail = mul(z, select(high, p, sub(mul(t, p), t_low)));
    let first = sub(t, select(high, constant(ATAN_LESS), f32::new(0.0)));
    joined(base, base_low, minus, first, t_low, tail)
}

#[cube]
fn arc_coefficient(high: bool, #[comptime] i: usize) -> f32 {
    select(high, constant(comptime!(ATAN_HIGH[i])), constant(comptime!(ATAN_LOW[i])))
}

#[cube]
pub(crate) fn atan(x: f32, #[comptime] quotients: Quotients) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let a = f32::reinterpret(magnitude);
    let inverse = magnitude > ONE;
    let q = div(select(inverse, f32::new(1.0), a), select(inverse, a, f32::new(1.0)), quotients);
    let q_bits = u32::reinterpret(q);
    // q a for a in (1, 2): the product of the mantissas modulo 2^32, in units of 2^-47.
    let product = (q_bits - 0x3e80_0000u32) * (magnitude - 0x3f00_0000u32);
    let low = mul(times(float_of(product), comptime!(-UNIT)), q);
    let t_low = select(inverse && magnitude < 0x4000_0000u32, low, f32::new(0.0));
    let base = select(inverse, constant(HALF_PI_HEAD), f32::new(0.0));
    let base_low = select(inverse, constant(HALF_PI_REST), f32::new(0.0));
    let y = turned(base, base_low, select(inverse, SIGN, 0u32), q, t_low);
    let result = select(magnitude < SMALL, bits, u32::reinterpret(y) | (bits & SIGN));
    f32::reinterpret(select(magnitude > INFINITY, NAN, result))
}

/// About `1 / x`, to an eighth, for a positive normal `x` below 2^126.
#[cube]
fn about_inverse(x: f32) -> f32 {
    f32::reinterpret(0x7ef3_11c7u32 - u32::reinterpret(x))
}

/// Of a positive number.
#[derive(CubeType, Clone, Copy)]
struct Normalised {
    /// The bits of a float in `1 .. 2` with its mantissa.
    mantissa: u32,
    /// Its exponent field, below 1 for a subnormal number.
    exponent: i32,
}

#[cube]
fn normalised(magnitude: u32) -> Normalised {
    let subnormal = magnitude < NORMAL;
    // A subnormal number is an integer times 2^-149.
    let b = select(subnormal, u32::reinterpret(float_of(magnitude & 0x007f_ffffu32)), magnitude);
    let exponent = i32::reinterpret(b >> 23u32) - select(subnormal, 149i32, 0i32);
    Normalised { mantissa: (b & 0x007f_ffffu32) | ONE, exponent }
}

#[cube]
fn quotient_error(n: u32, d: u32, ratio: u32) -> f32 {
    // ratio = q * 2^(exponent - 150); the dividend has 2^(150 - exponent) times its mantissa of the same units.
    let exponent = ratio >> 23u32;
    let n_mantissa = whole_of(n);
    let d_mantissa = whole_of(d);
    let q_mantissa = whole_of(ratio);
    let remainder = (n_mantissa << (150u32 - exponent)) - q_mantissa * d_mantissa;
    let unit = f32::reinterpret((exponent - 46u32) << 23u32);
    mul(mul(float_of(remainder), unit), about_inverse(f32::reinterpret(d)))
}

#[cube]
pub(crate) fn atan2(y: f32, x: f32, #[comptime] quotients: Quotients) -> f32 {
    let (y_bits, x_bits) = (u32::reinterpret(y), u32::reinterpret(x));
    let y_magnitude = y_bits & MAGNITUDE;
    let x_magnitude = x_bits & MAGNITUDE;
    let steep = y_magnitude > x_magnitude;
    let left = x_bits & SIGN != 0u32;
    let above = select(steep, x_magnitude, y_magnitude);
    let below = select(steep, y_magnitude, x_magnitude);
    let n = normalised(above);
    let d = normalised(below);
    let ratio = div(f32::reinterpret(n.mantissa), f32::reinterpret(d.mantissa), quotients);
    let ratio_bits = u32::reinterpret(ratio);
    let exponent = ratio_bits >> 23u32;
    let low = quotient_error(n.mantissa, d.mantissa, ratio_bits);
    // Times 2^difference; zero where that is below 2^-126.
    let difference = n.exponent - d.exponent;
    let tiny = i32::reinterpret(exponent) + difference < 1i32;
    let zero = above == 0u32 || tiny || (below == INFINITY && above < INFINITY);
    let shift = u32::reinterpret(select(zero, 0i32, difference)) << 23u32;
    let t_bits = select(zero, 0u32, ratio_bits + shift);
    // The rounding error matters only where the polynomial does.
    let scale = f32::reinterpret(select(difference < -20i32, 0u32, ONE + shift));
    let t_low = select(zero, f32::new(0.0), mul(low, scale));
    let minus = select((steep && !left) || (left && !steep), SIGN, 0u32);
    let flat = !steep && !left;
    let base = select(steep, constant(HALF_PI_HEAD), select(left, constant(PI_HEAD), f32::new(0.0)));
    let base_low = select(steep, constant(HALF_PI_REST), select(left, constant(PI_REST), f32::new(0.0)));
    let angle = turned(base, base_low, minus, f32::reinterpret(t_bits), t_low);
    let sign = y_bits & SIGN;
    let result = select(flat && t_bits < SMALL, t_bits, u32::reinterpret(angle)) | sign;
    f32::reinterpret(select(y_magnitude > INFINITY || x_magnitude > INFINITY, NAN, result))
}

/// What `asin` and `acos` have in common.
#[derive(CubeType, Clone, Copy)]
struct SineArc {
    outer: bool,
    t: f32,
    t_low: f32,
    tail: f32,
}

#[cube]
fn sine_arc(magnitude: u32, #[comptime] quotients: Quotients) -> SineArc {
    let a = f32::reinterpret(select(magnitude > ONE, 0u32, magnitude));
    let outer = magnitude > 0x3f00_0000u32;
    let w = times(sub(f32::new(1.0), a), 0.5f32);
    let root = sqrt(w, quotients);
    // w - root^2 in integers modulo 2^32, root = mantissa * 2^(exponent - 150).
    let root_bits = u32::reinterpret(root);
    let w_bits = u32::reinterpret(w);
    let exponent = root_bits >> 23u32;
    let mantissa = whole_of(root_bits);
    let w_mantissa = whole_of(w_bits);
    let places = ((w_bits >> 23u32) + 150u32 - 2u32 * exponent) & 31u32;
    let remainder = (w_mantissa << places) - mantissa * mantissa;
    // 2 (remainder * 2^(2 exponent - 300)) / (2 root)
    let unit = f32::reinterpret((2u32 * exponent - 173u32) << 23u32);
    let error = mul(mul(float_of(remainder), unit), about_inverse(root));
    let z = select(outer, w, mul(a, a));
    let t = select(outer, add(root, root), a);
    let t_low = select(outer && magnitude < ONE, error, f32::new(0.0));
    SineArc { outer, t, t_low, tail: mul(mul(t, z), horner(z, ASIN)) }
}

#[cube]
pub(crate) fn asin(x: f32, #[comptime] quotients: Quotients) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let arc = sine_arc(magnitude, quotients);
    let minus = select(arc.outer, SIGN, 0u32);
    let base = select(arc.outer, constant(HALF_PI_HEAD), f32::new(0.0));
    let base_low = select(arc.outer, constant(HALF_PI_REST), f32::new(0.0));
    let y = joined(base, base_low, minus, arc.t, arc.t_low, arc.tail);
    let result = select(magnitude < SMALL, bits, u32::reinterpret(y) | (bits & SIGN));
    f32::reinterpret(select(magnitude > ONE, NAN, result))
}

#[cube]
pub(crate) fn acos(x: f32, #[comptime] quotients: Quotients) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let arc = sine_arc(magnitude, quotients);
    let left = bits & SIGN != 0u32;
    let minus = select((left && arc.outer) || (!left && !arc.outer), SIGN, 0u32);
    let far = select(left, constant(PI_HEAD), f32::new(0.0));
    let far_low = select(left, constant(PI_REST), f32::new(0.0));
    let base = select(arc.outer, far, constant(HALF_PI_HEAD));
    let base_low = select(arc.outer, far_low, constant(HALF_PI_REST));
    let y = joined(base, base_low, minus, arc.t, arc.t_low, arc.tail);
    f32::reinterpret(select(magnitude > ONE, NAN, u32::reinterpret(y)))
}
