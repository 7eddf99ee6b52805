//! Sorting.

use super::{Output, operand, run, run_all};
use burn_backend::{IntDType, Shape, TensorMetadata, cubecl::dtype_to_elem_type};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::sort::{self, Direction};
use cubecl::client::Client;
use cubecl::ir::ElemType;
use cubecl::std::tensor::TensorHandle;

/// What becomes of a tensor along one axis.
#[derive(Clone, Copy)]
pub(in crate::backend) enum Order {
    /// It is sorted.
    All { descending: bool },
    /// Its largest elements are kept, in descending order.
    Largest(usize),
}

impl Order {
    fn shape(self, tensor: &CubeTensor, axis: usize) -> Shape {
        let mut shape = tensor.shape();
        if let Self::Largest(k) = self {
            shape[axis] = k;
        }
        shape
    }

    fn values(self, client: &Client, tensor: TensorHandle, axis: usize) -> Result<TensorHandle, KernelError> {
        match self {
            Self::All { descending } => sort::sort(client, tensor, axis, direction(descending)),
            Self::Largest(k) => sort::topk(client, tensor, axis, k),
        }
    }

    fn indices(
        self,
        client: &Client,
        tensor: TensorHandle,
        axis: usize,
        dtype: ElemType,
    ) -> Result<TensorHandle, KernelError> {
        match self {
            Self::All { descending } => sort::argsort(client, tensor, axis, direction(descending), dtype),
            Self::Largest(k) => sort::argtopk(client, tensor, axis, k, dtype),
        }
    }

    fn both(
        self,
        client: &Client,
        tensor: TensorHandle,
        axis: usize,
        dtype: ElemType,
    ) -> Result<(TensorHandle, TensorHandle), KernelError> {
        match self {
            Self::All { descending } => sort::sort_with_indices(client, tensor, axis, direction(descending), dtype),
            Self::Largest(k) => sort::topk_with_indices(client, tensor, axis, k, dtype),
        }
    }
}

fn direction(descending: bool) -> Direction {
    if descending { Direction::Descending } else { Direction::Ascending }
}

/// The elements along `axis` in order.
pub(in crate::backend) fn values(
    operation: &'static str,
    tensor: CubeTensor,
    axis: usize,
    order: Order,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let output = Output::like(&tensor, order.shape(&tensor, axis));
    let kernel = |client: &Client| order.values(client, operand(&tensor), axis);
    run(operation, &[&tensor], output, kernel, || plain(tensor.clone()))
}

/// The indices along `axis` of its elements in order.
pub(in crate::backend) fn indices(
    operation: &'static str,
    tensor: CubeTensor,
    axis: usize,
    order: Order,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let output = Output { dtype: dtype.into(), ..Output::like(&tensor, order.shape(&tensor, axis)) };
    let kernel = |client: &Client| order.indices(client, operand(&tensor), axis, dtype_to_elem_type(dtype.into()));
    run(operation, &[&tensor], output, kernel, || plain(tensor.clone()))
}

/// The elements along `axis` in order, and their indices.
pub(in crate::backend) fn with_indices(
    operation: &'static str,
    tensor: CubeTensor,
    axis: usize,
    order: Order,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor) -> (CubeTensor, CubeTensor),
) -> (CubeTensor, CubeTensor) {
    let shape = order.shape(&tensor, axis);
    let indices = Output { dtype: dtype.into(), ..Output::like(&tensor, shape.clone()) };
    let elem = dtype_to_elem_type(dtype.into());
    let [values, indices] = run_all(
        operation,
        &[&tensor],
        &tensor.device,
        [Output::like(&tensor, shape), indices],
        |client| order.both(client, operand(&tensor), axis, elem).map(|(values, indices)| [values, indices]),
        || plain(tensor.clone()).into(),
    );
    (values, indices)
}
