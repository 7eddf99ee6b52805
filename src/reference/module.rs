//! Operations of layers.

use super::Reference;
use super::host::Host;
use super::limits::not_checked;
use super::lines::of_floats;
use crate::backend::adapters::{convolution as conv, deform_convolution as deform, resample};
use burn_backend::ops::attention::attention_fallback;
use burn_backend::ops::conv::calculate_pool_output_size;
use burn_backend::ops::{
    AttentionModuleOptions, ConvOptions, ConvTransposeOptions, DeformConv2dBackward, DeformConvOptions,
    InterpolateOptions, MaxPool2dBackward, MaxPool2dWithIndices, ModuleOps,
};
use burn_backend::{IntDType, Shape, TensorMetadata};
use burn_deterministic_kernels::arithmetic::MultiplyAdd::Unfused;
use burn_deterministic_kernels::convolution::{Geometry, reference as convolution};
use burn_deterministic_kernels::deform_convolution::{self, reference as deform_convolution_reference};
use burn_deterministic_kernels::pool::{self, Window};
use burn_deterministic_kernels::{KernelError, ctc, interpolation, reduce};

/// Convolutions over one to three axes.
macro_rules! convolutions {
    ($(
        $axes:literal: $forward:ident, $by_input:ident, $by_weight:ident, $transposed:ident, $transposed_by_weight:ident;
    )+) => {$(
        fn $forward(x: Host, weight: Host, bias: Option<Host>, options: ConvOptions<$axes>) -> Host {
            let g = geometry(&x, &weight, &options);
            let values = convolution::forward(&g, Unfused, &x.floats(), &weight.floats(), values(&bias).as_deref());
            x.of_floats(g.output_shape($axes), values)
        }

        fn $by_input(x: Host, weight: Host, output_grad: Host, options: ConvOptions<$axes>) -> Host {
            let g = geometry(&x, &weight, &options);
            let gradient = output_grad.floats();
            x.of_floats(x.shape(), convolution::input_gradient(&g, Unfused, &gradient, &weight.floats(), None))
        }

        fn $by_weight(x: Host, weight: Host, output_grad: Host, options: ConvOptions<$axes>) -> Host {
            let g = geometry(&x, &weight, &options);
            let values = convolution::weight_gradient(&g, Unfused, &x.floats(), &output_grad.floats());
            weight.of_floats(weight.shape(), values)
        }

        fn $transposed(x: Host, weight: Host, bias: Option<Host>, options: ConvTransposeOptions<$axes>) -> Host {
            let params = conv::transposed_params(&options);
            let g = fitting(Geometry::transposed("reference", &x.shape(), &weight.shape(), &params));
            let bias = values(&bias);
            let values = convolution::input_gradient(&g, Unfused, &x.floats(), &weight.floats(), bias.as_deref());
            x.of_floats(g.input_shape($axes), values)
        }

        fn $transposed_by_weight(
            x: Host,
            weight: Host,
            output_grad: Host,
            options: ConvTransposeOptions<$axes>,
        ) -> Host {
            let params = conv::transposed_params(&options);
            let g = fitting(Geometry::transposed("reference", &x.shape(), &weight.shape(), &params));
            let values = convolution::weight_gradient(&g, Unfused, &output_grad.floats(), &x.floats());
            weight.of_floats(weight.shape(), values)
        }
    )+};
}

/// Gradients of biases: sums of `[batch, channels, ..]` over all axes but the channels', in row-major order.
macro_rules! bias_gradients {
    ($($axes:literal: $of_convolution:ident, $of_transposed:ident;)+) => {$(
        bias_gradients!(@ $axes $of_convolution);
        bias_gradients!(@ $axes $of_transposed);
    )+};
    (@ $axes:literal $method:ident) => {
        fn $method(_x: Host, bias: Host, output_grad: Host) -> Host {
            let axes: Vec<_> = (0..$axes + 2).filter(|&axis| axis != 1).collect();
            output_grad.over(&axes, of_floats(output_grad.dtype(), reduce::reference::sum)).reshape(bias.shape())
        }
    };
}

