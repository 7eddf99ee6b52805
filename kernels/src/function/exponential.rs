//! Exponentials, logarithms, hyperbolic functions and powers. The functions say how they compute; `r`, `s` and `y` are
//! those of [`reference::exponential`](super::reference::exponential), which has the same lines in plain Rust.

use super::constants::exponential::*;
use super::constants::{INFINITY, MAGNITUDE, NAN, ONE, SHIFT, SIGN};
use super::{add, constant, div, float_of, is_negative, mul, odd_result, sub, times, whole_of};
use crate::arithmetic::horner;
use crate::dtype::F64;
use crate::quotient::{Quotients, sqrt};
use cubecl::prelude::*;

/// [`exp`] of any float type: of a half type as f32, and of f64 as the device has it.
#[cube]
pub(crate) fn exp_of<F: Float>(x: F) -> F {
    let elem = elem_type_of::<F>();
    if comptime!(elem == F64) { x.exp() } else { F::cast_from(exp(f32::cast_from(x))) }
}

/// [`log1p`] of f32, and of f64 as the device has it.
#[cube]
pub(crate) fn log1p_of<F: Float>(x: F) -> F {
    let elem = elem_type_of::<F>();
    if comptime!(elem == F64) { x.log1p() } else { F::cast_from(log1p(f32::cast_from(x))) }
}

#[cube]
pub(crate) fn exp(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    // k 2^23, an integer.
    let k = u32::reinterpret(add(times(x, LOG2_E), constant(SHIFT))) << 23u32;
    let kf = float_of(k);
    let low = times(kf, LN2_LOW);
    let high = sub(x, times(kf, LN2_HIGH));
    let r = sub(high, low);
    let s = add(high, sub(mul(mul(r, r), horner(r, EXP)), low));
    let y = u32::reinterpret(s + f32::new(1.0)) + k;
    // Below ln(2^-126), above ln(2^128), and the rest of these, -infinity, infinity, the NaNs.
    let y = select(bits > 0xc2ae_ac4fu32, 0u32, y);
    let y = select(i32::reinterpret(bits) > 0x42b1_7217i32, INFINITY, y);
    f32::reinterpret(select(bits & MAGNITUDE > INFINITY, NAN, y))
}

/// Of a positive finite `x = 2^e m`.
#[derive(CubeType, Clone, Copy)]
struct Parts {
    /// `e 2^23`, an integer.
    e: u32,
    /// `m - 1`
    f: f32,
}

/// The parts of `x` with these bits; `least` are the bits of the least `m`.
#[cube]
fn parts(bits: u32, #[comptime] least: u32) -> Parts {
    // A subnormal number is its bits times 2^-149.
    let subnormal = bits < 0x0080_0000u32;
    let normal = select(subnormal, u32::reinterpret(float_of(bits)), bits);
    let e = (normal - least) & 0xff80_0000u32;
    let f = sub(f32::reinterpret(normal - e), f32::new(1.0));
    Parts { e: e - select(subnormal, comptime!(149u32 << 23), 0u32), f }
}

#[cube]
fn log_of_parts(e: u32, f: f32) -> f32 {
    let e = float_of(e);
    let tail = mul(mul(f, f), horner(f, LOG));
    add(times(e, LN2_HIGH), add(f, add(times(e, LN2_LOW), tail)))
}

#[cube]
pub(crate) fn log(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let parts = parts(bits, 0x3f40_0000u32);
    let y = u32::reinterpret(log_of_parts(parts.e, parts.f));
    let end = select(bits << 1u32 == 0u32, comptime!(INFINITY | SIGN), select(bits == INFINITY, INFINITY, NAN));
    f32::reinterpret(select(bits - 1u32 < 0x7f7f_ffffu32, y, end))
}

