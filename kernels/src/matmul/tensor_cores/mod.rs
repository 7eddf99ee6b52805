//! Matrix products on the tensor cores of NVIDIA's GPUs, `[.., m, k] x [.., k, n] -> [.., m, n]`: of f16 and bf16, and of f32 whose
//! factors are rounded to TF32.
//!
//! # Order contract
//!
//! For every output element, whatever the batch, strides and plan, in blocks of [`BLOCK`](crate::order::BLOCK) = 1024 steps:
//!
//! ```text
//! total = block(0)                            block(q):  acc = +0
//! for q in 1 .. ceil(k / BLOCK):                         for p in q*BLOCK .. min((q+1)*BLOCK, k) step terms:
//!     total = total + block(q)                               acc = add(acc, a[i,p] * b[p,j], .., a[i,p+terms-1] * b[p+terms-1,j])
//! out[i,j] = round(total)                                return acc
//! ```
//!
//! `total + block` is a sum of f32, rounded to nearest; `round` is the one rounding to a half type, and none for f32. Factors of f32 are
//! rounded to TF32 first: to 10 fraction bits, to nearest, ties away from zero. Steps from `k` on multiply zeros; a block's sums end at a
//! multiple of 32 steps of half types, or 16 of f32.
//!
//! `add` is the tensor core's: one sum of all its terms, the products being exact. A product's exponent is the sum of its factors'
//! exponents, that of `acc` is its own, and a subnormal number has the least exponent of its type. Let `e` be the largest exponent of a
//! term that is not zero, but at least `-108 - fraction`. Each term is truncated to a multiple of `2^(e - fraction)`; these are added
//! exactly; the sum is truncated to an f32, and keeps its sign where that is zero. From 2^128 on it is infinite, and infinite or NaN where the
//! sum of the terms is; a NaN may have any bits. A sum of zeros is +0.
//!
//! | [`Sums`] | terms of half types | of TF32 | fraction | GPUs |
//! |---|---|---|---|---|
//! | `Ampere` | 8 | 4 | 24 bits | Turing (f16), Ampere, Ada |
//! | `Hopper` | 16 | 4 | 25 bits | Hopper, Blackwell |
//!
//! So the bits are those of some generations of GPUs. Sources: Xie et al., "MMA-Sim: Bit-accurate reference model of tensor cores and
//! matrix cores", 2025; Khattak and Mikaitis, "Accurate models of NVIDIA tensor cores", 2025, who measured them. [`sums`] asks a device
//! which of the two it has, if any; no kernel relies on what a GPU is called. Not asked are the lower limit of `e`, the sign of a sum that is
//! truncated to zero, and sums from 2^128 on.
//!
//! # Cost
//!
//! As [`matmul`](super)'s; a multiply-add of 16 x 16 x 16 halves, or 16 x 16 x 8 of TF32, is two or four instructions of a warp. A launch has one
//! block of `k`, unless it is split: later ones read the sums of those before.

pub(crate) mod gathered;
mod kernel;
pub(crate) mod launch;
pub mod plan;
mod question;
pub mod reference;
mod stage;
mod sums;

use super::operands::NAME;
use crate::KernelError;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use plan::Plan;
pub use question::{assume_sums, sums};
pub use sums::Sums;

/// `lhs x rhs` of f16, bf16, or f32 whose factors are rounded to TF32, launched by `plan`, or by the one that [`plan::plan`] chooses; no
/// plan changes the result.
///
/// # Errors
///
/// As [`matmul`](super::matmul), and for element types of which the device has no [`sums`].
pub fn matmul(
    client: &Client,
    lhs: TensorHandle,
    rhs: TensorHandle,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let dtype = lhs.dtype;
    match sums(client, dtype)? {
        Some(_) => launch::multiply(client, lhs, rhs, dtype, plan),
        None => {
            let remedy = "use `matmul::matmul`: the device has no tensor cores whose sums of this type are known";
            Err(KernelError::Dtype { kernel: NAME, dtype, remedy })
        }
    }
}
