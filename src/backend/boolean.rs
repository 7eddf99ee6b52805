//! Bool tensors.

use super::forward::{adapted, forward, views};
use super::{Deterministic, adapters, transfer};
use burn_backend::ops::BoolTensorOps;
use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IntTensor};
use burn_backend::{BoolDType, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData};
use burn_cubecl::CubeBackend;
use burn_deterministic_kernels::reduce;
use burn_deterministic_kernels::scatter::{Addressing, Update};

impl BoolTensorOps<Self> for Deterministic<CubeBackend> {
    fn bool_into_data(tensor: BoolTensor<Self>) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        adapters::indices::read_checked(tensor, CubeBackend::bool_into_data)
    }

    fn bool_to_device(tensor: BoolTensor<Self>, device: &Device<Self>) -> BoolTensor<Self> {
        transfer::to_device(tensor, device, Self::bool_into_data, Self::bool_from_data)
    }

    forward! {
        TRANSFER:
        fn bool_from_data(data: TensorData, device: &Device<Self>) -> BoolTensor<Self>;
    }

    forward! {
        CREATION:
        fn bool_zeros(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self>;
        fn bool_ones(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self>;
    }

    views! {
        MOVEMENT:
        fn bool_reshape(tensor: BoolTensor<Self>, shape: Shape) -> BoolTensor<Self> = reshape;
        fn bool_slice(tensor: BoolTensor<Self>, slices: &[Slice]) -> BoolTensor<Self>;
        fn bool_slice_assign(tensor: BoolTensor<Self>, slices: &[Slice], value: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_repeat_dim(tensor: BoolTensor<Self>, dim: usize, times: usize) -> BoolTensor<Self>;
        fn bool_cat(tensors: Vec<BoolTensor<Self>>, dim: usize) -> BoolTensor<Self>;
        fn bool_swap_dims(tensor: BoolTensor<Self>, dim1: usize, dim2: usize) -> BoolTensor<Self>;
        fn bool_permute(tensor: BoolTensor<Self>, axes: &[usize]) -> BoolTensor<Self>;
        fn bool_flip(tensor: BoolTensor<Self>, axes: &[usize]) -> BoolTensor<Self>;
        fn bool_expand(tensor: BoolTensor<Self>, shape: Shape) -> BoolTensor<Self>;
    }

    forward! {
        ELEMENTWISE:
        fn bool_into_int(tensor: BoolTensor<Self>, out_dtype: IntDType) -> IntTensor<Self>;
        fn bool_into_float(tensor: BoolTensor<Self>, out_dtype: FloatDType) -> FloatTensor<Self>;
        fn bool_mask_where(
            tensor: BoolTensor<Self>,
            mask: BoolTensor<Self>,
            value: BoolTensor<Self>,
        ) -> BoolTensor<Self>;
        fn bool_mask_fill(tensor: BoolTensor<Self>, mask: BoolTensor<Self>, value: Scalar) -> BoolTensor<Self>;
        fn bool_equal(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_not_equal(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_equal_elem(lhs: BoolTensor<Self>, rhs: Scalar) -> BoolTensor<Self>;
        fn bool_not(tensor: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_and(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
        fn bool_or(lhs: BoolTensor<Self>, rhs: BoolTensor<Self>) -> BoolTensor<Self>;
    }

    adapted! {
        adapters::windows::windows:
        fn bool_unfold(tensor: BoolTensor<Self>, dim: usize, size: usize, step: usize) -> BoolTensor<Self>;

        adapters::scatter::gather:
        fn bool_gather(dim: usize, tensor: BoolTensor<Self>, indices: IntTensor<Self>) -> BoolTensor<Self>;

        adapters::scatter::select:
        fn bool_select(tensor: BoolTensor<Self>, dim: usize, indices: IntTensor<Self>) -> BoolTensor<Self>;

        adapters::reduce::whole:
        fn bool_any(tensor: BoolTensor<Self>) -> BoolTensor<Self> = reduce::any;
        fn bool_all(tensor: BoolTensor<Self>) -> BoolTensor<Self> = reduce::all;

        adapters::reduce::along:
        fn bool_any_dim(tensor: BoolTensor<Self>, dim: usize) -> BoolTensor<Self> = reduce::any;
        fn bool_all_dim(tensor: BoolTensor<Self>, dim: usize) -> BoolTensor<Self> = reduce::all;
    }

    fn bool_scatter_or(
        dim: usize,
        tensor: BoolTensor<Self>,
        indices: IntTensor<Self>,
        value: BoolTensor<Self>,
    ) -> BoolTensor<Self> {
        let plain = |[tensor, indices, value]: [_; 3]| CubeBackend::bool_scatter_or(dim, tensor, indices, value);
        let operands = [tensor, indices, value];
        adapters::scatter::at_indices("bool_scatter_or", Addressing::Elements { dim }, operands, Update::Or, plain)
    }

    fn bool_select_or(
        tensor: BoolTensor<Self>,
        dim: usize,
        indices: IntTensor<Self>,
        value: BoolTensor<Self>,
    ) -> BoolTensor<Self> {
        let plain = |[tensor, indices, value]: [_; 3]| CubeBackend::bool_select_or(tensor, dim, indices, value);
        let operands = [tensor, indices, value];
        adapters::scatter::at_indices("bool_select_or", Addressing::Rows { dim }, operands, Update::Or, plain)
    }

    fn bool_empty(shape: Shape, device: &Device<Self>, dtype: BoolDType) -> BoolTensor<Self> {
        Self::bool_zeros(shape, device, dtype)
    }
}
