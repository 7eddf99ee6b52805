//! Int tensors.

use super::Deterministic;
use super::forward::forward;
use super::kernel::{self, scatter::Updated, sort::Order};
use burn_backend::ops::{BoolTensorOps, FloatTensorOps, IntTensorOps};
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{
    BoolDType, DType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};
use burn_cubecl::CubeBackend;
use burn_deterministic_kernels::reduce::{self, extreme};
use burn_deterministic_kernels::{scan, scatter};

impl IntTensorOps<Self> for Deterministic<CubeBackend> {
    fn int_into_data(tensor: IntTensor<Self>) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        kernel::indices::read_checked(tensor, CubeBackend::int_into_data)
    }

    forward! {
        TRANSFER:
        fn int_from_data(data: TensorData, device: &Device<Self>) -> IntTensor<Self>;
        fn int_to_device(tensor: IntTensor<Self>, device: &Device<Self>) -> IntTensor<Self>;
    }

    forward! {
        CREATION:
        fn int_zeros(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self>;
        fn int_ones(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self>;
        fn int_full(shape: Shape, fill_value: Scalar, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self>;
    }

    forward! {
        MOVEMENT:
        fn int_reshape(tensor: IntTensor<Self>, shape: Shape) -> IntTensor<Self>;
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
        fn int_into_float(tensor: IntTensor<Self>, out_dtype: FloatDType) -> FloatTensor<Self>;
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
        fn int_powi(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_powi_scalar_impl(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_clamp(tensor: IntTensor<Self>, min: Scalar, max: Scalar) -> IntTensor<Self>;
        fn int_sub(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_sub_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_mul(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_mul_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_div(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_div_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_remainder(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn int_remainder_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_abs(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn int_sign(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_and(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_and_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_or(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_or_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_xor(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_xor_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_not(tensor: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_left_shift(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_left_shift_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn bitwise_right_shift(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self>;
        fn bitwise_right_shift_scalar(lhs: IntTensor<Self>, rhs: Scalar) -> IntTensor<Self>;
        fn int_cast(tensor: IntTensor<Self>, dtype: IntDType) -> IntTensor<Self>;
    }

    fn int_empty(shape: Shape, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self> {
        Self::int_zeros(shape, device, dtype)
    }

    fn int_gather(dim: usize, tensor: IntTensor<Self>, indices: IntTensor<Self>) -> IntTensor<Self> {
        kernel::scatter::gather("int_gather", dim, tensor, indices, |tensor, indices| {
            CubeBackend::int_gather(dim, tensor, indices)
        })
    }

    fn int_scatter(
        dim: usize,
        tensor: IntTensor<Self>,
        indices: IntTensor<Self>,
        value: IntTensor<Self>,
        update: IndexingUpdateOp,
    ) -> IntTensor<Self> {
        let operands = Updated { tensor, indices, values: value };
        kernel::scatter::along(
            "int_scatter",
            scatter::scatter,
            dim,
            operands,
            kernel::scatter::update(update),
            |tensor, indices, values| CubeBackend::int_scatter(dim, tensor, indices, values, update),
        )
    }

    fn int_scatter_nd(
        data: IntTensor<Self>,
        indices: IntTensor<Self>,
        values: IntTensor<Self>,
        reduction: IndexingUpdateOp,
    ) -> IntTensor<Self> {
        let operands = Updated { tensor: data, indices, values };
        kernel::scatter::slices(
            "int_scatter_nd",
            operands,
            kernel::scatter::update(reduction),
            |data, indices, values| CubeBackend::int_scatter_nd(data, indices, values, reduction),
        )
    }

    fn int_gather_nd(data: IntTensor<Self>, indices: IntTensor<Self>) -> IntTensor<Self> {
        kernel::scatter::gather_nd("int_gather_nd", data, indices, CubeBackend::int_gather_nd)
    }

    fn int_select(tensor: IntTensor<Self>, dim: usize, indices: IntTensor<Self>) -> IntTensor<Self> {
        kernel::scatter::select("int_select", tensor, dim, indices, |tensor, indices| {
            CubeBackend::int_select(tensor, dim, indices)
        })
    }

    fn int_select_assign(
        tensor: IntTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
        value: IntTensor<Self>,
        update: IndexingUpdateOp,
    ) -> IntTensor<Self> {
        let operands = Updated { tensor, indices, values: value };
        kernel::scatter::along(
            "int_select_assign",
            scatter::select_assign,
            dim,
            operands,
            kernel::scatter::update(update),
            |tensor, indices, values| CubeBackend::int_select_assign(tensor, dim, indices, values, update),
        )
    }

    fn int_matmul(lhs: IntTensor<Self>, rhs: IntTensor<Self>) -> IntTensor<Self> {
        kernel::matmul::product("int_matmul", lhs, rhs, CubeBackend::int_matmul)
    }

    fn int_sum(tensor: IntTensor<Self>) -> IntTensor<Self> {
        kernel::reduce::whole("int_sum", reduce::sum, tensor, CubeBackend::int_sum)
    }

    fn int_sum_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::reduce::along("int_sum_dim", reduce::sum, tensor, &[dim], |tensor| {
            CubeBackend::int_sum_dim(tensor, dim)
        })
    }

    fn int_prod(tensor: IntTensor<Self>) -> IntTensor<Self> {
        kernel::reduce::whole("int_prod", reduce::prod, tensor, CubeBackend::int_prod)
    }

    fn int_prod_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::reduce::along("int_prod_dim", reduce::prod, tensor, &[dim], |tensor| {
            CubeBackend::int_prod_dim(tensor, dim)
        })
    }

    fn int_mean_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::reduce::along("int_mean_dim", reduce::mean, tensor, &[dim], |tensor| {
            CubeBackend::int_mean_dim(tensor, dim)
        })
    }

    fn int_cumsum(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::scan::along("int_cumsum", scan::cumsum, tensor, dim, CubeBackend::int_cumsum)
    }

    fn int_cumprod(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::scan::along("int_cumprod", scan::cumprod, tensor, dim, CubeBackend::int_cumprod)
    }

    fn int_cummin(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::scan::along("int_cummin", scan::cummin, tensor, dim, CubeBackend::int_cummin)
    }

    fn int_cummax(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::scan::along("int_cummax", scan::cummax, tensor, dim, CubeBackend::int_cummax)
    }

    fn int_argmax(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        let dtype = tensor.dtype.into();
        kernel::reduce::index("int_argmax", extreme::argmax, tensor, dim, dtype, |tensor| {
            CubeBackend::int_argmax(tensor, dim)
        })
    }

    fn int_argmin(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        let dtype = tensor.dtype.into();
        kernel::reduce::index("int_argmin", extreme::argmin, tensor, dim, dtype, |tensor| {
            CubeBackend::int_argmin(tensor, dim)
        })
    }

    fn int_max(tensor: IntTensor<Self>) -> IntTensor<Self> {
        kernel::reduce::whole("int_max", reduce::max, tensor, CubeBackend::int_max)
    }

    fn int_max_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::reduce::along("int_max_dim", reduce::max, tensor, &[dim], |tensor| {
            CubeBackend::int_max_dim(tensor, dim)
        })
    }

    fn int_max_abs(tensor: IntTensor<Self>) -> IntTensor<Self> {
        kernel::reduce::whole("int_max_abs", reduce::max_abs, tensor, CubeBackend::int_max_abs)
    }

    fn int_max_abs_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::reduce::along("int_max_abs_dim", reduce::max_abs, tensor, &[dim], |tensor| {
            CubeBackend::int_max_abs_dim(tensor, dim)
        })
    }

    fn int_min(tensor: IntTensor<Self>) -> IntTensor<Self> {
        kernel::reduce::whole("int_min", reduce::min, tensor, CubeBackend::int_min)
    }

    fn int_min_dim(tensor: IntTensor<Self>, dim: usize) -> IntTensor<Self> {
        kernel::reduce::along("int_min_dim", reduce::min, tensor, &[dim], |tensor| {
            CubeBackend::int_min_dim(tensor, dim)
        })
    }

    fn int_unfold(tensor: IntTensor<Self>, dim: usize, size: usize, step: usize) -> IntTensor<Self> {
        kernel::windows::windows("int_unfold", tensor, dim, size, step)
    }

    fn int_random(shape: Shape, distribution: Distribution, device: &Device<Self>, dtype: IntDType) -> IntTensor<Self> {
        let plain = || CubeBackend::int_random(shape.clone(), distribution, device, dtype);
        let draw =
            |distribution, dtype| kernel::random::draw("int_random", distribution, device, shape.clone(), dtype, plain);
        match kernel::random::integers(distribution) {
            Some(distribution) => draw(distribution, dtype.into()),
            // Normal: the floats, cut to integers as Burn does.
            None => Self::float_into_int(draw(kernel::random::floats(distribution), DType::F32), dtype),
        }
    }

    fn int_max_dim_with_indices(tensor: IntTensor<Self>, dim: usize) -> (IntTensor<Self>, IntTensor<Self>) {
        let dtype = tensor.dtype.into();
        kernel::reduce::with_index(
            "int_max_dim_with_indices",
            extreme::max_with_indices,
            tensor,
            dim,
            dtype,
            |tensor| CubeBackend::int_max_dim_with_indices(tensor, dim),
        )
    }

    fn int_min_dim_with_indices(tensor: IntTensor<Self>, dim: usize) -> (IntTensor<Self>, IntTensor<Self>) {
        let dtype = tensor.dtype.into();
        kernel::reduce::with_index(
            "int_min_dim_with_indices",
            extreme::min_with_indices,
            tensor,
            dim,
            dtype,
            |tensor| CubeBackend::int_min_dim_with_indices(tensor, dim),
        )
    }

    fn int_argtopk(tensor: IntTensor<Self>, dim: usize, k: usize) -> IntTensor<Self> {
        let out_dtype = tensor.dtype.into();
        kernel::sort::indices("int_argtopk", tensor, dim, Order::Largest(k), out_dtype, |tensor| {
            CubeBackend::int_argtopk(tensor, dim, k)
        })
    }

    fn int_topk(tensor: IntTensor<Self>, dim: usize, k: usize) -> IntTensor<Self> {
        kernel::sort::values("int_topk", tensor, dim, Order::Largest(k), |tensor| CubeBackend::int_topk(tensor, dim, k))
    }

    fn int_topk_with_indices(tensor: IntTensor<Self>, dim: usize, k: usize) -> (IntTensor<Self>, IntTensor<Self>) {
        let out_dtype = tensor.dtype.into();
        kernel::sort::with_indices("int_topk_with_indices", tensor, dim, Order::Largest(k), out_dtype, |tensor| {
            CubeBackend::int_topk_with_indices(tensor, dim, k)
        })
    }

    fn int_sort(tensor: IntTensor<Self>, dim: usize, descending: bool) -> IntTensor<Self> {
        kernel::sort::values("int_sort", tensor, dim, Order::All { descending }, |tensor| {
            CubeBackend::int_sort(tensor, dim, descending)
        })
    }

    fn int_sort_with_indices(
        tensor: IntTensor<Self>,
        dim: usize,
        descending: bool,
    ) -> (IntTensor<Self>, IntTensor<Self>) {
        let out_dtype = tensor.dtype.into();
        kernel::sort::with_indices(
            "int_sort_with_indices",
            tensor,
            dim,
            Order::All { descending },
            out_dtype,
            |tensor| CubeBackend::int_sort_with_indices(tensor, dim, descending),
        )
    }

    fn int_argsort(tensor: IntTensor<Self>, dim: usize, descending: bool) -> IntTensor<Self> {
        let out_dtype = tensor.dtype.into();
        kernel::sort::indices("int_argsort", tensor, dim, Order::All { descending }, out_dtype, |tensor| {
            CubeBackend::int_argsort(tensor, dim, descending)
        })
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