impl ModuleOps<Self> for Reference {
    convolutions! {
        1: conv1d, conv1d_x_backward, conv1d_weight_backward, conv_transpose1d, conv_transpose1d_weight_backward;
        2: conv2d, conv2d_x_backward, conv2d_weight_backward, conv_transpose2d, conv_transpose2d_weight_backward;
        3: conv3d, conv3d_x_backward, conv3d_weight_backward, conv_transpose3d, conv_transpose3d_weight_backward;
    }

    bias_gradients! {
        1: conv1d_bias_backward, conv_transpose1d_bias_backward;
        2: conv2d_bias_backward, conv_transpose2d_bias_backward;
        3: conv3d_bias_backward, conv_transpose3d_bias_backward;
    }

    fn deform_conv2d(
        x: Host,
        offset: Host,
        weight: Host,
        mask: Option<Host>,
        bias: Option<Host>,
        options: DeformConvOptions<2>,
    ) -> Host {
        let operands = Deformed { x, offset, weight, mask };
        let g = operands.geometry(&options);
        let values = operands
            .of_reference(|of| deform_convolution_reference::forward(&g, Unfused, of, values(&bias).as_deref()));
        operands.x.of_floats(g.output_shape(), values)
    }

    fn deform_conv2d_backward(
        x: Host,
        offset: Host,
        weight: Host,
        mask: Option<Host>,
        bias: Option<Host>,
        output_grad: Host,
        options: DeformConvOptions<2>,
    ) -> DeformConv2dBackward<Self> {
        let operands = Deformed { x, offset, weight, mask };
        let g = operands.geometry(&options);
        let gradient = output_grad.floats();
        let gradients = operands.of_reference(|of| deform_convolution_reference::backward(&g, Unfused, of, &gradient));
        let of = |operand: &Host, values| operand.of_floats(operand.shape(), values);
        DeformConv2dBackward {
            x_grad: of(&operands.x, gradients.input),
            offset_grad: of(&operands.offset, gradients.offset),
            weight_grad: of(&operands.weight, gradients.weight),
            mask_grad: operands.mask.as_ref().map(|mask| of(mask, gradients.mask)),
            bias_grad: bias.map(|bias| {
                output_grad
                    .over(&[0, 2, 3], of_floats(output_grad.dtype(), reduce::reference::sum))
                    .reshape(bias.shape())
            }),
        }
    }

    fn avg_pool2d(
        x: Host,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        count_include_pad: bool,
        ceil_mode: bool,
    ) -> Host {
        let window = Window { kernel_size, stride, padding, dilation: [1, 1] };
        let [batch, channels, height, width] = x.shape().dims();
        let output = pooled([height, width], &window, ceil_mode);
        let values = pool::reference::average(&x.floats(), [height, width], output, &window, count_include_pad);
        x.of_floats(Shape::new([batch, channels, output[0], output[1]]), values)
    }

    fn avg_pool2d_backward(
        x: Host,
        grad: Host,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        count_include_pad: bool,
        _ceil_mode: bool,
    ) -> Host {
        let window = Window { kernel_size, stride, padding, dilation: [1, 1] };
        let ([_, _, height, width], [_, _, rows, columns]) = (x.shape().dims(), grad.shape().dims());
        let (input, output) = ([height, width], [rows, columns]);
        let values = pool::reference::average_gradient(&grad.floats(), input, output, &window, count_include_pad);
        x.of_floats(x.shape(), values)
    }

    fn adaptive_avg_pool2d(x: Host, output_size: [usize; 2]) -> Host {
        if output_size == [1, 1] {
            return x.over(&[2, 3], of_floats(x.dtype(), reduce::reference::mean));
        }
        let [batch, channels, height, width] = x.shape().dims();
        let [rows, columns] = output_size;
        let values = pool::reference::adaptive(&x.floats(), [1, height, width], [1, rows, columns]);
        x.of_floats(Shape::new([batch, channels, rows, columns]), values)
    }

    fn adaptive_avg_pool2d_backward(x: Host, grad: Host) -> Host {
        let ([_, _, height, width], [_, _, rows, columns]) = (x.shape().dims(), grad.shape().dims());
        let values = pool::reference::adaptive_gradient(&grad.floats(), [1, height, width], [1, rows, columns]);
        x.of_floats(x.shape(), values)
    }

