//! Int tensors. Results wrap.

use super::host::{Host, int, of_int, rounded};
use super::limits::not_checked;
use super::moves::moves;
use super::{Reference, boolean, float, places, random};
use crate::backend::adapters::sort::direction;
use burn_backend::ops::IntTensorOps;
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{
    BoolDType, DType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
    TensorMetadata,
};
use burn_cubecl::CubeDevice;
use burn_deterministic_kernels::elementwise::{IntBinary, reference as elementwise};
use burn_deterministic_kernels::reduce::extreme::Extreme;
use burn_deterministic_kernels::scan::Operation as Scan;
use burn_deterministic_kernels::scatter::Addressing;
use burn_deterministic_kernels::sort::Direction::Descending;

/// Methods by what they compute of an element, of two, of an element and a number, or along axes.
macro_rules! methods {
    (unary: $(fn $method:ident = $function:expr;)+) => {$(
        fn $method(tensor: Host) -> Host {
            let of = tensor.dtype();
            let function: fn(i128) -> i128 = $function;
            tensor.map(of, |bits| of_int(of, function(int(of, bits))))
        }
    )+};
    (binary: $(fn $method:ident, $with_scalar:ident = $function:expr;)+) => {$(
        fn $method(lhs: Host, rhs: Host) -> Host {
            binary($function, &lhs, &rhs)
        }

        fn $with_scalar(lhs: Host, rhs: Scalar) -> Host {
            binary($function, &lhs, &number(&lhs, rhs))
        }
    )+};
    (compare: $(fn $method:ident, $with_scalar:ident = $function:expr;)+) => {$(
        fn $method(lhs: Host, rhs: Host, out_dtype: BoolDType) -> Host {
            compare($function, &lhs, &rhs, out_dtype)
        }

        fn $with_scalar(lhs: Host, rhs: Scalar, out_dtype: BoolDType) -> Host {
            compare($function, &lhs, &number(&lhs, rhs), out_dtype)
        }
    )+};
    (reduce: $(fn $whole:ident, $along:ident = $function:expr;)+) => {$(
        fn $whole(tensor: Host) -> Host {
            tensor.whole(reduction(tensor.dtype(), $function))
        }

        fn $along(tensor: Host, dim: usize) -> Host {
            tensor.over(&[dim], reduction(tensor.dtype(), $function))
        }
    )+};
    (scan: $(fn $method:ident = $operation:ident;)+) => {$(
        fn $method(tensor: Host, dim: usize) -> Host {
            tensor.scanned(dim, Scan::$operation)
        }
    )+};
}

impl IntTensorOps<Self> for Reference {
    moves! {
        fn int_from_data, int_into_data, int_to_device;
        fn int_reshape, int_slice, int_slice_assign, int_repeat_dim, int_cat, int_swap_dims, int_permute;
        fn int_flip, int_expand, int_unfold, int_mask_where, int_gather, int_select;
    }

    methods! {
        unary:
        fn int_abs = i128::abs;
        fn int_sign = i128::signum;
        fn bitwise_not = |x| !x;
    }

    methods! {
        binary:
        fn int_add, int_add_scalar = |_, a, b| a + b;
        fn int_sub, int_sub_scalar = |_, a, b| a - b;
        fn int_mul, int_mul_scalar = |_, a, b| a.wrapping_mul(b);
        fn int_div, int_div_scalar = |dtype, a, b| function(IntBinary::Divide, dtype, a, b);
        fn int_remainder, int_remainder_scalar = |dtype, a, b| function(IntBinary::Remainder, dtype, a, b);
        fn int_powi, int_powi_scalar_impl = |dtype, a, b| function(IntBinary::Power, dtype, a, b);
        fn bitwise_and, bitwise_and_scalar = |_, a, b| a & b;
        fn bitwise_or, bitwise_or_scalar = |_, a, b| a | b;
        fn bitwise_xor, bitwise_xor_scalar = |_, a, b| a ^ b;
        fn bitwise_left_shift, bitwise_left_shift_scalar = |dtype, a, b| function(IntBinary::ShiftLeft, dtype, a, b);
        fn bitwise_right_shift, bitwise_right_shift_scalar = |dtype, a, b| function(IntBinary::ShiftRight, dtype, a, b);
    }

    methods! {
        compare:
        fn int_equal, int_equal_elem = |a, b| a == b;
        fn int_not_equal, int_not_equal_elem = |a, b| a != b;
        fn int_greater, int_greater_elem = |a, b| a > b;
        fn int_greater_equal, int_greater_equal_elem = |a, b| a >= b;
        fn int_lower, int_lower_elem = |a, b| a < b;
        fn int_lower_equal, int_lower_equal_elem = |a, b| a <= b;
    }

