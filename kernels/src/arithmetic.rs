//! The only place that spells float arithmetic which a compiler could contract.
//!
//! CubeCL rewrites `a * b + c` to a fused multiply-add on every path, and drivers contract what is left. A kernel
//! therefore never lets a bare product feed a sum: it calls `multiply_add` where a multiply-add is meant, and
//! `multiply_rounded` where a rounded product is meant.
//!
//! On CUDA and Metal `fma` rounds once; on Vulkan drivers that implement it as multiply-then-add it rounds twice.
//! [`MultiplyAdd`] names the two meanings for the references; [`known_answer`](crate::known_answer) asks a device which one it
//! has.

use crate::dtype::F32;
use cubecl::prelude::*;

/// `a * b + c`, the one multiply-add of every chain in this crate. `F` is a float type: integers have no `fma`.
#[cube]
pub(crate) fn multiply_add<F: Numeric>(a: F, b: F, c: F) -> F {
    fma(a, b, c)
}

/// `a * b`, rounded to nearest, in a form no compiler contracts with a sum that follows.
///
/// `fma(a, b, -0.0)` is the rounded product on devices that fuse and on devices that do not. Compilers of shaders may take it for a
/// product, which they may contract with a sum and reassociate with products: CubeCL marks no operation with SPIR-V's
/// `NoContraction`, and NVIDIA's Vulkan driver does both. So the bits of an f32 pass an operation on integers, with a zero that such
/// a compiler does not know: the grid's width is below 2^31. CUDA's compiler knows it, and leaves the operation out.
#[cube]
pub(crate) fn multiply_rounded<F: Float>(a: F, b: F) -> F {
    let rounded = fma(a, b, negative_zero::<F>());
    let elem = elem_type_of::<F>();
    if comptime!(elem == F32) { F::cast_from(opaque(f32::cast_from(rounded), CUBE_COUNT_X >> 31)) } else { rounded }
}

/// The float -0.0, from its bits: as a constant, CubeCL's C++ compilers (CUDA's NVRTC, HIP, Metal) print it as the integer `-0`,
/// which is +0.0.
#[cube]
pub(crate) fn negative_zero<F: Numeric>() -> F {
    F::cast_from(f32::reinterpret(0x8000_0000u32))
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
    /// The host's equal of a kernel's `multiply_add`.
    pub fn apply(self, a: f32, b: f32, c: f32) -> f32 {
        match self {
            Self::Fused => a.mul_add(b, c),
            Self::Unfused => a * b + c,
        }
    }
}
