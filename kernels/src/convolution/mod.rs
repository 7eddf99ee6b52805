//! Convolutions over one, two or three spatial axes, their gradients, and transposed convolutions.
//!
//! # Order contract
//!
//! `fma` is [`multiply_add`](crate::arithmetic), `k` runs over the taps row-major ascending, `g` is a channel's group.
//! A tap meets an output position `o` at input position `i = o * stride + k * dilation - padding` (per axis); where `i`
//! is outside the input the tap does not exist and contributes **no operation**: padding is never multiplied, so an
//! infinite weight next to a border does not make a NaN. One chain an element, batch entries never mix:
//!
//! ```text
//! forward[b, co, o]            acc = +0
//!                              for k that exist { for ci of g ascending { acc = fma(x[b, ci, i], w[co, ci, k], acc) } }
//!                              acc, or acc + bias[co]
//! input_gradient[b, ci, i]     acc = +0
//!                              for k that exist { for co of g ascending { acc = fma(dy[b, co, o], w[co, ci, k], acc) } }
//! transposed_forward           as input_gradient with dy = x; then acc, or acc + bias
//! transposed_input_gradient    as forward, no bias
//! weight_gradient[co, ci, k]   for each block of the terms t = (b, o) row-major ascending, `B` terms a block:
//!                                  acc = +0
//!                                  for t of the block { if k exists at o { acc = fma(x[b, ci, i], dy[b, co, o], acc) } }
//!                              total = block 0; for each later block ascending { total = total + acc }
//! transposed_weight_gradient   as weight_gradient with x and dy exchanged
//! ```
//!
//! `B` depends on the logical shape alone ([`Geometry::block`]): with `T` terms and `W` weights,
//! `P = clamp(2^20 / W, 1, 256)` and `B = clamp(next power of two of ceil(T / P), 256, 16384)`.
//!
//! Taps are the outer loop and channels the inner one, so that a matrix product over `(k, ci)` can follow the same
//! chain, and so that a tap's existence is decided once for all its channels.
//!
//! `f16` and `bf16` accumulate in `f32` (blocks are kept in `f32`), a bias is added in `f32`, and the result is rounded
//! once. `f32` and `f64` accumulate in themselves.
//!
//! # Cost
//!
//! The direct number of multiply-adds, none for padding. Operands are read through their strides, never copied. A
//! weight gradient of more than one block takes two launches and `blocks * W` elements of scratch memory: at most
//! 4 MiB in `f32`, unless a sum of more than 16384 terms a block needs more blocks. A pass between activations takes one
//! launch until taps times channels pass [`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS), then one for each part of
//! a chain; half types keep the chains in `f32` between launches.

mod kernel;
mod pass;
pub mod plan;
pub mod reference;
mod shape;
mod weight_kernel;

pub use pass::Pass;
pub use plan::Plan;
pub use shape::{Axis, ConvolutionParams, Geometry, TransposedParams};

use crate::KernelError;
use crate::view::require_shape;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The convolution of `input` `[batch, c_in, spatial..]` with `weight` `[c_out, c_in / groups, taps..]`, plus `bias`
/// `[c_out]`: `[batch, c_out, positions..]`.
///
/// # Errors
///
/// Refuses operands that do not fit together, more than 2^31 elements, and element types the device does not compute.
pub fn forward<const N: usize>(
    client: &Client,
    input: TensorHandle,
    weight: TensorHandle,
    bias: Option<TensorHandle>,
    params: &ConvolutionParams<N>,
) -> Result<TensorHandle, KernelError> {
    let geometry = Geometry::new("convolution::forward", input.shape(), weight.shape(), params)?;
    let pass = Pass { client, kernel: "convolution::forward", geometry, rank: N, plan: plan::forward(&geometry) };
    pass.to_output(input, weight, bias)
}

/// The gradient of `input_shape` from the gradient of a convolution's output.
///
/// # Errors
///
/// As [`forward`].
pub fn input_gradient<const N: usize>(
    client: &Client,
    output_gradient: TensorHandle,
    weight: TensorHandle,
    input_shape: &[usize],
    params: &ConvolutionParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::input_gradient";
    let geometry = Geometry::new(kernel, input_shape, weight.shape(), params)?;
    require_shape(kernel, "output gradient", output_gradient.shape(), &geometry.output_shape(N))?;
    let pass = Pass { client, kernel, geometry, rank: N, plan: plan::input_gradient(&geometry) };
    pass.to_input(output_gradient, weight, None)
}

/// The gradient of `weight_shape` from a convolution's input and the gradient of its output.
///
/// # Errors
///
/// As [`forward`].
pub fn weight_gradient<const N: usize>(
    client: &Client,
    input: TensorHandle,
    output_gradient: TensorHandle,
    weight_shape: &[usize],
    params: &ConvolutionParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::weight_gradient";
    let geometry = Geometry::new(kernel, input.shape(), weight_shape, params)?;
    require_shape(kernel, "output gradient", output_gradient.shape(), &geometry.output_shape(N))?;
    let pass = Pass { client, kernel, geometry, rank: N, plan: plan::weight_gradient(&geometry) };
    pass.to_weight(input, output_gradient)
}

/// The transposed convolution of `input` `[batch, c_in, spatial..]` with `weight` `[c_in, c_out / groups, taps..]`, plus
/// `bias` `[c_out]`: `[batch, c_out, positions..]`.
///
/// # Errors
///
/// As [`forward`].
pub fn transposed_forward<const N: usize>(
    client: &Client,
    input: TensorHandle,
    weight: TensorHandle,
    bias: Option<TensorHandle>,
    params: &TransposedParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::transposed_forward";
    let geometry = Geometry::transposed(kernel, input.shape(), weight.shape(), params)?;
    let pass = Pass { client, kernel, geometry, rank: N, plan: plan::input_gradient(&geometry) };
    pass.to_input(input, weight, bias)
}

/// The gradient of `input_shape` from the gradient of a transposed convolution's output.
///
/// # Errors
///
/// As [`forward`].
pub fn transposed_input_gradient<const N: usize>(
    client: &Client,
    output_gradient: TensorHandle,
    weight: TensorHandle,
    input_shape: &[usize],
    params: &TransposedParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::transposed_input_gradient";
    let geometry = Geometry::transposed(kernel, input_shape, weight.shape(), params)?;
    require_shape(kernel, "output gradient", output_gradient.shape(), &geometry.input_shape(N))?;
    let pass = Pass { client, kernel, geometry, rank: N, plan: plan::forward(&geometry) };
    pass.to_output(output_gradient, weight, None)
}

/// The gradient of `weight_shape` from a transposed convolution's input and the gradient of its output.
///
/// # Errors
///
/// As [`forward`].
pub fn transposed_weight_gradient<const N: usize>(
    client: &Client,
    input: TensorHandle,
    output_gradient: TensorHandle,
    weight_shape: &[usize],
    params: &TransposedParams<N>,
) -> Result<TensorHandle, KernelError> {
    let kernel = "convolution::transposed_weight_gradient";
    let geometry = Geometry::transposed(kernel, input.shape(), weight_shape, params)?;
    require_shape(kernel, "output gradient", output_gradient.shape(), &geometry.input_shape(N))?;
    let pass = Pass { client, kernel, geometry, rank: N, plan: plan::weight_gradient(&geometry) };
    pass.to_weight(output_gradient, input)
}
