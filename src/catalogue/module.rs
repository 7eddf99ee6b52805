//! `ModuleOps`, `ActivationOps`.

use super::entry::{Entry, composed, forwarded, kernel};
use super::reason;

/// The methods of `ModuleOps`.
pub(super) const MODULE: &[Entry] = &[
    composed(
        "batch_norm",
        "`float_reshape`, `float_sqrt`, `float_add_scalar`, `float_div`, `float_sub`, `float_add`, `float_mul`",
    ),
    composed(
        "batch_norm_train",
        "`float_mean_dim`, `float_reshape`, `float_swap_dims`, `float_sub`, `float_mul`, `batch_norm`",
    ),
    composed(
        "batch_norm_train_backward",
        "`float_reshape`, `float_recip`, `float_sqrt`, `float_add_scalar`, `float_mul`, `float_sub`, \
         `float_swap_dims`, `float_sum_dim`, `float_mean_dim`",
    ),
    composed("embedding", "`int_reshape`, `float_select`, `float_reshape`"),
    composed("embedding_backward", "`int_reshape`, `float_reshape`, `float_zeros`, `float_select_assign`"),
    composed("linear", "`float_reshape`, `float_matmul`, `float_add`"),
    composed("linear_x_backward", "`float_swap_dims`, `float_reshape`, `float_matmul`, `float_add`"),
    composed("linear_weight_backward", "`float_swap_dims`, `float_matmul`, `float_reshape`"),
    composed("linear_bias_backward", "`float_sum_dim`, `float_reshape`"),
    kernel("conv1d", "convolution::forward"),
    kernel("conv1d_x_backward", "convolution::input_gradient"),
    kernel("conv1d_weight_backward", "convolution::weight_gradient"),
    composed("conv1d_bias_backward", "`float_sum_dims`, `float_reshape`"),
    kernel("conv2d", "convolution::forward"),
    kernel("conv2d_x_backward", "convolution::input_gradient"),
    kernel("conv2d_weight_backward", "convolution::weight_gradient"),
    composed("conv2d_bias_backward", "`float_sum_dims`, `float_reshape`"),
    kernel("deform_conv2d", "deform_convolution::forward"),
    kernel("deform_conv2d_backward", "deform_convolution::backward, deform_convolution::bias_gradient"),
    kernel("conv3d", "convolution::forward"),
    kernel("conv3d_x_backward", "convolution::input_gradient"),
    kernel("conv3d_weight_backward", "convolution::weight_gradient"),
    composed("conv3d_bias_backward", "`float_sum_dims`, `float_reshape`"),
    kernel("conv_transpose1d", "convolution::transposed_forward"),
    composed("conv_transpose1d_x_backward", "`conv1d`, `float_slice`"),
    kernel("conv_transpose1d_weight_backward", "convolution::transposed_weight_gradient"),
    composed("conv_transpose1d_bias_backward", "`float_sum_dims`, `float_reshape`"),
    kernel("conv_transpose2d", "convolution::transposed_forward"),
    composed("conv_transpose2d_x_backward", "`conv2d`, `float_slice`"),
    kernel("conv_transpose2d_weight_backward", "convolution::transposed_weight_gradient"),
    composed("conv_transpose2d_bias_backward", "`float_sum_dims`, `float_reshape`"),
    kernel("conv_transpose3d", "convolution::transposed_forward"),
    composed("conv_transpose3d_x_backward", "`conv3d`, `float_slice`"),
    kernel("conv_transpose3d_weight_backward", "convolution::transposed_weight_gradient"),
    composed("conv_transpose3d_bias_backward", "`float_sum_dims`, `float_reshape`"),
    composed(
        "unfold4d",
        "`float_unfold`, `float_permute`, `float_reshape`; `float_from_data`, `conv2d` with padding or dilation",
    ),
    composed("fold4d", "`float_from_data`, `float_reshape`, `conv_transpose2d`"),
    composed("avg_pool1d", "`float_reshape`, `avg_pool2d`"),
    composed("avg_pool1d_backward", "`float_reshape`, `avg_pool2d_backward`"),
    kernel("avg_pool2d", "pool::average"),
    kernel("avg_pool2d_backward", "pool::average_gradient"),
    kernel("adaptive_avg_pool2d", "pool::adaptive_average, reduce::mean"),
    kernel("adaptive_avg_pool2d_backward", "pool::adaptive_average_gradient"),
    kernel("adaptive_avg_pool3d", "pool::adaptive_average, reduce::mean"),
    kernel("adaptive_avg_pool3d_backward", "pool::adaptive_average_gradient"),
    composed("adaptive_avg_pool1d", "`float_reshape`, `adaptive_avg_pool2d`"),
    composed("adaptive_avg_pool1d_backward", "`float_reshape`, `adaptive_avg_pool2d_backward`"),
    composed("max_pool1d", "`float_reshape`, `max_pool2d`"),
    composed("max_pool1d_with_indices", "`float_reshape`, `max_pool2d_with_indices`, `int_reshape`"),
    composed("max_pool1d_with_indices_backward", "`float_reshape`, `int_reshape`, `max_pool2d_with_indices_backward`"),
    kernel("max_pool2d", "pool::maximum"),
    kernel("max_pool2d_with_indices", "pool::maximum_with_indices"),
    kernel("max_pool2d_with_indices_backward", "pool::maximum_gradient"),
    kernel("interpolate", "interpolation::resize"),
    kernel("interpolate_backward", "interpolation::input_gradient"),
    composed(
        "attention",
        "`float_transpose`, `float_matmul`, `float_mul_scalar`, `float_div_scalar`, `float_tanh`, `float_mask_fill`, \
         `int_arange`, `int_reshape`, `int_add_scalar`, `int_lower`, `bool_reshape`, `bool_expand`, `float_add`, \
         `float_max_dim`, `float_clamp_min`, `float_sub`, `float_exp`, `float_sum_dim`, `float_div`, \
         `float_slice`, `bool_slice`, `int_slice`, `bool_or`, `float_empty`, `float_slice_assign`",
    ),
    composed(
        "layer_norm",
        "`float_mean_dim`, `float_sub`, `float_mul`, `float_sqrt`, `float_add_scalar`, `float_div`, \
         `float_reshape`, `float_add`",
    ),
    kernel("ctc_loss", "ctc::loss"),
    forwarded("has_ctc_loss_backward", reason::HAS_CTC),
    kernel("ctc_loss_backward", "ctc::gradient, ctc::variables"),
];

