//! Methods of the backend, called as a server or an extension calls them: those that Burn's stream composes of others
//! and does not carry, and those of ints and bools.

use super::{BOUND, Case, INDICES};
use crate::bits::{floats, indices};
use crate::skip::skip;
use burn::prelude::*;
use burn_backend::ops::{
    ActivationOps, BoolTensorOps, FloatTensorOps, IntTensorOps, ModuleOps, PadMode, QTensorOps, UnfoldOptions,
};
use burn_backend::quantization::{QuantScheme, QuantizationParametersPrimitive};
use burn_backend::tensor::IndexingUpdateOp::Add;
use burn_backend::{Backend, BoolDType, DType, FloatDType, IntDType, Shape, Slice, TensorMetadata, read_sync};
use burn_cubecl::{CubeBackend, tensor::CubeTensor};
use burn_deterministic::Deterministic;

type B = Deterministic<CubeBackend>;

/// What comparisons give.
const BOOL: BoolDType = BoolDType::U32;

/// Ints of a sample are a matrix of this side, too.
const SIDE: usize = 8;

/// Floats of a sample.
const LENGTH: usize = 360;

/// A batch: operands of methods.
struct Samples {
    values: CubeTensor,
    /// Below [`BOUND`], `[samples, INDICES]`.
    at: CubeTensor,
}

impl Samples {
    fn new(values: TensorData, at: TensorData) -> Self {
        let device = crate::cube_device();
        Self { values: B::float_from_data(values, &device), at: B::int_from_data(at, &device) }
    }

    fn count(&self) -> usize {
        self.at.shape()[0]
    }

    /// The slice of all samples.
    fn all(&self) -> Slice {
        (0..self.count()).into()
    }

    /// Floats, `[samples, length]`.
    fn x(&self) -> CubeTensor {
        self.values.clone()
    }

    /// Floats, each sample `shape`.
    fn floats<const N: usize>(&self, shape: [usize; N]) -> CubeTensor {
        B::float_reshape(self.x(), self.with(shape))
    }

    /// Floats that are whole numbers.
    fn whole(&self) -> CubeTensor {
        B::float_round(self.x())
    }

    /// As many floats as there are ints.
    fn head(&self) -> CubeTensor {
        B::float_slice(self.x(), &[self.all(), (0..INDICES).into()])
    }

    /// Floats quantized by one scale, which does not depend on them.
    fn quantized(&self) -> CubeTensor {
        let scales = B::float_from_data(TensorData::from([0.02f32]), &crate::cube_device());
        B::quantize(self.x(), &QuantScheme::default(), QuantizationParametersPrimitive { scales, global: None })
    }

    /// Indices below [`BOUND`].
    fn at(&self) -> CubeTensor {
        self.at.clone()
    }

    /// Ints from -4 to 5.
    fn n(&self) -> CubeTensor {
        B::int_sub_scalar(self.at(), 4.into())
    }

    /// Other ints from -4 to 5.
    fn m(&self) -> CubeTensor {
        B::int_flip(self.n(), &[1])
    }

    /// Ints from 1 to 3.
    fn positive(&self) -> CubeTensor {
        B::int_add_scalar(B::int_remainder_scalar(self.at(), 3.into()), 1.into())
    }

    /// Ints of which one in ten is 1, and the others are 0.
    fn sparse(&self) -> CubeTensor {
        B::int_div_scalar(self.at(), (BOUND - 1).into())
    }

    /// Bools.
    fn b(&self) -> CubeTensor {
        B::int_greater_elem(self.n(), 0.into(), BOOL)
    }

    /// Other bools.
    fn c(&self) -> CubeTensor {
        B::int_greater_elem(self.m(), 1.into(), BOOL)
    }

    /// Of ints, matrices of each sample.
    fn squares(&self, ints: CubeTensor) -> CubeTensor {
        B::int_reshape(ints, self.with([SIDE, SIDE]))
    }

    /// Of bools, matrices of each sample.
    fn bool_squares(&self, bools: CubeTensor) -> CubeTensor {
        B::bool_reshape(bools, self.with([SIDE, SIDE]))
    }

