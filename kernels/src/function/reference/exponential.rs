//! Exponentials, logarithms, hyperbolic functions and powers.
//!
//! The error given with a function is the largest over all arguments with a result of at least 2^-126 in magnitude.

use super::{float_of, mul, mul_hi, odd_result, polynomial, select, truncated, whole_of};
use crate::function::constants::exponential::*;
use crate::function::constants::{INFINITY, MAGNITUDE, NAN, ONE, SHIFT, SIGN};

/// e^x. x = k ln 2 + r, |r| <= ln(2) / 2, with ln 2 in two parts (Cody and Waite); 1 + (r + r^2 q(r)), q of degree 4;
/// the lower part of r enters that sum late, so that r itself costs no rounding. 0.891 ULP; 29 operations, 7 of them
/// for special values.
pub fn exp(x: f32) -> f32 {
    let bits = x.to_bits();
    // k 2^23, an integer.
    let k = (mul(x, LOG2_E) + SHIFT).to_bits() << 23;
    let kf = float_of(k as i32);
    let low = mul(kf, LN2_LOW);
    let high = x - mul(kf, LN2_HIGH);
    let r = high - low;
    let s = high + (mul(mul(r, r), polynomial(r, EXP)) - low);
    let y = (s + 1.0).to_bits().wrapping_add(k);
    // Below ln(2^-126), above ln(2^128), and the rest of these, -infinity, infinity, the NaNs.
    let y = select(bits > 0xc2ae_ac4f, 0, y);
    let y = select(bits as i32 > 0x42b1_7217, INFINITY, y);
    f32::from_bits(select(bits & MAGNITUDE > INFINITY, NAN, y))
}

/// For a positive finite x = 2^e m: the bits of 2^e with e 2^23 as an integer, and m - 1; `least` holds the bits of the
/// least m.
fn parts(bits: u32, least: u32) -> (u32, f32) {
    // A subnormal number is its bits times 2^-149.
    let subnormal = bits < 0x0080_0000;
    let normal = select(subnormal, float_of(bits as i32).to_bits(), bits);
    let e = normal.wrapping_sub(least) & 0xff80_0000;
    let f = f32::from_bits(normal.wrapping_sub(e)) - 1.0;
    (e.wrapping_sub(select(subnormal, 149 << 23, 0)), f)
}

/// The logarithm's results outside its domain and at its ends; `y` where there is nothing of these.
fn logarithm_ends(bits: u32, y: f32) -> f32 {
    let end = select(bits << 1 == 0, 0xff80_0000, select(bits == INFINITY, INFINITY, NAN));
    f32::from_bits(select(bits.wrapping_sub(1) < 0x7f7f_ffff, y.to_bits(), end))
}

/// The natural logarithm. x = 2^e (1 + f), -1/4 <= f < 1/2; e ln 2 + (f + f^2 q(f)), q of degree 8, ln 2 in two parts.
/// 0.970 ULP; 41 operations, 17 of them for the parts of x (subnormal numbers included) and special values.
pub fn log(x: f32) -> f32 {
    let bits = x.to_bits();
    let (e, f) = parts(bits, 0x3f40_0000);
    logarithm_ends(bits, log_of_parts(e, f))
}

fn log_of_parts(e: u32, f: f32) -> f32 {
    let e = float_of(e as i32);
    let q = polynomial(f, LOG);
    mul(e, LN2_HIGH) + (f + (mul(e, LN2_LOW) + mul(mul(f, f), q)))
}

/// log(1 + x). e is taken from 1 + x, rounded; then 1 + x = 2^e (1 + f), -1/4 <= f < 1/2, with f = x 2^-e + (2^-e - 1),
/// of which only the sum rounds, and only where e is not 0; the rest as in log. 0.993 ULP; 43 operations.
pub fn log1p(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let e = (x + 1.0).to_bits().wrapping_sub(0x3f40_0000) & 0xff80_0000;
    // 4 * 2^-e: e = 128 gives a normal number too.
    let scale = f32::from_bits(0x4080_0000u32.wrapping_sub(e));
    let f = f32::from_bits(bits.wrapping_sub(e)) + (mul(scale, 0.25) - 1.0);
    let y = log_of_parts(e, f).to_bits();
    let y = select(magnitude < 0x3300_0000, bits, y);
    let end = select(bits == 0xbf80_0000, 0xff80_0000, select(bits == INFINITY, INFINITY, NAN));
    let outside = (bits >= 0xbf80_0000) | (bits as i32 >= INFINITY as i32);
    f32::from_bits(select(outside, end, y))
}

