//! Every method with a kernel of its own, against the inner backend: the same shape, dtype and, but for rounding,
//! the same values. The kernels' own tests ask for more; these ask whether the right kernel was called.

use super::Deterministic;
use crate::random::set_random_seed;
use burn_backend::ops::{
    ActivationOps, AttentionModuleOptions, BoolTensorOps, ConvOptions, ConvTransposeOptions, DeformConvOptions,
    FloatTensorOps, IntTensorOps, InterpolateMode, InterpolateOptions, ModuleOps, QTensorOps,
};
use burn_backend::quantization::QuantScheme;
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{
    Backend, BoolDType, Distribution, FloatDType, IntDType, Shape, TensorData, TensorMetadata, Tolerance, read_sync,
};
use burn_cubecl::{CubeBackend, CubeDevice, tensor::CubeTensor};

type Ours = Deterministic<CubeBackend>;

const BOOL: BoolDType = BoolDType::U32;

fn device() -> CubeDevice {
    CubeDevice::default()
}

/// Values that are neither sorted nor all distinct, from -3 to 3.
fn floats<const N: usize>(shape: [usize; N]) -> CubeTensor {
    let values: Vec<f32> = (0..shape.iter().product()).map(|i: usize| (i * 37 % 25) as f32 / 4.0 - 3.0).collect();
    CubeBackend::float_from_data(TensorData::new(values, shape), &device())
}

fn ints<const N: usize>(shape: [usize; N]) -> CubeTensor {
    let values: Vec<i32> = (0..shape.iter().product()).map(|i: usize| (i * 37 % 25) as i32 - 12).collect();
    CubeBackend::int_from_data(TensorData::new(values, shape), &device())
}

/// Indices below `bound`, some of them twice.
fn indices<const N: usize>(shape: [usize; N], bound: usize) -> CubeTensor {
    let values: Vec<i32> = (0..shape.iter().product()).map(|i: usize| (i * 5 % 7 % bound) as i32).collect();
    CubeBackend::int_from_data(TensorData::new(values, shape), &device())
}

fn bools<const N: usize>(shape: [usize; N]) -> CubeTensor {
    CubeBackend::int_greater_elem(ints(shape), 3.into(), BOOL)
}

fn data(tensor: CubeTensor) -> TensorData {
    match tensor.dtype {
        dtype if dtype.is_float() => read_sync(CubeBackend::float_into_data(tensor)),
        dtype if dtype.is_bool() => read_sync(CubeBackend::bool_into_data(tensor)),
        _ => read_sync(CubeBackend::int_into_data(tensor)),
    }
    .expect("the tensor can be read")
}

fn compare(method: &str, ours: CubeTensor, plain: CubeTensor) {
    assert_eq!((ours.shape(), ours.dtype), (plain.shape(), plain.dtype), "{method}");
    let (ours, plain) = (data(ours), data(plain));
    match ours.dtype().is_float() {
        true => ours.assert_approx_eq::<f32>(&plain, Tolerance::rel_abs(1e-4, 1e-5)),
        false => ours.assert_eq(&plain, true),
    }
}

/// Calls a method of both backends with the same arguments.
macro_rules! same {
    ($($method:ident($($argument:expr),* $(,)?);)+) => {$(
        compare(stringify!($method), Ours::$method($($argument),*), CubeBackend::$method($($argument),*));
    )+};
}

#[test]
fn reductions() {
    let x = || floats([3, 5, 70]);
    same! {
        float_sum(x()); float_sum_dim(x(), 1); float_sum_dims(x(), &[0, 2]); float_mean(x()); float_mean_dim(x(), 0);
        float_max(x()); float_max_dim(x(), 2); float_min(x()); float_min_dim(x(), 1);
        float_max_abs(x()); float_max_abs_dim(x(), 1);
        float_argmax(x(), 1, IntDType::I32); float_argmin(x(), 2, IntDType::I32);
        float_any(x(), BOOL); float_any_dim(x(), 1, BOOL); float_all(x(), BOOL); float_all_dim(x(), 1, BOOL);
    }
    let (ours, plain) = (
        Ours::float_max_dim_with_indices(x(), 1, IntDType::I32),
        CubeBackend::float_max_dim_with_indices(x(), 1, IntDType::I32),
    );
    compare("float_max_dim_with_indices", ours.0, plain.0);
    compare("float_max_dim_with_indices", ours.1, plain.1);
    let x = || floats([3, 4]);
    same! { float_prod(x()); float_prod_dim(x(), 1); }
    let n = || ints([4, 9]);
    same! {
        int_sum(n()); int_sum_dim(n(), 1); int_prod_dim(n(), 0); int_mean(n()); int_mean_dim(n(), 0);
        int_max(n()); int_max_dim(n(), 1); int_min(n()); int_min_dim(n(), 1); int_max_abs(n()); int_max_abs_dim(n(), 1);
        int_argmax(n(), 1); int_argmin(n(), 1);
        int_any(n(), BOOL); int_any_dim(n(), 1, BOOL); int_all(n(), BOOL); int_all_dim(n(), 1, BOOL);
    }
    let b = || bools([4, 9]);
    same! { bool_any(b()); bool_any_dim(b(), 0); bool_all(b()); bool_all_dim(b(), 1); }
}