#[cube]
pub(crate) fn log1p(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let e = (u32::reinterpret(x + f32::new(1.0)) - 0x3f40_0000u32) & 0xff80_0000u32;
    // 4 * 2^-e: e = 128 gives a normal number too.
    let scale = f32::reinterpret(0x4080_0000u32 - e);
    let f = add(f32::reinterpret(bits - e), sub(times(scale, 0.25f32), f32::new(1.0)));
    let y = u32::reinterpret(log_of_parts(e, f));
    let y = select(magnitude < 0x3300_0000u32, bits, y);
    let end = select(bits == 0xbf80_0000u32, comptime!(INFINITY | SIGN), select(bits == INFINITY, INFINITY, NAN));
    let outside = bits >= 0xbf80_0000u32 || i32::reinterpret(bits) >= 0x7f80_0000i32;
    f32::reinterpret(select(outside, end, y))
}

#[cube]
pub(crate) fn tanh(x: f32, #[comptime] quotients: Quotients) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let a = f32::reinterpret(magnitude);

    let k = u32::reinterpret(add(times(a, comptime!(2.0 * LOG2_E)), constant(SHIFT))) << 23u32;
    let kf = float_of(k);
    let r = sub(sub(add(a, a), times(kf, LN2_HIGH)), times(kf, LN2_LOW));
    let s = add(r, mul(mul(r, r), horner(r, EXP)));
    let scale = f32::reinterpret(k + ONE);
    let m = mul(s, scale);
    let dividend = add(sub(scale, f32::new(7.0)), m);
    let quotient = div(dividend, times(add(add(scale, f32::new(1.0)), m), 4.0f32), quotients);
    let large = u32::reinterpret(add(quotient, f32::new(0.75f32)));

    let u = mul(a, a);
    let small = u32::reinterpret(add(a, mul(mul(a, u), horner(u, TANH))));

    let y = select(magnitude < 0x3f20_0000u32, small, large);
    odd_result(bits, y, 0x4110_0000u32, ONE, INFINITY)
}

/// What sinh and cosh of `a = k ln 2 + r >= 0` have in common.
#[derive(CubeType, Clone, Copy)]
struct Hyperbolic {
    /// Whether `k` is 0.
    zero: bool,
    /// `2^(k - 3)`
    up: f32,
    /// `2^-2k`, or 0 from some `k` on.
    ratio: f32,
    /// `r` without its lower part.
    high: f32,
    /// `cosh r - 1`
    even: f32,
    /// `sinh r - r`, with the lower part.
    odd: f32,
}

#[cube]
fn hyperbolic(a: f32, #[comptime] last: u32) -> Hyperbolic {
    let k = u32::reinterpret(add(times(sub(a, f32::new(0.12f32)), LOG2_E), constant(SHIFT))) << 23u32;
    let kf = float_of(k);
    let low = times(kf, LN2_LOW);
    let high = sub(a, times(kf, LN2_HIGH));
    let r = sub(high, low);
    let u = mul(r, r);
    let odd = sub(mul(mul(r, u), horner(u, SINH)), low);
    let even = mul(u, horner(u, COSH));
    let up = f32::reinterpret(k + 0x3e00_0000u32);
    let ratio = f32::reinterpret(select(k > comptime!(last << 23), 0u32, ONE - (k << 1u32)));
    Hyperbolic { zero: k == 0u32, up, ratio, high, even, odd }
}

#[cube]
pub(crate) fn sinh(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let h = hyperbolic(f32::reinterpret(magnitude), 12u32);
    let minus = sub(sub(h.even, h.odd), h.high);
    let quarter =
        add(sub(h.up, mul(h.up, h.ratio)), mul(h.up, add(h.high, sub(add(h.even, h.odd), mul(minus, h.ratio)))));
    let y = u32::reinterpret(select(h.zero, add(h.high, h.odd), times(quarter, 4.0f32)));
    odd_result(bits, y, 0x42b2_d4fcu32, INFINITY, INFINITY)
}

