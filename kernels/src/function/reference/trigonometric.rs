//! Trigonometric functions, their inverses, and the error function.
//!
//! The error given with a function is the largest over all arguments with a result of at least 2^-126 in magnitude.

use super::{flipped, float_of, mul, mul_hi, polynomial, select, truncated, whole_of};
use crate::function::constants::trigonometric::*;
use crate::function::constants::{INFINITY, MAGNITUDE, NAN, NORMAL, ONE, SIGN};

/// x = quarter * pi/2 + r, |r| <= pi/4 (a little more by rounding); r = high + low - tiny = near (rounded). `high` is a
/// multiple of 2^-11 and not above |r|: 1 - high^2/2 is exact. `low` is below 2^-11, `tiny` below 2^-27 and below |r|
/// 2^-22 where r is small.
struct Reduced {
    quarter: i32,
    near: f32,
    high: f32,
    low: f32,
    tiny: f32,
}

/// Rounded to 12 significant bits: the product of two such numbers is exact.
fn short(x: f32) -> f32 {
    f32::from_bits((x.to_bits() + 0x800) & 0xffff_f000)
}

/// The reduction of |x|, given by its bits, by multiples of pi/2 (Cody and Waite). 19 operations.
///
/// All differences but `near` are exact: |x| and the first two products are multiples of 2^-24 (where the multiple of
/// pi/2 is not 0), the third is a multiple of 2^-34.
fn reduced(magnitude: u32) -> Reduced {
    let x = f32::from_bits(magnitude);
    if magnitude < LARGE {
        let quarter = truncated(mul(x, TWO_OVER_PI) + 0.5);
        let multiple = float_of(quarter);
        let second = (x - mul(multiple, HALF_PI_1)) - mul(multiple, HALF_PI_2);
        let third = mul(multiple, HALF_PI_3);
        let near = second - third;
        let high = mul(float_of(truncated(mul(near, 2048.0))), 1.0 / 2048.0);
        let low = (second - high) - third;
        Reduced { quarter, near, high, low, tiny: mul(multiple, HALF_PI_4) }
    } else {
        reduced_far(magnitude)
    }
}

/// The reduction for |x| >= 1024, to the largest float (Payne and Hanek): the fraction of x * 2/pi by the 96 bits of
/// 2/pi that matter to it. A NaN or an infinity gives numbers without a meaning.
fn reduced_far(magnitude: u32) -> Reduced {
    // x = mantissa * 2^(exponent - 158), the bits of 2/pi behind 32 zeros: the window starts at bit exponent - 128.
    let mantissa = (magnitude << 8) | SIGN;
    let start = (magnitude >> 23) - 128;
    let two = (start & 64) != 0;
    let one = (start & 32) != 0;
    let a0 = select(two, 0x4e44_1529, 0);
    let a1 = select(two, 0xfc27_57d1, 0xa2f9_836e);
    let a2 = select(two, 0xf534_ddc0, 0x4e44_1529);
    let a3 = select(two, 0xdb62_9599, 0xfc27_57d1);
    let a4 = select(two, 0x3c43_9041u32, 0xf534_ddc0);
    let b0 = select(one, a1, a0);
    let b1 = select(one, a2, a1);
    let b2 = select(one, a3, a2);
    let b3 = select(one, a4, a3);
    let shift = start & 31;
    let back = 31 - shift;
    let w0 = (b0 << shift) | ((b1 >> 1) >> back);
    let w1 = (b1 << shift) | ((b2 >> 1) >> back);
    let w2 = (b2 << shift) | ((b3 >> 1) >> back);
    // x * 2/pi modulo 4, in units of 2^-30 (first) and 2^-62 (second).
    let part = mul_hi(mantissa, w2);
    let second = mantissa.wrapping_mul(w1).wrapping_add(part);
    let carry = select(second < part, 1u32, 0);
    let first = mantissa.wrapping_mul(w0).wrapping_add(mul_hi(mantissa, w1)).wrapping_add(carry);
    let quarter = (first.wrapping_add(0x2000_0000) >> 30) as i32;
    // The fraction, between -1/2 and 1/2, as a sign and 62 bits.
    let fraction = first.wrapping_sub((quarter as u32) << 30);
    let negative = fraction & SIGN;
    let flip = select(negative != 0, 0xffff_ffffu32, 0);
    let top = fraction ^ flip;
    let rest = second ^ flip;
    // Normalised to 32 bits (top is not 0 for any float), times pi/4.
    let zeros = top.leading_zeros() & 31;
    let normal = (top << zeros) | ((rest >> 1) >> (31 - zeros));
    let r = mul_hi(normal, 0xc90f_daa2);
    // |r| = r * 2^(-29 - zeros): the bits down to 2^-11, if there are any, and the others.
    let drop = (zeros + 18) & 31;
    let head = select(zeros < 14, (r >> drop) << drop, 0);
    let scale = f32::from_bits((99 - zeros) << 23);
    let near = mul(float_of((r >> 1) as i32), scale);
    let high = mul(float_of((head >> 1) as i32), scale);
    let rest = r - head;
    // With 6 zeros or more the rest may have more than 24 bits.
    let last = rest & select(zeros < 6, 0, 0xff);
    let low = mul(float_of(((rest - last) >> 1) as i32), scale);
    let tiny = mul(float_of((last << 7) as i32), mul(scale, 1.0 / 256.0));
    Reduced {
        quarter,
        near: flipped(near, negative),
        high: flipped(high, negative),
        low: flipped(low, negative),
        tiny: flipped(tiny, negative ^ SIGN),
    }
}

