//! The only place that spells float arithmetic which a compiler could contract.
//!
//! CubeCL rewrites `a * b + c` to a fused multiply-add on every path, and drivers contract what is left. A kernel
//! therefore never lets a bare product feed a sum: it calls `multiply_rounded` for a product, `multiply_add` for a
//! rounded product and a sum, and `accumulate` for a step of a long chain of products.
//!
//! On CUDA and Metal `fma` rounds once; on Vulkan drivers that implement it as multiply-then-add it rounds twice.
//! [`MultiplyAdd`] names the two meanings for the references; [`known_answer`](crate::known_answer) asks a device which
//! one it has. Only chains of [`matmul`](crate::matmul) and [`convolution`](crate::convolution) may have the device's,
//! if the caller asks for [`Products::Native`]: there it is twice as fast on a GPU. All else has one meaning on every
//! device.

use crate::dtype::F32;
use cubecl::prelude::*;

/// How a chain of products adds one to its sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Products {
    /// `fma(a, b, sum)`, which the device rounds once or twice: one instruction.
    Native,
    /// `a * b`, rounded, then the sum, rounded: equal bits on every device.
    Rounded,
}

/// `a * b + sum`: a step of a long chain of products.
#[cube]
pub(crate) fn accumulate<F: Numeric>(a: F, b: F, sum: F, #[comptime] products: Products) -> F {
    match products {
        Products::Native => fma(a, b, sum),
        Products::Rounded => multiply_add::<F>(a, b, sum),
    }
}

/// `a * b`, rounded, plus `c`, rounded.
#[cube]
pub(crate) fn multiply_add<F: Numeric>(a: F, b: F, c: F) -> F {
    multiply_rounded::<F>(a, b) + c
}

/// `a * b`, rounded to nearest, in a form no compiler contracts with a sum that follows.
///
/// `fma(a, b, -0.0)` is the rounded product on devices that fuse and on devices that do not. Compilers of shaders may
/// take it for a product, which they may contract with a sum and reassociate with products: CubeCL marks no operation
/// with SPIR-V's `NoContraction`, and NVIDIA's Vulkan driver does both. So the bits of an f32 pass an operation on
/// integers, with a zero that such a compiler does not know: the grid's width is below 2^31. CUDA's compiler knows it,
/// and leaves the operation out.
#[cube]
pub(crate) fn multiply_rounded<F: Numeric>(a: F, b: F) -> F {
    let rounded = fma(a, b, negative_zero::<F>());
    let elem = elem_type_of::<F>();
    if comptime!(elem == F32) { F::cast_from(opaque(f32::cast_from(rounded), CUBE_COUNT_X >> 31)) } else { rounded }
}

/// A polynomial by Horner's rule, from the highest coefficient.
#[cube]
pub(crate) fn horner<const TERMS: usize>(x: f32, #[comptime] coefficients: [f32; TERMS]) -> f32 {
    let last = comptime!(TERMS - 1);
    let mut sum = f32::new(comptime!(coefficients[last]));
    #[unroll]
    for k in 0..last {
        sum = multiply_add::<f32>(sum, x, f32::new(comptime!(coefficients[last - 1 - k])));
    }
    sum
}

/// `x`, behind a barrier: drivers of software Vulkan take `(a + b) + 1` for `a + (b + 1)`.
#[cube]
pub(crate) fn held(x: f32) -> f32 {
    opaque(x, CUBE_COUNT_X >> 31)
}

/// The float -0.0, from its bits: as a constant, CubeCL's C++ compilers (CUDA's NVRTC, HIP, Metal) print it as the
/// integer `-0`, which is +0.0.
#[cube]
pub(crate) fn negative_zero<F: Numeric>() -> F {
    F::cast_from(f32::reinterpret(0x8000_0000u32))
}

/// The +0 that a sum begins with, which no compiler knows: it would leave it out, and a sum of -0 would be -0. Of f64, whose
/// bits are those of the device, it is a constant.
#[cube]
pub(crate) fn positive_zero<A: Numeric>() -> A {
    let elem = elem_type_of::<A>();
    if comptime!(elem == F32) { A::cast_from(held(f32::new(0.0))) } else { A::from_int(0) }
}

/// The float -inf, which no compiler knows: those of shaders take no infinite constant.
#[cube]
pub(crate) fn negative_infinity() -> f32 {
    f32::reinterpret(0xff80_0000u32 ^ (CUBE_COUNT_X >> 31))
}

/// `a * b`, to which nothing may be added. The known-answer test asks what the device makes of it.
#[cube]
pub(crate) fn product(a: f32, b: f32) -> f32 {
    a * b
}

/// Optimisation barrier: `x`, bit for bit. `zero` must be 0 at run time and come from the launch, so that no compiler
/// merges the operations that use the result with those that made `x`.
#[cube]
pub(crate) fn opaque(x: f32, zero: u32) -> f32 {
    f32::reinterpret(u32::reinterpret(x) ^ zero)
}

/// How a device rounds `fma(a, b, c)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MultiplyAdd {
    /// One rounding, of the exact `a * b + c`.
    Fused,
    /// Two roundings: of the product, then of the sum.
    Unfused,
}

impl MultiplyAdd {
    /// What chains of `products` have on a device with this multiply-add.
    pub fn of(self, products: Products) -> Self {
        match products {
            Products::Native => self,
            Products::Rounded => Self::Unfused,
        }
    }

    /// The host's equal of a kernel's `accumulate`.
    pub fn apply(self, a: f32, b: f32, c: f32) -> f32 {
        match self {
            Self::Fused => a.mul_add(b, c),
            Self::Unfused => a * b + c,
        }
    }
}
