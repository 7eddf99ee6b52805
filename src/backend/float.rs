//! Float tensors.

use super::Deterministic;
use super::forward::{elementary, elementary_function, forward};
use super::kernel::{self, scatter::Updated, sort::Order};
use burn_backend::ops::{BoolTensorOps, FloatTensorOps, GridSampleOptions};
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{
    BoolDType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData, TensorMetadata,
};
use burn_cubecl::CubeBackend;
use burn_deterministic_kernels::reduce::{self, extreme};
use burn_deterministic_kernels::{scan, scatter};

impl FloatTensorOps<Self> for Deterministic<CubeBackend> {
    fn float_into_data(tensor: FloatTensor<Self>) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        kernel::indices::read_checked(tensor, CubeBackend::float_into_data)
    }

    forward! {
        TRANSFER:
        fn float_from_data(data: TensorData, device: &Device<Self>) -> FloatTensor<Self>;
        fn float_to_device(tensor: FloatTensor<Self>, device: &Device<Self>) -> FloatTensor<Self>;
    }

    forward! {
        CREATION:
        fn float_zeros(shape: Shape, device: &Device<Self>, dtype: FloatDType) -> FloatTensor<Self>;
        fn float_ones(shape: Shape, device: &Device<Self>, dtype: FloatDType) -> FloatTensor<Self>;
        fn float_full(shape: Shape, fill_value: Scalar, device: &Device<Self>, dtype: FloatDType) -> FloatTensor<Self>;
    }

    forward! {
        MOVEMENT:
        fn float_repeat_dim(tensor: FloatTensor<Self>, dim: usize, times: usize) -> FloatTensor<Self>;
        fn float_cat(tensors: Vec<FloatTensor<Self>>, dim: usize) -> FloatTensor<Self>;
        fn float_swap_dims(tensor: FloatTensor<Self>, dim1: usize, dim2: usize) -> FloatTensor<Self>;
        fn float_permute(tensor: FloatTensor<Self>, axes: &[usize]) -> FloatTensor<Self>;
        fn float_flip(tensor: FloatTensor<Self>, axes: &[usize]) -> FloatTensor<Self>;
        fn float_reshape(tensor: FloatTensor<Self>, shape: Shape) -> FloatTensor<Self>;
        fn float_slice(tensor: FloatTensor<Self>, slices: &[Slice]) -> FloatTensor<Self>;
        fn float_slice_assign(
            tensor: FloatTensor<Self>,
            slices: &[Slice],
            value: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn float_expand(tensor: FloatTensor<Self>, shape: Shape) -> FloatTensor<Self>;
    }

    forward! {
        ELEMENTWISE:
        fn float_into_int(tensor: FloatTensor<Self>, out_dtype: IntDType) -> IntTensor<Self>;
        fn float_add(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_add_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self>;
        fn float_clamp(tensor: FloatTensor<Self>, min: Scalar, max: Scalar) -> FloatTensor<Self>;
        fn float_sub(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_sub_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self>;
        fn float_mul(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_mul_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self>;
        fn float_div(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_div_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self>;
        fn float_remainder(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_remainder_scalar(lhs: FloatTensor<Self>, rhs: Scalar) -> FloatTensor<Self>;
        fn float_cross(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, dim: usize) -> FloatTensor<Self>;
        fn float_recip(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_mask_where(
            tensor: FloatTensor<Self>,
            mask: BoolTensor<Self>,
            value: FloatTensor<Self>,
        ) -> FloatTensor<Self>;
        fn float_mask_fill(tensor: FloatTensor<Self>, mask: BoolTensor<Self>, value: Scalar) -> FloatTensor<Self>;
        fn float_equal(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_equal_elem(lhs: FloatTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_greater(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_greater_elem(lhs: FloatTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_greater_equal(
            lhs: FloatTensor<Self>,
            rhs: FloatTensor<Self>,
            out_dtype: BoolDType,
        ) -> BoolTensor<Self>;
        fn float_greater_equal_elem(lhs: FloatTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_lower(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_lower_elem(lhs: FloatTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_lower_equal(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_lower_equal_elem(lhs: FloatTensor<Self>, rhs: Scalar, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_cast(tensor: FloatTensor<Self>, dtype: FloatDType) -> FloatTensor<Self>;
        fn float_sqrt(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_abs(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_round(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_floor(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_ceil(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_trunc(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_sign(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_is_nan(tensor: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
        fn float_is_inf(tensor: FloatTensor<Self>, out_dtype: BoolDType) -> BoolTensor<Self>;
    }

    elementary! {
        ELEMENTARY:
        fn float_exp(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_log(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_log1p(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_powf_scalar_impl(tensor: FloatTensor<Self>, value: Scalar) -> FloatTensor<Self>;
        fn float_cos(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_sin(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_tan(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_cosh(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_sinh(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_tanh(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_acos(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_acosh(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_asin(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_asinh(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_atan(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_atanh(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
        fn float_erf(tensor: FloatTensor<Self>) -> FloatTensor<Self>;
    }

    fn float_powf(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        let shape = lhs.shape().broadcast(&rhs.shape()).expect("Burn checks that shapes broadcast");
        elementary_function("float_powf", lhs, shape, |lhs| CubeBackend::float_powf(lhs, rhs))
    }

    fn float_atan2(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        let shape = lhs.shape().broadcast(&rhs.shape()).expect("Burn checks that shapes broadcast");
        elementary_function("float_atan2", lhs, shape, |lhs| CubeBackend::float_atan2(lhs, rhs))
    }

    fn float_unfold(tensor: FloatTensor<Self>, dim: usize, size: usize, step: usize) -> FloatTensor<Self> {
        kernel::windows::windows("float_unfold", tensor, dim, size, step)
    }

    fn float_random(
        shape: Shape,
        distribution: Distribution,
        device: &Device<Self>,
        dtype: FloatDType,
    ) -> FloatTensor<Self> {
        let plain = || CubeBackend::float_random(shape.clone(), distribution, device, dtype);
        let floats = kernel::random::floats(distribution);
        kernel::random::draw("float_random", floats, device, shape.clone(), dtype.into(), plain)
    }

    fn float_empty(shape: Shape, device: &Device<Self>, dtype: FloatDType) -> FloatTensor<Self> {
        Self::float_zeros(shape, device, dtype)
    }

    fn float_matmul(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>) -> FloatTensor<Self> {
        kernel::matmul::product("float_matmul", lhs, rhs, CubeBackend::float_matmul)
    }

    fn float_gather(dim: usize, tensor: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        kernel::scatter::gather("float_gather", dim, tensor, indices, |tensor, indices| {
            CubeBackend::float_gather(dim, tensor, indices)
        })
    }

    fn float_scatter(
        dim: usize,
        tensor: FloatTensor<Self>,
        indices: IntTensor<Self>,
        value: FloatTensor<Self>,
        update: IndexingUpdateOp,
    ) -> FloatTensor<Self> {
        let operands = Updated { tensor, indices, values: value };
        kernel::scatter::along(
            "float_scatter",
            scatter::scatter,
            dim,
            operands,
            kernel::scatter::update(update),
            |tensor, indices, values| CubeBackend::float_scatter(dim, tensor, indices, values, update),
        )
    }

    fn float_scatter_nd(
        data: FloatTensor<Self>,
        indices: IntTensor<Self>,
        values: FloatTensor<Self>,
        reduction: IndexingUpdateOp,
    ) -> FloatTensor<Self> {
        let operands = Updated { tensor: data, indices, values };
        kernel::scatter::slices(
            "float_scatter_nd",
            operands,
            kernel::scatter::update(reduction),
            |data, indices, values| CubeBackend::float_scatter_nd(data, indices, values, reduction),
        )
    }

    fn float_gather_nd(data: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        kernel::scatter::gather_nd("float_gather_nd", data, indices, CubeBackend::float_gather_nd)
    }

    fn float_select(tensor: FloatTensor<Self>, dim: usize, indices: IntTensor<Self>) -> FloatTensor<Self> {
        kernel::scatter::select("float_select", tensor, dim, indices, |tensor, indices| {
            CubeBackend::float_select(tensor, dim, indices)
        })
    }

    fn float_select_assign(
        tensor: FloatTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
        value: FloatTensor<Self>,
        update: IndexingUpdateOp,
    ) -> FloatTensor<Self> {
        let operands = Updated { tensor, indices, values: value };
        kernel::scatter::along(
            "float_select_assign",
            scatter::select_assign,
            dim,
            operands,
            kernel::scatter::update(update),
            |tensor, indices, values| CubeBackend::float_select_assign(tensor, dim, indices, values, update),
        )
    }

    fn float_sum(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        kernel::reduce::whole("float_sum", reduce::sum, tensor, CubeBackend::float_sum)
    }

    fn float_sum_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::reduce::along("float_sum_dim", reduce::sum, tensor, &[dim], |tensor| {
            CubeBackend::float_sum_dim(tensor, dim)
        })
    }

    fn float_sum_dims(tensor: FloatTensor<Self>, dims: &[usize]) -> FloatTensor<Self> {
        kernel::reduce::along("float_sum_dims", reduce::sum, tensor, dims, |tensor| {
            CubeBackend::float_sum_dims(tensor, dims)
        })
    }

    fn float_prod(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        kernel::reduce::whole("float_prod", reduce::prod, tensor, CubeBackend::float_prod)
    }

    fn float_prod_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::reduce::along("float_prod_dim", reduce::prod, tensor, &[dim], |tensor| {
            CubeBackend::float_prod_dim(tensor, dim)
        })
    }

    fn float_mean(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        kernel::reduce::whole("float_mean", reduce::mean, tensor, CubeBackend::float_mean)
    }

    fn float_mean_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::reduce::along("float_mean_dim", reduce::mean, tensor, &[dim], |tensor| {
            CubeBackend::float_mean_dim(tensor, dim)
        })
    }

    fn float_cumsum(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::scan::along("float_cumsum", scan::cumsum, tensor, dim, CubeBackend::float_cumsum)
    }

    fn float_cumprod(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::scan::along("float_cumprod", scan::cumprod, tensor, dim, CubeBackend::float_cumprod)
    }

    fn float_cummin(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::scan::along("float_cummin", scan::cummin, tensor, dim, CubeBackend::float_cummin)
    }

    fn float_cummax(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::scan::along("float_cummax", scan::cummax, tensor, dim, CubeBackend::float_cummax)
    }

    fn float_argmax(tensor: FloatTensor<Self>, dim: usize, out_dtype: IntDType) -> IntTensor<Self> {
        kernel::reduce::index("float_argmax", extreme::argmax, tensor, dim, out_dtype, |tensor| {
            CubeBackend::float_argmax(tensor, dim, out_dtype)
        })
    }

    fn float_argmin(tensor: FloatTensor<Self>, dim: usize, out_dtype: IntDType) -> IntTensor<Self> {
        kernel::reduce::index("float_argmin", extreme::argmin, tensor, dim, out_dtype, |tensor| {
            CubeBackend::float_argmin(tensor, dim, out_dtype)
        })
    }

    fn float_max(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        kernel::reduce::whole("float_max", reduce::max, tensor, CubeBackend::float_max)
    }

    fn float_max_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::reduce::along("float_max_dim", reduce::max, tensor, &[dim], |tensor| {
            CubeBackend::float_max_dim(tensor, dim)
        })
    }

    fn float_min(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        kernel::reduce::whole("float_min", reduce::min, tensor, CubeBackend::float_min)
    }

    fn float_min_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::reduce::along("float_min_dim", reduce::min, tensor, &[dim], |tensor| {
            CubeBackend::float_min_dim(tensor, dim)
        })
    }

    fn float_max_abs(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        kernel::reduce::whole("float_max_abs", reduce::max_abs, tensor, CubeBackend::float_max_abs)
    }

    fn float_max_abs_dim(tensor: FloatTensor<Self>, dim: usize) -> FloatTensor<Self> {
        kernel::reduce::along("float_max_abs_dim", reduce::max_abs, tensor, &[dim], |tensor| {
            CubeBackend::float_max_abs_dim(tensor, dim)
        })
    }

    fn float_max_dim_with_indices(
        tensor: FloatTensor<Self>,
        dim: usize,
        indices_dtype: IntDType,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        kernel::reduce::with_index(
            "float_max_dim_with_indices",
            extreme::max_with_indices,
            tensor,
            dim,
            indices_dtype,
            |tensor| CubeBackend::float_max_dim_with_indices(tensor, dim, indices_dtype),
        )
    }

    fn float_min_dim_with_indices(
        tensor: FloatTensor<Self>,
        dim: usize,
        indices_dtype: IntDType,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        kernel::reduce::with_index(
            "float_min_dim_with_indices",
            extreme::min_with_indices,
            tensor,
            dim,
            indices_dtype,
            |tensor| CubeBackend::float_min_dim_with_indices(tensor, dim, indices_dtype),
        )
    }

    fn float_argtopk(tensor: FloatTensor<Self>, dim: usize, k: usize, out_dtype: IntDType) -> IntTensor<Self> {
        kernel::sort::indices("float_argtopk", tensor, dim, Order::Largest(k), out_dtype, |tensor| {
            CubeBackend::float_argtopk(tensor, dim, k, out_dtype)
        })
    }

    fn float_topk(tensor: FloatTensor<Self>, dim: usize, k: usize) -> FloatTensor<Self> {
        kernel::sort::values("float_topk", tensor, dim, Order::Largest(k), |tensor| {
            CubeBackend::float_topk(tensor, dim, k)
        })
    }

    fn float_topk_with_indices(
        tensor: FloatTensor<Self>,
        dim: usize,
        k: usize,
        out_dtype: IntDType,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        kernel::sort::with_indices("float_topk_with_indices", tensor, dim, Order::Largest(k), out_dtype, |tensor| {
            CubeBackend::float_topk_with_indices(tensor, dim, k, out_dtype)
        })
    }

    fn float_sort(tensor: FloatTensor<Self>, dim: usize, descending: bool) -> FloatTensor<Self> {
        kernel::sort::values("float_sort", tensor, dim, Order::All { descending }, |tensor| {
            CubeBackend::float_sort(tensor, dim, descending)
        })
    }

    fn float_sort_with_indices(
        tensor: FloatTensor<Self>,
        dim: usize,
        descending: bool,
        out_dtype: IntDType,
    ) -> (FloatTensor<Self>, IntTensor<Self>) {
        kernel::sort::with_indices(
            "float_sort_with_indices",
            tensor,
            dim,
            Order::All { descending },
            out_dtype,
            |tensor| CubeBackend::float_sort_with_indices(tensor, dim, descending, out_dtype),
        )
    }

    fn float_argsort(tensor: FloatTensor<Self>, dim: usize, descending: bool, out_dtype: IntDType) -> IntTensor<Self> {
        kernel::sort::indices("float_argsort", tensor, dim, Order::All { descending }, out_dtype, |tensor| {
            CubeBackend::float_argsort(tensor, dim, descending, out_dtype)
        })
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

    fn float_grid_sample_2d(
        tensor: FloatTensor<Self>,
        grid: FloatTensor<Self>,
        options: GridSampleOptions,
    ) -> FloatTensor<Self> {
        kernel::resample::grid_sample(tensor, grid, options)
    }
}
