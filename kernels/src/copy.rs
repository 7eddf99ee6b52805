//! Dense copies of tensors with any strides.
//!
//! How many elements a unit of CubeCL 0.11.3's copy loads at once, it chooses by the length of the last axis and the least
//! stride of the others, and takes every other stride for a multiple of it. A reshape of a slice need not be so: `[5, 3, 4]` with
//! strides `[14, 4, 1]`, or `[1, 6, 2]` with strides `[12, 13, 1]`. Its copy of these has elements of other places. One that has
//! a last axis of length 1 it copies element by element. Burn's own kernels choose alike, for the axes in the order of their
//! strides.

use cubecl::prelude::*;
use cubecl::std::tensor::{TensorHandle, into_contiguous};

/// Whether CubeCL or Burn would load elements together, along an axis of stride 1, that do not begin at a multiple of their number.
pub fn is_misread(shape: &[usize], strides: &[usize]) -> bool {
    if shape.contains(&0) {
        return false;
    }
    (0..shape.len()).filter(|&axis| strides[axis] == 1).any(|axis| {
        let others =
            || (0..shape.len()).filter(|&other| other != axis && strides[other] != 0).map(|other| strides[other]);
        let Some(least) = others().min() else { return false };
        let together = 1usize << (shape[axis] | least).trailing_zeros();
        others().any(|stride| !stride.is_multiple_of(together))
    })
}

/// A new dense tensor of the same elements, of which there is at least one.
pub fn dense(client: &Client, tensor: TensorHandle) -> TensorHandle {
    let (shape, strides, dtype) = (tensor.shape().to_vec(), tensor.strides().to_vec(), tensor.dtype);
    if !is_misread(&shape, &strides) {
        return into_contiguous(client, tensor.binding(), dtype);
    }
    let single = TensorHandle::new(tensor.handle, [&shape[..], &[1]].concat(), [&strides[..], &[1]].concat(), dtype);
    let copied = into_contiguous(client, single.binding(), dtype);
    TensorHandle::new_contiguous(shape, copied.handle, dtype)
}

#[cfg(test)]
mod tests {
    use super::is_misread;

    #[test]
    fn strides_that_are_no_multiples_are_misread() {
        assert!(is_misread(&[5, 3, 4], &[14, 4, 1]), "four elements begin at 14");
        assert!(is_misread(&[1, 6, 2], &[12, 13, 1]), "two elements begin at 13");
        assert!(is_misread(&[3, 14, 8], &[62, 4, 1]), "four elements begin at 62");
        assert!(
            is_misread(&[3, 4, 5], &[4, 1, 14]) && is_misread(&[4, 5, 3], &[1, 14, 4]),
            "the first, in another order"
        );
        assert!(!is_misread(&[5, 3, 4], &[12, 4, 1]), "dense");
        assert!(!is_misread(&[3, 4, 5], &[4, 1, 12]) && !is_misread(&[4, 6], &[1, 4]), "dense, in another order");
        assert!(!is_misread(&[5, 3, 4], &[16, 4, 1]), "rows of 16");
        assert!(!is_misread(&[6, 2], &[13, 1]), "elements are loaded one by one");
        assert!(!is_misread(&[2, 2, 3], &[5, 2, 1]) && !is_misread(&[2, 4, 2], &[5, 1, 1]), "likewise");
        assert!(!is_misread(&[5, 3], &[14, 3]) && !is_misread(&[2, 2, 2], &[5, 2, 3]), "they lie apart");
        assert!(!is_misread(&[0, 3, 4], &[14, 4, 1]) && !is_misread(&[4], &[1]) && !is_misread(&[], &[]));
    }
}