#[test]
fn layout_does_not_reach_a_result() {
    let x = floats([3, 5, 70]);
    // The same elements, stored with the last two axes exchanged.
    let exchanged = CubeBackend::float_into_data(CubeBackend::float_swap_dims(x.clone(), 1, 2));
    let exchanged = CubeBackend::float_from_data(read_sync(exchanged).expect("it can be read"), &device());
    let view = CubeBackend::float_swap_dims(exchanged, 1, 2);
    assert_ne!(x.meta.strides(), view.meta.strides());
    for axis in 0..3 {
        let sums = [x.clone(), view.clone()].map(|x| data(Ours::float_sum_dim(x, axis)));
        assert_eq!(sums[0], sums[1]);
    }
    let products = [x, view].map(|x| data(Ours::float_matmul(x, floats([3, 70, 4]))));
    assert_eq!(products[0], products[1]);
}

#[test]
fn products() {
    same! {
        float_matmul(floats([2, 5, 7]), floats([2, 7, 3]));
        float_matmul(floats([2, 5, 7]), floats([1, 7, 3]));
        int_matmul(ints([4, 6]), ints([6, 2]));
        linear(floats([2, 5, 7]), floats([7, 3]), Some(floats([3])));
        softmax(floats([4, 9]), 1);
        layer_norm(floats([4, 9]), floats([9]), Some(floats([9])), 1e-5);
    }
    let attention = || floats([1, 2, 4, 8]);
    let options = AttentionModuleOptions::default;
    same! { attention(attention(), attention(), attention(), None, None, options()); }
    // Masks and biases that broadcast, and heads that do.
    let options = || AttentionModuleOptions { softcap: Some(2.0), ..Default::default() };
    let (mask, bias) = (|| Some(bools([1, 1, 4, 4])), || Some(floats([1, 2, 1, 4])));
    same! {
        attention(attention(), attention(), attention(), mask(), bias(), options());
        attention(attention(), floats([1, 1, 4, 8]), floats([1, 1, 4, 3]), mask(), bias(), options());
    }
}

#[test]
fn convolutions() {
    let options = || ConvOptions::new([2, 1], [1, 0], [1, 2], 2);
    let (x, weight, bias) = (|| floats([2, 4, 7, 8]), || floats([6, 2, 3, 2]), || Some(floats([6])));
    let gradient = || floats([2, 6, 4, 6]);
    same! {
        conv2d(x(), weight(), bias(), options());
        conv2d_x_backward(x(), weight(), gradient(), options());
        conv2d_weight_backward(x(), weight(), gradient(), options());
        conv1d(floats([2, 4, 9]), floats([6, 2, 3]), bias(), ConvOptions::new([1], [1], [1], 2));
        conv3d(floats([1, 2, 4, 5, 3]), floats([3, 2, 2, 2, 2]), None, ConvOptions::new([1; 3], [0; 3], [1; 3], 1));
        conv_transpose1d(floats([2, 4, 5]), floats([4, 3, 3]), None, ConvTransposeOptions::new([2], [1], [1], [1], 1));
        conv_transpose2d(
            floats([2, 4, 5, 6]),
            floats([4, 3, 3, 2]),
            Some(floats([6])),
            ConvTransposeOptions::new([2, 1], [1, 0], [1, 0], [1, 1], 2),
        );
    }
}

#[test]
fn updates_and_reads_at_indices() {
    let (x, y) = (|| floats([6, 4]), || floats([3, 4]));
    let (at, rows) = (|| indices([3, 4], 6), || indices([3], 6));
    use IndexingUpdateOp::{Add, Max};
    same! {
        float_gather(0, x(), at()); float_select(x(), 0, rows());
        float_scatter(0, x(), at(), y(), Add); float_scatter(0, x(), at(), y(), Max);
        float_select_assign(x(), 0, rows(), y(), Add);
        float_gather_nd(x(), indices([5, 2], 4)); float_gather_nd(x(), indices([5, 1], 6));
        int_gather(0, ints([6, 4]), at()); int_select(ints([6, 4]), 1, indices([3], 4));
        int_scatter(0, ints([6, 4]), at(), ints([3, 4]), Add);
        int_select_assign(ints([6, 4]), 0, rows(), ints([3, 4]), Add);
        bool_gather(0, bools([6, 4]), at()); bool_select(bools([6, 4]), 0, rows());
        bool_scatter_or(0, bools([6, 4]), at(), bools([3, 4])); bool_select_or(bools([6, 4]), 0, rows(), bools([3, 4]));
        embedding_backward(floats([6, 4]), floats([2, 3, 4]), indices([2, 3], 6));
    }
    // Burn's own kernel loses updates where two tuples are equal, so these are not.
    let tuples = || CubeBackend::int_from_data(TensorData::from([[0i32], [5], [2]]), &device());
    same! { float_scatter_nd(x(), tuples(), y(), Add); int_scatter_nd(ints([6, 4]), tuples(), ints([3, 4]), Add); }
}

