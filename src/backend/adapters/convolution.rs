//! Convolutions.

use super::{Output, are_on_tensor_cores, operand, products, run};
use burn_backend::TensorMetadata;
use burn_backend::ops::conv::{calculate_conv_output_shape, calculate_conv_transpose_output_shape};
use burn_backend::ops::{ConvOptions, ConvTransposeOptions};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::convolution::{self, Arithmetic, ConvolutionParams, TransposedParams};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// A convolution, plus `bias`.
pub(in crate::backend) fn forward<const N: usize>(
    operation: &'static str,
    x: CubeTensor,
    weight: CubeTensor,
    bias: Option<CubeTensor>,
    options: ConvOptions<N>,
    plain: impl FnOnce(CubeTensor, CubeTensor, Option<CubeTensor>, ConvOptions<N>) -> CubeTensor,
) -> CubeTensor {
    let ConvOptions { stride, padding, dilation, .. } = &options;
    // Shapes that do not fit together are the kernel's to refuse.
    let shape = calculate_conv_output_shape(&x.shape(), &weight.shape(), stride, padding, dilation)
        .unwrap_or_else(|_| x.shape());
    run(
        operation,
        &operands(&x, &weight, bias.as_ref()),
        Output::like(&x, shape),
        |client| {
            let bias = bias.as_ref().map(operand);
            with_arithmetic(client, &x, |arithmetic| {
                convolution::forward(client, arithmetic, operand(&x), operand(&weight), bias, &params(&options))
            })
        },
        || plain(x.clone(), weight.clone(), bias.clone(), options.clone()),
    )
}

/// The gradient of a convolution's input.
pub(in crate::backend) fn input_gradient<const N: usize>(
    operation: &'static str,
    x: CubeTensor,
    weight: CubeTensor,
    gradient: CubeTensor,
    options: ConvOptions<N>,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor, ConvOptions<N>) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&x, &weight, &gradient],
        Output::like(&x, x.shape()),
        |client| {
            let (gradient, weight) = (operand(&gradient), operand(&weight));
            with_arithmetic(client, &x, |arithmetic| {
                convolution::input_gradient(client, arithmetic, gradient, weight, &x.shape(), &params(&options))
            })
        },
        || plain(x.clone(), weight.clone(), gradient.clone(), options.clone()),
    )
}

/// The gradient of a convolution's weight.
pub(in crate::backend) fn weight_gradient<const N: usize>(
    operation: &'static str,
    x: CubeTensor,
    weight: CubeTensor,
    gradient: CubeTensor,
    options: ConvOptions<N>,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor, ConvOptions<N>) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&x, &weight, &gradient],
        Output::like(&weight, weight.shape()),
        |client| {
            let (input, gradient) = (operand(&x), operand(&gradient));
            with_arithmetic(client, &x, |arithmetic| {
                convolution::weight_gradient(client, arithmetic, input, gradient, &weight.shape(), &params(&options))
            })
        },
        || plain(x.clone(), weight.clone(), gradient.clone(), options.clone()),
    )
}

/// All axes but the channels' of a gradient `[batch, channels, ..]`: the sum over them is the gradient of a bias. Burn's own methods have
/// the same terms in the same order, and copy the gradient to join these axes. Where a refusal is let pass, Burn's reduction runs.
pub(in crate::backend) fn but_channels(gradient: &CubeTensor) -> Vec<usize> {
    (0..gradient.shape().num_dims()).filter(|&axis| axis != 1).collect()
}

/// A transposed convolution, plus `bias`.
pub(in crate::backend) fn transposed<const N: usize>(
    operation: &'static str,
    x: CubeTensor,
    weight: CubeTensor,
    bias: Option<CubeTensor>,
    options: ConvTransposeOptions<N>,
    plain: impl FnOnce(CubeTensor, CubeTensor, Option<CubeTensor>, ConvTransposeOptions<N>) -> CubeTensor,
) -> CubeTensor {
    let ConvTransposeOptions { stride, padding, padding_out, dilation, groups } = &options;
    let shape = calculate_conv_transpose_output_shape(
        &x.shape(),
        &weight.shape(),
        stride,
        padding,
        padding_out,
        dilation,
        *groups,
    )
    .unwrap_or_else(|_| x.shape());
    run(
        operation,
        &operands(&x, &weight, bias.as_ref()),
        Output::like(&x, shape),
        |client| {
            let bias = bias.as_ref().map(operand);
            let (input, params) = (operand(&x), transposed_params(&options));
            with_arithmetic(client, &x, |arithmetic| {
                convolution::transposed_forward(client, arithmetic, input, operand(&weight), bias, &params)
            })
        },
        || plain(x.clone(), weight.clone(), bias.clone(), options.clone()),
    )
}

/// The gradient of a transposed convolution's weight.
pub(in crate::backend) fn transposed_weight_gradient<const N: usize>(
    operation: &'static str,
    x: CubeTensor,
    weight: CubeTensor,
    gradient: CubeTensor,
    options: ConvTransposeOptions<N>,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor, ConvTransposeOptions<N>) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&x, &weight, &gradient],
        Output::like(&weight, weight.shape()),
        |client| {
            let (input, gradient, params) = (operand(&x), operand(&gradient), transposed_params(&options));
            with_arithmetic(client, &x, |arithmetic| {
                let shape = weight.shape();
                convolution::transposed_weight_gradient(client, arithmetic, input, gradient, &shape, &params)
            })
        },
        || plain(x.clone(), weight.clone(), gradient.clone(), options.clone()),
    )
}

/// Runs a pass with the arithmetic that the products of convolutions of `x`'s type have on its device.
fn with_arithmetic(
    client: &Client,
    x: &CubeTensor,
    pass: impl FnOnce(Arithmetic<'_>) -> Result<TensorHandle, KernelError>,
) -> Result<TensorHandle, KernelError> {
    pass(Arithmetic { tensor_cores: &|| are_on_tensor_cores(client, x.dtype), products: products(&x.device) })
}

/// The parameters, as the kernels name them.
pub(crate) fn params<const N: usize>(options: &ConvOptions<N>) -> ConvolutionParams<N> {
    ConvolutionParams {
        stride: options.stride,
        padding: options.padding,
        dilation: options.dilation,
        groups: options.groups,
    }
}

/// [`params`] of a transposed convolution.
pub(crate) fn transposed_params<const N: usize>(options: &ConvTransposeOptions<N>) -> TransposedParams<N> {
    TransposedParams {
        stride: options.stride,
        padding: options.padding,
        padding_out: options.padding_out,
        dilation: options.dilation,
        groups: options.groups,
    }
}

fn operands<'a>(x: &'a CubeTensor, weight: &'a CubeTensor, bias: Option<&'a CubeTensor>) -> Vec<&'a CubeTensor> {
    [x, weight].into_iter().chain(bias).collect()
}