    /// The shape of a batch of samples of this shape.
    fn with<const N: usize>(&self, shape: [usize; N]) -> Shape {
        Shape::from([&[self.count()], &shape[..]].concat())
    }

    /// Places along a sample, the same for each.
    fn places(&self) -> CubeTensor {
        B::int_from_data(indices([33], BOUND), &crate::cube_device())
    }

    /// Index tuples `(sample, index)`, `[samples, INDICES, 2]`.
    fn tuples(&self) -> CubeTensor {
        let shape = self.with([INDICES, 1]);
        let sample = B::int_arange(0..self.count() as i64, &crate::cube_device(), IntDType::I32);
        let sample = B::int_expand(B::int_reshape(sample, self.with([1, 1])), shape.clone());
        B::int_cat(vec![sample, B::int_reshape(self.at(), shape)], 2)
    }
}

/// A type to cast to.
fn half() -> FloatDType {
    if B::supports_dtype(&crate::cube_device(), DType::F16) {
        return FloatDType::F16;
    }
    skip("the device has no f16 to cast to");
    FloatDType::F32
}

/// What a method returns.
trait Results {
    /// The results of each sample, `[samples, n]`.
    fn read(self) -> TensorData;
}

impl Results for CubeTensor {
    fn read(self) -> TensorData {
        let shape = Shape::new([self.shape()[0], self.shape().num_elements() / self.shape()[0]]);
        let data = match self.dtype {
            dtype if dtype.is_float() => read_sync(B::float_into_data(B::float_reshape(self, shape))),
            dtype if dtype.is_bool() => read_sync(B::bool_into_data(B::bool_reshape(self, shape))),
            _ => read_sync(B::int_into_data(B::int_reshape(self, shape))),
        };
        data.expect("the method is not refused")
    }
}

impl Results for (CubeTensor, CubeTensor) {
    fn read(self) -> TensorData {
        let as_floats = |tensor: CubeTensor| match tensor.dtype.is_float() {
            true => tensor,
            false => B::int_into_float(tensor, FloatDType::F32),
        };
        B::float_cat(vec![as_floats(self.0), as_floats(self.1)], 1).read()
    }
}

/// A case for each method: its call, on samples of a length.
macro_rules! methods {
    ($length:expr, |$samples:ident| $($method:ident($($argument:expr),* $(,)?);)+) => {
        vec![$(Case::method(stringify!($method), $length, move |values, at| {
            let $samples = Samples::new(values, at);
            B::$method($($argument),*).read()
        })),+]
    };
}

/// Weights: the same values in every batch.
fn weights<const N: usize>(shape: [usize; N]) -> CubeTensor {
    B::float_from_data(floats(shape), &crate::cube_device())
}

pub fn float_methods(_: &Device) -> Vec<Case> {
    let half = half();
    methods! { LENGTH, |s|
        float_not_equal(s.whole(), B::float_flip(s.whole(), &[1]), BOOL); float_not_equal_elem(s.whole(), 1.into(), BOOL);
        float_cast(s.x(), half); float_neg(s.x()); float_sign(s.x());
        float_clamp_min(s.x(), 0.25.into()); float_clamp_max(s.x(), 0.25.into());
        float_powi(s.head(), s.positive()); float_powi_scalar(s.x(), 7.into()); float_powi_scalar_impl(s.x(), 7.into());
        float_powf_scalar_impl(B::float_abs(s.x()), 1.7.into());
        dequantize(s.quantized(), FloatDType::F32);
        float_transpose(s.floats([20, 18])); float_permute(s.floats([20, 18]), &[0, 2, 1]); float_flip(s.x(), &[1]);
        embedding(weights([BOUND, 6]), s.at());
        float_sort(s.x(), 1, false); float_sort_with_indices(s.x(), 1, true, IntDType::I32);
        float_argsort(s.x(), 1, false, IntDType::I32);
    }
}

