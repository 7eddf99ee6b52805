//! Strided views: axes joined to few, broadcasts, vector loads of four elements, and checks of shapes.
//!
//! A view says where the elements are in memory. It does not change which elements a kernel combines, or in which order.

use crate::KernelError;
use crate::copy;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;
use std::ops::Range;

/// Strides of `[outer, axis, inner]`, in elements, or in vectors where the view is read in vectors.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(crate) struct Strides {
    outer: u32,
    axis: u32,
    inner: u32,
}

#[cube]
impl Strides {
    /// The offset of an element.
    pub(crate) fn offset(&self, outer: u32, axis: u32, inner: u32) -> usize {
        (outer * self.outer + axis * self.axis + inner * self.inner) as usize
    }
}

/// A tensor whose axes before, at and after a range of axes each collapse into one.
pub(crate) struct AxisView {
    handle: Handle,
    pub(crate) dtype: ElemType,
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
        let collapsed = |tensor: &TensorHandle| collapsed_strides(tensor.shape(), tensor.strides(), &axes);
        let tensor = match collapsed(&tensor) {
            None if elements > 0 => copy::dense(client, tensor),
            _ => tensor,
        };
        // A contiguous tensor always collapses, so the default is taken only without elements, when nothing is read.
        let strides = collapsed(&tensor).unwrap_or_default();
        Ok(Self { handle: tensor.handle, dtype: tensor.dtype, elements, strides })
    }

    /// The memory of the tensor.
    pub(crate) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Distances in elements between neighbours along outer, axis and inner.
    pub(crate) fn strides(&self) -> StridesLaunch {
        let [outer, axis, inner] = self.strides;
        StridesLaunch::new(outer, axis, inner)
    }

    /// The [width of vectors](vector_width) along the inner axis, of `inner` elements.
    pub(crate) fn vector_width(&self, inner: usize) -> usize {
        let [outer_stride, axis_stride, inner_stride] = self.strides.map(|stride| stride as usize);
        vector_width(self.dtype, inner, inner_stride, [outer_stride, axis_stride])
    }

    /// Strides in vectors of `width` along the inner axis.
    pub(crate) fn vector_strides(&self, width: u32) -> StridesLaunch {
        let [outer, axis, inner] = self.strides;
        StridesLaunch::new(outer / width, axis / width, inner)
    }

    /// The width of vectors along the axis, of `length` elements. Asked where the inner axis has size 1.
    pub(crate) fn axis_vector_width(&self, length: usize) -> usize {
        let [outer_stride, axis_stride, _] = self.strides.map(|stride| stride as usize);
        vector_width(self.dtype, length, axis_stride, [outer_stride])
    }

    /// Strides in vectors of `width` along the axis.
    pub(crate) fn axis_vector_strides(&self, width: u32) -> StridesLaunch {
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

/// The size of `shape` along `axis`, if it has that axis.
pub(crate) fn axis_length(kernel: &'static str, shape: &[usize], axis: usize) -> Result<usize, KernelError> {
    shape.get(axis).copied().ok_or_else(|| {
        let reason = format!("axis {axis} of a tensor of shape {shape:?}, want less than {}", shape.len());
        KernelError::Shape { kernel, reason }
    })
}

/// The number of elements of a shape, if 32-bit indices reach them all.
pub(crate) fn checked_elements(kernel: &'static str, shape: &[usize]) -> Result<usize, KernelError> {
    shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size)).filter(|&n| n <= u32::MAX as usize).ok_or_else(|| {
        KernelError::Shape { kernel, reason: format!("{shape:?} has more elements than 32-bit indices reach") }
    })
}

/// Refuses a shape of more elements than signed 32-bit indices reach.
pub(crate) fn addressable(kernel: &'static str, shapes: &[&[usize]]) -> Result<(), KernelError> {
    let most = u32::MAX as usize / 2;
    let fits =
        |shape: &[usize]| shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size)).is_some_and(|n| n < most);
    match shapes.iter().find(|shape| !fits(shape)) {
        Some(shape) => Err(KernelError::Shape { kernel, reason: format!("{shape:?} has more than 2^31 elements") }),
        None => Ok(()),
    }
}