/// sin(quarter * pi/2 + r) but for the sign, which bit 1 of `quarter` gives. 25 operations.
///
/// Even: r + r^3 S(r^2), S of degree 2. Odd: 1 - r^2/2 + r^4 C(r^2), C of degree 2, with r^2 = high^2 + low (high + r).
/// Only the last addition rounds at the result's scale; `tiny` does not matter to the cosine.
fn wave(quarter: i32, r: &Reduced) -> f32 {
    let odd = (quarter & 1) != 0;
    let square = mul(r.near, r.near);
    let factor = mul(square, select(odd, square, r.near));
    let c2 = select(odd, COSINE_2, SINE_2);
    let c1 = select(odd, COSINE_1, SINE_1);
    let c0 = select(odd, COSINE_0, SINE_0);
    let tail = mul(factor, mul(mul(c2, square) + c1, square) + c0) - r.tiny;
    let half = mul(r.high, -0.5);
    let base = select(odd, 1.0 + mul(r.high, half), r.high);
    let low = select(odd, mul(r.low, half - mul(r.near, 0.5)), r.low);
    base + (low + tail)
}

/// The sine. Largest error 0.951 ULP; 52 operations.
///
/// Reduction to [-pi/4, pi/4], exact to some 40 bits (`reduced`); polynomials of degree 7 (sine) and 8 (cosine),
/// minimax, kernels/fit/trigonometric.py. The angle stays in two parts, so that only the last addition rounds at the
/// result's scale.
pub fn sin(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let r = reduced(magnitude);
    let y = wave(r.quarter, &r);
    let sign = (bits ^ ((r.quarter as u32) << 30)) & SIGN;
    let result = select(magnitude < SMALL, bits, y.to_bits() ^ sign);
    f32::from_bits(select(magnitude >= INFINITY, NAN, result))
}

/// The cosine. Largest error 0.935 ULP; 50 operations. As the sine, a quarter of a turn further.
pub fn cos(x: f32) -> f32 {
    let magnitude = x.to_bits() & MAGNITUDE;
    let r = reduced(magnitude);
    let quarter = r.quarter + 1;
    let y = wave(quarter, &r);
    let sign = ((quarter as u32) << 30) & SIGN;
    f32::from_bits(select(magnitude >= INFINITY, NAN, y.to_bits() ^ sign))
}

/// The tangent. Largest error 0.743 ULP; 87 operations, one of them a division.
///
/// |r| = a or pi/4 + a, |a| <= pi/8, in parts. t = tan a = a + a^3 T(a^2), T of degree 3 (minimax,
/// kernels/fit/trigonometric.py). tan |r| = t or (1 + t) / (1 - t), inverted in odd quarters, each side as a head and a
/// rest; the quotient's first 12 bits, and the rest of it from the remainder, where no product but the small ones is
/// rounded.
pub fn tan(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let r = reduced(magnitude);
    let minus = r.near.to_bits() & SIGN;
    let steep = r.near.to_bits() & MAGNITUDE > EIGHTH_PI;
    let high = flipped(r.high, minus) - select(steep, QUARTER_PI_HEAD, 0.0);
    let low = flipped(r.low, minus) - select(steep, QUARTER_PI_REST, 0.0);
    let a = high + low;
    let square = mul(a, a);
    let tail = mul(mul(square, a), polynomial(square, TANGENT)) - flipped(r.tiny, minus);
    // With t = high + low + tail the tangent of a: 1 + t and 1 - t, or t and 1.
    let sum = high + select(steep, 1.0, 0.0);
    let difference = 1.0 - select(steep, high, 0.0);
    let less_low = select(steep, flipped(low, SIGN), 0.0);
    let less_tail = select(steep, flipped(tail, SIGN), 0.0);
    let odd = (r.quarter & 1) != 0;
    let above = select(odd, difference, sum);
    let above_low = select(odd, less_low, low);
    let above_tail = select(odd, less_tail, tail);
    let below = select(odd, sum, difference);
    let below_low = select(odd, low, less_low);
    let below_tail = select(odd, tail, less_tail);
    let divisor = below + (below_low + below_tail);
    let first = short(divisor);
    let second = ((below - first) + below_low) + below_tail;
    let inverse = 1.0 / divisor;
    let head = short(mul(above + (above_low + above_tail), inverse));
    let remainder = (((above - mul(head, first)) + above_low) + above_tail) - mul(head, second);
    let quotient = head + mul(remainder, inverse);
    let sign = (bits ^ minus ^ ((r.quarter as u32) << 31)) & SIGN;
    let finite = select(magnitude < SMALL, bits, quotient.to_bits() ^ sign);
    f32::from_bits(select(magnitude >= INFINITY, NAN, finite))
}