#[cube]
pub(crate) fn cosh(x: f32) -> f32 {
    let magnitude = u32::reinterpret(x) & MAGNITUDE;
    let h = hyperbolic(f32::reinterpret(magnitude), 15u32);
    let falling = add(sub(sub(h.even, h.odd), h.high), f32::new(1.0));
    let quarter = add(h.up, mul(h.up, add(h.high, add(add(h.even, h.odd), mul(falling, h.ratio)))));
    let y = u32::reinterpret(select(h.zero, add(h.even, f32::new(1.0)), times(quarter, 4.0f32)));
    let y = select(magnitude > 0x42b2_d4fcu32, INFINITY, y);
    f32::reinterpret(select(magnitude > INFINITY, NAN, y))
}

/// In units of 2^-24, towards zero.
#[cube]
fn units(x: f32) -> u32 {
    u32::reinterpret(i32::cast_from(times(x, 16777216.0f32)))
}

#[cube]
fn log_of_sum(a: f32, s: f32, #[comptime] quotients: Quotients) -> f32 {
    let magnitude = u32::reinterpret(a);
    let far = magnitude >= 0x4600_0000u32;
    let s = select(far, a, s);
    let sum = add(a, s);
    let near = magnitude < 0x40a0_0000u32;
    let an = select(near, a, f32::new(0.0));
    let sn = select(near, s, f32::new(0.0));
    let product = units(an - sn) * (units(an) + units(sn));
    let c = div(times(float_of(product), 1.7763568e-15f32), mul(s, sum), quotients);

    // 2 a may be above all finite numbers.
    let e = (select(far, magnitude + 0x0080_0000u32, u32::reinterpret(sum)) - 0x3f40_0000u32) & 0xff80_0000u32;
    // Both differences are exact; the product keeps a compiler from adding up the halves.
    let of_s = times(sub(f32::reinterpret(u32::reinterpret(s) - e), f32::new(0.5f32)), 1.0f32);
    let f = add(of_s, sub(f32::reinterpret(magnitude - e), f32::new(0.5f32)));
    let ef = float_of(e);
    add(times(ef, LN2_HIGH), add(f, add(mul(mul(f, f), horner(f, LOG)), add(times(ef, LN2_LOW), c))))
}

#[cube]
pub(crate) fn asinh(x: f32, #[comptime] quotients: Quotients) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let a = f32::reinterpret(magnitude);
    let u = mul(a, a);
    let small = u32::reinterpret(add(a, mul(mul(a, u), horner(u, ASINH))));
    let large = u32::reinterpret(log_of_sum(a, sqrt(add(u, f32::new(1.0)), quotients), quotients));
    let y = select(magnitude < 0x3f00_0000u32, small, large);
    odd_result(bits, y, comptime!(INFINITY - 1), INFINITY, INFINITY)
}

#[cube]
pub(crate) fn acosh(x: f32, #[comptime] quotients: Quotients) -> f32 {
    let bits = u32::reinterpret(x);
    let t = sub(x, f32::new(1.0));
    let double = add(t, t);
    let r = sqrt(double, quotients);
    let (r_bits, double_bits) = (u32::reinterpret(r), u32::reinterpret(double));
    let whole = whole_of(r_bits);
    let exponent = r_bits & INFINITY;
    let shift = (double_bits >> 23u32) + 150u32 - (exponent >> 22u32);
    let rest = (whole_of(double_bits) << (shift & 31u32)) - whole * whole;
    // rest / (2 r) in its unit; 1 / m to 1 / 23 by a straight line, m the significand of r: a few bits of c are enough.
    let slope = sub(f32::new(1.4571f32), times(f32::reinterpret((whole & 0x007f_ffffu32) | ONE), 0.5f32));
    let c = mul(mul(float_of(rest), slope), f32::reinterpret(exponent - comptime!(47u32 << 23)));
    let small = u32::reinterpret(add(r, add(c, mul(mul(r, t), horner(t, ACOSH)))));
    let large = u32::reinterpret(log_of_sum(x, sqrt(mul(t, x + f32::new(1.0)), quotients), quotients));
    let y = select(bits < 0x3fc0_0000u32, small, large);
    let y = select(bits == INFINITY, INFINITY, y);
    f32::reinterpret(select(bits - ONE > comptime!(INFINITY - ONE), NAN, y))
}

