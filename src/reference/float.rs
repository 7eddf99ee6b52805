//! Float tensors.

use super::host::{Host, rounded, widened};
use super::limits::not_checked;
use super::lines::{of_floats, of_some};
use super::moves::moves;
use super::{Reference, places, random};
use burn_backend::ops::{FloatTensorOps, GridSampleOptions};
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{
    BoolDType, DType, Distribution, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
    TensorMetadata,
};
use burn_cubecl::CubeDevice;
use burn_deterministic_kernels::arithmetic::MultiplyAdd;
use burn_deterministic_kernels::elementwise::{Binary, Comparison, Program, Unary, Value, reference as elementwise};
use burn_deterministic_kernels::reduce::{extreme::Extreme, reference as reduce};
use burn_deterministic_kernels::scan::Operation as Scan;
use burn_deterministic_kernels::scatter::Addressing;
use burn_deterministic_kernels::sort::Direction::Descending;
use burn_deterministic_kernels::{grid_sample, matmul};
use burn_std::calculate_matmul_output;

use crate::backend::adapters::resample::sample_params;
use crate::backend::adapters::sort::direction;

/// Methods by what they compute of an element, of two, of an element and a number, or along axes.
macro_rules! methods {
    (unary: $(fn $method:ident = $function:ident;)+) => {$(
        fn $method(tensor: Host) -> Host {
            of_each(&tensor, |x| elementwise::unary(Unary::$function, x))
        }
    )+};
    (binary: $(fn $method:ident = $function:ident;)+) => {$(
        fn $method(lhs: Host, rhs: Host) -> Host {
            binary(Binary::$function, &lhs, &rhs)
        }
    )+};
    (scalar: $(fn $method:ident = $function:ident;)+) => {$(
        fn $method(lhs: Host, rhs: Scalar) -> Host {
            binary(Binary::$function, &lhs, &number(&lhs, rhs))
        }
    )+};
    (compare: $(fn $method:ident = $comparison:ident;)+) => {$(
        fn $method(lhs: Host, rhs: Host, out_dtype: BoolDType) -> Host {
            compare(Comparison::$comparison, &lhs, &rhs, out_dtype)
        }
    )+};
    (compare scalar: $(fn $method:ident = $comparison:ident;)+) => {$(
        fn $method(lhs: Host, rhs: Scalar, out_dtype: BoolDType) -> Host {
            compare(Comparison::$comparison, &lhs, &number(&lhs, rhs), out_dtype)
        }
    )+};
    (whole: $(fn $method:ident = $function:expr;)+) => {$(
        fn $method(tensor: Host) -> Host {
            tensor.whole(of_floats(tensor.dtype(), $function))
        }
    )+};
    (along: $(fn $method:ident = $function:expr;)+) => {$(
        fn $method(tensor: Host, dim: usize) -> Host {
            tensor.over(&[dim], of_floats(tensor.dtype(), $function))
        }
    )+};
    (scan: $(fn $method:ident = $operation:ident;)+) => {$(
        fn $method(tensor: Host, dim: usize) -> Host {
            tensor.scanned(dim, Scan::$operation)
        }
    )+};
}

impl FloatTensorOps<Self> for Reference {
    moves! {
        fn float_from_data, float_into_data, float_to_device;
        fn float_reshape, float_slice, float_slice_assign, float_repeat_dim, float_cat, float_swap_dims, float_permute;
        fn float_flip, float_expand, float_unfold, float_mask_where, float_gather, float_select;
    }

    methods! {
        unary:
        fn float_recip = Reciprocal;
        fn float_sqrt = SquareRoot;
        fn float_abs = Absolute;
        fn float_round = Round;
        fn float_floor = Floor;
        fn float_ceil = Ceiling;
        fn float_trunc = Truncate;
        fn float_exp = Exponential;
        fn float_log = Logarithm;
        fn float_log1p = LogarithmOfOnePlus;
        fn float_cos = Cosine;
        fn float_sin = Sine;
        fn float_tan = Tangent;
        fn float_cosh = HyperbolicCosine;
        fn float_sinh = HyperbolicSine;
        fn float_tanh = HyperbolicTangent;
        fn float_acos = ArcCosine;
        fn float_acosh = HyperbolicArcCosine;
        fn float_asin = ArcSine;
        fn float_asinh = HyperbolicArcSine;
        fn float_atan = ArcTangent;
        fn float_atanh = HyperbolicArcTangent;
        fn float_erf = Erf;
    }