/// The hyperbolic tangent. |x| < 0.625: x + x^3 p(x^2), p of degree 4. From there on 3/4 + (e^2x - 7) / (4 (e^2x + 1)),
/// which keeps the roundings of the quotient small; e^2x = 2^k (1 + s) as in exp, and the constants are added to 2^k,
/// where the sum is exact; 1 where that is nearest. 0.888 ULP; 52 operations, one division.
pub fn tanh(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let a = f32::from_bits(magnitude);

    let k = (mul(a, 2.0 * LOG2_E) + SHIFT).to_bits() << 23;
    let kf = float_of(k as i32);
    let r = (a + a - mul(kf, LN2_HIGH)) - mul(kf, LN2_LOW);
    let s = r + mul(mul(r, r), polynomial(r, EXP));
    let scale = f32::from_bits(k.wrapping_add(ONE));
    let m = mul(s, scale);
    let large = ((scale - 7.0 + m) / mul(scale + 1.0 + m, 4.0) + 0.75).to_bits();

    let u = mul(a, a);
    let small = (a + mul(mul(a, u), polynomial(u, TANH))).to_bits();

    let y = select(magnitude < 0x3f20_0000, small, large);
    odd_result(bits, y, 0x4110_0000, ONE, INFINITY)
}

/// What sinh and cosh of a = k ln 2 + r >= 0 have in common: whether k = 0, 2^(k-3), 2^-2k (0 where k > `last`),
/// r without its lower part, cosh r - 1, and sinh r - r with that part.
fn hyperbolic(a: f32, last: u32) -> (bool, f32, f32, f32, f32, f32) {
    let k = (mul(a - 0.12, LOG2_E) + SHIFT).to_bits() << 23;
    let kf = float_of(k as i32);
    let low = mul(kf, LN2_LOW);
    let high = a - mul(kf, LN2_HIGH);
    let r = high - low;
    let u = mul(r, r);
    let odd = mul(mul(r, u), polynomial(u, SINH)) - low;
    let even = mul(u, polynomial(u, COSH));
    let up = f32::from_bits(k.wrapping_add(0x3e00_0000));
    let ratio = select(k > last << 23, 0.0, f32::from_bits(ONE.wrapping_sub(k << 1)));
    (k == 0, up, ratio, high, even, odd)
}

/// The hyperbolic sine. |x| = k ln 2 + r, -0.23 < r < 0.47; (2^k - 2^-k) / 2 + 2^k ((e^r - 1) - 2^-2k (e^-r - 1)) / 2,
/// computed at a quarter of the scale; e^r - 1 from the polynomials of sinh r and cosh r (degree 2 in r^2). The cut
/// between k = 0 and k = 1 is at 0.467, where no cancellation hurts; sinh r itself for k = 0. 0.975 ULP; 50 operations,
/// no division.
pub fn sinh(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let (zero, up, ratio, high, even, odd) = hyperbolic(f32::from_bits(magnitude), 12);
    let minus = (even - odd) - high;
    let quarter = (up - mul(up, ratio)) + mul(up, high + ((even + odd) - mul(minus, ratio)));
    let y = select(zero, high + odd, mul(quarter, 4.0)).to_bits();
    odd_result(bits, y, 0x42b2_d4fc, INFINITY, INFINITY)
}

/// The hyperbolic cosine, with the steps of sinh: 2^k (1 + (e^r - 1) + 2^-2k e^-r) / 2; cosh r itself for k = 0. 0.917
/// ULP; 45 operations, no division.
pub fn cosh(x: f32) -> f32 {
    let magnitude = x.to_bits() & MAGNITUDE;
    let (zero, up, ratio, high, even, odd) = hyperbolic(f32::from_bits(magnitude), 15);
    let falling = ((even - odd) - high) + 1.0;
    let quarter = up + mul(up, high + ((even + odd) + mul(falling, ratio)));
    let y = select(zero, even + 1.0, mul(quarter, 4.0)).to_bits();
    let y = select(magnitude > 0x42b2_d4fc, INFINITY, y);
    f32::from_bits(select(magnitude > INFINITY, NAN, y))
}