#[cube]
pub(crate) fn atanh(x: f32, #[comptime] quotients: Quotients) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    let a = f32::reinterpret(magnitude);
    let u = mul(a, a);
    let small = u32::reinterpret(add(a, mul(mul(a, u), horner(u, ATANH))));
    let rest = u32::reinterpret(sub(f32::new(1.0), a));
    // The distance in [1, 2), then doubled where that makes the quotient nearer to 1.
    let d = (rest & 0x007f_ffffu32) | ONE;
    let k = ONE - (rest & INFINITY);
    let bound = u32::reinterpret(times(f32::reinterpret(d), 1.5f32));
    let up = select(u32::reinterpret(add(a, f32::new(1.0))) >= bound, 0x0080_0000u32, 0u32);
    let d = f32::reinterpret(d + up);
    let f = div(add(a, sub(f32::new(1.0), d)), d, quotients);
    let large = u32::reinterpret(times(log_of_parts(k + up, f), 0.5f32));
    let y = select(magnitude < 0x3f00_0000u32, small, large);
    odd_result(bits, y, comptime!(ONE - 1), INFINITY, ONE)
}

#[cube]
pub(crate) fn powf(x: f32, y: f32) -> f32 {
    f32::reinterpret(pow_bits(u32::reinterpret(x), u32::reinterpret(y)))
}