/// The error function. Largest error 0.833 ULP; 51 operations.
///
/// |x| < 3/4: x + x E(x^2). Below 11/8: erf c + y M(y), y = |x| - c, erf c nearly an f32. Above: 1 - Q(|x| - 11/8)^4, to
/// 3.92, and 1 from there. All three are of degree 7, in one Horner scheme with selected coefficients. Minimax,
/// kernels/fit/trigonometric.py.
pub fn erf(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    if magnitude.wrapping_sub(0x0300_0000) > INFINITY - 0x0300_0000 {
        return erf_rare(bits);
    }
    let a = f32::from_bits(magnitude);
    let near = magnitude < 0x3f40_0000;
    let far = magnitude >= 0x3fb0_0000;
    let t = select(near, mul(a, a), a - select(far, 1.375, ERF_CENTRE));
    let mut p = select(far, ERF_HIGH[7], select(near, ERF_LOW[7], ERF_MIDDLE[7]));
    for i in (0..7).rev() {
        p = mul(p, t) + select(far, ERF_HIGH[i], select(near, ERF_LOW[i], ERF_MIDDLE[i]));
    }
    let part = mul(p, select(far, p, select(near, a, t)));
    let r = select(far, 1.0 - mul(part, part), select(near, a, ERF_OF_CENTRE) + part);
    let result = select(magnitude < 0x407a_e148, r.to_bits(), ONE);
    f32::from_bits(result | (bits & SIGN))
}

/// The error function of a NaN and of |x| < 2^-121, where it is 2/sqrt(pi) x: in units of 2^-149 below 2^-125, and
/// times 2^64 above.
fn erf_rare(bits: u32) -> f32 {
    let magnitude = bits & MAGNITUDE;
    let small = magnitude < 0x0100_0000;
    let integer = float_of((magnitude & 0x00ff_ffff) as i32);
    let scaled = select(small, integer, f32::from_bits((magnitude & 0x03ff_ffff) + (64 << 23)));
    let y = (scaled + mul(scaled, TWO_OVER_ROOT_PI_LESS_1)).to_bits();
    let lowered = y.wrapping_sub(select(small, 149 << 23, 64 << 23));
    // 2^23 units are the smallest normal number.
    let result = select(small && y < 0x4b00_0000, 0, lowered) | (bits & SIGN);
    f32::from_bits(select(magnitude > INFINITY, NAN, result))
}

/// base + base_low + (t + t_low + tail), or minus the sum in brackets where `minus` is the sign bit; t <= 1.6 in
/// magnitude, the base a multiple of 2^-14. t's leading bits (to 2^-8) join the base without an error, so that one
/// addition rounds at the result's scale. 13 operations.
fn joined(base: f32, base_low: f32, minus: u32, t: f32, t_low: f32, tail: f32) -> f32 {
    let t = flipped(t, minus);
    let high = mul(float_of(truncated(mul(t, 256.0))), 1.0 / 256.0);
    let rest = (t - high) + (flipped(tail, minus) + (flipped(t_low, minus) + base_low));
    (base + high) + rest
}

