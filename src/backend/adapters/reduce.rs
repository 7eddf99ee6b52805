//! Reductions.

use super::{Output, operand, run};
use burn_backend::{IntDType, Shape, TensorMetadata, cubecl::dtype_to_elem_type};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::reduce::{self, extreme::Extreme};
use cubecl::client::Client;
use cubecl::std::tensor::TensorHandle;

/// A reduction over a set of axes.
type Kernel = fn(&Client, TensorHandle, &[usize]) -> Result<TensorHandle, KernelError>;

/// Reduces a whole tensor to shape `[1]`.
pub(in crate::backend) fn whole(
    operation: &'static str,
    kernel: Kernel,
    tensor: CubeTensor,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let axes: Vec<usize> = (0..tensor.shape().num_dims()).collect();
    let output = Output::like(&tensor, Shape::new([1]));
    run(operation, &[&tensor], output, |client| kernel(client, operand(&tensor), &axes), || plain(tensor.clone()))
}

/// Reduces `axis`, which keeps length one.
pub(in crate::backend) fn along(
    operation: &'static str,
    kernel: Kernel,
    tensor: CubeTensor,
    axis: usize,
    plain: impl FnOnce(CubeTensor, usize) -> CubeTensor,
) -> CubeTensor {
    over(operation, kernel, tensor, &[axis], |tensor, _| plain(tensor, axis))
}

/// Reduces `axes`, which keep length one.
pub(in crate::backend) fn over(
    operation: &'static str,
    kernel: Kernel,
    tensor: CubeTensor,
    axes: &[usize],
    plain: impl FnOnce(CubeTensor, &[usize]) -> CubeTensor,
) -> CubeTensor {
    let output = Output::like(&tensor, reduced_shape(&tensor, axes));
    run(operation, &[&tensor], output, |client| kernel(client, operand(&tensor), axes), || plain(tensor.clone(), axes))
}

/// The index of the extreme along `axis`, which keeps length one.
pub(in crate::backend) fn index(
    operation: &'static str,
    end: Extreme,
    tensor: CubeTensor,
    axis: usize,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor, usize, IntDType) -> CubeTensor,
) -> CubeTensor {
    let output = Output { dtype: dtype.into(), ..Output::like(&tensor, reduced_shape(&tensor, &[axis])) };
    let elem = dtype_to_elem_type(dtype.into());
    let kernel = |client: &Client| {
        let (_, indices) = reduce::extreme::search(client, end, operand(&tensor), axis, elem, false, None)?;
        Ok(indices)
    };
    run(operation, &[&tensor], output, kernel, || plain(tensor.clone(), axis, dtype))
}

/// [`index`] of an int tensor, in its dtype.
pub(in crate::backend) fn int_index(
    operation: &'static str,
    end: Extreme,
    tensor: CubeTensor,
    axis: usize,
    plain: impl FnOnce(CubeTensor, usize) -> CubeTensor,
) -> CubeTensor {
    let dtype = tensor.dtype.into();
    index(operation, end, tensor, axis, dtype, |tensor, axis, _| plain(tensor, axis))
}

/// The extreme along `axis`, which keeps length one, and its index.
pub(in crate::backend) fn with_index(
    operation: &'static str,
    end: Extreme,
    tensor: CubeTensor,
    axis: usize,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor, usize, IntDType) -> (CubeTensor, CubeTensor),
) -> (CubeTensor, CubeTensor) {
    let values = Output::like(&tensor, reduced_shape(&tensor, &[axis]));
    let indices = Output { dtype: dtype.into(), ..values.clone() };
    let elem = dtype_to_elem_type(dtype.into());
    let kernel = |client: &Client| reduce::extreme::search(client, end, operand(&tensor), axis, elem, true, None);
    run(operation, &[&tensor], (values, indices), kernel, || plain(tensor.clone(), axis, dtype))
}

/// [`with_index`] of an int tensor, in its dtype.
pub(in crate::backend) fn int_with_index(
    operation: &'static str,
    end: Extreme,
    tensor: CubeTensor,
    axis: usize,
    plain: impl FnOnce(CubeTensor, usize) -> (CubeTensor, CubeTensor),
) -> (CubeTensor, CubeTensor) {
    let dtype = tensor.dtype.into();
    with_index(operation, end, tensor, axis, dtype, |tensor, axis, _| plain(tensor, axis))
}

fn reduced_shape(tensor: &CubeTensor, axes: &[usize]) -> Shape {
    let mut shape = tensor.shape();
    for &axis in axes {
        shape[axis] = 1;
    }
    shape
}