#[cube]
fn pow_bits(x: u32, y: u32) -> u32 {
    let ax = x & MAGNITUDE;
    let ay = y & MAGNITUDE;

    // |x| = 2^e m, sqrt(1/2) <= m < sqrt(2); f = m - 1 in units of 2^-24.
    let subnormal = ax < 0x0080_0000u32;
    let normal = select(subnormal, u32::reinterpret(float_of(ax)), ax);
    let i = normal - 0x3f35_04f3u32;
    // The exponent and its sign, unsigned.
    let e = (i >> 23u32 | select(is_negative(i), 0xffff_fe00u32, 0u32)) - select(subnormal, 149u32, 0u32);
    let m = (i & 0x007f_ffffu32) + 0x3f35_04f3u32;
    let whole = whole_of(m);
    let f = (whole << select(m >= ONE, 1u32, 0u32)) - 0x0100_0000u32;
    let f_negative = is_negative(f);
    let f_magnitude = select(f_negative, 0u32 - f, f) << 8u32;

    // H, then g = (log2(e) - f H) / 2 in units of 2^-64.
    let t = (f + 0x004c_0000u32) << 8u32;
    let mut h = comptime!(POW_LOG[11]).runtime();
    #[unroll]
    for i in 0..7usize {
        h = comptime!(POW_LOG[10 - i]).runtime() - u32::mul_hi(t, h);
    }
    h = comptime!(POW_LOG[3]).runtime() - (u32::mul_hi(t, h) << 1u32);
    #[unroll]
    for i in 0..3usize {
        h = comptime!(POW_LOG[2 - i]).runtime() - u32::mul_hi(t, h);
    }
    let high = u32::mul_hi(f_magnitude, h);
    let low = high << 31u32 | (f_magnitude * h) >> 1u32;
    let high = high >> 1u32;
    let sum_low = 0x5c17_f0bcu32 + low;
    let sum_high = 0xb8aa_3b29u32 + high + select(sum_low < low, 1u32, 0u32);
    let rest_low = 0x5c17_f0bcu32 - low;
    let rest_high = 0xb8aa_3b29u32 - high - select(low > 0x5c17_f0bcu32, 1u32, 0u32);
    let g_low = select(f_negative, sum_low, rest_low);
    let g_high = select(f_negative, sum_high, rest_high);

    // |log2 m| in units of 2^-63.
    let carry = u32::mul_hi(f_magnitude, g_low);
    let p_low = f_magnitude * g_high + carry;
    let p_high = u32::mul_hi(f_magnitude, g_high) + select(p_low < carry, 1u32, 0u32);

    // |log2 |x||: p where e = 0; otherwise |e| + p or |e| - p, in units of 2^-56.
    let e_magnitude = select(is_negative(e), 0u32 - e, e);
    let q_low = p_low >> 7u32 | p_high << 25u32;
    let q_high = p_high >> 7u32;
    let base = e_magnitude << 24u32;
    let more = !is_negative(e ^ f);
    let l_high = select(more, base + q_high, base - q_high - select(q_low != 0u32, 1u32, 0u32));
    let l_low = select(more, q_low, 0u32 - q_low);
    let near = e == 0u32;
    let l_high = select(near, p_high, l_high);
    let l_low = select(near, p_low, l_low);

    // Normalised; 0 (for |x| = 1) gives a product of 0.
    let zeros = (l_high | 1u32).leading_zeros();
    let n_high = l_high << zeros | (l_low >> 1u32) >> (31u32 - zeros);
    let n_low = l_low << zeros;

    // The product with |y| = w 2^(exponent - 126), 1/2 <= w < 1.
    let w = whole_of(y) << 8u32;
    let carry = u32::mul_hi(n_low, w);
    let z_low = n_high * w + carry;
    let z_high = u32::mul_hi(n_high, w) + select(z_low < carry, 1u32, 0u32);
    let exponent = select(near, 1i32, 8i32) - i32::reinterpret(zeros) + i32::reinterpret(ay >> 23u32) - 126i32;

    // Integer part and fraction in units of 2^-32.
    let left = u32::reinterpret(select(exponent < 0i32, 0i32, select(exponent > 31i32, 31i32, exponent)));
    let right = u32::reinterpret(select(exponent >= 0i32, 0i32, select(exponent < -31i32, 31i32, 0i32 - exponent)));
    let whole = ((z_high >> 1u32) >> (31u32 - left)) >> right;
    let fraction = (z_high << left | (z_low >> 1u32) >> (31u32 - left)) >> right;
    let negative = is_negative(select(near, f, e) ^ y);
    let below = 0u32 - whole - select(fraction != 0u32, 1u32, 0u32);
    let k = i32::reinterpret(select(negative, below, whole));
    let fraction = select(negative, 0u32 - fraction, fraction);

    let mut s = comptime!(POW_EXP[6]).runtime();
    #[unroll]
    for i in 0..6usize {
        s = comptime!(POW_EXP[5 - i]).runtime() + u32::mul_hi(fraction, s);
    }
    let s = u32::mul_hi(fraction, s);
    let mantissa = (s >> 9u32) + (s >> 8u32 & 1u32);
    let result = ((u32::reinterpret(k) + 127u32) << 23u32) + mantissa;
    // A product of 2^8 and more has an exponent of 9 and more.
    let huge = exponent > 9i32 && z_high != 0u32;
    let result = select(negative && (huge || k < -126i32), 0u32, result);
    let result = select(!negative && (huge || k > 127i32), INFINITY, result);

    // An odd y, an integral y: the bits from the unit's bit on at the top.
    let shift = (ay >> 23u32) - 119u32;
    let unit = whole_of(ay) << (shift & 31u32);
    let small = ay < ONE;
    let large = ay >= 0x4b80_0000u32;
    let odd = !small && !large && unit == SIGN;
    let integral = large || (!small && unit & MAGNITUDE == 0u32);

    // Zeros and infinities.
    let grows = (ax > ONE && !is_negative(y)) || (ax <= ONE && is_negative(y));
    let end = ax == 0u32 || ax == INFINITY || ay == INFINITY;
    let result = select(end, select(grows, INFINITY, 0u32), result);
    let negative = is_negative(x);
    let result = select(negative && odd, result | SIGN, result);
    let invalid = negative && !integral && ax != 0u32 && ax != INFINITY;
    let result = select(invalid, NAN, result);
    let result = select(ax > INFINITY || ay > INFINITY, NAN, result);
    let result = select(y == ONE, select(ax > INFINITY, NAN, x), result);
    let unity = ay == 0u32 || x == ONE || (ax == ONE && ay == INFINITY);
    select(unity, ONE, result)
}
