//! Convolutions over one, two or three spatial axes, their gradients, and transposed convolutions.
//!
//! # Order contract
//!
//! Every element is summed in the [blocked order](crate::order) of the terms `p = 0 .. P`:
//!
//! ```text
//! total = block(0)                            block(q):  acc = +0
//! for q in 1 .. ceil(P / 1024):                          for p in q*1024 .. min((q+1)*1024, P):
//!     total = total + block(q)                               acc = u[p] * v[p] + acc
//! ```
//!
//! where each product is rounded before it is added, or the device's `fma` adds it, as the caller's [`Products`] say,
//! and with these terms, `k` over the taps row-major ascending, channels of one group ascending, and per axis `i = o *
//! stride + k * dilation - padding`:
//!
//! ```text
//! element                      p ascending over              u[p] * v[p]
//! forward[b, co, o]            (k, ci)                       x[b, ci, i] * w[co, ci, k]; then total, or total + bias
//! input_gradient[b, ci, i]     (k in phase with i, co)       dy[b, co, o] * w[co, ci, k]
//! weight_gradient[co, ci, k]   (b, o row-major)              x[b, ci, i] * dy[b, co, o]
//! transposed_forward           as input_gradient of dy = x; then total, or total + bias
//! transposed_weight_gradient   as weight_gradient of x = dy and dy = x
//! ```
//!
//! A tap is in phase with `i` where `(i + padding - k * dilation) / stride` is a whole number `o` along each axis: an
//! input gradient with a stride is one convolution of stride 1 for each phase of `i` modulo the stride, and other taps
//! are no terms of it.
//!
//! **Outside is +0.** A term whose `i` (or `o`) lies outside the tensor reads +0 for it and is a term like any other,
//! as if the tensor were padded. An infinite or NaN weight (or `dy`, in a weight gradient) that meets the padding
//! therefore gives NaN. Where all values are finite such a term can only turn an accumulator of -0 into +0, and -0
//! arises only where a fused multiply-add underflows.
//!
//! Terms depend on the shape of a sample, on the parameters and, in a weight gradient, on the number of samples; blocks
//! on the number of terms alone. Forward passes and input gradients of a sample do not depend on its batch.
//!
//! This is the order of chains. Tensor cores add in another one, which passes of some shapes have if the caller
//! [allows it](Arithmetic): see [`tensor_cores`].
//!
//! `f16` and `bf16` accumulate in `f32`, a bias is added in `f32`, and the result is rounded once. `f32` and `f64`
//! accumulate in themselves.
//!
//! # Cost
//!
//! The direct number of multiply-adds, those with padding included, and those of a tile beyond the last channel, batch
//! entry or position: by the tile that is chosen at most twice as many along each of the two, hence at most four times.
//! In a weight gradient from shared memory they are at most four times as many along each of the two.
//! An input gradient with a stride also computes positions beyond the last one of a phase, less than twice as many
//! along each axis.
//!
//! A GPU computes a forward pass or input gradient from shared memory (implicit GEMM) where a group has at least 16
//! channels to compute, and chains of at least 16 terms: a cube stages 8 or 16 terms of its channels and of its columns, and
//! a unit computes 8 x 8 or 4 x 4 results of them. Its weights are a copy whose target channels are contiguous, made by a
//! launch before; of few stages in all, cubes of the smallest tile read the weights themselves, element by element. A GPU computes a weight gradient from shared memory where a group has at least 8 output channels, and at
//! least 8 pairs of an input channel and a tap. The columns of a tile are input channels at one tap, or pairs, where pairs
//! need at most three quarters as many tiles: where input channels are few. A cube tests for each position whether the tap
//! lies outside, or for each position and pair. Otherwise operands are read through their strides, and not copied, but for
//! a bias that is not dense.
//!
//! A forward pass or input gradient takes one launch for every 19 to 58 blocks of a chain, by the number of channels
//! ([`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS)), or from shared memory one for every block. Of several blocks the
//! totals of half types are kept in `f32`, in as many elements as the result has, and one more launch rounds them.
//! Where results are few for a GPU each block gets cubes of its own, and as many sums of an element as it has blocks,
//! at most 2^24 in all, are kept until one more launch adds them. A weight gradient of several blocks takes two
//! launches for each round of blocks that are computed side by side. Their totals take at most 2^20 elements of scratch
//! memory, from shared memory 2^24, or one per weight if that is more, and the running totals one per weight.

mod kernel;
mod launch;
pub mod plan;
pub mod reference;
mod shape;
pub mod tensor_cores;
mod terms;
mod tiled_kernel;
mod tiled_weight_kernel;
mod weight_kernel;

pub use launch::{Operands, run_pass};
pub use plan::{CubeTile, Pass, Plan, Problem, UnitTile, WeightColumns};
pub use shape::{Axis, ConvolutionParams, Geometry, TransposedParams};