/// base + base_low + atan(t + t_low), or minus the arc, as `joined`; 0 <= t <= 1. 40 operations.
///
/// t < 35/64: atan t = t + t^3 A(t^2), and its slope is about 1 - t^2. Above: (t - k) + y B(y), y = t + t_low - c, where
/// c - atan c = k, and the second term is below 1/8. A and B are of degree 5 (minimax, kernels/fit/trigonometric.py), in
/// one Horner scheme with selected coefficients.
fn turned(base: f32, base_low: f32, minus: u32, t: f32, t_low: f32) -> f32 {
    let high = t.to_bits() >= 0x3f0c_0000;
    let z = select(high, (t - ATAN_CENTRE) + t_low, mul(t, t));
    let mut p = select(high, ATAN_HIGH[5], ATAN_LOW[5]);
    for i in (0..5).rev() {
        p = mul(p, z) + select(high, ATAN_HIGH[i], ATAN_LOW[i]);
    }
    let tail = mul(z, select(high, p, mul(t, p) - t_low));
    joined(base, base_low, minus, t - select(high, ATAN_LESS, 0.0), t_low, tail)
}

/// The arc tangent. Largest error 0.796 ULP; 63 operations, one of them a division.
///
/// Above 1: pi/2 - atan(1 / |x|), below 2 with the quotient's rounding error from the exact remainder.
pub fn atan(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let a = f32::from_bits(magnitude);
    let inverse = magnitude > ONE;
    let q = select(inverse, 1.0, a) / select(inverse, a, 1.0);
    // q a for a in (1, 2): the product of the mantissas modulo 2^32, in units of 2^-47.
    let product = q.to_bits().wrapping_sub(0x3e80_0000).wrapping_mul(magnitude.wrapping_sub(0x3f00_0000)) as i32;
    let low = mul(mul(float_of(product), -UNIT), q);
    let t_low = select(inverse && magnitude < 0x4000_0000, low, 0.0);
    let base = select(inverse, HALF_PI_HEAD, 0.0);
    let base_low = select(inverse, HALF_PI_REST, 0.0);
    let y = turned(base, base_low, select(inverse, SIGN, 0), q, t_low);
    let result = select(magnitude < SMALL, bits, y.to_bits() | (bits & SIGN));
    f32::from_bits(select(magnitude > INFINITY, NAN, result))
}

/// About 1 / x (to an eighth) for a positive normal x below 2^126.
fn about_inverse(x: f32) -> f32 {
    f32::from_bits(0x7ef3_11c7 - x.to_bits())
}

/// A positive number's mantissa in [1, 2) as bits of a float; its exponent field, below 1 for a subnormal number.
fn normalised(magnitude: u32) -> (u32, i32) {
    let subnormal = magnitude < NORMAL;
    // A subnormal number is an integer times 2^-149.
    let b = select(subnormal, float_of((magnitude & 0x007f_ffff) as i32).to_bits(), magnitude);
    let exponent = (b >> 23) as i32 - select(subnormal, 149, 0);
    ((b & 0x007f_ffff) | ONE, exponent)
}

/// n / d - ratio to an eighth, for n and d in [1, 2) (by their bits) and `ratio` their rounded quotient: the exact
/// remainder in integers modulo 2^32, over d. 17 operations.
fn quotient_error(n: u32, d: u32, ratio: u32) -> f32 {
    // ratio = q * 2^(exponent - 150); the dividend has 2^(150 - exponent) times its mantissa of the same units.
    let exponent = ratio >> 23;
    let n_mantissa = whole_of(n);
    let d_mantissa = whole_of(d);
    let q_mantissa = whole_of(ratio);
    let remainder = (n_mantissa << (150 - exponent)).wrapping_sub(q_mantissa.wrapping_mul(d_mantissa)) as i32;
    let unit = f32::from_bits((exponent - 46) << 23);
    mul(mul(float_of(remainder), unit), about_inverse(f32::from_bits(d)))
}