/// log(a + s) for s = sqrt(a^2 + 1) or sqrt(a^2 - 1) with one rounding or more, a + s > 1.5. Where the error of s
/// counts, below a = 5, it is found from (a - s) (a + s), of which the lower 32 bits suffice, in units of 2^-48, and
/// the difference is exact; the logarithm then gets (a^2 +- 1 - s^2) / (2 s (a + s)). The argument of the logarithm is never
/// rounded: from a + s = 2^e (1 + f), f = (s 2^-e - 1/2) + (a 2^-e - 1/2).
fn log_of_sum(a: f32, s: f32) -> f32 {
    let magnitude = a.to_bits();
    let far = magnitude >= 0x4600_0000;
    let s = select(far, a, s);
    let sum = a + s;
    let near = magnitude < 0x40a0_0000;
    let an = select(near, a, 0.0);
    let sn = select(near, s, 0.0);
    let units = |x: f32| truncated(mul(x, 16777216.0)) as u32;
    let product = units(an - sn).wrapping_mul(units(an).wrapping_add(units(sn)));
    let c = mul(float_of(product as i32), 1.7763568e-15) / mul(s, sum);

    // 2 a may be above all finite numbers.
    let e = select(far, magnitude.wrapping_add(0x0080_0000), sum.to_bits()).wrapping_sub(0x3f40_0000) & 0xff80_0000;
    // Both differences are exact; the product keeps a compiler from adding up the halves.
    let f =
        mul(f32::from_bits(s.to_bits().wrapping_sub(e)) - 0.5, 1.0) + (f32::from_bits(magnitude.wrapping_sub(e)) - 0.5);
    let ef = float_of(e as i32);
    mul(ef, LN2_HIGH) + (f + (mul(mul(f, f), polynomial(f, LOG)) + (mul(ef, LN2_LOW) + c)))
}

/// The inverse hyperbolic sine. |x| < 1/2: x + x^3 p(x^2), p of degree 4; otherwise log(|x| + sqrt(x^2 + 1)). 0.835
/// ULP; 79 operations, one division and one square root.
pub fn asinh(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let a = f32::from_bits(magnitude);
    let u = mul(a, a);
    let small = (a + mul(mul(a, u), polynomial(u, ASINH))).to_bits();
    let large = log_of_sum(a, (u + 1.0).sqrt()).to_bits();
    let y = select(magnitude < 0x3f00_0000, small, large);
    odd_result(bits, y, INFINITY - 1, INFINITY, INFINITY)
}

/// The inverse hyperbolic cosine. t = x - 1 < 1/2: r + r t p(t), p of degree 4, r = sqrt(2 t) with its error, which the
/// lower 32 bits of the square of its significand give; otherwise log(x + sqrt((x - 1) (x + 1))). 0.841 ULP; 101
/// operations, one division and two square roots.
pub fn acosh(x: f32) -> f32 {
    let bits = x.to_bits();
    let outside = bits.wrapping_sub(ONE) > INFINITY - ONE;
    // The conversions to integers must not meet a NaN.
    let x = select(outside, 1.0, x);
    let t = x - 1.0;
    let double = t + t;
    let r = double.sqrt();
    let whole = whole_of(r.to_bits());
    let exponent = r.to_bits() & INFINITY;
    let shift = ((double.to_bits() >> 23).wrapping_add(150)).wrapping_sub(exponent >> 22);
    let rest = (whole_of(double.to_bits()) << (shift & 31)).wrapping_sub(whole.wrapping_mul(whole));
    // rest / (2 r) in its unit; 1 / m to 1 / 23 by a straight line, m the significand of r: a few bits of c are enough.
    let slope = 1.4571 - mul(f32::from_bits((whole & 0x007f_ffff) | ONE), 0.5);
    let c = mul(mul(float_of(rest as i32), slope), f32::from_bits(exponent.wrapping_sub(47 << 23)));
    let small = (r + (c + mul(mul(r, t), polynomial(t, ACOSH)))).to_bits();
    let large = log_of_sum(x, mul(t, x + 1.0).sqrt()).to_bits();
    let y = select(bits < 0x3fc0_0000, small, large);
    let y = select(bits == INFINITY, INFINITY, y);
    f32::from_bits(select(outside, NAN, y))
}