use crate::KernelError;
use crate::arithmetic::Products;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// How the products of a convolution are added. Which of the two orders a pass has depends on its shape alone.
#[derive(Clone, Copy)]
pub struct Arithmetic<'a> {
    /// Whether passes that [apply](tensor_cores::applies()) to tensor cores are added as these add: where the device has
    /// [sums](crate::matmul::tensor_cores::sums) of the type. Asked for such a pass alone.
    pub tensor_cores: &'a dyn Fn() -> Result<bool, KernelError>,
    /// How chains add, which all others have.
    pub products: Products,
}

impl From<Products> for Arithmetic<'_> {
    /// In chains.
    fn from(products: Products) -> Self {
        Self { tensor_cores: &|| Ok(false), products }
    }
}

/// A pass in the order that `arithmetic` has for its shape.
fn run<const N: usize>(
    client: &Client,
    kernel: &'static str,
    arithmetic: Arithmetic<'_>,
    (pass, geometry): (Pass, Geometry),
    operands: Operands,
) -> Result<TensorHandle, KernelError> {
    let Arithmetic { tensor_cores, products } = arithmetic;
    let problem = Problem { pass, rank: N, geometry, products };
    match tensor_cores::applies(&problem, operands.source.dtype) && tensor_cores()? {
        true => tensor_cores::run_pass(client, kernel, &problem, operands, None),
        false => run_pass(client, kernel, &problem, operands, None),
    }
}

/// The convolution of `input` `[batch, c_in, spatial..]` with `weight` `[c_out, c_in / groups, taps..]`, plus `bias`
/// `[c_out]`: `[batch, c_out, positions..]`.
///
/// # Errors
///
/// Refuses operands that do not fit together, more than 2^31 elements, and element types the device does not compute.
pub fn forward<'a, const N: usize>(
    client: &Client,
    arithmetic: impl Into<Arithmetic<'a>>,
    input: TensorHandle,
    weight: TensorHandle,
    bias: Option<TensorHandle>,
    params: &ConvolutionParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::forward";
    let geometry = Geometry::new(kernel, input.shape(), weight.shape(), params)?;
    let operands = Operands { source: input, other: weight, bias };
    run::<N>(client, kernel, arithmetic.into(), (Pass::ToOutput, geometry), operands)
}

/// The gradient of `input_shape` from the gradient of a convolution's output.
///
/// # Errors
///
/// As [`forward`].
pub fn input_gradient<'a, const N: usize>(
    client: &Client,
    arithmetic: impl Into<Arithmetic<'a>>,
    output_gradient: TensorHandle,
    weight: TensorHandle,
    input_shape: &[usize],
    params: &ConvolutionParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::input_gradient";
    let geometry = Geometry::new(kernel, input_shape, weight.shape(), params)?;
    let operands = Operands { source: output_gradient, other: weight, bias: None };
    run::<N>(client, kernel, arithmetic.into(), (Pass::ToInput, geometry), operands)
}

/// The gradient of `weight_shape` from a convolution's input and the gradient of its output.
///
/// # Errors
///
/// As [`forward`].
pub fn weight_gradient<'a, const N: usize>(
    client: &Client,
    arithmetic: impl Into<Arithmetic<'a>>,
    input: TensorHandle,
    output_gradient: TensorHandle,
    weight_shape: &[usize],
    params: &ConvolutionParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::weight_gradient";
    let geometry = Geometry::new(kernel, input.shape(), weight_shape, params)?;
    let operands = Operands { source: input, other: output_gradient, bias: None };
    run::<N>(client, kernel, arithmetic.into(), (Pass::ToWeight, geometry), operands)
}

/// The transposed convolution of `input` `[batch, c_in, spatial..]` with `weight` `[c_in, c_out / groups, taps..]`,
/// plus `bias` `[c_out]`: `[batch, c_out, positions..]`.
///
/// # Errors
///
/// As [`forward`].
pub fn transposed_forward<'a, const N: usize>(
    client: &Client,
    arithmetic: impl Into<Arithmetic<'a>>,
    input: TensorHandle,
    weight: TensorHandle,
    bias: Option<TensorHandle>,
    params: &TransposedParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::transposed_forward";
    let geometry = Geometry::transposed(kernel, input.shape(), weight.shape(), params)?;
    let operands = Operands { source: input, other: weight, bias };
    run::<N>(client, kernel, arithmetic.into(), (Pass::ToInput, geometry), operands)
}

/// The gradient of `weight_shape` from a transposed convolution's input and the gradient of its output.
///
/// # Errors
///
/// As [`forward`].
pub fn transposed_weight_gradient<'a, const N: usize>(
    client: &Client,
    arithmetic: impl Into<Arithmetic<'a>>,
    input: TensorHandle,
    output_gradient: TensorHandle,
    weight_shape: &[usize],
    params: &TransposedParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::transposed_weight_gradient";
    let geometry = Geometry::transposed(kernel, input.shape(), weight_shape, params)?;
    let operands = Operands { source: output_gradient, other: input, bias: None };
    run::<N>(client, kernel, arithmetic.into(), (Pass::ToWeight, geometry), operands)
}