/// The angle of the point (x, y). Largest error 0.865 ULP (2^26 pairs); about 105 operations, one of them a division.
///
/// atan of the smaller of |x| and |y| over the larger, as in `atan`, with the quotient's rounding error from the exact
/// remainder (integers modulo 2^32), added to or taken from a multiple of pi/2. Mantissas and exponents are apart:
/// nothing is subnormal.
pub fn atan2(y: f32, x: f32) -> f32 {
    let y_magnitude = y.to_bits() & MAGNITUDE;
    let x_magnitude = x.to_bits() & MAGNITUDE;
    let steep = y_magnitude > x_magnitude;
    let left = (x.to_bits() & SIGN) != 0;
    let above = select(steep, x_magnitude, y_magnitude);
    let below = select(steep, y_magnitude, x_magnitude);
    let (n, n_exponent) = normalised(above);
    let (d, d_exponent) = normalised(below);
    let divisor = f32::from_bits(d);
    let ratio = f32::from_bits(n) / divisor;
    let ratio_bits = ratio.to_bits();
    let exponent = ratio_bits >> 23;
    let low = quotient_error(n, d, ratio_bits);
    // Times 2^difference; zero where that is below 2^-126.
    let difference = n_exponent - d_exponent;
    let zero = above == 0 || (exponent as i32) + difference < 1 || (below == INFINITY && above < INFINITY);
    let shift = (select(zero, 0, difference) as u32) << 23;
    let t_bits = select(zero, 0, ratio_bits.wrapping_add(shift));
    // The rounding error matters only where the polynomial does.
    let scale = f32::from_bits(select(difference < -20, 0, ONE.wrapping_add(shift)));
    let t_low = select(zero, 0.0, mul(low, scale));
    let minus = select(steep != left, SIGN, 0);
    let base = select(steep, HALF_PI_HEAD, select(left, PI_HEAD, 0.0));
    let base_low = select(steep, HALF_PI_REST, select(left, PI_REST, 0.0));
    let angle = turned(base, base_low, minus, f32::from_bits(t_bits), t_low);
    let sign = y.to_bits() & SIGN;
    let small = base == 0.0 && t_bits < SMALL;
    let result = select(small, t_bits, angle.to_bits()) | sign;
    f32::from_bits(select(y_magnitude > INFINITY || x_magnitude > INFINITY, NAN, result))
}

/// For asin and acos, |x| by its bits: whether |x| > 1/2; t and z with t = |x|, z = t^2 or t = 2 sqrt(z), z = (1 - |x|)
/// / 2; what the square root's rounding left; t z B(z), where asin t = t + t t^2 B(t^2) for t <= 1/2, B of degree 4.
fn sine_arc(magnitude: u32) -> (bool, f32, f32, f32) {
    let a = f32::from_bits(select(magnitude > ONE, 0, magnitude));
    let outer = magnitude > 0x3f00_0000;
    let w = mul(1.0 - a, 0.5);
    let root = w.sqrt();
    // w - root^2 in integers modulo 2^32, root = mantissa * 2^(exponent - 150).
    let exponent = root.to_bits() >> 23;
    let mantissa = whole_of(root.to_bits());
    let w_mantissa = whole_of(w.to_bits());
    let w_exponent = w.to_bits() >> 23;
    let places = (w_exponent + 150).wrapping_sub(2 * exponent) & 31;
    let remainder = (w_mantissa << places).wrapping_sub(mantissa.wrapping_mul(mantissa)) as i32;
    // 2 (remainder * 2^(2 exponent - 300)) / (2 root)
    let unit = f32::from_bits((2 * exponent).wrapping_sub(173) << 23);
    let error = mul(mul(float_of(remainder), unit), about_inverse(root));
    let some = outer && magnitude < ONE;
    let z = select(outer, w, mul(a, a));
    let t = select(outer, root + root, a);
    let p = polynomial(z, ASIN);
    (outer, t, select(some, error, 0.0), mul(mul(t, z), p))
}

/// The arc sine. Largest error 0.751 ULP; about 55 operations, one of them a square root.
///
/// |x| <= 1/2: a polynomial of degree 11 (minimax, kernels/fit/trigonometric.py). Above: pi/2 - 2 asin(sqrt((1 - |x|) /
/// 2)), with the square root's rounding error from the exact remainder.
pub fn asin(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let (outer, t, t_low, tail) = sine_arc(magnitude);
    let minus = select(outer, SIGN, 0);
    let base = select(outer, HALF_PI_HEAD, 0.0);
    let base_low = select(outer, HALF_PI_REST, 0.0);
    let y = joined(base, base_low, minus, t, t_low, tail);
    let result = select(magnitude < SMALL, bits, y.to_bits() | (bits & SIGN));
    f32::from_bits(select(magnitude > ONE, NAN, result))
}

/// The arc cosine. Largest error 0.760 ULP; about 55 operations, one of them a square root.
///
/// |x| <= 1/2: pi/2 - asin x; above: 2 asin(sqrt((1 - |x|) / 2)), taken from pi where x < 0. The parts are those of
/// `asin`.
pub fn acos(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let (outer, t, t_low, tail) = sine_arc(magnitude);
    let left = (bits & SIGN) != 0;
    let minus = select(left == outer, SIGN, 0);
    let base = select(outer, select(left, PI_HEAD, 0.0), HALF_PI_HEAD);
    let base_low = select(outer, select(left, PI_REST, 0.0), HALF_PI_REST);
    let y = joined(base, base_low, minus, t, t_low, tail);
    f32::from_bits(select(magnitude > ONE, NAN, y.to_bits()))
}
