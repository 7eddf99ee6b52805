//! Deformable convolutions over two axes, and their gradients.
//!
//! Each tap of each output position samples the image at a point of its own: that of an ordinary convolution plus a
//! learned offset (Dai et al., "Deformable Convolutional Networks", 2017), and weighted by a learned mask (Zhu et
//! al., "Deformable ConvNets v2", 2018).
//!
//! # Order contract
//!
//! Every product is rounded before it is added, but in matrix products as the caller's [`Products`] say. `k` is a tap
//! and `o` an output position, both row-major, `g` the offset group of channel `c`. A tap samples at
//!
//! ```text
//! y = (o_y * stride_y + k_y * dilation_y - padding_y) + offset[b, g, k, 0, o]     one addition; x likewise
//! low = floor(y), l_y = y - low, h_y = 1 - l_y                                    likewise l_x, h_x
//! ```
//!
//! with the four corners `v00, v01, v10, v11` of the image around it, row by row; a corner outside the image reads +0.
//!
//! ```text
//! sample        = (((h_y * h_x) * v00 + (h_y * l_x) * v01) + (l_y * h_x) * v10) + (l_y * l_x) * v11
//!                 or +0, unless -1 < y < height and -1 < x < width
//! slope_y       = l_x * (v11 - v01) + h_x * (v10 - v00)
//! slope_x       = l_y * (v11 - v10) + h_y * (v01 - v00)
//!                 or +0, unless -1 <= y < height and -1 <= x < width
//! column[b, c, k, o]    = sample, or mask[b, g, k, o] * sample
//! ```
//!
//! A group of weights is a matrix with rows `co` and columns `(c, k)`; `x` is a [product](crate::matmul), in the
//! blocked order, and `sum` a [sum](crate::reduce), in the columns order (see [`crate::order`]).
//!
//! ```text
//! forward[b, co, o]                 w x column[b], then + bias[co]
//! weight_gradient[co, (c, k)]       sum over b of (dy[b] x transposed column[b])
//! bias_gradient[co]                 sum over (b, o) of dy[b, co, o]
//! d[b, (c, k), o]                   transposed w x dy[b]: the gradient of a column
//! mask_gradient[b, g, k, o]         acc = +0; for c of g ascending { acc = sample * d[b, c, k, o] + acc }
//! offset_gradient[b, g, k, y, o]    acc = +0; for c of g ascending { acc = slope_y * d[b, c, k, o] + acc }
//!                                   then mask * acc if there is a mask; x likewise
//! input_gradient                    starts as +0; for each corner, row by row:
//!                                       adds (corner's weight * mask) * d[b, c, k, o] to the corner's
//!                                       element, in the order of [`scatter`](crate::scatter), sources (k, o) ascending;
//!                                       no term for a corner outside the image or a sample that is not taken
//! ```
//!
//! Columns and their gradients are kept in the operands' type, chains and the input gradient in f32 for half types
//! until one last rounding.
//!
//! # Cost
//!
//! A column and, backwards, its gradient take `channels * taps * positions` elements an image, and a corner's
//! contributions to the input gradient as many again; the sort by destination is shared by the channels of an offset
//! group. A channel group of more than [`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS) channels is refused.

mod kernel;
mod launch;
mod operands;
pub mod reference;
mod shape;

pub use operands::{Gradients, Operands};
pub use shape::{DeformParams, Geometry};

use crate::KernelError;
use crate::arithmetic::Products;
use crate::coarsening::Plan;
use crate::view::require_shape;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use launch::Pass;

/// The deformable convolution, plus `bias` `[output channels]`: `[batch, output channels, output height, output
/// width]`. Launched by `plan`, or by the one that [`coarsening::plan`](crate::coarsening::plan()) chooses over the
/// channels of an offset group; no plan changes the result.
///
/// # Errors
///
/// Refuses operands that do not fit together, more than 2^31 elements, element types the device does not compute, and a
/// plan that does not apply ([`KernelError::Plan`]).
pub fn forward(
    client: &Client,
    products: Products,
    operands: &Operands,
    bias: Option<TensorHandle>,
    params: &DeformParams,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "deform_convolution::forward";
    let geometry = Geometry::new(KERNEL, operands, params)?;
    if let Some(bias) = &bias {
        require_shape(KERNEL, "bias", bias.shape(), &[geometry.outputs])?;
    }
    Pass::new(client, KERNEL, products, geometry, operands, bias.as_ref(), plan)?.forward(operands, bias)
}

/// The gradients of the operands from that of the output. That of a bias is [`bias_gradient`].
///
/// # Errors
///
/// As [`forward`].
pub fn backward(
    client: &Client,
    products: Products,
    operands: &Operands,
    output_gradient: TensorHandle,
    params: &DeformParams,
) -> Result<Gradients, KernelError> {
    const KERNEL: &str = "deform_convolution::backward";
    let geometry = Geometry::new(KERNEL, operands, params)?;
    require_shape(KERNEL, "output gradient", output_gradient.shape(), &geometry.output_shape())?;
    Pass::new(client, KERNEL, products, geometry, operands, Some(&output_gradient), None)?
        .backward(operands, output_gradient)
}

/// The gradient of a bias from that of the output: `[output channels]`.
///
/// # Errors
///
/// As [`crate::reduce::sum`].
pub fn bias_gradient(client: &Client, output_gradient: TensorHandle) -> Result<TensorHandle, KernelError> {
    let channels = output_gradient.shape()[1];
    let sum = crate::reduce::sum(client, output_gradient, &[0, 2, 3])?;
    Ok(TensorHandle::new_contiguous(vec![channels], sum.handle, sum.dtype))
}