    methods! {
        binary:
        fn float_add = Add;
        fn float_sub = Subtract;
        fn float_mul = Multiply;
        fn float_div = Divide;
        fn float_remainder = Remainder;
        fn float_powf = Power;
        fn float_atan2 = ArcTangent;
    }

    methods! {
        scalar:
        fn float_add_scalar = Add;
        fn float_sub_scalar = Subtract;
        fn float_mul_scalar = Multiply;
        fn float_div_scalar = Divide;
        fn float_remainder_scalar = Remainder;
    }

    methods! {
        compare:
        fn float_equal = Equal;
        fn float_greater = Greater;
        fn float_greater_equal = GreaterEqual;
        fn float_lower = Less;
        fn float_lower_equal = LessEqual;
    }

    methods! {
        compare scalar:
        fn float_equal_elem = Equal;
        fn float_greater_elem = Greater;
        fn float_greater_equal_elem = GreaterEqual;
        fn float_lower_elem = Less;
        fn float_lower_equal_elem = LessEqual;
    }

    methods! {
        whole:
        fn float_sum = reduce::sum;
        fn float_prod = reduce::prod;
        fn float_mean = reduce::mean;
        fn float_max = of_some(reduce::max);
        fn float_min = of_some(reduce::min);
        fn float_max_abs = of_some(reduce::max_abs);
    }

    methods! {
        along:
        fn float_sum_dim = reduce::sum;
        fn float_prod_dim = reduce::prod;
        fn float_mean_dim = reduce::mean;
        fn float_max_dim = of_some(reduce::max);
        fn float_min_dim = of_some(reduce::min);
        fn float_max_abs_dim = of_some(reduce::max_abs);
    }

    methods! {
        scan:
        fn float_cumsum = Sum;
        fn float_cumprod = Prod;
        fn float_cummin = Min;
        fn float_cummax = Max;
    }

    fn float_sum_dims(tensor: Host, dims: &[usize]) -> Host {
        tensor.over(dims, of_floats(tensor.dtype(), reduce::sum))
    }

    fn float_empty(shape: Shape, device: &CubeDevice, dtype: FloatDType) -> Host {
        Self::float_zeros(shape, device, dtype)
    }

    fn float_zeros(shape: Shape, device: &CubeDevice, dtype: FloatDType) -> Host {
        Self::float_full(shape, 0.into(), device, dtype)
    }

    fn float_ones(shape: Shape, device: &CubeDevice, dtype: FloatDType) -> Host {
        Self::float_full(shape, 1.into(), device, dtype)
    }

    fn float_full(shape: Shape, fill_value: Scalar, device: &CubeDevice, dtype: FloatDType) -> Host {
        let bits = rounded_scalar(fill_value, dtype.into());
        let elements = shape.num_elements();
        Host::new(device, shape, dtype.into(), vec![bits; elements])
    }

    fn float_random(shape: Shape, distribution: Distribution, device: &CubeDevice, dtype: FloatDType) -> Host {
        random::floats("float_random", shape, distribution, device, dtype.into())
    }

    fn float_mask_fill(tensor: Host, mask: Host, value: Scalar) -> Host {
        let value = number(&tensor, value);
        tensor.masked(&mask, &value)
    }

    fn float_cast(tensor: Host, dtype: FloatDType) -> Host {
        let (from, to) = (tensor.dtype(), dtype.into());
        tensor.map(to, |bits| if from == to { bits } else { rounded(widened(bits, from), to) })
    }

    fn float_into_int(tensor: Host, out_dtype: IntDType) -> Host {
        if out_dtype != IntDType::I32 {
            not_checked("no reference in this type of integers");
        }
        let of = tensor.dtype();
        tensor.map(DType::I32, |bits| (widened(bits, of) as i32).cast_unsigned().into())
    }

    fn float_sign(tensor: Host) -> Host {
        of_each(&tensor, |x| if x == 0.0 || x.is_nan() { 0.0 } else { 1f32.copysign(x) })
    }

    fn float_is_nan(tensor: Host, out_dtype: BoolDType) -> Host {
        let of = tensor.dtype();
        tensor.map(out_dtype.into(), |bits| widened(bits, of).is_nan().into())
    }

