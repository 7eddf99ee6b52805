//! Sorting.

use super::{Output, operand, run};
use burn_backend::{IntDType, Shape, TensorMetadata, cubecl::dtype_to_elem_type};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::sort::{self, Direction, Sorting};
use cubecl::client::Client;

/// What Burn says besides the axis.
pub(in crate::backend) struct Order {
    direction: Direction,
    kept: Option<usize>,
}

/// Whether all elements are to be in descending order.
impl From<bool> for Order {
    fn from(descending: bool) -> Self {
        Self { direction: direction(descending), kept: None }
    }
}

/// How many of the largest to keep.
impl From<usize> for Order {
    fn from(k: usize) -> Self {
        Self { direction: Direction::Descending, kept: Some(k) }
    }
}

/// The direction, as the kernels name it.
pub(crate) fn direction(descending: bool) -> Direction {
    if descending { Direction::Descending } else { Direction::Ascending }
}

/// The elements along `axis` in order.
pub(in crate::backend) fn values<O: Into<Order> + Copy>(
    operation: &'static str,
    tensor: CubeTensor,
    axis: usize,
    order: O,
    plain: impl FnOnce(CubeTensor, usize, O) -> CubeTensor,
) -> CubeTensor {
    let Order { direction, kept } = order.into();
    let sorting = Sorting { axis, direction, kept, values: true, index: None };
    let output = Output::like(&tensor, shape(&tensor, sorting));
    let kernel = |client: &Client| Ok(sort::sort(client, operand(&tensor), sorting, None)?.0);
    run(operation, &[&tensor], output, kernel, || plain(tensor.clone(), axis, order))
}

/// The indices along `axis` of its elements in order.
pub(in crate::backend) fn indices<O: Into<Order> + Copy>(
    operation: &'static str,
    tensor: CubeTensor,
    axis: usize,
    order: O,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor, usize, O, IntDType) -> CubeTensor,
) -> CubeTensor {
    let Order { direction, kept } = order.into();
    let index = Some(dtype_to_elem_type(dtype.into()));
    let sorting = Sorting { axis, direction, kept, values: false, index };
    let output = Output { dtype: dtype.into(), ..Output::like(&tensor, shape(&tensor, sorting)) };
    let kernel = |client: &Client| Ok(sort::sort(client, operand(&tensor), sorting, None)?.1);
    run(operation, &[&tensor], output, kernel, || plain(tensor.clone(), axis, order, dtype))
}

/// [`indices`] of an int tensor, in its dtype.
pub(in crate::backend) fn int_indices<O: Into<Order> + Copy>(
    operation: &'static str,
    tensor: CubeTensor,
    axis: usize,
    order: O,
    plain: impl FnOnce(CubeTensor, usize, O) -> CubeTensor,
) -> CubeTensor {
    let dtype = tensor.dtype.into();
    indices(operation, tensor, axis, order, dtype, |tensor, axis, order, _| plain(tensor, axis, order))
}

/// The elements along `axis` in order, and their indices.
pub(in crate::backend) fn with_indices<O: Into<Order> + Copy>(
    operation: &'static str,
    tensor: CubeTensor,
    axis: usize,
    order: O,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor, usize, O, IntDType) -> (CubeTensor, CubeTensor),
) -> (CubeTensor, CubeTensor) {
    let Order { direction, kept } = order.into();
    let index = Some(dtype_to_elem_type(dtype.into()));
    let sorting = Sorting { axis, direction, kept, values: true, index };
    let values = Output::like(&tensor, shape(&tensor, sorting));
    let indices = Output { dtype: dtype.into(), ..values.clone() };
    let kernel = |client: &Client| sort::sort(client, operand(&tensor), sorting, None);
    run(operation, &[&tensor], (values, indices), kernel, || plain(tensor.clone(), axis, order, dtype))
}

/// [`with_indices`] of an int tensor, in its dtype.
pub(in crate::backend) fn int_with_indices<O: Into<Order> + Copy>(
    operation: &'static str,
    tensor: CubeTensor,
    axis: usize,
    order: O,
    plain: impl FnOnce(CubeTensor, usize, O) -> (CubeTensor, CubeTensor),
) -> (CubeTensor, CubeTensor) {
    let dtype = tensor.dtype.into();
    with_indices(operation, tensor, axis, order, dtype, |tensor, axis, order, _| plain(tensor, axis, order))
}

fn shape(tensor: &CubeTensor, sorting: Sorting) -> Shape {
    let mut shape = tensor.shape();
    if let Some(kept) = sorting.kept {
        shape[sorting.axis] = kept;
    }
    shape
}
