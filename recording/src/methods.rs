//! The names of Burn's operations, by which custom operations are told from them.

use crate::record::Operation;

/// Operations of tensors are methods of these names and what follows.
const FAMILIES: [&str; 3] = ["float_", "int_", "bool_"];

/// Methods of Burn's backend without a family, and the custom operations of Burn's own extension crates.
#[rustfmt::skip]
const METHODS: [&str; 79] = [
    "adaptive_avg_pool1d", "adaptive_avg_pool1d_backward", "adaptive_avg_pool2d", "adaptive_avg_pool2d_backward",
    "adaptive_avg_pool3d", "adaptive_avg_pool3d_backward", "all_reduce", "attention", "avg_pool1d", "avg_pool1d_backward",
    "avg_pool2d", "avg_pool2d_backward", "batch_norm", "conv1d", "conv1d_bias_backward", "conv1d_weight_backward",
    "conv1d_x_backward", "conv2d", "conv2d_bias_backward", "conv2d_weight_backward", "conv2d_x_backward", "conv3d",
    "conv3d_bias_backward", "conv3d_weight_backward", "conv3d_x_backward", "conv_transpose1d",
    "conv_transpose1d_bias_backward", "conv_transpose1d_weight_backward", "conv_transpose1d_x_backward",
    "conv_transpose2d", "conv_transpose2d_bias_backward", "conv_transpose2d_weight_backward",
    "conv_transpose2d_x_backward", "conv_transpose3d", "conv_transpose3d_bias_backward",
    "conv_transpose3d_weight_backward", "conv_transpose3d_x_backward", "ctc_loss", "ctc_loss_backward", "deform_conv2d",
    "deform_conv2d_backward", "dequantize", "embedding", "embedding_backward", "gelu", "gelu_backward", "hard_sigmoid",
    "interpolate", "interpolate_backward", "irfft", "layer_norm", "leaky_relu", "linalg::svd", "linear",
    "linear_bias_backward", "linear_weight_backward", "linear_x_backward", "log_sigmoid", "log_sigmoid_backward",
    "log_softmax", "max_pool1d", "max_pool1d_with_indices", "max_pool1d_with_indices_backward", "max_pool2d",
    "max_pool2d_with_indices", "max_pool2d_with_indices_backward", "prelu", "quantize", "relu", "relu_backward", "rfft",
    "sigmoid", "sigmoid_backward", "signal::irfft", "signal::rfft", "softmax", "softmin", "sync_collective", "unfold4d",
];

impl Operation {
    /// Whether it is a custom operation, by its name: neither Burn's nor a tensor made elsewhere.
    pub(crate) fn is_custom(&self) -> bool {
        let name = self.name.as_str();
        let is_burns = FAMILIES.iter().any(|family| name.starts_with(family)) || METHODS.binary_search(&name).is_ok();
        !is_burns && ![Self::UPLOAD, Self::RECEIVE].contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::METHODS;

    #[test]
    fn methods_are_sorted() {
        assert!(METHODS.is_sorted());
    }
}
