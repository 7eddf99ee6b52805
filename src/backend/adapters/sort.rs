//! Sorting.

use super::{Output, operand, run};
use burn_backend::{IntDType, Shape, TensorMetadata, cubecl::dtype_to_elem_type};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::sort::Direction;
use cubecl::client::Client;
use cubecl::ir::ElemType;
use cubecl::std::tensor::TensorHandle;

/// What Burn says besides the axis: whether all elements are to be in descending order, or how many of the largest to keep.
pub(in crate::backend) trait Kept: Copy {
    /// The same, as the kernels' argument.
    type OfKernel;

    fn of_kernel(self) -> Self::OfKernel;

    /// How many of `length` elements are kept.
    fn count(self, length: usize) -> usize;
}

impl Kept for bool {
    type OfKernel = Direction;

    fn of_kernel(self) -> Direction {
        if self { Direction::Descending } else { Direction::Ascending }
    }

    fn count(self, length: usize) -> usize {
        length
    }
}

impl Kept for usize {
    type OfKernel = usize;

    fn of_kernel(self) -> usize {
        self
    }

    fn count(self, _length: usize) -> usize {
        self
    }
}

/// A kernel for the elements along an axis in order.
type Values<K> = fn(&Client, TensorHandle, usize, K) -> Result<TensorHandle, KernelError>;

/// A kernel for their indices, in a given type.
type Indices<K> = fn(&Client, TensorHandle, usize, K, ElemType) -> Result<TensorHandle, KernelError>;

/// A kernel for both.
type Both<K> = fn(&Client, TensorHandle, usize, K, ElemType) -> Result<(TensorHandle, TensorHandle), KernelError>;

/// The elements along `axis` in order.
pub(in crate::backend) fn values<K: Kept>(
    operation: &'static str,
    kernel: Values<K::OfKernel>,
    tensor: CubeTensor,
    axis: usize,
    kept: K,
    plain: impl FnOnce(CubeTensor, usize, K) -> CubeTensor,
) -> CubeTensor {
    let output = Output::like(&tensor, shape(&tensor, axis, kept));
    let kernel = |client: &Client| kernel(client, operand(&tensor), axis, kept.of_kernel());
    run(operation, &[&tensor], output, kernel, || plain(tensor.clone(), axis, kept))
}

/// The indices along `axis` of its elements in order.
pub(in crate::backend) fn indices<K: Kept>(
    operation: &'static str,
    kernel: Indices<K::OfKernel>,
    tensor: CubeTensor,
    axis: usize,
    kept: K,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor, usize, K, IntDType) -> CubeTensor,
) -> CubeTensor {
    let output = Output { dtype: dtype.into(), ..Output::like(&tensor, shape(&tensor, axis, kept)) };
    let elem = dtype_to_elem_type(dtype.into());
    let kernel = |client: &Client| kernel(client, operand(&tensor), axis, kept.of_kernel(), elem);
    run(operation, &[&tensor], output, kernel, || plain(tensor.clone(), axis, kept, dtype))
}

/// [`indices`] of an int tensor, in its dtype.
pub(in crate::backend) fn int_indices<K: Kept>(
    operation: &'static str,
    kernel: Indices<K::OfKernel>,
    tensor: CubeTensor,
    axis: usize,
    kept: K,
    plain: impl FnOnce(CubeTensor, usize, K) -> CubeTensor,
) -> CubeTensor {
    let dtype = tensor.dtype.into();
    indices(operation, kernel, tensor, axis, kept, dtype, |tensor, axis, kept, _| plain(tensor, axis, kept))
}

/// The elements along `axis` in order, and their indices.
pub(in crate::backend) fn with_indices<K: Kept>(
    operation: &'static str,
    kernel: Both<K::OfKernel>,
    tensor: CubeTensor,
    axis: usize,
    kept: K,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor, usize, K, IntDType) -> (CubeTensor, CubeTensor),
) -> (CubeTensor, CubeTensor) {
    let values = Output::like(&tensor, shape(&tensor, axis, kept));
    let indices = Output { dtype: dtype.into(), ..values.clone() };
    let elem = dtype_to_elem_type(dtype.into());
    let kernel = |client: &Client| kernel(client, operand(&tensor), axis, kept.of_kernel(), elem);
    run(operation, &[&tensor], (values, indices), kernel, || plain(tensor.clone(), axis, kept, dtype))
}

/// [`with_indices`] of an int tensor, in its dtype.
pub(in crate::backend) fn int_with_indices<K: Kept>(
    operation: &'static str,
    kernel: Both<K::OfKernel>,
    tensor: CubeTensor,
    axis: usize,
    kept: K,
    plain: impl FnOnce(CubeTensor, usize, K) -> (CubeTensor, CubeTensor),
) -> (CubeTensor, CubeTensor) {
    let dtype = tensor.dtype.into();
    with_indices(operation, kernel, tensor, axis, kept, dtype, |tensor, axis, kept, _| plain(tensor, axis, kept))
}

fn shape(tensor: &CubeTensor, axis: usize, kept: impl Kept) -> Shape {
    let mut shape = tensor.shape();
    shape[axis] = kept.count(shape[axis]);
    shape
}