/// The methods of `ActivationOps`.
pub(super) const ACTIVATION: &[Entry] = &[
    composed("leaky_relu", "`float_lower_elem`, `float_mul_scalar`, `float_mask_where`"),
    composed("relu", "`float_lower_equal_elem`, `float_mask_fill`"),
    composed("relu_backward", "`float_lower_equal_elem`, `float_mask_fill`"),
    composed("gelu", "`float_div_scalar`, `float_erf`, `float_add_scalar`, `float_mul`"),
    composed("prelu", "`float_lower_elem`, `float_mul`, `float_mask_where`"),
    composed(
        "gelu_backward",
        "`float_powi_scalar`, `float_mul_scalar`, `float_add`, `float_tanh`, `float_neg`, `float_add_scalar`, \
         `float_mul`",
    ),
    composed("sigmoid", "`float_cast`, `float_exp`, `float_neg`, `float_log`, `float_add_scalar`"),
    composed("sigmoid_backward", "`float_mul`, `float_add_scalar`, `float_neg`"),
    composed("hard_sigmoid", "`float_cast`, `float_clamp`, `float_add_scalar`, `float_mul_scalar`"),
    composed(
        "log_sigmoid",
        "`float_neg`, `float_lower_elem`, `float_mask_fill`, `float_add`, `float_exp`, `float_sub`, `float_log`",
    ),
    composed("softmax", "`float_max_dim`, `float_detach`, `float_sub`, `float_exp`, `float_sum_dim`, `float_div`"),
    composed("log_softmax", "`float_max_dim`, `float_detach`, `float_sub`, `float_log`, `float_sum_dim`, `float_exp`"),
    composed("softmin", "`softmax`, `float_neg`"),
    composed(
        "log_sigmoid_backward",
        "`float_neg`, `float_lower_elem`, `float_mask_fill`, `float_add`, `float_exp`, `float_sub`, `float_ones`, \
         `float_mul`, `float_recip`",
    ),
];
