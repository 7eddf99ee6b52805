//! Int tensors.

use super::adapters::scatter::kind;
use super::forward::{adapted, forward, views};
use super::{Deterministic, adapters, transfer};
use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{
    BoolDType, DType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};
use burn_cubecl::CubeBackend;
use burn_deterministic_kernels::elementwise::IntBinary;
use burn_deterministic_kernels::reduce::{self, extreme::Extreme};
use burn_deterministic_kernels::scan;
use burn_deterministic_kernels::scatter::Addressing;

impl IntTensorOps<Self> for Deterministic<CubeBackend> {
    fn int_into_data(tensor: IntTensor<Self>) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        adapters::indices::read_checked(tensor, CubeBackend::int_into_data)
    }

    fn int_to_device(tensor: IntTensor<Self>, device: &Device<Self>) -> IntTensor<Self> {
        transfer::to_device(tensor, device, Self::int_into_data, Self::int_from_data)
    }

    forward! {
        TRANSFER:
        fn int_from_data(data: TensorData, device: &Device<Self>) -> IntTensor<Self>;
    }

    forward! {
        CREATION:
        fn int_zeros(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self>;
        fn int_ones(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self>;
        fn int_full(shape: Shape, fill_value: Scalar, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self>;
    }

    views! {
        MOVEMENT:
        fn int_reshape(tensor: IntTensor<Self>, shape: Shape) -> IntTensor<Self> = reshape;
        fn int_slice(tensor: IntTensor<Self>, slices: &[Slice]) -> IntTensor<Self>;
        fn int_slice_assign(tensor: IntTensor<Self>, slices: &[Slice], value: IntTensor<Self>) -> IntTensor<Self>;
        fn int_repeat_dim(tensor: IntTensor<Self>, dim: usize, times: usize) -> IntTensor<Self>;
        fn int_cat(tensors: Vec<IntTensor<Self>>, dim: usize) -> IntTensor<Self>;
        fn int_swap_dims(tensor: IntTensor<Self>, dim1: usize, dim2: usize) -> IntTensor<Self>;
        fn int_permute(tensor: IntTensor<Self>, axes: &[usize]) -> IntTensor<Self>;
        fn int_flip(tensor: IntTensor<Self>, axes: &[usize]) -> IntTensor<Self>;
        fn int_expand(tensor: IntTensor<Self>, shape: Shape) -> IntTensor<Self>;
    }

    forward! {
        ELEMENTWISE:
        fn int_mask_where(tensor: IntTensor<Self>, mask: BoolTensor<Self>, value: IntTensor<Self>) -> IntTensor<Self>;
        fn int_mask_fill(tensor: IntTensor<Self>, mask: BoolTensor<Self>, value: Scalar) -> IntTensor<Self>;
        fn int_equal(lhs: IntTensor<Self>, rhs: IntTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_not_equal(lhs: IntTensor<Self>, rhs: IntTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_equal_elem(lhs: IntTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_not_equal_elem(lhs: IntTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_greater(lhs: IntTensor<Self>, rhs: IntTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_greater_elem(lhs: IntTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_greater_equal(lhs: IntTensor<Self>, rhs: IntTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_greater_equal_elem(lhs: IntTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_lower(lhs: IntTensor<Self>, rhs: IntTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_lower_elem(lhs: IntTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_lower_equal(lhs: IntTensor<Self>, rhs: IntTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_lower_equal_elem(lhs: IntTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn int_add(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_add_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_clamp(tensor: IntTensor<Self>, min: Scalar, max: Scalar) -> IntTensor<Self>;
        fn int_sub(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_sub_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_mul(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_mul_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_abs(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_sign(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_and(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_and_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_or(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_or_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_xor(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_xor_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_not(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_cast(tensor: IntTensor<Self>, dtype: IntDType) -> IntTensor<Self>;
    }

    fn int_empty(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self> {
        Self::int_zeros(shape, device, dtype)
    }

    adapted! {
        adapters::elementwise::from_int:
        fn int_into_float(tensor: IntTensor<Self>, out_dtype: FloatDType) -> FloatTensor<Self>;

        adapters::elementwise::integers:
        fn int_div(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self> = IntBinary::Divide;
        fn int_remainder(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self> = IntBinary::Remainder;
        fn int_powi(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self> = IntBinary::Power;
        fn bitwise_left_shift(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self> = IntBinary::ShiftLeft;
        fn bitwise_right_shift(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self> = IntBinary::ShiftRight;

        adapters::elementwise::integers_with_scalar:
        fn int_div_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self> = IntBinary::Divide;
        fn int_remainder_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self> = IntBinary::Remainder;
        fn int_powi_scalar_impl(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self> = IntBinary::Power;
        fn bitwise_left_shift_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self> = IntBinary::ShiftLeft;
        fn bitwise_right_shift_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self> = IntBinary::ShiftRight;

        adapters::scatter::gather:
        fn int_gather(dim: usize, tensor: IntTensor<Self>, indices: IntTensor<Self>) -> IntTensor<Self>;

        adapters::scatter::scatter_nd:
        fn int_scatter_nd(
            data: IntTensor<Self>,
            indices: IntTensor<Self>,
            values: IntTensor<Self>,
            reduction: IndexingUpdateOp,
        ) -> IntTensor<Self>;

        adapters::scatter::gather_nd:
        fn int_gather_nd(data: IntTensor<Self>, indices: IntTensor<Self>) -> IntTensor<Self>;

        adapters::scatter::select:
        fn int_select(tensor: IntTensor<Self>, dim: usize, indices: IntTensor<Self>) -> IntTensor<Self>;

        adapters::matmul::product:
        fn int_matmul(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;

        adapters::reduce::whole:
        fn int_sum(tensor: IntTensor<Self>) -> IntTensor<Self> = reduce::sum;
        fn int_prod(tensor: IntTensor<Self>) -> IntTensor<Self> = reduce::prod;
        fn int_max(tensor: IntTensor<Self>) -> IntTensor<Self> = reduce::max;
        fn int_max_abs(tensor: IntTensor<Self>) -> IntTensor<Self> = reduce::max_abs;
        fn int_min(tensor: IntTensor<Self>) -> IntTensor<Self> = reduce::min;

        adapters::reduce::along:
        fn int_sum_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = reduce::sum;
        fn int_prod_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = reduce::prod;
        fn int_mean_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = reduce::mean;
        fn int_max_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = reduce::max;
        fn int_max_abs_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = reduce::max_abs;
        fn int_min_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = reduce::min;

        adapters::scan::along:
        fn int_cumsum(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = scan::cumsum;
        fn int_cumprod(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = scan::cumprod;
        fn int_cummin(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = scan::cummin;
        fn int_cummax(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = scan::cummax;

        adapters::windows::windows:
        fn int_unfold(tensor: IntTensor<Self>, dim: usize, size: usize, step: usize) -> IntTensor<Self>;

        adapters::sort::values:
        fn int_topk(tensor: IntTensor<Self>, dim: usize, k: usize) -> IntTensor<Self>;
        fn int_sort(tensor: IntTensor<Self>, dim: usize, descending: bool) -> IntTensor<Self>;

        adapters::reduce::int_index:
        fn int_argmax(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = Extreme::Max;
        fn int_argmin(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> = Extreme::Min;

        adapters::reduce::int_with_index:
        fn int_max_dim_with_indices(
            tensor: IntTensor<Self>,
            dim: usize,
        ) -> (IntTensor<Self>, IntTensor<Self>) = Extreme::Max;
        fn int_min_dim_with_indices(
            tensor: IntTensor<Self>,
            dim: usize,
        ) -> (IntTensor<Self>, IntTensor<Self>) = Extreme::Min;

        adapters::sort::int_indices:
        fn int_argtopk(tensor: IntTensor<Self>, dim: usize, k: usize) -> IntTensor<Self>;
        fn int_argsort(tensor: IntTensor<Self>, dim: usize, descending: bool) -> IntTensor<Self>;

        adapters::sort::int_with_indices:
        fn int_topk_with_indices(
            tensor: IntTensor<Self>,
            dim: usize,
            k: usize,
        ) -> (IntTensor<Self>, IntTensor<Self>);
        fn int_sort_with_indices(
            tensor: IntTensor<Self>,
            dim: usize,
            descending: bool,
        ) -> (IntTensor<Self>, IntTensor<Self>);
    }

    fn int_scatter(
        dim: usize,
        tensor: IntTensor<Self>,
        indices: IntTensor<Self>,
        value: IntTensor<Self>,
        update: IndexingUpdateOp,
    ) -> IntTensor<Self> {
        let plain = |[tensor, indices, value]: [_; 3]| CubeBackend::int_scatter(dim, tensor, indices, value, update);
        let operands = [tensor, indices, value];
        adapters::scatter::at_indices("int_scatter", Addressing::Elements { dim }, operands, kind(update), plain)
    }

    fn int_select_assign(
        tensor: IntTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
        value: IntTensor<Self>,
        update: IndexingUpdateOp,
    ) -> IntTensor<Self> {
        let plain =
            |[tensor, indices, value]: [_; 3]| CubeBackend::int_select_assign(tensor, dim, indices, value, update);
        let operands = [tensor, indices, value];
        adapters::scatter::at_indices("int_select_assign", Addressing::Rows { dim }, operands, kind(update), plain)
    }

    fn int_random(shape: Shape, distribution: Distribution, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self> {
        let plain = || CubeBackend::int_random(shape.clone(), distribution, device, dtype);
        let draw = |distribution, dtype| {
            adapters::random::draw("int_random", distribution, device, shape.clone(), dtype, plain)
        };
        match adapters::random::integers(distribution) {
            Some(distribution) => draw(distribution, dtype.into()),
            // Normal: the floats, cut to integers as Burn does.
            None => Self::float_into_int(draw(adapters::random::floats(distribution), DType::F32), dtype),
        }
    }

    fn int_any(tensor: IntTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_any(Self::int_not_equal_elem(tensor, 0.into(), out_dtype))
    }

    fn int_any_dim(tensor: IntTensor<Self>, dim: usize, out_dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_any_dim(Self::int_not_equal_elem(tensor, 0.into(), out_dtype), dim)
    }

    fn int_all(tensor: IntTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_all(Self::int_not_equal_elem(tensor, 0.into(), out_dtype))
    }

    fn int_all_dim(tensor: IntTensor<Self>, dim: usize, out_dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_all_dim(Self::int_not_equal_elem(tensor, 0.into(), out_dtype), dim)
    }
}
