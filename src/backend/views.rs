//! Views of a tensor's memory where Burn copies.
//!
//! A view has other strides, or begins at another element; no element moves. All kernels of this crate read any strides.

use burn_backend::{Shape, Slice};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_std::{Metadata, ReshapeAction, reshape_action};

/// The first element of a view of CUDA memory is at a multiple of these bytes, those of a sector: kernels load 16 bytes at once. Burn
/// asks for the alignment of allocations, 512 bytes.
const ALIGNMENT: usize = 32;

/// The tensor in another shape: a view where strides can say where its elements are, else what `plain` makes. Burn copies into any shape
/// of fewer axes what is not dense.
pub(super) fn reshape(
    mut tensor: CubeTensor,
    shape: Shape,
    plain: impl FnOnce(CubeTensor, Shape) -> CubeTensor,
) -> CubeTensor {
    let (old, strides) = (tensor.meta.shape(), tensor.meta.strides());
    let copies = !tensor.meta.is_tiled()
        && old.num_elements() == shape.num_elements()
        && old.num_elements() > 0
        && matches!(reshape_action(old, strides, &shape), ReshapeAction::Recompute);
    match copies.then(|| reshaped(old, strides, &shape)).flatten() {
        Some(strides) => {
            *tensor.meta = Metadata::new(shape, strides);
            tensor
        }
        None => plain(tensor, shape),
    }
}

/// A part of the tensor: on CUDA a view where it begins at a multiple of [`ALIGNMENT`] and skips nothing, else what `plain` makes. A
/// view holds all of the memory, and while it lives what is assigned to the tensor goes to a copy of it. Not for integers: indices that
/// wait for their check would hold what they are a part of.
pub(super) fn slice(
    tensor: CubeTensor,
    slices: &[Slice],
    plain: impl FnOnce(CubeTensor, &[Slice]) -> CubeTensor,
) -> CubeTensor {
    let (shape, strides) = (tensor.meta.shape(), tensor.meta.strides());
    let skips = slices.iter().any(|slice| slice.step != 1);
    if skips || tensor.meta.is_tiled() || !matches!(tensor.device, CubeDevice::Cuda(_)) {
        return plain(tensor, slices);
    }
    let (mut first, mut behind, mut of_slice) = (0, 0, shape.clone());
    for (axis, slice) in slices.iter().enumerate() {
        let range = slice.to_range(shape[axis]);
        first += range.start * strides[axis];
        behind += (shape[axis] - range.end) * strides[axis];
        of_slice[axis] = range.len();
    }
    let [first, behind] = [first, behind].map(|elements| elements * tensor.dtype.size());
    // Kernels refuse what 32-bit indices do not reach over, where a copy has fewer elements than that.
    let reach =
        of_slice.iter().zip(strides.iter()).map(|(&extent, &stride)| extent.saturating_sub(1).saturating_mul(stride));
    let is_far =
        reach.fold(0, usize::saturating_add) >= u32::MAX as usize && of_slice.num_elements() < u32::MAX as usize;
    if is_far || !first.is_multiple_of(ALIGNMENT) || of_slice.num_elements() == 0 {
        return plain(tensor, slices);
    }
    let handle = tensor.handle.clone().offset_start(first as u64).offset_end(behind as u64);
    let meta = Metadata::new(of_slice, strides.clone());
    CubeTensor { handle, meta: Box::new(meta), ..tensor }
}

