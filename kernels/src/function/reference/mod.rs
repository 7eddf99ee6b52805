//! The functions in plain Rust, line by line: the specification that kernels are compared with, bit by bit.

/// Exponentials, logarithms, hyperbolic functions and powers.
pub mod exponential;
/// Trigonometric functions, their inverses, and the error function.
pub mod trigonometric;

use crate::function::constants::{MAGNITUDE, NAN, NORMAL, SIGN};

/// `a * b`, rounded: `multiply_rounded` of the kernels.
fn mul(a: f32, b: f32) -> f32 {
    a * b
}

/// The float with its sign changed where `minus` is the sign bit.
fn flipped(x: f32, minus: u32) -> f32 {
    f32::from_bits(x.to_bits() ^ minus)
}

/// The mantissa, with its highest bit.
fn whole_of(bits: u32) -> u32 {
    (bits & 0x007f_ffff) | NORMAL
}

/// The upper 32 bits of a product.
fn mul_hi(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

/// Kernels evaluate both sides.
fn select<T>(condition: bool, a: T, b: T) -> T {
    if condition { a } else { b }
}

/// Towards zero, below 2^31 in magnitude.
fn truncated(x: f32) -> i32 {
    x as i32
}

/// To the nearest float, ties to even.
fn float_of(i: i32) -> f32 {
    i as f32
}

/// Horner's scheme; the constant term comes first.
fn polynomial<const TERMS: usize>(x: f32, c: [f32; TERMS]) -> f32 {
    let mut sum = mul(x, c[TERMS - 1]) + c[TERMS - 2];
    for i in (0..TERMS - 2).rev() {
        sum = mul(x, sum) + c[i];
    }
    sum
}

/// An odd function of the number with these bits, of which `y` is the magnitude: the number itself below 2^-12, `end`
/// above `last`, a NaN above `domain`.
fn odd_result(bits: u32, y: u32, last: u32, end: u32, domain: u32) -> f32 {
    let magnitude = bits & MAGNITUDE;
    let y = select(magnitude < 0x3980_0000, magnitude, y);
    let y = select(magnitude > last, end, y);
    f32::from_bits(select(magnitude > domain, NAN, y | (bits & SIGN)))
}