#[test]
fn windows() {
    let x = || floats([2, 3, 6, 8]);
    let bilinear = || InterpolateOptions::new(InterpolateMode::Bilinear);
    same! {
        adaptive_avg_pool2d(x(), [1, 1]); adaptive_avg_pool2d(x(), [3, 2]);
        adaptive_avg_pool2d_backward(x(), floats([2, 3, 3, 2]));
        adaptive_avg_pool3d(floats([2, 3, 4, 5, 6]), [2, 3, 4]);
        adaptive_avg_pool3d_backward(floats([2, 3, 4, 5, 6]), floats([2, 3, 2, 3, 4]));
        avg_pool2d(x(), [2, 2], [2, 2], [0, 0], true, false); avg_pool2d(x(), [3, 3], [2, 2], [1, 1], false, true);
        avg_pool2d_backward(x(), floats([2, 3, 3, 4]), [2, 2], [2, 2], [0, 0], true, false);
        max_pool2d(x(), [2, 2], [2, 2], [0, 0], [1, 1], false); max_pool2d(x(), [3, 2], [1, 2], [1, 1], [2, 1], true);
        interpolate(x(), [9, 5], bilinear());
    }
}

#[test]
fn cumulative_operations() {
    let (x, n) = (|| floats([3, 70, 2]), || ints([5, 70]));
    same! {
        float_cumsum(x(), 1); float_cumprod(floats([3, 9]), 0); float_cummin(x(), 1); float_cummax(x(), 2);
        int_cumsum(n(), 1); int_cumprod(ints([3, 9]), 1); int_cummin(n(), 1); int_cummax(n(), 0);
    }
}

#[test]
fn samples() {
    let x = || floats([2, 4, 6, 5]);
    let nearest = || InterpolateOptions::new(InterpolateMode::Nearest);
    let options = || DeformConvOptions::new([1, 1], [1, 0], [1, 1], 2, 2);
    let (offset, mask) = (|| floats([2, 24, 6, 4]), || floats([2, 12, 6, 4]));
    let (weight, bias) = (|| floats([6, 2, 3, 2]), || floats([6]));
    same! {
        float_grid_sample_2d(x(), floats([2, 3, 7, 2]), InterpolateMode::Bilinear.into());
        interpolate_backward(x(), floats([2, 4, 9, 3]), [9, 3], nearest());
        deform_conv2d(x(), offset(), weight(), Some(mask()), Some(bias()), options());
        deform_conv2d(x(), offset(), weight(), None, None, options());
    }
    let gradient = || floats([2, 6, 6, 4]);
    let ours = Ours::deform_conv2d_backward(x(), offset(), weight(), Some(mask()), Some(bias()), gradient(), options());
    let plain =
        CubeBackend::deform_conv2d_backward(x(), offset(), weight(), Some(mask()), Some(bias()), gradient(), options());
    compare("gradient of x", ours.x_grad, plain.x_grad);
    compare("gradient of weight", ours.weight_grad, plain.weight_grad);
    // Burn's kernel takes the first tap's gradient for all taps in these two: tests/order/modules.rs asks its CPU backend.
    assert_eq!(ours.offset_grad.shape(), plain.offset_grad.shape());
    assert_eq!(ours.mask_grad.expect("a mask").shape(), plain.mask_grad.expect("a mask").shape());
    compare("gradient of bias", ours.bias_grad.expect("a bias"), plain.bias_grad.expect("a bias"));
}

#[test]
fn quantized_tensors() {
    let scheme = QuantScheme::default();
    let values = |tensor| data(Ours::dequantize(tensor, FloatDType::F32));
    let quantized = || Ours::quantize_dynamic(floats([12, 32]), &scheme);
    let close = Tolerance::rel_abs(1e-2, 3e-2);
    values(quantized()).assert_approx_eq::<f32>(&data(floats([12, 32])), close);
    for repeat in 0..10 {
        assert_eq!(values(quantized()), values(quantized()), "repeat {repeat}");
    }
    let flipped = values(Ours::q_flip(quantized(), &[0, 1]));
    assert_eq!(flipped, values(Ours::q_flip(quantized(), &[0, 1])));
    flipped.assert_approx_eq::<f32>(&data(Ours::float_flip(floats([12, 32]), &[0, 1])), close);
}

