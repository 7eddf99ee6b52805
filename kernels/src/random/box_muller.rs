//! Constants of the transform of two words into two normal numbers (G. E. P. Box and M. E. Muller, "A note on the
//! generation of random normal deviates", 1958).
//!
//! Radius and angle are independent: the squared radius is `-2 ln u`, and the angle is uniform. The logarithm, the root,
//! the cosine and the sine are polynomials here, since each device has its own.
//!
//! The coefficients are minimax fits of the relative error (Remez' algorithm in 40 digits), rounded to f32. The error
//! named with each is that of the rounded polynomial.

/// `-log2(1 + f) / f` for `1 + f` in `[sqrt(1/2), sqrt(2))`, to 4.5e-8; lowest coefficient first, as in all of them.
#[expect(clippy::approx_constant, reason = "a fitted coefficient, next to log2(e) but not it")]
pub(super) const LOGARITHM: [f32; 9] =
    [-1.442695, 0.72134733, -0.48091063, 0.36070368, -0.28791624, 0.23894481, -0.2157156, 0.20726974, -0.12583704];

/// The bits of 1 less those of `sqrt(1/2)`: added to the bits of a float in `2^e [sqrt(1/2), sqrt(2))`, they make its
/// exponent `e`.
pub(super) const TO_NEAREST_POWER: u32 = 0x004A_FB0D;

/// `ROOT_ESTIMATE - (bits >> 1)` are the bits of `1 / sqrt(s)`, to 3.5 % (C. Lomont, "Fast inverse square root", 2003).
pub(super) const ROOT_ESTIMATE: u32 = 0x5F37_5A86;

/// `1 / sqrt(w)` for the `w` that the estimate leaves, `|w - 1| < 0.0692`, to 2.5e-5.
///
/// It is not in `w - 1`: Mesa's compiler multiplies such a sum by a constant term by term, which changes bits.
pub(super) const ROOT: [f32; 3] = [1.8765967, -1.2520971, 0.37550062];

/// `sqrt(2 ln 2) cos(pi/4 x)` in `x^2`, `x` in `[-1, 1]`, to 5.1e-8. The factor makes a radius of `-log2 u`.
pub(super) const COSINE: [f32; 4] = [1.17741, -0.36314172, 0.018661577, -0.00037527335];

/// `sqrt(2 ln 2) sin(pi/4 x) / x` in `x^2`, to 4.3e-9.
pub(super) const SINE: [f32; 4] = [0.92473567, -0.09507048, 0.0029317522, -0.00004232842];
