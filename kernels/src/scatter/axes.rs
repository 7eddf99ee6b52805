//! A strided tensor seen as `[outer, axis, inner]`.

use crate::KernelError;
use crate::scatter::kernel::StridesLaunch;
use crate::scatter::segment::Keys;
use cubecl::prelude::*;
use cubecl::std::tensor::{TensorHandle, into_contiguous};
use std::ops::Range;

/// A tensor whose axes before, at and after a range of axes each collapse into one.
pub(crate) struct AxisView {
    handle: cubecl::server::Handle,
    elements: usize,
    pub(crate) strides: [u32; 3],
}

impl AxisView {
    /// Collapses the axes before `axes`, in it, and after it. Copies the tensor only where its strides do not collapse.
    pub(crate) fn new(
        client: &Client,
        kernel: &'static str,
        tensor: TensorHandle,
        axes: Range<usize>,
    ) -> Result<Self, KernelError> {
        let elements = checked_elements(kernel, tensor.shape())?;
        let tensor = match collapse_all(&tensor, &axes) {
            Some(_) => tensor,
            None => {
                let dtype = tensor.dtype;
                into_contiguous(client, tensor.binding(), dtype)
            }
        };
        // A contiguous tensor always collapses, so the default is never taken.
        let strides = collapse_all(&tensor, &axes).unwrap_or_default();
        Ok(Self { handle: tensor.handle, elements, strides })
    }

    /// The same buffer, read along its one axis for every `outer` and `inner`.
    pub(super) fn along_axis_only(mut self) -> Self {
        self.strides = [0, self.strides[1], 0];
        self
    }

    /// The elements along the axis as keys.
    pub(super) fn keys(&self, dtype: ElemType) -> Keys {
        Keys { handle: self.handle.clone(), stride: self.strides[1], dtype }
    }

    /// Distances in elements between neighbours along outer, axis and inner.
    pub(crate) fn strides(&self) -> StridesLaunch {
        let [outer, axis, inner] = self.strides;
        StridesLaunch::new(outer, axis, inner)
    }

    /// Whether the inner axis comes in vectors of `width`.
    pub(super) fn is_in_vectors(&self, width: u32) -> bool {
        let [outer, axis, inner] = self.strides;
        inner == 1 && outer.is_multiple_of(width) && axis.is_multiple_of(width)
    }

    /// Distances in vectors of `width` between neighbouring ones.
    pub(super) fn vector_strides(&self, width: u32) -> StridesLaunch {
        let [outer, axis, inner] = self.strides;
        StridesLaunch::new(outer / width, axis / width, if width == 1 { inner } else { 1 })
    }

    /// Whether the axis comes in vectors of `width`, side by side, on every outer line. Asked where there is one inner line.
    pub(super) fn has_axis_in_vectors(&self, width: u32) -> bool {
        let [outer, axis, _] = self.strides;
        axis == 1 && outer.is_multiple_of(width)
    }

    /// Distances between neighbouring vectors of `width` along the axis.
    pub(super) fn axis_vector_strides(&self, width: u32) -> StridesLaunch {
        let [outer, axis, inner] = self.strides;
        StridesLaunch::new(outer / width, axis, inner)
    }

    /// The buffer from the view's first element on.
    pub(crate) fn buffer(&self) -> BufferArg {
        // SAFETY: the handle covers every element its tensor's shape and strides reach, and the kernels that take it
        // address it by these strides within this shape. The length is not used to check an access.
        unsafe { BufferArg::from_raw_parts(self.handle.clone(), self.elements) }
    }
}

/// The number of elements of a shape, if 32-bit indices reach them all.
pub(crate) fn checked_elements(kernel: &'static str, shape: &[usize]) -> Result<usize, KernelError> {
    shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size)).filter(|&n| n <= u32::MAX as usize).ok_or_else(|| {
        KernelError::Shape { kernel, reason: format!("{shape:?} has more elements than 32-bit indices reach") }
    })
}

fn collapse_all(tensor: &TensorHandle, axes: &Range<usize>) -> Option<[u32; 3]> {
    let (shape, strides) = (tensor.shape(), tensor.strides());
    let part = |range: Range<usize>| collapse(&shape[range.clone()], &strides[range]);
    let reach: usize = shape.iter().zip(strides.iter()).map(|(&n, &s)| n.saturating_sub(1) * s).sum();
    let (outer, axis, inner) = (part(0..axes.start)?, part(axes.clone())?, part(axes.end..shape.len())?);
    (reach <= u32::MAX as usize).then_some([outer as u32, axis as u32, inner as u32])
}

/// The one stride that walks these axes in row-major order, if there is one.
fn collapse(shape: &[usize], strides: &[usize]) -> Option<usize> {
    let mut axes = shape.iter().zip(strides).rev().filter(|&(&size, _)| size != 1);
    let Some((&size, &innermost)) = axes.next() else { return Some(0) };
    let mut next = innermost * size;
    for (&size, &stride) in axes {
        if stride != next {
            return None;
        }
        next = stride * size;
    }
    Some(innermost)
}

#[cfg(test)]
mod tests {
    use super::collapse;

    #[test]
    fn collapses_what_one_stride_walks() {
        assert_eq!(collapse(&[], &[]), Some(0));
        assert_eq!(collapse(&[1, 1], &[7, 9]), Some(0));
        assert_eq!(collapse(&[2, 3, 4], &[12, 4, 1]), Some(1));
        assert_eq!(collapse(&[2, 1, 4], &[8, 99, 2]), Some(2));
        assert_eq!(collapse(&[5, 4], &[0, 0]), Some(0));
        assert_eq!(collapse(&[4, 3], &[1, 4]), None);
        assert_eq!(collapse(&[4, 3], &[6, 1]), None);
    }
}
