//! Batch invariance: for which operations the result of a sample has the same bits in every batch.
//!
//! A sample is an index of an axis that the operation does not reduce over. [`GROUPS`] names every operation of the
//! traits and of the stream once; `tests/batch_invariance` calls each that is said to be invariant.

use core::fmt::Write;

/// Operations of which the same holds, for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// What the operations are.
    pub title: &'static str,
    /// Whether the result of a sample has the same bits alone and in every batch.
    pub is_invariant: bool,
    /// Why, or why not.
    pub reason: &'static str,
    /// The operations, separated by white space.
    operations: &'static str,
}

impl Group {
    /// The operations.
    pub fn operations(&self) -> impl Iterator<Item = &'static str> {
        self.operations.split_whitespace()
    }
}

const fn invariant(title: &'static str, reason: &'static str, operations: &'static str) -> Group {
    Group { title, is_invariant: true, reason, operations }
}

const fn exempt(title: &'static str, reason: &'static str, operations: &'static str) -> Group {
    Group { title, is_invariant: false, reason, operations }
}

/// Every operation of the traits and of the stream, once.
pub const GROUPS: &[Group] = &[
    invariant(
        "element-wise operations",
        "an element of the result is a function of the elements at its position, and of nothing else",
        "float_add float_add_scalar float_sub float_sub_scalar float_mul float_mul_scalar float_div float_div_scalar
         float_remainder float_remainder_scalar float_cross float_neg float_recip float_abs float_sign float_clamp
         float_clamp_min float_clamp_max float_mask_where float_mask_fill float_equal float_equal_elem float_not_equal
         float_not_equal_elem float_greater float_greater_elem float_greater_equal float_greater_equal_elem float_lower
         float_lower_elem float_lower_equal float_lower_equal_elem float_is_nan float_is_inf float_round float_floor
         float_ceil float_trunc float_cast float_into_int float_exp float_log float_log1p float_powf float_powi
         float_powi_scalar float_powi_scalar_impl float_powf_scalar float_powf_scalar_impl float_sqrt float_hypot
         float_sin float_cos float_tan float_sinh float_cosh float_tanh float_asin float_acos float_atan float_asinh
         float_acosh float_atanh float_atan2 float_erf dequantize",
    ),
    invariant(
        "activations",
        "composed of element-wise operations and, for softmax and its relatives, of reductions along one axis",
        "leaky_relu relu gelu prelu sigmoid hard_sigmoid log_sigmoid softmax log_softmax softmin",
    ),
    invariant(
        "moves and reads",
        "elements are copied, and none is computed",
        "float_repeat_dim float_transpose float_swap_dims float_permute float_flip float_reshape float_slice
         float_slice_assign float_cat float_expand float_unfold float_pad float_gather float_gather_nd float_select
         embedding unfold4d",
    ),
    invariant(
        "reductions along axes of a sample",
        "the order of a reduction depends on the number of elements reduced alone",
        "float_sum_dim float_sum_dims float_prod_dim float_mean_dim float_max_dim float_max_dim_with_indices
         float_min_dim float_min_dim_with_indices float_max_abs_dim float_any_dim float_all_dim float_argmax
         float_argmin",
    ),
    invariant(
        "scans, and orders of a line",
        "the order depends on the position along the axis alone; a sorted line is one permutation of it",
        "float_cumsum float_cumprod float_cummin float_cummax float_sort float_sort_with_indices float_argsort
         float_topk float_topk_with_indices float_argtopk",
    ),
    invariant(
        "updates along an axis of a sample",
        "the sources of an element are those of its own line, in their order along the axis",
        "float_scatter float_select_assign",
    ),
    invariant(
        "products, convolutions and other layers",
        "an element of the result is one sum, in a fixed order, over inner elements, channels, taps or keys of its own sample",
        "float_matmul linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d deform_conv2d
         attention layer_norm batch_norm avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d
         adaptive_avg_pool3d max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices interpolate
         float_grid_sample_2d fold4d ctc_loss",
    ),
    invariant(
        "integers and booleans",
        "they are computed without rounding, so that no order can show",
        "int_into_float int_mask_where int_mask_fill int_equal int_not_equal int_equal_elem int_not_equal_elem
         int_greater int_greater_elem int_greater_equal int_greater_equal_elem int_lower int_lower_elem int_lower_equal
         int_lower_equal_elem int_add int_add_scalar int_square int_powi int_powi_scalar int_powi_scalar_impl
         int_clamp_min int_clamp_max int_clamp int_sub int_sub_scalar int_mul int_mul_scalar int_div int_div_scalar
         int_remainder int_remainder_scalar int_neg int_abs int_sign int_cast bitwise_and bitwise_and_scalar bitwise_or
         bitwise_or_scalar bitwise_xor bitwise_xor_scalar bitwise_not bitwise_left_shift bitwise_left_shift_scalar
         bitwise_right_shift bitwise_right_shift_scalar int_repeat_dim int_transpose int_swap_dims int_permute int_flip
         int_reshape int_slice int_slice_assign int_cat int_expand int_unfold int_pad int_gather int_gather_nd
         int_select int_matmul int_sum_dim int_prod_dim int_mean_dim int_max_dim int_max_dim_with_indices int_min_dim
         int_min_dim_with_indices int_max_abs_dim int_any_dim int_all_dim int_argmax int_argmin int_cumsum int_cumprod
         int_cummin int_cummax int_sort int_sort_with_indices int_argsort int_topk int_topk_with_indices int_argtopk
         int_scatter int_select_assign bool_into_int bool_into_float bool_mask_where bool_mask_fill bool_equal
         bool_not_equal bool_equal_elem bool_not_equal_elem bool_not bool_and bool_or bool_xor bool_repeat_dim
         bool_transpose bool_swap_dims bool_permute bool_flip bool_reshape bool_slice bool_slice_assign bool_cat
         bool_expand bool_unfold bool_gather bool_select bool_any_dim bool_all_dim bool_scatter_or bool_select_or",
    ),
    exempt(
        "reductions of a whole tensor",
        "they reduce over the batch",
        "float_sum float_prod float_mean float_max float_min float_max_abs float_any float_all int_sum int_prod int_mean
         int_max int_min int_max_abs int_any int_all bool_any bool_all",
    ),
    exempt(
        "random numbers",
        "they are numbered over the whole tensor, so that a sample's depend on its place in the batch",
        "float_random int_random",
    ),
    exempt(
        "updates of a whole tensor",
        "the sources of all samples are one sequence, which is cut into blocks without regard to samples",
        "float_scatter_nd int_scatter_nd",
    ),
    exempt(
        "selections by a mask",
        "where an element is in the result depends on how many elements of the samples before are selected",
        "float_mask_select int_mask_select bool_mask_select bool_argwhere",
    ),
    exempt(
        "batch norm in training",
        "mean and variance are those of the batch",
        "batch_norm_train batch_norm_train_backward",
    ),
    exempt(
        "gradients",
        "those of weights are sums over the batch; only forward results are promised",
        "embedding_backward linear_x_backward linear_weight_backward linear_bias_backward conv1d_x_backward
         conv1d_weight_backward conv1d_bias_backward conv2d_x_backward conv2d_weight_backward conv2d_bias_backward
         conv3d_x_backward conv3d_weight_backward conv3d_bias_backward conv_transpose1d_x_backward
         conv_transpose1d_weight_backward conv_transpose1d_bias_backward conv_transpose2d_x_backward
         conv_transpose2d_weight_backward conv_transpose2d_bias_backward conv_transpose3d_x_backward
         conv_transpose3d_weight_backward conv_transpose3d_bias_backward deform_conv2d_backward avg_pool1d_backward
         avg_pool2d_backward adaptive_avg_pool1d_backward adaptive_avg_pool2d_backward adaptive_avg_pool3d_backward
         max_pool1d_with_indices_backward max_pool2d_with_indices_backward interpolate_backward ctc_loss_backward
         relu_backward gelu_backward sigmoid_backward log_sigmoid_backward",
    ),
    exempt(
        "quantized tensors",
        "a scale belongs to the whole tensor; a layer whose weights alone are quantized is invariant",
        "quantize quantize_dynamic q_reshape q_expand q_transpose q_swap_dims q_permute q_flip q_select q_slice q_gather
         q_repeat_dim q_add q_add_scalar q_clamp_min q_clamp_max q_clamp q_sub q_sub_scalar q_mul q_mul_scalar q_div
         q_div_scalar q_matmul q_neg q_recip q_sum q_sum_dim q_prod q_prod_dim q_mean q_mean_dim q_cumsum q_cumprod
         q_cummin q_cummax q_exp q_log q_log1p q_powf q_powi q_powi_scalar q_powf_scalar q_sqrt q_abs q_cos q_sin q_tan
         q_cosh q_sinh q_tanh q_erf q_cat q_argmax q_argtopk q_topk q_topk_with_indices q_argmin q_max q_max_dim
         q_max_dim_with_indices q_min q_min_dim q_min_dim_with_indices q_max_abs q_max_abs_dim q_any q_any_dim q_all
         q_all_dim q_sort q_sort_with_indices q_argsort",
    ),
    exempt(
        "creation, transfer and the device",
        "nothing is computed of a sample",
        "float_from_data float_zeros float_ones float_full float_empty float_into_data float_to_device float_detach
         float_set_require_grad float_is_require_grad int_empty int_into_data int_from_data int_to_device int_zeros
         int_ones int_full int_arange_step int_arange bool_empty bool_zeros bool_ones bool_into_data bool_from_data
         bool_to_device q_from_data q_to_device q_into_data q_detach q_set_require_grad q_is_require_grad
         has_ctc_loss_backward tr_execute start_communication_server close_communication_server
         register_sync_parameters submit_sync_collective submit_gradient_sync all_reduce sync_collective comm_device
         float_from_ref ad_enabled memory_persistent_allocations memory_cleanup memory_pool_report memory_pool_usage
         name seed sync profile profile_start profile_end profile_abandon graph_prepare graph_start_capture
         graph_stop_capture graph_replay flush staging supports_dtype dtype_usage device_count init drop",
    ),
    exempt("refused operations", "they have no result", "custom quantized bool_cast bool_scatter_nd bool_gather_nd"),
];