/// The inverse hyperbolic tangent. |x| < 1/2: x + x^3 p(x^2), p of degree 5; otherwise half of the logarithm of (1 +
/// |x|) / (1 - |x|) = 2^k (1 + f), f = (|x| + (1 - d)) / d with d = 2^k (1 - |x|), where only the sum and the quotient
/// round. 0.817 ULP; 64 operations, one division.
pub fn atanh(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & MAGNITUDE;
    let a = f32::from_bits(magnitude);
    let u = mul(a, a);
    let small = (a + mul(mul(a, u), polynomial(u, ATANH))).to_bits();
    let rest = (1.0 - a).to_bits();
    // The distance in [1, 2), then doubled where that makes the quotient nearer to 1.
    let d = (rest & 0x007f_ffff) | ONE;
    let k = ONE.wrapping_sub(rest & INFINITY);
    let up = select((a + 1.0).to_bits() >= mul(f32::from_bits(d), 1.5).to_bits(), 0x0080_0000, 0);
    let d = f32::from_bits(d.wrapping_add(up));
    let f = (a + (1.0 - d)) / d;
    let large = mul(log_of_parts(k.wrapping_add(up), f), 0.5).to_bits();
    let y = select(magnitude < 0x3f00_0000, small, large);
    odd_result(bits, y, ONE - 1, INFINITY, ONE)
}

/// x^y = 2^(y log2 x), in fixed point. |x| = 2^e (1 + f); log2(1 + f) = f (log2(e) - f H(f)) to 2^-33 of its value, H
/// of degree 11 in 32 bits, the rest in 64; the product with y in 64 bits, 32 of them after the point; 2^z of degree 7
/// in 32 bits, rounded once. Special values as in C99; y = 1 gives x, subnormal numbers included. 0.623 ULP at most
/// over 2^28 pairs; about 210 operations, all on integers but for one conversion.
pub fn powf(x: f32, y: f32) -> f32 {
    f32::from_bits(pow_bits(x.to_bits(), y.to_bits()))
}