    methods! {
        reduce:
        fn int_sum, int_sum_dim = |_, line| line.iter().sum();
        fn int_prod, int_prod_dim = |dtype, line| line.iter().fold(1i128, |a, b| wrapped(dtype, a.wrapping_mul(*b)));
        fn int_max, int_max_dim = |_, line| some(line.iter().copied().max());
        fn int_min, int_min_dim = |_, line| some(line.iter().copied().min());
        fn int_max_abs, int_max_abs_dim = |dtype, line| some(line.iter().map(|x| wrapped(dtype, x.abs())).max());
    }

    methods! {
        scan:
        fn int_cumsum = Sum;
        fn int_cumprod = Prod;
        fn int_cummin = Min;
        fn int_cummax = Max;
    }

    fn int_mean_dim(tensor: Host, dim: usize) -> Host {
        let mean = |dtype, line: &[i128]| {
            function(IntBinary::Divide, dtype, wrapped(dtype, line.iter().sum()), line.len() as i128)
        };
        tensor.over(&[dim], reduction(tensor.dtype(), mean))
    }

    fn int_empty(shape: Shape, device: &CubeDevice, dtype: IntDType) -> Host {
        Self::int_zeros(shape, device, dtype)
    }

    fn int_zeros(shape: Shape, device: &CubeDevice, dtype: IntDType) -> Host {
        Self::int_full(shape, 0.into(), device, dtype)
    }

    fn int_ones(shape: Shape, device: &CubeDevice, dtype: IntDType) -> Host {
        Self::int_full(shape, 1.into(), device, dtype)
    }

    fn int_full(shape: Shape, fill_value: Scalar, device: &CubeDevice, dtype: IntDType) -> Host {
        let (elements, bits) = (shape.num_elements(), of_int(dtype.into(), scalar(fill_value)));
        Host::new(device, shape, dtype.into(), vec![bits; elements])
    }

    fn int_random(shape: Shape, distribution: Distribution, device: &CubeDevice, dtype: IntDType) -> Host {
        random::integers(shape, distribution, device, dtype)
    }

    fn int_into_float(tensor: Host, out_dtype: FloatDType) -> Host {
        let (of, to) = (tensor.dtype(), DType::from(out_dtype));
        if to != DType::F32 && of != DType::I32 {
            not_checked("no reference in this type of floats");
        }
        tensor.map(to, |bits| rounded(int(of, bits) as f32, to))
    }

    fn int_cast(tensor: Host, dtype: IntDType) -> Host {
        let (of, to) = (tensor.dtype(), dtype.into());
        tensor.map(to, |bits| of_int(to, int(of, bits)))
    }

    fn int_mask_fill(tensor: Host, mask: Host, value: Scalar) -> Host {
        let value = number(&tensor, value);
        tensor.masked(&mask, &value)
    }

    fn int_clamp(tensor: Host, min: Scalar, max: Scalar) -> Host {
        let of = tensor.dtype();
        let [min, max] = [min, max].map(|limit| int(of, of_int(of, scalar(limit))));
        tensor.map(of, |bits| of_int(of, int(of, bits).max(min).min(max)))
    }

    fn int_matmul(lhs: Host, rhs: Host) -> Host {
        let (shape, batches, [m, k, n]) = float::product(&lhs, &rhs);
        let values = batches.iter().flat_map(|(a, b)| {
            let (a, b) = (a.ints(), b.ints());
            let term = |at: usize, p: usize| a[at / n * k + p].wrapping_mul(b[p * n + at % n]);
            (0..m * n).map(|at| (0..k).fold(0i128, |sum, p| sum.wrapping_add(term(at, p)))).collect::<Vec<_>>()
        });
        lhs.of_ints(shape, values)
    }

    fn int_gather_nd(data: Host, indices: Host) -> Host {
        data.gather_nd(&indices)
    }

    fn int_scatter(dim: usize, tensor: Host, indices: Host, value: Host, update: IndexingUpdateOp) -> Host {
        tensor.updated(Addressing::Elements { dim }, &indices, &value, places::kind(update))
    }

    fn int_select_assign(tensor: Host, dim: usize, indices: Host, value: Host, update: IndexingUpdateOp) -> Host {
        tensor.updated(Addressing::Rows { dim }, &indices, &value, places::kind(update))
    }

