//! Operations of layers.

use super::forward::adapted;
use super::{Deterministic, adapters, attention};
use burn_backend::ops::{
    AttentionModuleOptions, ConvOptions, ConvTransposeOptions, DeformConv2dBackward, DeformConvOptions, FloatTensorOps,
    InterpolateOptions, MaxPool2dBackward, MaxPool2dWithIndices, ModuleOps,
};
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{IntDType, TensorMetadata};
use burn_cubecl::CubeBackend;
use burn_deterministic_kernels::pool::Window;

impl ModuleOps<Self> for Deterministic<CubeBackend> {
    adapted! {
        adapters::convolution::forward:
        fn conv1d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv2d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv3d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvOptions<3>,
        ) -> FloatTensor<Self>;

        adapters::convolution::input_gradient:
        fn conv1d_x_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv2d_x_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv3d_x_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<3>,
        ) -> FloatTensor<Self>;

        adapters::convolution::weight_gradient:
        fn conv1d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv2d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv3d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<3>,
        ) -> FloatTensor<Self>;

        adapters::convolution::transposed:
        fn conv_transpose1d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvTransposeOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv_transpose2d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvTransposeOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv_transpose3d(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvTransposeOptions<3>,
        ) -> FloatTensor<Self>;

        adapters::convolution::transposed_weight_gradient:
        fn conv_transpose1d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvTransposeOptions<1>,
        ) -> FloatTensor<Self>;
        fn conv_transpose2d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvTransposeOptions<2>,
        ) -> FloatTensor<Self>;
        fn conv_transpose3d_weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvTransposeOptions<3>,
        ) -> FloatTensor<Self>;

        adapters::resample::interpolate:
        fn interpolate(x: FloatTensor<Self>, output_size: [usize; 2], options: InterpolateOptions) -> FloatTensor<Self>;

        adapters::pool::average:
        fn avg_pool2d(
            x: FloatTensor<Self>,
            kernel_size: [usize; 2],
            stride: [usize; 2],
            padding: [usize; 2],
            count_include_pad: bool,
            ceil_mode: bool,
        ) -> FloatTensor<Self>;

        adapters::pool::average_gradient:
        fn avg_pool2d_backward(
            x: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            kernel_size: [usize; 2],
            stride: [usize; 2],
            padding: [usize; 2],
            count_include_pad: bool,
            ceil_mode: bool,
        ) -> FloatTensor<Self>;

        adapters::pool::adaptive_average:
        fn adaptive_avg_pool2d(x: FloatTensor<Self>, output_size: [usize; 2]) -> FloatTensor<Self>;
        fn adaptive_avg_pool3d(x: FloatTensor<Self>, output_size: [usize; 3]) -> FloatTensor<Self>;

        adapters::pool::adaptive_average_gradient_2d:
        fn adaptive_avg_pool2d_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self>;

        adapters::pool::adaptive_average_gradient_3d:
        fn adaptive_avg_pool3d_backward(x: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self>;

        adapters::pool::maximum:
        fn max_pool2d(
            x: FloatTensor<Self>,
            kernel_size: [usize; 2],
            stride: [usize; 2],
            padding: [usize; 2],
            dilation: [usize; 2],
            ceil_mode: bool,
        ) -> FloatTensor<Self>;

        adapters::ctc::loss:
        fn ctc_loss(
            log_probs: FloatTensor<Self>,
            targets: IntTensor<Self>,
            input_lengths: IntTensor<Self>,
            target_lengths: IntTensor<Self>,
            blank: usize,
        ) -> FloatTensor<Self>;

        adapters::ctc::gradient:
        fn ctc_loss_backward(
            log_probs: FloatTensor<Self>,
            targets: IntTensor<Self>,
            input_lengths: IntTensor<Self>,
            target_lengths: IntTensor<Self>,
            grad_loss: FloatTensor<Self>,
            blank: usize,
        ) -> FloatTensor<Self>;

        adapters::resample::interpolate_backward:
        fn interpolate_backward(
            x: FloatTensor<Self>,
            grad: FloatTensor<Self>,
            output_size: [usize; 2],
            options: InterpolateOptions,
        ) -> FloatTensor<Self>;
    }

    fn deform_conv2d(
        x: FloatTensor<Self>,
        offset: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        mask: Option<FloatTensor<Self>>,
        bias: Option<FloatTensor<Self>>,
        options: DeformConvOptions<2>,
    ) -> FloatTensor<Self> {
        let operands = adapters::deform_convolution::Operands { x, offset, weight, mask, bias };
        adapters::deform_convolution::forward(operands, options)
    }

    fn deform_conv2d_backward(
        x: FloatTensor<Self>,
        offset: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        mask: Option<FloatTensor<Self>>,
        bias: Option<FloatTensor<Self>>,
        output_grad: FloatTensor<Self>,
        options: DeformConvOptions<2>,
    ) -> DeformConv2dBackward<Self> {
        let operands = adapters::deform_convolution::Operands { x, offset, weight, mask, bias };
        adapters::deform_convolution::backward(operands, output_grad, options)
    }

    fn max_pool2d_with_indices(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
        indices_dtype: IntDType,
    ) -> MaxPool2dWithIndices<Self> {
        let window = Window { kernel_size, stride, padding, dilation };
        let plain = |x| {
            let MaxPool2dWithIndices { output, indices } = CubeBackend::max_pool2d_with_indices(
                x,
                kernel_size,
                stride,
                padding,
                dilation,
                ceil_mode,
                indices_dtype,
            );
            (output, indices)
        };
        let (output, indices) = adapters::pool::maximum_with_indices(
            "max_pool2d_with_indices",
            x,
            &window,
            ceil_mode,
            indices_dtype,
            plain,
        );
        MaxPool2dWithIndices { output, indices }
    }

    fn max_pool2d_with_indices_backward(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
        output_grad: FloatTensor<Self>,
        indices: IntTensor<Self>,
    ) -> MaxPool2dBackward<Self> {
        let window = Window { kernel_size, stride, padding, dilation };
        let plain = |x, output_grad, indices| {
            let MaxPool2dBackward { x_grad } = CubeBackend::max_pool2d_with_indices_backward(
                x,
                kernel_size,
                stride,
                padding,
                dilation,
                ceil_mode,
                output_grad,
                indices,
            );
            x_grad
        };
        let x_grad = adapters::pool::maximum_gradient(
            "max_pool2d_with_indices_backward",
            x,
            &window,
            output_grad,
            indices,
            plain,
        );
        MaxPool2dBackward { x_grad }
    }

    fn conv1d_bias_backward(
        _x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let axes = adapters::convolution::but_channels(&output_grad);
        Self::float_reshape(Self::float_sum_dims(output_grad, &axes), bias.shape())
    }

    fn conv2d_bias_backward(
        _x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let axes = adapters::convolution::but_channels(&output_grad);
        Self::float_reshape(Self::float_sum_dims(output_grad, &axes), bias.shape())
    }

    fn conv3d_bias_backward(
        _x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let axes = adapters::convolution::but_channels(&output_grad);
        Self::float_reshape(Self::float_sum_dims(output_grad, &axes), bias.shape())
    }

    fn conv_transpose1d_bias_backward(
        _x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let axes = adapters::convolution::but_channels(&output_grad);
        Self::float_reshape(Self::float_sum_dims(output_grad, &axes), bias.shape())
    }

    fn conv_transpose2d_bias_backward(
        _x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let axes = adapters::convolution::but_channels(&output_grad);
        Self::float_reshape(Self::float_sum_dims(output_grad, &axes), bias.shape())
    }

    fn conv_transpose3d_bias_backward(
        _x: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let axes = adapters::convolution::but_channels(&output_grad);
        Self::float_reshape(Self::float_sum_dims(output_grad, &axes), bias.shape())
    }

    /// Scaled dot-product attention: `softmax(Q K^T scale + bias) V`, with masks and capped scores (Vaswani et al.,
    /// "Attention Is All You Need", 2017).
    ///
    /// Q is `[batch, heads, queries, width]`, K `[batch, heads, keys, width]`, V `[batch, heads, keys, columns]`; the
    /// mask (true where a query does not see a key) and the bias are `[batch, heads, queries, keys]`. The result is
    /// `[batch, heads, queries, columns]`.
    ///
    /// # Order contract
    ///
    /// For each query `q[width]` of a head, with its keys `k[keys, width]` and values `v[keys, columns]`:
    ///
    /// ```text
    /// s[j]   = dot(q, k[j]) * scale
    /// s[j]   = tanh(s[j] / softcap) * softcap              where there is a softcap
    /// s[j]   = -inf                                        where the mask is set, or causal and j > i + keys - queries
    /// s[j]   = s[j] + bias[j]                              where there is a bias
    /// m      = max(MIN, s[0], s[1], ..)                    MIN: the smallest finite number
    /// e[j]   = exp(s[j] - m)
    /// z      = max(MIN_POSITIVE, sum(e))                   MIN_POSITIVE: the smallest normal number above zero
    /// p[j]   = e[j] / z                                    the probabilities
    /// out[c] = dot(p, v[.., c])
    /// ```
    ///
    /// `dot` is a [product](burn_deterministic_kernels::matmul), in the blocked order, and `sum` a
    /// [sum](burn_deterministic_kernels::reduce), in the columns order (see [`burn_deterministic_kernels::order`]).
    /// Each step is rounded on its own, to the operands' dtype. `exp` and `tanh` are
    /// [functions](burn_deterministic_kernels::function) of f32.
    ///
    /// More than 2^23 scores are computed in parts: some batches, some heads of one, or some queries of a head at a time, at
    /// least 16. Memory for them does not grow with the number of batches, heads and queries. A gradient is not computed
    /// here: burn-autodiff takes the operations one by one, and keeps their results.
    ///
    /// A query that is masked from every key gives zeros. The value of a masked key has the probability zero, so that
    /// an infinite or NaN value gives NaN. Where a score of a query is NaN or +inf, its results are NaN.
    fn attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: Option<BoolTensor<Self>>,
        attn_bias: Option<FloatTensor<Self>>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        let operands = attention::Operands { query, key, value, mask, bias: attn_bias };
        let together = operands.together();
        attention::in_parts::<Self>(operands, options, together)
    }

    fn has_ctc_loss_backward() -> bool {
        // Burn's stream asks the inner backend, so that the gradient arrives here as one operation.
        true
    }
}