fn pow_bits(x: u32, y: u32) -> u32 {
    let ax = x & MAGNITUDE;
    let ay = y & MAGNITUDE;

    // |x| = 2^e m, sqrt(1/2) <= m < sqrt(2); f = m - 1 in units of 2^-24.
    let subnormal = ax < 0x0080_0000;
    let normal = select(subnormal, float_of(ax as i32).to_bits(), ax);
    let i = normal.wrapping_sub(0x3f35_04f3);
    let e = ((i as i32) >> 23) - select(subnormal, 149, 0);
    let m = (i & 0x007f_ffff).wrapping_add(0x3f35_04f3);
    let whole = whole_of(m);
    let f = (whole << select(m >= ONE, 1, 0)).wrapping_sub(0x0100_0000);
    let f_negative = (f as i32) < 0;
    let f_magnitude = select(f_negative, 0u32.wrapping_sub(f), f) << 8;

    // H, then g = (log2(e) - f H) / 2 in units of 2^-64.
    let t = f.wrapping_add(0x004c_0000) << 8;
    let mut h = POW_LOG[11];
    for i in (4..11).rev() {
        h = POW_LOG[i].wrapping_sub(mul_hi(t, h));
    }
    h = POW_LOG[3].wrapping_sub(mul_hi(t, h) << 1);
    for i in (0..3).rev() {
        h = POW_LOG[i].wrapping_sub(mul_hi(t, h));
    }
    let high = mul_hi(f_magnitude, h);
    let low = (high << 31) | (f_magnitude.wrapping_mul(h) >> 1);
    let high = high >> 1;
    let sum_low = 0x5c17_f0bcu32.wrapping_add(low);
    let sum_high = 0xb8aa_3b29u32.wrapping_add(high).wrapping_add(select(sum_low < low, 1, 0));
    let rest_low = 0x5c17_f0bcu32.wrapping_sub(low);
    let rest_high = 0xb8aa_3b29u32.wrapping_sub(high).wrapping_sub(select(low > 0x5c17_f0bc, 1, 0));
    let g_low = select(f_negative, sum_low, rest_low);
    let g_high = select(f_negative, sum_high, rest_high);

    // |log2 m| in units of 2^-63.
    let carry = mul_hi(f_magnitude, g_low);
    let p_low = f_magnitude.wrapping_mul(g_high).wrapping_add(carry);
    let p_high = mul_hi(f_magnitude, g_high).wrapping_add(select(p_low < carry, 1, 0));

    // |log2 |x||: p where e = 0; otherwise |e| + p or |e| - p, in units of 2^-56.
    let e_negative = e < 0;
    let e_magnitude = select(e_negative, 0i32.wrapping_sub(e), e) as u32;
    let q_low = (p_low >> 7) | (p_high << 25);
    let q_high = p_high >> 7;
    let base = e_magnitude << 24;
    let more = e_negative == f_negative;
    let l_high =
        select(more, base.wrapping_add(q_high), base.wrapping_sub(q_high).wrapping_sub(select(q_low != 0, 1, 0)));
    let l_low = select(more, q_low, 0u32.wrapping_sub(q_low));
    let near = e == 0;
    let l_high = select(near, p_high, l_high);
    let l_low = select(near, p_low, l_low);
    let l_negative = select(near, f_negative, e_negative);

    // Normalised; 0 (for |x| = 1) gives a product of 0.
    let zeros = (l_high | 1).leading_zeros();
    let n_high = (l_high << zeros) | ((l_low >> 1) >> (31 - zeros));
    let n_low = l_low << zeros;

    // The product with |y| = w 2^(exponent - 126), 1/2 <= w < 1.
    let w = whole_of(y) << 8;
    let carry = mul_hi(n_low, w);
    let z_low = n_high.wrapping_mul(w).wrapping_add(carry);
    let z_high = mul_hi(n_high, w).wrapping_add(select(z_low < carry, 1, 0));
    let exponent = select(near, 1i32, 8i32) - zeros as i32 + (ay >> 23) as i32 - 126;

    // Integer part and fraction in units of 2^-32.
    let left = select(exponent < 0, 0, select(exponent > 31, 31, exponent)) as u32;
    let right = select(exponent >= 0, 0, select(exponent < -31, 31, 0 - exponent)) as u32;
    let whole = ((z_high >> 1) >> (31 - left)) >> right;
    let fraction = ((z_high << left) | ((z_low >> 1) >> (31 - left))) >> right;
    let negative = l_negative != ((y >> 31) == 1);
    let k = select(negative, 0i32.wrapping_sub(whole as i32).wrapping_sub(select(fraction != 0, 1, 0)), whole as i32);
    let fraction = select(negative, 0u32.wrapping_sub(fraction), fraction);

    let mut s = POW_EXP[6];
    for i in (0..6).rev() {
        s = POW_EXP[i].wrapping_add(mul_hi(fraction, s));
    }
    let s = mul_hi(fraction, s);
    let mantissa = (s >> 9).wrapping_add((s >> 8) & 1);
    let result = ((k.wrapping_add(127) as u32) << 23).wrapping_add(mantissa);
    // A product of 2^8 and more has an exponent of 9 and more.
    let huge = (exponent > 9) & (z_high != 0);
    let result = select(negative & (huge | (k < -126)), 0, result);
    let result = select(!negative & (huge | (k > 127)), INFINITY, result);

    // An odd y, an integral y: the bits from the unit's bit on at the top.
    let shift = (ay >> 23).wrapping_sub(119);
    let unit = whole_of(ay) << (shift & 31);
    let small = ay < ONE;
    let large = ay >= 0x4b80_0000;
    let odd = !small & !large & (unit == SIGN);
    let integral = large | (!small & (unit & MAGNITUDE == 0));

    // Zeros and infinities.
    let grows = (ax > ONE) != ((y >> 31) == 1);
    let end = (ax == 0) | (ax == INFINITY) | (ay == INFINITY);
    let result = select(end, select(grows, INFINITY, 0), result);
    let negative = (x >> 31) == 1;
    let result = select(negative & odd, result | SIGN, result);
    let invalid = negative & !integral & (ax != 0) & (ax != INFINITY);
    let result = select(invalid, NAN, result);
    let result = select((ax > INFINITY) | (ay > INFINITY), NAN, result);
    let result = select(y == ONE, select(ax > INFINITY, NAN, x), result);
    let unity = (ay == 0) | (x == ONE) | ((ax == ONE) & (ay == INFINITY));
    select(unity, ONE, result)
}