/// The section of `docs/operations.md`.
pub(super) fn markdown(text: &mut String) {
    text.push_str(
        "\n## Batch invariance\n\n\
         An operation is batch-invariant if the result of a sample has the same bits alone and in every batch: whatever \
         the number of samples, its place among them and their values, NaN included. A sample is an index of an axis that \
         the operation does not reduce over: a row of a sum along columns, an image of a convolution, a sequence of \
         attention. The device, driver and build are those of `Guarantee::RunToRun`, shapes but for the batch the same. \
         What Burn composes before its stream, and its layers, are invariant where each of these operations is; \
         burn-signal's transforms are. The elements of a sequence keep their bits when it is padded at its end, where \
         the operation reads no later element (scans, causal convolutions and attention) or a mask hides the padding \
         (keys of attention, minus infinity in softmax). `tests/batch_invariance` tests it.\n\n\
         | operations | batch-invariant | why |\n|---|---|---|\n",
    );
    for group in GROUPS {
        let Group { title, is_invariant, reason, .. } = group;
        let answer = if *is_invariant { "yes" } else { "no" };
        let operations: Vec<_> = group.operations().map(|operation| format!("`{operation}`")).collect();
        line(text, format_args!("| **{title}**: {} | {answer} | {reason} |", operations.join(", ")));
    }
}

/// Writes a line of a document.
pub(super) fn line(text: &mut String, line: core::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string does not fail");
}
