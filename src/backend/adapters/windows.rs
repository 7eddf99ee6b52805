//! Windows along an axis.
//!
//! Burn makes them a view: one axis steps from window to window, another through a window, over the same elements. How
//! many elements a unit of Burn's kernels loads at once, CubeCL 0.11.3 chooses by the least stride, and every other stride
//! is taken for a multiple of it. Those of windows need not be: where they are not, the windows are copied.

use super::{Output, operand, run};
use burn_backend::{TensorData, TensorMetadata, ops::IntTensorOps};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use burn_deterministic_kernels::gather;

/// The windows of `size` elements that start every `step` elements of axis `dim`, with the elements of a window along a
/// new last axis.
pub(in crate::backend) fn windows(
    operation: &'static str,
    tensor: CubeTensor,
    dim: usize,
    size: usize,
    step: usize,
    plain: impl FnOnce(CubeTensor, usize, usize, usize) -> CubeTensor,
) -> CubeTensor {
    let view = plain(tensor.clone(), dim, size, step);
    if !misleads(view.meta.shape(), view.meta.strides()) {
        return view;
    }
    let last = view.rank() - 1;
    let view = with_axis_at(view, last, dim + 1);
    let starts = (0..view.shape()[dim]).map(|window| window * step);
    let indices: Vec<i32> = starts.flat_map(|start| start..start + size).map(|index| index as i32).collect();
    let indices = CubeBackend::int_from_data(TensorData::from(indices.as_slice()), &tensor.device);
    let copied = run(
        operation,
        &[&tensor],
        Output::like(&tensor, view.shape()),
        |client| gather::select(client, dim, operand(&tensor), operand(&indices), None),
        || view.clone(),
    );
    with_axis_at(copied, dim + 1, last)
}

/// Whether CubeCL would load elements together, along the last axis, that do not start at a multiple of their number.
fn misleads(shape: &[usize], strides: &[usize]) -> bool {
    let Some((1, others)) = strides.split_last().map(|(last, others)| (*last, others)) else { return false };
    let others = others.iter().filter(|stride| **stride != 0);
    let (Some(size), Some(least)) = (shape.last(), others.clone().min()) else { return false };
    let together = 1 << (size | least).trailing_zeros();
    others.into_iter().any(|stride| stride % together != 0)
}

/// The same elements, with axis `from` moved to `to`.
fn with_axis_at(mut tensor: CubeTensor, from: usize, to: usize) -> CubeTensor {
    let (length, stride) = tensor.meta.remove(from);
    tensor.meta.insert(to, length, stride);
    tensor
}

#[cfg(test)]
mod tests {
    use super::misleads;

    #[test]
    fn strides_that_are_no_multiples_of_the_least_mislead() {
        assert!(misleads(&[2, 2, 2], &[5, 2, 1]), "pairs would start at element 5");
        assert!(misleads(&[3, 14, 8], &[62, 4, 1]), "fours would start at element 62");
        assert!(!misleads(&[2, 2, 2], &[6, 2, 1]));
        assert!(!misleads(&[2, 2, 3], &[5, 2, 1]), "three elements are loaded one by one");
        assert!(!misleads(&[2, 4, 2], &[5, 1, 1]));
        assert!(!misleads(&[2, 2, 2], &[5, 2, 3]), "elements along the axis lie apart");
        assert!(!misleads(&[2, 2, 2], &[0, 2, 1]));
        assert!(!misleads(&[2], &[1]));
        assert!(!misleads(&[], &[]));
    }
}