pub fn activations(_: &Device) -> Vec<Case> {
    methods! { LENGTH, |s|
        leaky_relu(s.x(), 0.1.into()); relu(s.x()); gelu(s.x()); prelu(s.floats([4, 90]), weights([1, 4, 1]));
        sigmoid(s.x()); hard_sigmoid(s.x(), 0.2.into(), 0.5.into()); log_sigmoid(s.x());
        softmax(s.x(), 1); log_softmax(s.x(), 1); softmin(s.x(), 1);
    }
}

pub fn layers(_: &Device) -> Vec<Case> {
    methods! { LENGTH, |s|
        linear(s.floats([9, 40]), weights([40, 33]), Some(weights([33])));
        layer_norm(s.floats([4, 90]), weights([90]), Some(weights([90])), 1e-5);
        batch_norm(
            s.floats([6, 60]),
            weights([6]),
            weights([6]),
            weights([6]),
            B::float_add_scalar(B::float_abs(weights([6])), 0.5.into()),
            1e-5,
        );
        unfold4d(s.floats([3, 12, 10]), [3, 2], UnfoldOptions::new([2, 1], [1, 0], [1, 2]));
        fold4d(s.floats([12, 30]), [6, 7], [2, 2], UnfoldOptions::new([1, 1], [0, 0], [1, 1]));
    }
}

pub fn integer_methods(_: &Device) -> Vec<Case> {
    methods! { 1, |s|
        int_into_float(s.n(), FloatDType::F32); int_cast(s.at(), IntDType::U32);
        int_mask_where(s.n(), s.b(), s.m()); int_mask_fill(s.n(), s.b(), 7.into());
        int_equal(s.n(), s.m(), BOOL); int_equal_elem(s.n(), 1.into(), BOOL);
        int_not_equal(s.n(), s.m(), BOOL); int_not_equal_elem(s.n(), 1.into(), BOOL);
        int_greater(s.n(), s.m(), BOOL); int_greater_elem(s.n(), 1.into(), BOOL);
        int_greater_equal(s.n(), s.m(), BOOL); int_greater_equal_elem(s.n(), 1.into(), BOOL);
        int_lower(s.n(), s.m(), BOOL); int_lower_elem(s.n(), 1.into(), BOOL);
        int_lower_equal(s.n(), s.m(), BOOL); int_lower_equal_elem(s.n(), 1.into(), BOOL);
        int_add(s.n(), s.m()); int_add_scalar(s.n(), 3.into()); int_sub(s.n(), s.m()); int_sub_scalar(s.n(), 3.into());
        int_mul(s.n(), s.m()); int_mul_scalar(s.n(), 3.into());
        int_div(s.n(), s.positive()); int_div_scalar(s.n(), 3.into());
        int_remainder(s.n(), s.positive()); int_remainder_scalar(s.n(), 3.into());
        int_square(s.n()); int_powi(s.n(), s.positive());
        int_powi_scalar(s.n(), 2.into()); int_powi_scalar_impl(s.n(), 3.into());
        int_clamp(s.n(), (-1).into(), 2.into()); int_clamp_min(s.n(), 0.into()); int_clamp_max(s.n(), 0.into());
        int_neg(s.n()); int_abs(s.n()); int_sign(s.n());
        bitwise_and(s.n(), s.m()); bitwise_and_scalar(s.n(), 5.into()); bitwise_or(s.n(), s.m());
        bitwise_or_scalar(s.n(), 5.into()); bitwise_xor(s.n(), s.m()); bitwise_xor_scalar(s.n(), 5.into());
        bitwise_not(s.n());
        bitwise_left_shift(s.n(), s.positive()); bitwise_left_shift_scalar(s.n(), 2.into());
        bitwise_right_shift(s.at(), s.positive()); bitwise_right_shift_scalar(s.at(), 2.into());
        int_repeat_dim(s.n(), 1, 3); int_transpose(s.squares(s.n())); int_swap_dims(s.squares(s.n()), 1, 2);
        int_permute(s.squares(s.n()), &[0, 2, 1]); int_flip(s.squares(s.n()), &[1, 2]);
        int_reshape(s.n(), s.with([4, 16])); int_slice(s.n(), &[s.all(), (3..50).into()]);
        int_slice_assign(s.n(), &[s.all(), (3..11).into()], B::int_slice(s.m(), &[s.all(), (0..8).into()]));
        int_cat(vec![s.n(), s.m(), s.n()], 1); int_expand(B::int_reshape(s.n(), s.with([1, INDICES])), s.with([5, INDICES]));
        int_unfold(s.n(), 1, 7, 2); int_pad(s.squares(s.n()), &[(0, 0), (1, 2), (3, 1)], PadMode::Reflect);
        int_gather(1, s.n(), s.at()); int_gather_nd(s.n(), s.tuples()); int_select(s.n(), 1, s.places());
        int_scatter(1, s.n(), s.at(), s.m(), Add);
        int_select_assign(s.n(), 1, s.places(), B::int_slice(s.m(), &[s.all(), (0..33).into()]), Add);
        int_matmul(s.squares(s.n()), s.squares(s.m()));
        int_sum_dim(s.squares(s.n()), 1); int_prod_dim(s.squares(s.positive()), 1); int_mean_dim(s.squares(s.n()), 2);
        int_max_dim(s.squares(s.n()), 1); int_max_dim_with_indices(s.squares(s.n()), 1);
        int_min_dim(s.squares(s.n()), 2); int_min_dim_with_indices(s.squares(s.n()), 2);
        int_max_abs_dim(s.squares(s.n()), 1);
        int_any_dim(s.squares(s.sparse()), 1, BOOL); int_all_dim(s.squares(s.n()), 1, BOOL);
        int_argmax(s.squares(s.n()), 1); int_argmin(s.squares(s.n()), 2);
        int_cumsum(s.n(), 1); int_cumprod(s.positive(), 1); int_cummin(s.n(), 1); int_cummax(s.squares(s.n()), 1);
        int_sort(s.n(), 1, false); int_sort_with_indices(s.n(), 1, true); int_argsort(s.n(), 1, false);
        int_topk(s.n(), 1, 20); int_topk_with_indices(s.n(), 1, 20); int_argtopk(s.n(), 1, 20);
    }
}