    fn float_is_inf(tensor: Host, out_dtype: BoolDType) -> Host {
        let of = tensor.dtype();
        tensor.map(out_dtype.into(), |bits| widened(bits, of).is_infinite().into())
    }

    fn float_clamp(tensor: Host, min: Scalar, max: Scalar) -> Host {
        let mut program = Program::default();
        program.clamp(Value::Input(0), Value::Scalar(0), Value::Scalar(1));
        program.output_word(program.words() - 1);
        let limits = [min, max].map(|limit| limit.elem::<f32>().to_bits());
        of_each(&tensor, |x| f32::from_bits(elementwise::run(&program, &[x.to_bits()], &[], &limits).0[0]))
    }

    fn float_powf_scalar_impl(tensor: Host, value: Scalar) -> Host {
        of_each(&tensor, |x| elementwise::binary(Binary::Power, x, value.elem()))
    }

    fn float_matmul(lhs: Host, rhs: Host) -> Host {
        let (shape, batches, [m, k, n]) = product(&lhs, &rhs);
        let values = batches.iter().flat_map(|(lhs, rhs)| {
            matmul::reference::matmul(&lhs.floats(), &rhs.floats(), [m, k, n], MultiplyAdd::Unfused)
        });
        lhs.of_floats(shape, values)
    }

    fn float_gather_nd(data: Host, indices: Host) -> Host {
        data.gather_nd(&indices)
    }

    fn float_scatter(dim: usize, tensor: Host, indices: Host, value: Host, update: IndexingUpdateOp) -> Host {
        tensor.updated(Addressing::Elements { dim }, &indices, &value, places::kind(update))
    }

    fn float_select_assign(tensor: Host, dim: usize, indices: Host, value: Host, update: IndexingUpdateOp) -> Host {
        tensor.updated(Addressing::Rows { dim }, &indices, &value, places::kind(update))
    }

    fn float_scatter_nd(data: Host, indices: Host, values: Host, reduction: IndexingUpdateOp) -> Host {
        data.updated(Addressing::Tuples, &indices, &values, places::kind(reduction))
    }

    fn float_argmax(tensor: Host, dim: usize, out_dtype: IntDType) -> Host {
        tensor.extremes(Extreme::Max, dim, out_dtype)
    }

    fn float_argmin(tensor: Host, dim: usize, out_dtype: IntDType) -> Host {
        tensor.extremes(Extreme::Min, dim, out_dtype)
    }

    fn float_max_dim_with_indices(tensor: Host, dim: usize, indices_dtype: IntDType) -> (Host, Host) {
        tensor.extremes_with_indices(Extreme::Max, dim, indices_dtype)
    }

    fn float_min_dim_with_indices(tensor: Host, dim: usize, indices_dtype: IntDType) -> (Host, Host) {
        tensor.extremes_with_indices(Extreme::Min, dim, indices_dtype)
    }

    fn float_sort(tensor: Host, dim: usize, descending: bool) -> Host {
        tensor.sorted(dim, direction(descending), None)
    }

    fn float_argsort(tensor: Host, dim: usize, descending: bool, out_dtype: IntDType) -> Host {
        tensor.argsorted(dim, direction(descending), None, out_dtype)
    }

    fn float_sort_with_indices(tensor: Host, dim: usize, descending: bool, out_dtype: IntDType) -> (Host, Host) {
        let indices = tensor.argsorted(dim, direction(descending), None, out_dtype);
        (tensor.sorted(dim, direction(descending), None), indices)
    }

    fn float_topk(tensor: Host, dim: usize, k: usize) -> Host {
        tensor.sorted(dim, Descending, Some(k))
    }

    fn float_argtopk(tensor: Host, dim: usize, k: usize, out_dtype: IntDType) -> Host {
        tensor.argsorted(dim, Descending, Some(k), out_dtype)
    }

    fn float_topk_with_indices(tensor: Host, dim: usize, k: usize, out_dtype: IntDType) -> (Host, Host) {
        (tensor.sorted(dim, Descending, Some(k)), tensor.argsorted(dim, Descending, Some(k), out_dtype))
    }