    fn adaptive_avg_pool3d(x: Host, output_size: [usize; 3]) -> Host {
        let [batch, channels, depth, height, width] = x.shape().dims();
        let [planes, rows, columns] = output_size;
        let values = pool::reference::adaptive(&x.floats(), [depth, height, width], output_size);
        x.of_floats(Shape::new([batch, channels, planes, rows, columns]), values)
    }

    fn adaptive_avg_pool3d_backward(x: Host, grad: Host) -> Host {
        let ([_, _, depth, height, width], [_, _, planes, rows, columns]) = (x.shape().dims(), grad.shape().dims());
        let (input, output) = ([depth, height, width], [planes, rows, columns]);
        x.of_floats(x.shape(), pool::reference::adaptive_gradient(&grad.floats(), input, output))
    }

    fn max_pool2d(
        x: Host,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
    ) -> Host {
        Self::max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode, IntDType::I32).output
    }

    fn max_pool2d_with_indices(
        x: Host,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
        indices_dtype: IntDType,
    ) -> MaxPool2dWithIndices<Self> {
        let window = Window { kernel_size, stride, padding, dilation };
        let [batch, channels, height, width] = x.shape().dims();
        let output = pooled([height, width], &window, ceil_mode);
        let (values, indices) = pool::reference::maximum(&x.floats(), [height, width], output, &window);
        let shape = Shape::new([batch, channels, output[0], output[1]]);
        let indices = indices.into_iter().map(|index| index as u64).collect();
        MaxPool2dWithIndices {
            indices: Host::new(&x.device(), shape.clone(), indices_dtype.into(), indices),
            output: x.of_floats(shape, values),
        }
    }

    fn max_pool2d_with_indices_backward(
        x: Host,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        _ceil_mode: bool,
        output_grad: Host,
        indices: Host,
    ) -> MaxPool2dBackward<Self> {
        let window = Window { kernel_size, stride, padding, dilation };
        let ([_, _, height, width], [_, _, rows, columns]) = (x.shape().dims(), output_grad.shape().dims());
        let (input, output) = ([height, width], [rows, columns]);
        let indices: Vec<usize> = indices.ints().into_iter().map(|index| index as usize).collect();
        let values = pool::reference::maximum_gradient(&output_grad.floats(), &indices, input, output, &window);
        MaxPool2dBackward { x_grad: x.of_floats(x.shape(), values) }
    }

    fn interpolate(x: Host, output_size: [usize; 2], options: InterpolateOptions) -> Host {
        let [batch, channels, height, width] = x.shape().dims();
        let [rows, columns] = output_size;
        if height * width == 0 && rows * columns > 0 {
            not_checked("shapes that the kernel refuses");
        }
        let filter = resample::filter(options.mode);
        let (image, align_corners) = ([height, width], options.align_corners);
        let values = interpolation::reference::resize(&x.floats(), image, output_size, filter, align_corners);
        x.of_floats(Shape::new([batch, channels, rows, columns]), values)
    }

    fn interpolate_backward(x: Host, grad: Host, _output_size: [usize; 2], options: InterpolateOptions) -> Host {
        let ([_, _, height, width], [_, _, rows, columns]) = (x.shape().dims(), grad.shape().dims());
        let filter = resample::filter(options.mode);
        let (input, output) = ([height, width], [rows, columns]);
        let gradient = grad.floats();
        let values = interpolation::reference::input_gradient(&gradient, input, output, filter, options.align_corners);
        x.of_floats(x.shape(), values)
    }

    fn attention(
        query: Host,
        key: Host,
        value: Host,
        mask: Option<Host>,
        attn_bias: Option<Host>,
        options: AttentionModuleOptions,
    ) -> Host {
        attention_fallback::<Self>(query, key, value, mask, attn_bias, options)
    }

    fn ctc_loss(log_probs: Host, targets: Host, input_lengths: Host, target_lengths: Host, blank: usize) -> Host {
        let losses = Sequences::of(&log_probs, &targets, &input_lengths, &target_lengths)
            .of_reference(blank, |of| ctc::reference::variables(of).loss);
        log_probs.of_floats(input_lengths.shape(), losses)
    }

    fn has_ctc_loss_backward() -> bool {
        true
    }

    fn ctc_loss_backward(
        log_probs: Host,
        targets: Host,
        input_lengths: Host,
        target_lengths: Host,
        grad_loss: Host,
        blank: usize,
    ) -> Host {
        let gradient = Sequences::of(&log_probs, &targets, &input_lengths, &target_lengths).of_reference(blank, |of| {
            ctc::reference::gradient(of, &ctc::reference::variables(of), &grad_loss.floats())
        });
        log_probs.of_floats(log_probs.shape(), gradient)
    }
}

