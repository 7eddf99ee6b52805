//! Bool tensors.

use super::Reference;
use super::host::{Host, of_int, rounded};
use super::moves::moves;
use burn_backend::ops::BoolTensorOps;
use burn_backend::{BoolDType, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData, TensorMetadata};
use burn_cubecl::CubeDevice;
use burn_deterministic_kernels::scatter::{Addressing, Update};

impl BoolTensorOps<Self> for Reference {
    moves! {
        fn bool_from_data, bool_into_data, bool_to_device;
        fn bool_reshape, bool_slice, bool_slice_assign, bool_repeat_dim, bool_cat, bool_swap_dims, bool_permute;
        fn bool_flip, bool_expand, bool_unfold, bool_mask_where, bool_gather, bool_select;
    }

    fn bool_empty(shape: Shape, device: &CubeDevice, dtype: BoolDType) -> Host {
        Self::bool_zeros(shape, device, dtype)
    }

    fn bool_zeros(shape: Shape, device: &CubeDevice, dtype: BoolDType) -> Host {
        let elements = shape.num_elements();
        Host::new(device, shape, dtype.into(), vec![0; elements])
    }

    fn bool_ones(shape: Shape, device: &CubeDevice, dtype: BoolDType) -> Host {
        let elements = shape.num_elements();
        Host::new(device, shape, dtype.into(), vec![1; elements])
    }

    fn bool_into_int(tensor: Host, out_dtype: IntDType) -> Host {
        let dtype = out_dtype.into();
        tensor.map(dtype, |bits| of_int(dtype, bits.into()))
    }

    fn bool_into_float(tensor: Host, out_dtype: FloatDType) -> Host {
        let dtype = out_dtype.into();
        tensor.map(dtype, |bits| rounded(f32::from(bits as u8), dtype))
    }

    fn bool_mask_fill(tensor: Host, mask: Host, value: Scalar) -> Host {
        let value = flag(&tensor, value);
        tensor.masked(&mask, &value)
    }

    fn bool_equal(lhs: Host, rhs: Host) -> Host {
        lhs.zip(&rhs, lhs.dtype(), |a, b| u64::from(a == b))
    }

    fn bool_not_equal(lhs: Host, rhs: Host) -> Host {
        lhs.zip(&rhs, lhs.dtype(), |a, b| a ^ b)
    }

    fn bool_equal_elem(lhs: Host, rhs: Scalar) -> Host {
        lhs.zip(&flag(&lhs, rhs), lhs.dtype(), |a, b| u64::from(a == b))
    }

    fn bool_not(tensor: Host) -> Host {
        tensor.map(tensor.dtype(), |bits| bits ^ 1)
    }

    fn bool_and(lhs: Host, rhs: Host) -> Host {
        lhs.zip(&rhs, lhs.dtype(), |a, b| a & b)
    }

    fn bool_or(lhs: Host, rhs: Host) -> Host {
        lhs.zip(&rhs, lhs.dtype(), |a, b| a | b)
    }

    fn bool_scatter_or(dim: usize, tensor: Host, indices: Host, value: Host) -> Host {
        tensor.updated(Addressing::Elements { dim }, &indices, &value, Update::Or)
    }

    fn bool_select_or(tensor: Host, dim: usize, indices: Host, value: Host) -> Host {
        tensor.updated(Addressing::Rows { dim }, &indices, &value, Update::Or)
    }

    fn bool_any(tensor: Host) -> Host {
        tensor.whole(any)
    }

    fn bool_all(tensor: Host) -> Host {
        tensor.whole(all)
    }

    fn bool_any_dim(tensor: Host, dim: usize) -> Host {
        tensor.over(&[dim], any)
    }

    fn bool_all_dim(tensor: Host, dim: usize) -> Host {
        tensor.over(&[dim], all)
    }
}

/// Whether an element is not zero.
pub(super) fn any(line: &[u64]) -> u64 {
    line.iter().any(|&bits| bits != 0).into()
}

/// Whether no element is zero.
pub(super) fn all(line: &[u64]) -> u64 {
    line.iter().all(|&bits| bits != 0).into()
}

/// A flag as a tensor of one element that broadcasts with `tensor`.
fn flag(tensor: &Host, value: Scalar) -> Host {
    tensor.of_bits(Shape::from(vec![1; tensor.rank()]), vec![value.elem::<bool>().into()])
}
