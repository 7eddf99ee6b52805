//! Float tensors.

use super::adapters::scatter::kind;
use super::forward::{adapted, forward, views};
use super::{Deterministic, adapters, transfer};
use burn_backend::ops::{BoolTensorOps, FloatTensorOps, GridSampleOptions};
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{
    BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData, TensorMetadata,
};
use burn_cubecl::CubeBackend;
use burn_deterministic_kernels::elementwise::{Binary, Comparison, Unary};
use burn_deterministic_kernels::reduce::{self, extreme::Extreme};
use burn_deterministic_kernels::scan;
use burn_deterministic_kernels::scatter::Addressing;

impl FloatTensorOps<Self> for Deterministic<CubeBackend> {
    fn float_into_data(tensor: FloatTensor<Self>) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        adapters::indices::read_checked(tensor, CubeBackend::float_into_data)
    }

    fn float_to_device(tensor: FloatTensor<Self>, device: &Device<Self>) -> FloatTensor<Self> {
        transfer::to_device(tensor, device, Self::float_into_data, Self::float_from_data)
    }

    forward! {
        TRANSFER:
        fn float_from_data(data: TensorData, device: &Device<Self>) -> FloatTensor<Self>;
    }

    forward! {
        CREATION:
        fn float_zeros(shape: Shape, device: &Device<Self>, dtype: FloatDType) -> FloatTensor<Self>;
        fn float_ones(shape: Shape, device: &Device<Self>, dtype: FloatDType) -> FloatTensor<Self>;
        fn float_full(shape: Shape, fill_value: Scalar, device: &Device<Self>, dtype: FloatDType) -> FloatTensor<Self>;
    }

    views! {
        MOVEMENT:
        fn float_reshape(tensor: FloatTensor<Self>, shape: Shape) -> FloatTensor<Self> = reshape;
        fn float_repeat_dim(tensor: FloatTensor<Self>, dim: usize, times: usize) -> FloatTensor<Self>;
        fn float_cat(tensors: Vec<FloatTensor<Self>>, dim: usize) -> FloatTensor<Self>;
        fn float_swap_dims(tensor: FloatTensor<Self>, dim1: usize, dim2: usize) -> FloatTensor<Self>;
        fn float_permute(tensor: FloatTensor<Self>, axes: &[usize]) -> FloatTensor<Self>;
        fn float_flip(tensor: FloatTensor<Self>, axes: &[usize]) -> FloatTensor<Self>;
        fn float_slice(tensor: FloatTensor<Self>, slices: &[Slice]) -> FloatTensor<Self> = slice;
        fn float_slice_assign(
            tensor: FloatTensor<Self>,
            slices: &[Slice],
            value: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn float_expand(tensor: FloatTensor<Self>, shape: Shape) -> FloatTensor<Self>;
    }

    forward! {
        ELEMENTWISE:
        fn float_mask_where(
            tensor: FloatTensor<Self>,
            mask: BoolTensor<Self>,
            value: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn float_mask_fill(tensor: FloatTensor<Self>, mask: BoolTensor<Self>, value: Scalar) -> FloatTensor<Self>;
        fn float_is_nan(tensor: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_is_inf(tensor: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
    }

    adapted! {
        adapters::elementwise::compare:
        fn float_equal(
            lhs: FloatTensor<Self>,
            rhs: FloatTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::Equal;
        fn float_greater(
            lhs: FloatTensor<Self>,
            rhs: FloatTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::Greater;
        fn float_greater_equal(
            lhs: FloatTensor<Self>,
            rhs: FloatTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::GreaterEqual;
        fn float_lower(
            lhs: FloatTensor<Self>,
            rhs: FloatTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::Less;
        fn float_lower_equal(
            lhs: FloatTensor<Self>,
            rhs: FloatTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::LessEqual;

        adapters::elementwise::compare_with_scalar:
        fn float_equal_elem(
            lhs: FloatTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::Equal;
        fn float_greater_elem(
            lhs: FloatTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::Greater;
        fn float_greater_equal_elem(
            lhs: FloatTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::GreaterEqual;
        fn float_lower_elem(
            lhs: FloatTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::Less;
        fn float_lower_equal_elem(
            lhs: FloatTensor<Self>,
            rhs: Scalar,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self> = Comparison::LessEqual;

        adapters::elementwise::sign:
        fn float_sign(tensor: FloatTensor<Self>) -> FloatTensor<Self>;

        adapters::elementwise::unary:
        fn float_abs(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Absolute;
        fn float_round(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Round;
        fn float_floor(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Floor;
        fn float_ceil(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Ceiling;
        fn float_trunc(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Truncate;
        fn float_recip(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Reciprocal;
        fn float_sqrt(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::SquareRoot;
        fn float_exp(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Exponential;
        fn float_log(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Logarithm;
        fn float_log1p(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::LogarithmOfOnePlus;
        fn float_cos(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Cosine;
        fn float_sin(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Sine;
        fn float_tan(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Tangent;
        fn float_cosh(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::HyperbolicCosine;
        fn float_sinh(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::HyperbolicSine;
        fn float_tanh(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::HyperbolicTangent;
        fn float_acos(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::ArcCosine;
        fn float_acosh(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::HyperbolicArcCosine;
        fn float_asin(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::ArcSine;
        fn float_asinh(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::HyperbolicArcSine;
        fn float_atan(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::ArcTangent;
        fn float_atanh(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::HyperbolicArcTangent;
        fn float_erf(tensor: FloatTensor<Self>) -> FloatTensor<Self> = Unary::Erf;

        adapters::elementwise::binary:
        fn float_add(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> = Binary::Add;
        fn float_sub(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> = Binary::Subtract;
        fn float_mul(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> = Binary::Multiply;
        fn float_div(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> = Binary::Divide;
        fn float_remainder(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> = Binary::Remainder;
        fn float_powf(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> = Binary::Power;
        fn float_atan2(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> = Binary::ArcTangent;

        adapters::elementwise::clamp:
        fn float_clamp(tensor: FloatTensor<Self>, min: Scalar, max: Scalar) -> FloatTensor<Self>;

        adapters::elementwise::into_int:
        fn float_into_int(tensor: FloatTensor<Self>, out_dtype: IntDType) -> IntTensor<Self>;

        adapters::elementwise::cast:
        fn float_cast(tensor: FloatTensor<Self>, dtype: FloatDType) -> FloatTensor<Self>;

        adapters::elementwise::with_scalar:
        fn float_add_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self> = Binary::Add;
        fn float_sub_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self> = Binary::Subtract;
        fn float_mul_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self> = Binary::Multiply;
        fn float_div_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self> = Binary::Divide;
        fn float_remainder_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self> = Binary::Remainder;
        fn float_powf_scalar_impl(tensor: FloatTensor<Self>, value: Scalar) -> FloatTensor<Self> = Binary::Power;
    }

    adapted! {
        adapters::windows::windows:
        fn float_unfold(tensor: FloatTensor<Self>, dim: usize, size: usize, step: usize) -> FloatTensor<Self>;

        adapters::matmul::float_product:
        fn float_matmul(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self>;

        adapters::scatter::gather:
        fn float_gather(dim: usize, tensor: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self>;

        adapters::scatter::scatter_nd:
        fn float_scatter_nd(
            data: FloatTensor<Self>,
            indices: IntTensor<Self>,
            values: FloatTensor<Self>,
            reduction: IndexingUpdateOp,
        ) -> FloatTensor<Self>;

        adapters::scatter::gather_nd:
        fn float_gather_nd(data: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self>;

        adapters::scatter::select:
        fn float_select(tensor: FloatTensor<Self>, dim: usize, indices: IntTensor<Self>) -> FloatTensor<Self>;

        adapters::reduce::whole:
        fn float_sum(tensor: FloatTensor<Self>) -> FloatTensor<Self> = reduce::sum;
        fn float_prod(tensor: FloatTensor<Self>) -> FloatTensor<Self> = reduce::prod;
        fn float_mean(tensor: FloatTensor<Self>) -> FloatTensor<Self> = reduce::mean;
        fn float_max(tensor: FloatTensor<Self>) -> FloatTensor<Self> = reduce::max;
        fn float_min(tensor: FloatTensor<Self>) -> FloatTensor<Self> = reduce::min;
        fn float_max_abs(tensor: FloatTensor<Self>) -> FloatTensor<Self> = reduce::max_abs;

        adapters::reduce::along:
        fn float_sum_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = reduce::sum;
        fn float_prod_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = reduce::prod;
        fn float_mean_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = reduce::mean;
        fn float_max_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = reduce::max;
        fn float_min_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = reduce::min;
        fn float_max_abs_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = reduce::max_abs;

        adapters::reduce::over:
        fn float_sum_dims(tensor: FloatTensor<Self>, dims: &[usize]) -> FloatTensor<Self> = reduce::sum;

        adapters::scan::along:
        fn float_cumsum(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = scan::cumsum;
        fn float_cumprod(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = scan::cumprod;
        fn float_cummin(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = scan::cummin;
        fn float_cummax(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> = scan::cummax;

        adapters::reduce::index:
        fn float_argmax(
            tensor: FloatTensor<Self>,
            dim: usize,
            out_dtype: IntDType,
        ) -> IntTensor<Self> = Extreme::Max;
        fn float_argmin(
            tensor: FloatTensor<Self>,
            dim: usize,
            out_dtype: IntDType,
        ) -> IntTensor<Self> = Extreme::Min;

        adapters::reduce::with_index:
        fn float_max_dim_with_indices(
            tensor: FloatTensor<Self>,
            dim: usize,
            indices_dtype: IntDType,
        ) -> (FloatTensor<Self>, IntTensor<Self>) = Extreme::Max;
        fn float_min_dim_with_indices(
            tensor: FloatTensor<Self>,
            dim: usize,
            indices_dtype: IntDType,
        ) -> (FloatTensor<Self>, IntTensor<Self>) = Extreme::Min;

        adapters::sort::indices:
        fn float_argtopk(
            tensor: FloatTensor<Self>,
            dim: usize,
            k: usize,
            out_dtype: IntDType,
        ) -> IntTensor<Self>;
        fn float_argsort(
            tensor: FloatTensor<Self>,
            dim: usize,
            descending: bool,
            out_dtype: IntDType,
        ) -> IntTensor<Self>;

        adapters::sort::values:
        fn float_topk(tensor: FloatTensor<Self>, dim: usize, k: usize) -> FloatTensor<Self>;
        fn float_sort(tensor: FloatTensor<Self>, dim: usize, descending: bool) -> FloatTensor<Self>;

        adapters::sort::with_indices:
        fn float_topk_with_indices(
            tensor: FloatTensor<Self>,
            dim: usize,
            k: usize,
            out_dtype: IntDType,
        ) -> (FloatTensor<Self>, IntTensor<Self>);
        fn float_sort_with_indices(
            tensor: FloatTensor<Self>,
            dim: usize,
            descending: bool,
            out_dtype: IntDType,
        ) -> (FloatTensor<Self>, IntTensor<Self>);

        adapters::resample::grid_sample:
        fn float_grid_sample_2d(
            tensor: FloatTensor<Self>,
            grid: FloatTensor<Self>,
            options: GridSampleOptions,
        ) -> FloatTensor<Self>;
    }

    fn float_scatter(
        dim: usize,
        tensor: FloatTensor<Self>,
        indices: IntTensor<Self>,
        value: FloatTensor<Self>,
        update: IndexingUpdateOp,
    ) -> FloatTensor<Self> {
        let plain = |[tensor, indices, value]: [_; 3]| CubeBackend::float_scatter(dim, tensor, indices, value, update);
        let operands = [tensor, indices, value];
        adapters::scatter::at_indices("float_scatter", Addressing::Elements { dim }, operands, kind(update), plain)
    }

    fn float_select_assign(
        tensor: FloatTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
        value: FloatTensor<Self>,
        update: IndexingUpdateOp,
    ) -> FloatTensor<Self> {
        let plain =
            |[tensor, indices, value]: [_; 3]| CubeBackend::float_select_assign(tensor, dim, indices, value, update);
        let operands = [tensor, indices, value];
        adapters::scatter::at_indices("float_select_assign", Addressing::Rows { dim }, operands, kind(update), plain)
    }

    fn float_random(
        shape: Shape,
        distribution: Distribution,
        device: &Device<Self>,
        dtype: FloatDType,
    ) -> FloatTensor<Self> {
        let plain = || CubeBackend::float_random(shape.clone(), distribution, device, dtype);
        let floats = adapters::random::floats(distribution);
        adapters::random::draw("float_random", floats, device, shape.clone(), dtype.into(), plain)
    }

    /// With `d = a * next(b) - next(a) * b`, of which each product is rounded, it is `next(d)`: `next` moves every element of
    /// the axis one place down, and the first to the end.
    fn float_cross(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        assert_eq!(
            (lhs.shape()[dim], rhs.shape()[dim]),
            (3, 3),
            "a cross product is one of three elements on axis {dim}"
        );
        let next = |tensor: FloatTensor<Self>| {
            let part = |start, end| {
                let mut slices = vec![Slice::full(); tensor.rank()];
                slices[dim] = Slice::new(start, Some(end), 1);
                Self::float_slice(tensor.clone(), &slices)
            };
            Self::float_cat(vec![part(1, 3), part(0, 1)], dim)
        };
        let left = Self::float_mul(lhs.clone(), next(rhs.clone()));
        let right = Self::float_mul(next(lhs), rhs);
        next(Self::float_sub(left, right))
    }

    fn float_empty(shape: Shape, device: &Device<Self>, dtype: FloatDType) -> FloatTensor<Self> {
        Self::float_zeros(shape, device, dtype)
    }

    fn float_any(tensor: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_any(Self::float_not_equal_elem(tensor, 0.into(), out_dtype))
    }

    fn float_any_dim(tensor: FloatTensor<Self>, dim: usize, out_dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_any_dim(Self::float_not_equal_elem(tensor, 0.into(), out_dtype), dim)
    }

    fn float_all(tensor: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_all(Self::float_not_equal_elem(tensor, 0.into(), out_dtype))
    }

    fn float_all_dim(tensor: FloatTensor<Self>, dim: usize, out_dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_all_dim(Self::float_not_equal_elem(tensor, 0.into(), out_dtype), dim)
    }
}