fn geometry<const N: usize>(x: &Host, weight: &Host, options: &ConvOptions<N>) -> Geometry {
    fitting(Geometry::new("reference", &x.shape(), &weight.shape(), &conv::params(options)))
}

/// Where shapes do not fit together the kernel refuses them.
fn fitting<T>(geometry: Result<T, KernelError>) -> T {
    geometry.unwrap_or_else(|_| not_checked("shapes that the kernel refuses"))
}

fn values(tensor: &Option<Host>) -> Option<Vec<f32>> {
    tensor.as_ref().map(Host::floats)
}

/// The size of a pool's output.
fn pooled(input: [usize; 2], window: &Window, ceil_mode: bool) -> [usize; 2] {
    let Window { kernel_size, stride, padding, dilation } = window;
    let size = |n| calculate_pool_output_size(kernel_size[n], stride[n], padding[n], dilation[n], input[n], ceil_mode);
    [size(0), size(1)]
}

/// The operands of a deformable convolution.
struct Deformed {
    x: Host,
    offset: Host,
    weight: Host,
    mask: Option<Host>,
}

impl Deformed {
    fn geometry(&self, options: &DeformConvOptions<2>) -> deform_convolution::Geometry {
        let Self { x, offset, weight, mask } = self;
        let mask = mask.as_ref().map(|mask| mask.shape().to_vec());
        fitting(deform_convolution::Geometry::of_shapes(
            "reference",
            &x.shape(),
            &offset.shape(),
            &weight.shape(),
            mask.as_deref(),
            &deform::params(options),
        ))
    }

    fn of_reference<T>(&self, function: impl FnOnce(&deform_convolution_reference::Operands) -> T) -> T {
        // Columns of half types are rounded, which the reference does not do.
        self.x.require_f32();
        let (input, offset, weight) = (self.x.floats(), self.offset.floats(), self.weight.floats());
        let mask = values(&self.mask);
        let (input, offset, weight) = (&input[..], &offset[..], &weight[..]);
        function(&deform_convolution_reference::Operands { input, offset, weight, mask: mask.as_deref() })
    }
}

/// The operands of a CTC loss.
struct Sequences {
    shape: [usize; 4],
    scores: Vec<f32>,
    targets: Vec<i32>,
    input_lengths: Vec<i32>,
    target_lengths: Vec<i32>,
}

impl Sequences {
    fn of(log_probs: &Host, targets: &Host, input_lengths: &Host, target_lengths: &Host) -> Self {
        let [steps, batch, classes] = log_probs.shape().dims();
        // What 32 bits do not hold is no class, and longer than everything.
        let ints = |tensor: &Host| -> Vec<i32> {
            let held = |int: i128| int.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
            tensor.ints().into_iter().map(held).collect()
        };
        Self {
            shape: [steps, batch, classes, targets.shape()[1]],
            scores: log_probs.floats(),
            targets: ints(targets),
            input_lengths: ints(input_lengths),
            target_lengths: ints(target_lengths),
        }
    }

    fn of_reference<T>(&self, blank: usize, function: impl FnOnce(&ctc::reference::Dense) -> T) -> T {
        let Self { shape, scores, targets, input_lengths, target_lengths } = self;
        function(&ctc::reference::Dense { shape: *shape, blank, scores, targets, input_lengths, target_lengths })
    }
}