/// The largest offset that a tensor reaches, in elements from its first one; 0 where it has none.
pub(crate) fn largest_offset(shape: &[usize], strides: &[usize]) -> usize {
    match shape.contains(&0) {
        true => 0,
        false => {
            shape.iter().zip(strides).fold(0, |sum, (&n, &stride)| sum.saturating_add((n - 1).saturating_mul(stride)))
        }
    }
}

/// Whether the elements lie side by side in row-major order.
pub(crate) fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    shape.iter().zip(strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || stride == expected;
        expected *= size;
        fits
    })
}

/// Whether 32-bit indices reach over a tensor.
pub(crate) fn is_reached(shape: &[usize], strides: &[usize]) -> bool {
    largest_offset(shape, strides) < u32::MAX as usize
}

/// Refuses operands that 32-bit indices do not reach over.
pub(crate) fn require_reach<'a>(
    kernel: &'static str,
    operands: impl IntoIterator<Item = &'a TensorHandle>,
) -> Result<(), KernelError> {
    let far = |operand: &&TensorHandle| !is_reached(operand.shape(), operand.strides());
    let Some(operand) = operands.into_iter().find(far) else { return Ok(()) };
    let (shape, strides) = (operand.shape(), operand.strides());
    let reason = format!("an operand {:?} with strides {:?} reaches over 2^32 elements", &shape[..], &strides[..]);
    Err(KernelError::Shape { kernel, reason })
}

/// Refuses an operand whose shape is not `want`.
pub(crate) fn require_shape(
    kernel: &'static str,
    name: &str,
    got: &[usize],
    want: &[usize],
) -> Result<(), KernelError> {
    match got == want {
        true => Ok(()),
        false => Err(KernelError::Shape { kernel, reason: format!("{name} {got:?}, want {want:?}") }),
    }
}

/// Whether an axis of this length and stride can be read in aligned vectors of `width` elements: neighbours are adjacent in
/// memory, nothing is left of a line along it, and every line begins at a multiple of `width`, its distances from others being
/// `others`.
pub(crate) fn is_in_vectors(
    width: usize,
    length: usize,
    stride: usize,
    others: impl IntoIterator<Item = usize>,
) -> bool {
    stride == 1 && length.is_multiple_of(width) && others.into_iter().all(|other| other.is_multiple_of(width))
}

/// The elements of `dtype` that a unit reads at once along an axis of this length and stride: 4 where it [is in
/// vectors](is_in_vectors) of four elements of 4 bytes, else 1.
pub(crate) fn vector_width(
    dtype: ElemType,
    length: usize,
    stride: usize,
    others: impl IntoIterator<Item = usize>,
) -> usize {
    if dtype.size() == 4 && is_in_vectors(4, length, stride, others) { 4 } else { 1 }
}

/// Joins axes of `shape`, in row-major order, where one stride covers two neighbours in every operand: `(size, last)`
/// for each axis that is left, `last` being the last of the axes it is made of, whose strides are its strides. Axes of
/// size 1 are left out.
pub(crate) fn join(
    axes: impl IntoIterator<Item = usize>,
    shape: &[usize],
    strides: &[&[usize]],
) -> Vec<(usize, usize)> {
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for axis in axes.into_iter().filter(|&axis| shape[axis] != 1) {
        let size = shape[axis];
        let follows = |before: usize| strides.iter().all(|strides| strides[before] == strides[axis] * size);
        match joined.last_mut() {
            Some(last) if follows(last.1) => *last = (last.0 * size, axis),
            _ => joined.push((size, axis)),
        }
    }
    joined
}

/// The same memory under another shape and other strides.
pub(crate) fn with_layout(tensor: TensorHandle, shape: Vec<usize>, strides: Vec<usize>) -> TensorHandle {
    TensorHandle::new(tensor.handle, shape, strides, tensor.dtype)
}

