//! Elementary functions of f32, with equal bits on every device.
//!
//! A function is the lines of its [`reference`]: sums, rounded products and quotients of f32 (one division at most, one
//! square root in `asin`, `acos`, `asinh` and `acosh`), and operations on the bits. Each of these has one result, quotients
//! and roots by [`quotient`](crate::quotient), on every device that passes the [known-answer test](crate::known_answer) for equal bits. No function of the device, of
//! CUDA's library or of a shader compiler is used.
//!
//! - A NaN, and an argument outside the domain, gives the NaN `0x7fc0_0000`. Infinities and signed zeros are those of
//!   C99, annex F.
//! - A result below 2^-126 in magnitude is a zero with its sign, unless it is the argument itself. A subnormal argument
//!   counts with its value. So devices that flush subnormal numbers give the same bits.
//! - Half types are computed in f32 and rounded once. f64 has the device's functions.
//!
//! The largest errors, in ULP of f32, over all arguments; of `cos` and of what follows it over every 127th one, of
//! `powf` over 2^28 and of `atan2` over 2^21 random pairs:
//!
//! | exp | log | log1p | powf | sinh | cosh | tanh | asinh | acosh | atanh | sin | cos | tan | asin | acos | atan | atan2 | erf |
//! |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
//! | 0.89 | 0.97 | 0.99 | 0.62 | 0.97 | 0.92 | 0.89 | 0.83 | 0.84 | 0.82 | 0.95 | 0.90 | 1.12 | 0.75 | 0.67 | 1.13 | 1.16 | 1.04 |
//!
//! Their polynomials are minimax fits of `kernels/fit`. Cost: 29 operations for `exp`, 41 for `log`, 52 for `tanh` and
//! `sin`, 45 for `erf`, all without a branch that is taken often.

pub(crate) mod constants;
pub(crate) mod exponential;
pub mod reference;
pub(crate) mod trigonometric;

use crate::arithmetic::{held, multiply_rounded};
use crate::quotient::{Quotients, divide};
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