    fn int_scatter_nd(data: Host, indices: Host, values: Host, reduction: IndexingUpdateOp) -> Host {
        data.updated(Addressing::Tuples, &indices, &values, places::kind(reduction))
    }

    fn int_argmax(tensor: Host, dim: usize) -> Host {
        tensor.extremes(Extreme::Max, dim, tensor.dtype().into())
    }

    fn int_argmin(tensor: Host, dim: usize) -> Host {
        tensor.extremes(Extreme::Min, dim, tensor.dtype().into())
    }

    fn int_max_dim_with_indices(tensor: Host, dim: usize) -> (Host, Host) {
        tensor.extremes_with_indices(Extreme::Max, dim, tensor.dtype().into())
    }

    fn int_min_dim_with_indices(tensor: Host, dim: usize) -> (Host, Host) {
        tensor.extremes_with_indices(Extreme::Min, dim, tensor.dtype().into())
    }

    fn int_sort(tensor: Host, dim: usize, descending: bool) -> Host {
        tensor.sorted(dim, direction(descending), None)
    }

    fn int_argsort(tensor: Host, dim: usize, descending: bool) -> Host {
        tensor.argsorted(dim, direction(descending), None, tensor.dtype().into())
    }

    fn int_sort_with_indices(tensor: Host, dim: usize, descending: bool) -> (Host, Host) {
        (Self::int_sort(tensor.clone(), dim, descending), Self::int_argsort(tensor, dim, descending))
    }

    fn int_topk(tensor: Host, dim: usize, k: usize) -> Host {
        tensor.sorted(dim, Descending, Some(k))
    }

    fn int_argtopk(tensor: Host, dim: usize, k: usize) -> Host {
        tensor.argsorted(dim, Descending, Some(k), tensor.dtype().into())
    }

    fn int_topk_with_indices(tensor: Host, dim: usize, k: usize) -> (Host, Host) {
        (Self::int_topk(tensor.clone(), dim, k), Self::int_argtopk(tensor, dim, k))
    }

    fn int_any(tensor: Host, out_dtype: BoolDType) -> Host {
        nonzero(&tensor, out_dtype).whole(boolean::any)
    }

    fn int_any_dim(tensor: Host, dim: usize, out_dtype: BoolDType) -> Host {
        nonzero(&tensor, out_dtype).over(&[dim], boolean::any)
    }

    fn int_all(tensor: Host, out_dtype: BoolDType) -> Host {
        nonzero(&tensor, out_dtype).whole(boolean::all)
    }

    fn int_all_dim(tensor: Host, dim: usize, out_dtype: BoolDType) -> Host {
        nonzero(&tensor, out_dtype).over(&[dim], boolean::all)
    }
}

fn binary(function: fn(DType, i128, i128) -> i128, lhs: &Host, rhs: &Host) -> Host {
    let of = lhs.dtype();
    lhs.zip(rhs, of, |a, b| of_int(of, function(of, int(of, a), int(of, b))))
}

fn compare(function: fn(i128, i128) -> bool, lhs: &Host, rhs: &Host, out_dtype: BoolDType) -> Host {
    let of = lhs.dtype();
    lhs.zip(rhs, out_dtype.into(), |a, b| function(int(of, a), int(of, b)).into())
}

/// A reduction of integers of a type.
fn reduction(of: DType, function: impl Fn(DType, &[i128]) -> i128) -> impl Fn(&[u64]) -> u64 {
    move |line| of_int(of, function(of, &line.iter().map(|&bits| int(of, bits)).collect::<Vec<_>>()))
}

fn nonzero(tensor: &Host, out_dtype: BoolDType) -> Host {
    tensor.map(out_dtype.into(), |bits| u64::from(bits != 0))
}

/// A number as a tensor of one element that broadcasts with `tensor`, in its dtype.
fn number(tensor: &Host, value: Scalar) -> Host {
    tensor.of_ints(Shape::from(vec![1; tensor.rank()]), [scalar(value)])
}

fn scalar(value: Scalar) -> i128 {
    match value {
        Scalar::UInt(value) => value.into(),
        value => value.elem::<i64>().into(),
    }
}

fn wrapped(dtype: DType, value: i128) -> i128 {
    int(dtype, of_int(dtype, value))
}

fn some(extreme: Option<i128>) -> i128 {
    extreme.unwrap_or_else(|| not_checked("an extreme of no elements"))
}

/// A function of two integers of a type.
fn function(function: IntBinary, dtype: DType, a: i128, b: i128) -> i128 {
    elementwise::int_binary(function, a, b, 8 * dtype.size() as u32)
}