/// The last two axes swapped.
pub(crate) fn transposed(tensor: TensorHandle) -> TensorHandle {
    let (mut shape, mut strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
    let rank = shape.len();
    shape.swap(rank - 2, rank - 1);
    strides.swap(rank - 2, rank - 1);
    with_layout(tensor, shape, strides)
}

/// The strides with which an operand of `shape` and `strides` broadcasts to `wanted`: missing leading axes and axes of
/// size 1 get stride 0. `None` where it does not broadcast.
pub(crate) fn broadcast_strides(shape: &[usize], strides: &[usize], wanted: &[usize]) -> Option<Vec<usize>> {
    let missing = wanted.len().checked_sub(shape.len())?;
    let mut broadcast = vec![0; wanted.len()];
    for (axis, (&size, &stride)) in shape.iter().zip(strides).enumerate() {
        match size {
            1 => {}
            size if size == wanted[missing + axis] => broadcast[missing + axis] = stride,
            _ => return None,
        }
    }
    Some(broadcast)
}

/// The strides of the axes before `axes`, in it and after it, if each of the three collapses to one axis.
fn collapsed_strides(shape: &[usize], strides: &[usize], axes: &Range<usize>) -> Option<[u32; 3]> {
    let part = |range: Range<usize>| match join(range, shape, &[strides])[..] {
        [] => Some(0),
        [(_, axis)] => Some(strides[axis]),
        _ => None,
    };
    let (outer, axis, inner) = (part(0..axes.start)?, part(axes.clone())?, part(axes.end..shape.len())?);
    is_reached(shape, strides).then_some([outer as u32, axis as u32, inner as u32])
}

#[cfg(test)]
mod tests {
    use super::{broadcast_strides, is_in_vectors, join, largest_offset, vector_width};
    use cubecl::ir::{ElemType, FloatKind};

    #[test]
    fn joins_what_one_stride_walks() {
        let joined = |shape: &[usize], strides: &[usize]| join(0..shape.len(), shape, &[strides]);
        assert_eq!(joined(&[], &[]), []);
        assert_eq!(joined(&[1, 1], &[7, 9]), []);
        assert_eq!(joined(&[2, 3, 4], &[12, 4, 1]), [(24, 2)]);
        assert_eq!(joined(&[2, 1, 4], &[8, 99, 2]), [(8, 2)]);
        assert_eq!(joined(&[5, 4], &[0, 0]), [(20, 1)]);
        assert_eq!(joined(&[4, 3], &[1, 4]), [(4, 0), (3, 1)]);
        assert_eq!(joined(&[4, 3], &[6, 1]), [(4, 0), (3, 1)]);
        // Axes join only where they do for every operand.
        assert_eq!(join(0..2, &[4, 3], &[&[3, 1], &[0, 1]]), [(4, 0), (3, 1)]);
    }

    #[test]
    fn broadcasts_axes_of_one() {
        assert_eq!(broadcast_strides(&[3], &[2], &[4, 3]), Some(vec![0, 2]));
        assert_eq!(broadcast_strides(&[4, 1], &[5, 1], &[4, 3]), Some(vec![5, 0]));
        assert_eq!(broadcast_strides(&[2, 3], &[3, 1], &[3]), None);
        assert_eq!(broadcast_strides(&[2], &[1], &[3]), None);
    }

    #[test]
    fn a_tensor_reaches_its_last_element() {
        assert_eq!(largest_offset(&[], &[]), 0);
        assert_eq!(largest_offset(&[2, 3], &[100, 7]), 114);
        assert_eq!(largest_offset(&[2, 0], &[100, 7]), 0);
        assert_eq!(largest_offset(&[2, usize::MAX], &[100, 7]), usize::MAX);
    }

    #[test]
    fn vectors_are_aligned() {
        assert!(is_in_vectors(4, 8, 1, [8, 12]));
        assert!(!is_in_vectors(4, 6, 1, [8, 12]));
        assert!(!is_in_vectors(4, 8, 1, [8, 6]));
        assert!(!is_in_vectors(4, 8, 2, [8]));
    }

    #[test]
    fn vectors_are_four_elements_of_four_bytes() {
        let [f32, f16] = [FloatKind::F32, FloatKind::F16].map(ElemType::Float);
        assert_eq!(vector_width(f32, 12, 1, [24]), 4);
        assert_eq!(vector_width(f16, 12, 1, [24]), 1);
        assert_eq!(vector_width(f32, 10, 1, [24]), 1);
        assert_eq!(vector_width(f32, 12, 2, [24]), 1);
        assert_eq!(vector_width(f32, 12, 1, [22]), 1);
    }
}