#[test]
fn topk_and_sort() {
    let (x, n) = (|| floats([3, 20]), || ints([3, 20]));
    same! {
        float_topk(x(), 1, 4); float_sort(x(), 1, true); float_sort(x(), 0, false);
        int_topk(n(), 1, 4); int_sort(n(), 1, true); int_sort(n(), 0, false);
        float_argsort(x(), 1, false, IntDType::I32); float_argtopk(x(), 1, 4, IntDType::I32);
        int_argsort(n(), 1, true); int_argtopk(n(), 1, 4);
    }
    let pairs = [
        ("float_sort", Ours::float_sort_with_indices(x(), 1, true, IntDType::I32)),
        ("float_topk", Ours::float_topk_with_indices(x(), 1, 20, IntDType::I32)),
        ("int_sort", Ours::int_sort_with_indices(n(), 1, true)),
        ("int_topk", Ours::int_topk_with_indices(n(), 1, 20)),
    ];
    let plain = [CubeBackend::float_sort(x(), 1, true), CubeBackend::int_sort(n(), 1, true)];
    for ((method, (values, indices)), plain) in pairs.into_iter().zip([&plain[0], &plain[0], &plain[1], &plain[1]]) {
        compare(method, values.clone(), plain.clone());
        let operand = if values.dtype.is_float() { x() } else { n() };
        compare(method, CubeBackend::int_gather(1, operand, indices), plain.clone());
    }
}

#[test]
fn empty_is_zero() {
    let zeros = data(Ours::float_empty(Shape::new([5]), &device(), FloatDType::F32));
    zeros.assert_eq(&TensorData::from([0f32; 5]), true);
}

#[test]
fn random_numbers_need_a_seed_and_repeat_with_it() {
    let draw = || Ours::float_random(Shape::new([100]), Distribution::Normal(0.0, 1.0), &device(), FloatDType::F32);
    let unseeded = read_sync(Ours::float_into_data(draw())).expect_err("no seed is set on this thread");
    assert!(format!("{unseeded:?}").contains("no seed is set"), "{unseeded:?}");
    set_random_seed(7);
    let first = (data(draw()), data(draw()));
    set_random_seed(7);
    assert_eq!(first, (data(draw()), data(draw())));
    assert_ne!(first.0, first.1);
    let uniform = Distribution::Uniform(-3.0, 3.0);
    let integers = data(Ours::int_random(Shape::new([1000]), uniform, &device(), IntDType::I32));
    let integers: Vec<i32> = integers.try_into_vec().expect("i32");
    assert_eq!((-3..3).map(|n| integers.contains(&n)).collect::<Vec<_>>(), [true; 6]);
    let normal = Ours::int_random(Shape::new([10]), Distribution::Normal(0.0, 9.0), &device(), IntDType::I32);
    assert_eq!(normal.shape(), Shape::new([10]));

    // As behind a server: the seed arrives on one thread, operations run on others.
    let elsewhere = || {
        Ours::seed(&device(), 7);
        std::thread::scope(|scope| scope.spawn(|| (data(draw()), data(draw()))).join().expect("the thread draws"))
    };
    assert_eq!(elsewhere(), first);
}

#[test]
fn a_refused_operation_makes_a_tensor_that_carries_the_refusal() {
    let refused =
        Ours::float_grid_sample_2d(floats([1, 1, 0, 4]), floats([1, 8, 8, 2]), InterpolateMode::Bicubic.into());
    let dependent = Ours::float_sum(Ours::float_add_scalar(refused, 1.into()));
    let error = format!("{:?}", read_sync(Ours::float_into_data(dependent)).expect_err("it was refused"));
    assert!(error.contains("float_grid_sample_2d") && error.contains("has no pixels"), "{error}");
    assert_eq!(Ours::name(&device()).split('<').next(), Some("deterministic"));
}

#[test]
fn ctc_loss_and_its_gradient() {
    let (steps, batch, classes) = (9, 3, 6);
    let targets = || CubeBackend::int_add_scalar(indices([batch, 3], classes - 1), 1.into());
    let lengths = |values: [i32; 3]| CubeBackend::int_from_data(TensorData::from(values), &device());
    let scores = || CubeBackend::log_softmax(floats([steps, batch, classes]), 2);
    same! {
        ctc_loss(scores(), targets(), lengths([9, 5, 7]), lengths([3, 2, 3]), 0);
        ctc_loss_backward(scores(), targets(), lengths([9, 5, 7]), lengths([3, 2, 3]), floats([3]), 0);
    }
}