/// Strides for the elements of a tensor of `shape` in the shape `new`, which has as many, if there are any: each axis of more than
/// one element lies in axes that one stride covers.
fn reshaped(shape: &[usize], strides: &[usize], new: &[usize]) -> Option<Vec<usize>> {
    // Size and stride of axes that one stride covers, the innermost last.
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for (&size, &stride) in shape.iter().zip(strides).filter(|(size, _)| **size != 1) {
        match joined.last_mut() {
            Some((outer, of_outer)) if *of_outer == size * stride => (*outer, *of_outer) = (*outer * size, stride),
            _ => joined.push((size, stride)),
        }
    }
    let (mut left, mut next) = (1, 1);
    let mut result = vec![0; new.len()];
    for (axis, &size) in new.iter().enumerate().rev() {
        if left == 1 && size != 1 {
            (left, next) = joined.pop()?;
        }
        if !left.is_multiple_of(size) {
            return None;
        }
        // Any stride does for an axis of one element; kernels load vectors where it is one of the others'.
        result[axis] = match joined.last() {
            Some((_, outer)) if left == 1 => *outer,
            _ => next,
        };
        (left, next) = (left / size, next * size);
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::reshaped;

    /// The places of the elements in row-major order.
    fn places(shape: &[usize], strides: &[usize]) -> Vec<usize> {
        let add = |places: Vec<usize>, (&size, &stride): (&usize, &usize)| {
            places.iter().flat_map(|place| (0..size).map(move |index| place + index * stride)).collect()
        };
        shape.iter().zip(strides).fold(vec![0], add)
    }

    #[track_caller]
    fn check(shape: &[usize], strides: &[usize], new: &[usize], is_view: bool) {
        let result = reshaped(shape, strides, new);
        assert_eq!(result.is_some(), is_view, "{shape:?} by {strides:?} as {new:?}: {result:?}");
        if let Some(result) = result {
            assert_eq!(places(new, &result), places(shape, strides), "{shape:?} by {strides:?} as {new:?}: {result:?}");
        }
    }

    #[test]
    fn an_axis_of_one_element_has_the_stride_of_another() {
        assert_eq!(reshaped(&[2, 8, 8], &[72, 9, 1], &[16, 1, 8]), Some(vec![9, 9, 1]));
        assert_eq!(reshaped(&[16, 1, 64], &[2048, 64, 1], &[1, 16, 64]), Some(vec![32768, 2048, 1]));
        assert_eq!(reshaped(&[2, 12], &[24, 1], &[2, 3, 1, 4]), Some(vec![24, 4, 4, 1]));
    }

    #[test]
    fn strides_say_where_elements_are() {
        check(&[16, 1, 64], &[2048, 64, 1], &[16, 64], true);
        check(&[16, 1, 64], &[2048, 7, 1], &[16, 1, 1, 64, 1], true);
        check(&[2, 3, 4], &[12, 4, 1], &[24], true);
        check(&[2, 3, 4], &[24, 4, 1], &[2, 12], true);
        check(&[2, 3, 4], &[24, 8, 2], &[2, 2, 6], true);
        check(&[2, 3, 4], &[24, 4, 1], &[6, 4], false);
        check(&[2, 12], &[24, 2], &[2, 3, 2, 2], true);
        check(&[4, 3], &[1, 4], &[12], false);
        check(&[4, 3], &[1, 4], &[2, 2, 3], true);
        check(&[6, 4], &[4, 1], &[8, 3], true);
        check(&[6, 4], &[5, 1], &[8, 3], false);
        // An axis of stride 0 repeats.
        check(&[3, 4], &[0, 1], &[12], false);
        check(&[3, 4], &[0, 0], &[12], true);
        check(&[6, 4], &[0, 1], &[3, 2, 4], true);
        check(&[1, 1], &[5, 3], &[1], true);
        check(&[1], &[5], &[], true);
        check(&[], &[], &[1, 1], true);
    }

    /// No strides are found only where there are none: the elements of some axis do not lie at equal distances.
    #[test]
    fn strides_are_found_where_there_are_some() {
        let shapes: &[&[usize]] =
            &[&[12], &[3, 4], &[4, 3], &[2, 6], &[2, 2, 3], &[2, 3, 2], &[3, 1, 4], &[1, 12, 1], &[12, 1]];
        let distances = [0, 1, 2, 3, 4, 6, 12];
        for shape in shapes {
            for code in 0..distances.len().pow(shape.len() as u32) {
                let mut rest = code;
                let mut next = || {
                    let distance = distances[rest % distances.len()];
                    rest /= distances.len();
                    distance
                };
                let strides: Vec<_> = shape.iter().map(|_| next()).collect();
                let places = places(shape, &strides);
                for new in shapes {
                    check(shape, &strides, new, is_regular(&places, new));
                }
            }
        }
    }

    /// Whether the places are those of some strides: those of the first element of each axis, which say the strides.
    fn is_regular(places: &[usize], new: &[usize]) -> bool {
        let behind = |axis: usize| new[axis + 1..].iter().product::<usize>();
        let steps: Vec<_> =
            (0..new.len()).map(|axis| places.get(behind(axis)).copied().filter(|_| new[axis] > 1)).collect();
        let strides: Vec<_> = steps.into_iter().map(|step| step.unwrap_or(0)).collect();
        self::places(new, &strides) == places
    }
}