    fn float_grid_sample_2d(tensor: Host, grid: Host, options: GridSampleOptions) -> Host {
        let [batch, channels, height, width] = tensor.shape().dims();
        let [_, rows, columns, _] = grid.shape().dims();
        let shape = [batch, channels, height, width];
        let (input, points) = (tensor.floats(), grid.floats());
        let values = grid_sample::reference::sample(&input, shape, &points, rows * columns, sample_params(&options));
        tensor.of_floats(Shape::new([batch, channels, rows, columns]), values)
    }

    fn float_any(tensor: Host, out_dtype: BoolDType) -> Host {
        nonzero(&tensor, out_dtype).whole(super::boolean::any)
    }

    fn float_any_dim(tensor: Host, dim: usize, out_dtype: BoolDType) -> Host {
        nonzero(&tensor, out_dtype).over(&[dim], super::boolean::any)
    }

    fn float_all(tensor: Host, out_dtype: BoolDType) -> Host {
        nonzero(&tensor, out_dtype).whole(super::boolean::all)
    }

    fn float_all_dim(tensor: Host, dim: usize, out_dtype: BoolDType) -> Host {
        nonzero(&tensor, out_dtype).over(&[dim], super::boolean::all)
    }

    fn float_cross(lhs: Host, rhs: Host, dim: usize) -> Host {
        let next = |tensor: Host| {
            let part = |start, end| {
                let mut slices = vec![Slice::full(); tensor.rank()];
                slices[dim] = Slice::new(start, Some(end), 1);
                tensor.slice(&slices)
            };
            Host::cat(&[part(1, 3), part(0, 1)], dim)
        };
        let left = Self::float_mul(lhs.clone(), next(rhs.clone()));
        let right = Self::float_mul(next(lhs), rhs);
        next(Self::float_sub(left, right))
    }
}

/// A function of each element, computed in f32 and rounded once to the type.
fn of_each(tensor: &Host, function: impl Fn(f32) -> f32) -> Host {
    let of = tensor.dtype();
    tensor.map(of, |bits| rounded(function(widened(bits, of)), of))
}

fn binary(function: Binary, lhs: &Host, rhs: &Host) -> Host {
    let of = lhs.dtype();
    lhs.zip(rhs, of, |a, b| rounded(elementwise::binary(function, widened(a, of), widened(b, of)), of))
}

fn compare(comparison: Comparison, lhs: &Host, rhs: &Host, out_dtype: BoolDType) -> Host {
    let of = lhs.dtype();
    lhs.zip(rhs, out_dtype.into(), |a, b| elementwise::compare(comparison, widened(a, of), widened(b, of)).into())
}

fn nonzero(tensor: &Host, out_dtype: BoolDType) -> Host {
    let of = tensor.dtype();
    tensor.map(out_dtype.into(), |bits| (widened(bits, of) != 0.0).into())
}

/// A number as a tensor of one element that broadcasts with `tensor`, in its dtype.
fn number(tensor: &Host, value: Scalar) -> Host {
    tensor.of_bits(Shape::from(vec![1; tensor.rank()]), vec![rounded_scalar(value, tensor.dtype())])
}

/// The bits of a number as an f32, and that rounded to a type.
fn rounded_scalar(value: Scalar, dtype: DType) -> u64 {
    rounded(value.elem(), dtype)
}

/// The shape of a batched product, its factors batch by batch, and `[m, k, n]`.
pub(super) fn product(lhs: &Host, rhs: &Host) -> (Shape, Vec<(Host, Host)>, [usize; 3]) {
    let shape = calculate_matmul_output(&lhs.shape(), &rhs.shape()).expect("Burn checks the shapes of factors");
    let rank = shape.num_dims();
    let [m, n] = [shape[rank - 2], shape[rank - 1]];
    let k = lhs.shape()[lhs.rank() - 1];
    let matrices = |factor: &Host, [rows, columns]: [usize; 2]| {
        let batched = factor.expand(&[&shape[..rank - 2], &[rows, columns]].concat());
        let size = rows * columns;
        let matrix =
            |b: usize| factor.of_bits(Shape::new([rows, columns]), batched.bits()[b * size..][..size].to_vec());
        (0..shape[..rank - 2].iter().product()).map(matrix).collect::<Vec<_>>()
    };
    let batches = matrices(lhs, [m, k]).into_iter().zip(matrices(rhs, [k, n])).collect();
    (shape, batches, [m, k, n])
}
