//! Convolutions on the tensor cores of NVIDIA's GPUs: of f16 and bf16, and of f32 whose factors are rounded to TF32.
//!
//! # Order contract
//!
//! Every element is summed as an element of [`matmul::tensor_cores`](crate::matmul::tensor_cores) is, of the terms that
//! [`convolution`](super) has for it, in the same order, with `k` their number. In a forward pass and an input gradient the channels
//! of a tap are followed by zeros, up to a multiple of 8 channels of half types, or 4 of f32, which are terms too. A bias is added in
//! f32 to the total, before the one rounding to a half type.
//!
//! A pass [has this order](applies), and not that of chains, where in a group
//!
//! - it computes at least 16 channels, in a weight gradient at least 16 output channels and 16 pairs of an input channel and a tap;
//! - an element has at least 16 terms; of an input gradient with a stride, those of all phases;
//! - an input gradient has at most 16 phases;
//! - the copies below have less than 2^31 elements.
//!
//! # Cost
//!
//! A product for each group `[channels, terms] x [terms, columns]`, and for each phase of an input gradient, in the tiles of
//! [`matmul::tensor_cores`](crate::matmul::tensor_cores). Its right factor is not written down (implicit GEMM): a cube reads it from a copy
//! of the source `[samples, groups, d, h, w, channels]`, with zeros where taps lie outside, at offsets that it finds once for each step and
//! column. The left factor is a copy too: the weights, channels of the source last, or in a weight gradient the output's gradient, samples
//! and positions last. So a pass has three launches, and two more for each further phase. An input gradient with a stride computes no
//! position but its own.
//!
//! Of several blocks the totals are kept in f32, and one more launch rounds them and adds a bias. Where tiles are few, blocks are
//! computed side by side: rounds of as many as fit 2^24 sums, each with a second launch that adds them.

mod launch;
mod pack;
pub mod plan;
mod product;

use super::launch::Operands;
use super::plan::{Pass, Problem};
use crate::KernelError;
use crate::matmul::plan as matmul;
use crate::matmul::tensor_cores::plan::VECTOR;
use crate::matmul::tensor_cores::sums;
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use plan::Plan;

/// Fewest channels and terms: those of a fragment.
const FEWEST: usize = 16;

/// Most phases of an input gradient.
const MAX_PHASES: usize = 16;

/// Whether the pass, of f16, bf16 or f32, [has the order](self) of tensor cores.
pub fn applies(problem: &Problem, dtype: ElemType) -> bool {
    let geometry = &problem.geometry;
    let width = VECTOR as usize / dtype.size().max(1);
    let steps = match problem.pass {
        Pass::ToWeight => geometry.terms(),
        Pass::ToOutput | Pass::ToInput => problem.source_channels() * geometry.taps(),
    };
    let pairs = if problem.pass == Pass::ToWeight { geometry.inputs * geometry.taps() } else { FEWEST };
    let positions = product::positions(problem).lengths;
    let channels = problem.source_channels().next_multiple_of(width);
    let fits = |factors: &[usize]| {
        let elements =
            factors.iter().try_fold(geometry.groups * channels, |product, &factor| product.checked_mul(factor));
        elements.is_some_and(|elements| elements < u32::MAX as usize / 2)
    };
    dtype.size() <= 4
        && [problem.channels(), steps, pairs].into_iter().all(|count| count >= FEWEST)
        && product::count(problem) <= MAX_PHASES
        && fits(&[&positions[..], &[geometry.batch]].concat())
        && fits(&[problem.channels(), geometry.taps()])
}

/// Sizes of the products of a pass that [applies]: what a plan looks at.
pub fn sizes(problem: &Problem, dtype: ElemType) -> Vec<matmul::Problem> {
    launch::sizes(problem, dtype.size())
}

/// One pass of f16, bf16, or f32 whose factors are rounded to TF32, by `plan`, or by the one that [`plan::plan`] chooses; no plan changes
/// the result.
///
/// `kernel` is the operation, as errors name it.
///
/// # Errors
///
/// As [`run_pass`](super::run_pass), and for element types of which the device has no [sums](crate::matmul::tensor_cores::sums), and passes
/// that do not [apply](applies).
pub fn run_pass(
    client: &Client,
    kernel: &'static str,
    problem: &Problem,
    operands: Operands,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let dtype = operands.source.dtype;
    if sums(client, dtype)?.is_none() {
        let remedy = "use `convolution::run_pass`: the device has no tensor cores whose sums of this type are known";
        return Err(KernelError::Dtype { kernel, dtype, remedy });
    }
    if !applies(problem, dtype) {
        let reason = format!("{problem:?} has the order of chains: use `convolution::run_pass`");
        return Err(KernelError::Shape { kernel, reason });
    }
    launch::multiply(client, kernel, problem, operands, plan)
}
