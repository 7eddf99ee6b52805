//! Elementary functions of f32, with equal bits on every device.
//!
//! A function is the lines of its [`reference`]: sums, rounded products and quotients of f32 (one division at most, one
//! square root in `asin`, `acos`, `asinh` and `acosh`), and operations on the bits. Each of these has one result, quotients
//! and roots by [`quotient`](crate::quotient), on every device that passes the
//! [known-answer test](crate::known_answer) for equal bits. No function of the device, of CUDA's library or of a shader
//! compiler is used.
//!
//! - A NaN, and an argument outside the domain, gives the NaN `0x7fc0_0000`. Infinities and signed zeros are those of
//!   C99, annex F.
//! - A result below 2^-126 in magnitude is a zero with its sign, unless it is the argument itself. A subnormal argument
//!   counts with its value. So devices that flush subnormal numbers give the same bits.
//! - Half types are computed in f32 and rounded once. f64 has the device's functions.
//!
//! Every function is faithful: its error is below 1 ULP, of a function of one argument over all of them. The reference
//! says it of each.
//!
//! Their polynomials are minimax fits of `kernels/fit`. Cost: 29 operations for `exp`, 41 for `log`, 52 for `tanh` and
//! `sin`, 51 for `erf`, all without a branch that is taken often.

pub(crate) mod constants;
pub(crate) mod exponential;
pub mod reference;
pub(crate) mod trigonometric;

use crate::arithmetic::{held, multiply_rounded};
use crate::quotient::{Quotients, divide};
use constants::{MAGNITUDE, NAN, NORMAL, SIGN};
use cubecl::prelude::*;

/// A constant of a kernel.
#[cube]
fn constant(#[comptime] value: f32) -> f32 {
    f32::new(value)
}

/// Whether the highest bit is set.
#[cube]
fn is_negative(bits: u32) -> bool {
    bits >= 0x8000_0000u32
}

/// The float with its sign changed where `minus` is the sign bit.
#[cube]
fn flipped(x: f32, minus: u32) -> f32 {
    f32::reinterpret(u32::reinterpret(x) ^ minus)
}

/// The mantissa, with its highest bit.
#[cube]
fn whole_of(bits: u32) -> u32 {
    (bits & 0x007f_ffffu32) | NORMAL
}

/// An odd function of the number with these bits, of which `y` is the magnitude: the number itself below 2^-12, `end`
/// above `last`, a NaN above `domain`.
#[cube]
fn odd_result(bits: u32, y: u32, #[comptime] last: u32, #[comptime] end: u32, #[comptime] domain: u32) -> f32 {
    let magnitude = bits & MAGNITUDE;
    let y = select(magnitude < 0x3980_0000u32, magnitude, y);
    let y = select(magnitude > last, end, y);
    f32::reinterpret(select(magnitude > domain, NAN, y | (bits & SIGN)))
}

/// `a + b`
#[cube]
fn add(a: f32, b: f32) -> f32 {
    held(a + b)
}

/// `a - b`
#[cube]
fn sub(a: f32, b: f32) -> f32 {
    held(a - b)
}

/// `a / b`
#[cube]
fn div(a: f32, b: f32, #[comptime] quotients: Quotients) -> f32 {
    held(divide::<f32>(a, b, quotients))
}

/// `a * b`, rounded.
#[cube]
fn mul(a: f32, b: f32) -> f32 {
    multiply_rounded::<f32>(a, b)
}

/// `a` times a constant, rounded.
#[cube]
fn times(a: f32, #[comptime] constant: f32) -> f32 {
    multiply_rounded::<f32>(a, f32::new(constant))
}

/// The i32 with these bits as a float, to nearest.
#[cube]
fn float_of(bits: u32) -> f32 {
    f32::cast_from(i32::reinterpret(bits))
}
