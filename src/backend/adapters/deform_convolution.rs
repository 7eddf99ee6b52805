//! Deformable convolutions.

use super::{Output, Outputs, operand, products, run};
use crate::backend::Deterministic;
use crate::error::Error;
use burn_backend::ops::{DeformConv2dBackward, DeformConvOptions, ModuleOps};
use burn_backend::{Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{CubeBackend, CubeDevice};
use burn_deterministic_kernels::deform_convolution::{self, DeformParams, Gradients};
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;

/// The operands of a deformable convolution.
pub(in crate::backend) struct Operands {
    /// The image, `[batch, channels, height, width]`.
    pub x: CubeTensor,
    /// The displacement of each tap, `[batch, 2 * groups * taps, out height, out width]`.
    pub offset: CubeTensor,
    /// The weight.
    pub weight: CubeTensor,
    /// The factor of each sample, `[batch, groups * taps, out height, out width]`.
    pub mask: Option<CubeTensor>,
    /// Added to the output, `[out channels]`.
    pub bias: Option<CubeTensor>,
}

impl Operands {
    fn all(&self) -> Vec<&CubeTensor> {
        [&self.x, &self.offset, &self.weight].into_iter().chain(&self.mask).chain(&self.bias).collect()
    }

    fn of_kernel(&self) -> deform_convolution::Operands {
        deform_convolution::Operands {
            input: operand(&self.x),
            offset: operand(&self.offset),
            weight: operand(&self.weight),
            mask: self.mask.as_ref().map(operand),
        }
    }
}

/// The convolution, plus the bias.
pub(in crate::backend) fn forward(operands: Operands, options: DeformConvOptions<2>) -> CubeTensor {
    let Operands { x, offset, weight, mask, bias } = &operands;
    let [batch, _, height, width] = offset.shape().dims();
    run(
        "deform_conv2d",
        &operands.all(),
        Output::like(x, Shape::new([batch, weight.shape()[0], height, width])),
        |client| {
            let bias = bias.as_ref().map(operand);
            deform_convolution::forward(
                client,
                products(&x.device),
                &operands.of_kernel(),
                bias,
                &params(&options),
                None,
            )
        },
        || {
            let [x, offset, weight] = [x, offset, weight].map(Clone::clone);
            CubeBackend::deform_conv2d(x, offset, weight, mask.clone(), bias.clone(), options.clone())
        },
    )
}

/// The gradients of all operands.
pub(in crate::backend) fn backward(
    operands: Operands,
    gradient: CubeTensor,
    options: DeformConvOptions<2>,
) -> DeformConv2dBackward<Deterministic<CubeBackend>> {
    let all: Vec<_> = operands.all().into_iter().chain([&gradient]).collect();
    run(
        "deform_conv2d_backward",
        &all,
        &operands,
        |client| {
            let gradient = operand(&gradient);
            let gradients = deform_convolution::backward(
                client,
                products(&operands.x.device),
                &operands.of_kernel(),
                gradient.clone(),
                &params(&options),
            )?;
            let by_bias = operands.bias.is_some().then(|| deform_convolution::bias_gradient(client, gradient));
            Ok((gradients, by_bias.transpose()?))
        },
        || {
            let Operands { x, offset, weight, mask, bias } = &operands;
            let [x, offset, weight] = [x, offset, weight].map(Clone::clone);
            let (mask, bias) = (mask.clone(), bias.clone());
            let plain =
                CubeBackend::deform_conv2d_backward(x, offset, weight, mask, bias, gradient.clone(), options.clone());
            let DeformConv2dBackward { x_grad, offset_grad, weight_grad, mask_grad, bias_grad } = plain;
            DeformConv2dBackward { x_grad, offset_grad, weight_grad, mask_grad, bias_grad }
        },
    )
}

/// A gradient for each operand.
impl Outputs for &Operands {
    type Results = (Gradients, Option<TensorHandle>);
    type Tensors = DeformConv2dBackward<Deterministic<CubeBackend>>;

    fn device(&self) -> &CubeDevice {
        &self.x.device
    }

    fn of(self, client: &Client, (gradients, by_bias): Self::Results) -> Self::Tensors {
        let of = |operand: &CubeTensor, result| Output::like(operand, operand.shape()).of(client, result);
        DeformConv2dBackward {
            x_grad: of(&self.x, gradients.input),
            offset_grad: of(&self.offset, gradients.offset),
            weight_grad: of(&self.weight, gradients.weight),
            mask_grad: self.mask.as_ref().zip(gradients.mask).map(|(mask, result)| of(mask, result)),
            bias_grad: self.bias.as_ref().zip(by_bias).map(|(bias, result)| of(bias, result)),
        }
    }

    fn poisoned(self, error: &Error) -> Self::Tensors {
        let poisoned = |operand: &CubeTensor| Output::like(operand, operand.shape()).poisoned(error);
        DeformConv2dBackward {
            x_grad: poisoned(&self.x),
            offset_grad: poisoned(&self.offset),
            weight_grad: poisoned(&self.weight),
            mask_grad: self.mask.as_ref().map(poisoned),
            bias_grad: self.bias.as_ref().map(poisoned),
        }
    }
}

/// The parameters, as the kernels name them.
pub(crate) fn params(options: &DeformConvOptions<2>) -> DeformParams {
    let DeformConvOptions { stride, padding, dilation, weight_groups, offset_groups } = options.clone();
    DeformParams { stride, padding, dilation, weight_groups, offset_groups }
}