pub fn boolean_methods(_: &Device) -> Vec<Case> {
    methods! { 1, |s|
        bool_into_int(s.b(), IntDType::I32); bool_into_float(s.b(), FloatDType::F32);
        bool_mask_where(s.b(), s.c(), B::bool_not(s.b())); bool_mask_fill(s.b(), s.c(), true.into());
        bool_equal(s.b(), s.c()); bool_equal_elem(s.b(), false.into());
        bool_not_equal(s.b(), s.c()); bool_not_equal_elem(s.b(), false.into());
        bool_not(s.b()); bool_and(s.b(), s.c()); bool_or(s.b(), s.c()); bool_xor(s.b(), s.c());
        bool_repeat_dim(s.b(), 1, 3); bool_transpose(s.bool_squares(s.b())); bool_swap_dims(s.bool_squares(s.b()), 1, 2);
        bool_permute(s.bool_squares(s.b()), &[0, 2, 1]); bool_flip(s.bool_squares(s.b()), &[1, 2]);
        bool_reshape(s.b(), s.with([4, 16])); bool_slice(s.b(), &[s.all(), (3..50).into()]);
        bool_slice_assign(s.b(), &[s.all(), (3..11).into()], B::bool_slice(s.c(), &[s.all(), (0..8).into()]));
        bool_cat(vec![s.b(), s.c(), s.b()], 1);
        bool_expand(B::bool_reshape(s.b(), s.with([1, INDICES])), s.with([5, INDICES]));
        bool_unfold(s.b(), 1, 7, 2); bool_gather(1, s.b(), s.at()); bool_select(s.b(), 1, s.places());
        bool_any_dim(s.bool_squares(B::int_equal_elem(s.at(), 9.into(), BOOL)), 1);
        bool_all_dim(s.bool_squares(B::int_not_equal_elem(s.at(), 9.into(), BOOL)), 2);
        bool_scatter_or(1, s.b(), s.at(), s.c());
        bool_select_or(s.b(), 1, s.places(), B::bool_slice(s.c(), &[s.all(), (0..33).into()]));
    }
}
