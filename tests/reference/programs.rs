//! Programs whose operations are checked.

use crate::accuracy::differentiable::upstream;
use crate::bits::floats;
use crate::operations::{self, Operation};
use crate::process::{self, report};
use crate::programs;
use crate::repeatability::random_programs;
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp::Add;
use burn::tensor::activation::softmax;
use burn::tensor::module::*;
use burn::tensor::ops::*;
use burn::tensor::{DType, FloatDType};
use burn_deterministic::{
    Determinism, Error, Guarantee, Unchecked, enable_op_determinism, is_op_determinism_enabled, reference_check,
    set_random_seed,
};

/// Enables what the environment asks for.
fn enable() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
}

/// Reports how many operations were checked, of how many kinds, and the others.
fn report_check() {
    let check = reference_check();
    assert_eq!(check.different, None);
    report("checked", check.checked.values().sum::<u64>());
    report("kinds", check.checked.len());
    let unchecked =
        { check.unchecked.iter() }.map(|Unchecked { operation, reason, .. }| format!("{operation}: {reason}"));
    report("unchecked", unchecked.collect::<Vec<_>>().join("; "));
}

/// Reads a tensor, which may carry the refusal of an operation, and no other error.
fn read(operation: &Operation, tensor: Tensor<1>) {
    if let Err(error) = tensor.try_into_data() {
        let text = error.to_string();
        assert!(text.contains("was refused"), "{}: {text}", operation.name);
    }
}

/// Every differentiable operation, and its gradients.
pub fn operations() {
    enable();
    set_random_seed(3);
    let device = Device::default().autodiff();
    macro_rules! groups {
        ($($name:ident: $group:ident;)*) => {
            [$(&*operations::$group),*]
        };
    }
    for operation in operations::for_each_group!(groups).into_iter().flatten() {
        let load = |values: &TensorData| Tensor::<1>::from_data(values.clone(), &device).require_grad();
        let operands: Vec<_> = operation.operands.iter().map(load).collect();
        let results = operation.run(&operands);
        let weights = Tensor::<1>::from_data(upstream(1, results.dims()[0]).as_slice(), &device);
        let gradients = (results.clone() * weights).sum().backward();
        read(operation, results.inner());
        operands
            .iter()
            .for_each(|operand| read(operation, operand.grad(&gradients).expect("every operand takes part")));
    }
    report_check();
}

/// Random programs, from the number that the first argument says up to the one that the second says. Any share of them
/// can be run by hand, in as many processes and on as many machines as there are, with `$suite` the test binary:
///
/// ```sh
/// export BURN_DETERMINISTIC_PROGRAM=checked_random_programs BURN_DETERMINISTIC_ARGUMENTS=$'2500\n5000'
/// export BURN_DETERMINISTIC_GUARANTEE=gpu-to-gpu BURN_DETERMINISTIC_REFERENCE=1
/// $suite --exact program --nocapture
/// ```
pub fn random() {
    let numbers: Vec<u32> = process::arguments().iter().map(|number| number.parse().expect("a number")).collect();
    let [first, end] = numbers[..] else { panic!("{numbers:?}: give the first number, and the one after the last") };
    enable();
    let device = Device::default();
    random_programs::for_each(first..end, |program| {
        random_programs::outputs(program, None, &device);
    });
    report_check();
}

/// Arithmetic in half types where the device has them, and of integers for which a device has no answer.
pub fn arithmetic() {
    enable();
    let device = Device::default();
    for (dtype, half) in [(DType::F16, FloatDType::F16), (DType::BF16, FloatDType::BF16)] {
        if device.supports_dtype(dtype) {
            halves(half, &device);
        }
    }
    let values = [0, 1, -1, 2, 3, -7, 31, 32, -32, 100, i32::MAX, i32::MIN];
    let [a, b] = [[12, 1], [1, 12]].map(|shape| {
        Tensor::<2, Int>::from_data(TensorData::new(values.to_vec(), shape), &device)
            .repeat(&[12 / shape[0], 12 / shape[1]])
    });
    let results = [
        a.clone() / b.clone(),
        a.clone().remainder(b.clone()),
        a.clone().powi(b.clone()),
        a.clone().bitwise_left_shift(b.clone()),
        a.clone().bitwise_right_shift(b.clone()),
        a.clone() / 0,
        a.clone().remainder_scalar(0),
        a.clone().bitwise_left_shift_scalar(32),
        a.bitwise_right_shift_scalar(33),
    ];
    results.into_iter().for_each(|result| drop(result.into_data()));
    report_check();
}

fn halves(half: FloatDType, device: &Device) {
    let x = Tensor::<2>::from_data(floats([33, 21]), device).cast(half);
    let y = x.clone().flip([0, 1]) * 3.0;
    let chain = (x.clone() * y.clone() + x.clone()) * 0.1 - y.clone().recip();
    let [u, v] = [x.clone(), y.clone()].map(|operand| operand.slice([0..33, 0..3]));
    let results = [
        chain.clone() / (y.clone().abs() + 0.5),
        chain.clone().mask_where(x.clone().greater(y.clone()), x.clone().remainder(y.clone())),
        x.clone().mask_fill(y.clone().lower_elem(0.1), 0.3),
        (x.clone() + 4.0).sqrt().log(),
        x.clone().clamp(-0.7, 0.9).exp().tanh(),
        (x.clone().abs() + 0.1).powf_scalar(1.7),
        x.clone().max_pair(y.clone()).sign() - 0.7,
        x.clone().floor() + y.clone().round() * -x.clone(),
        u.cross(v, 1),
        x.clone().int().float().cast(half) / 3.0,
        x.clone().cast(FloatDType::F32) * 0.1,
        y.clone().cast(FloatDType::F32).cast(half),
    ];
    results.into_iter().for_each(|result| drop(result.into_data()));
    half_lines(&x);
    half_layers(&x, &y);
    half_gradients(half, device);
}

/// Reductions, scans, sorts and updates of half types: in f32, and rounded once.
fn half_lines(x: &Tensor<2>) {
    let rows = Tensor::<1, Int>::from_data([3, 0, 3, 32], &x.device());
    let places = x.clone().argsort(1);
    let results = [
        x.clone().sum_dim(0),
        x.clone().mean_dim(1),
        (x.clone() + 1.0).prod_dim(1),
        x.clone().max_dim(1),
        x.clone().abs().min_dim(0),
        x.clone().max_abs_dim(1),
        x.clone().sum().unsqueeze(),
        x.clone().mean().unsqueeze(),
        softmax(x.clone(), 1),
        x.clone().cumsum(1),
        (x.clone() + 1.0).cumprod(0),
        x.clone().cummax(1),
        x.clone().sort_descending(0),
        x.clone().topk(3, 1),
        x.clone().gather(1, places.clone()),
        x.clone().scatter(1, places.clone() % 5, x.clone(), Add),
        x.clone().select_assign(0, rows.clone(), x.clone().slice(0..4), Add),
        x.clone().select(0, rows),
    ];
    results.into_iter().for_each(|result| drop(result.into_data()));
    for indices in [places, x.clone().argmax(1), x.clone().argmin(0), x.clone().max_dim_with_indices(1).1] {
        drop(indices.into_data());
    }
}

/// Gradients of layers of half types.
fn half_gradients(half: FloatDType, device: &Device) {
    let taped = device.clone().autodiff();
    let images = Tensor::<4>::from_data(floats([2, 4, 8, 12]), &taped).cast(half).require_grad();
    let weight = Tensor::<4>::from_data(floats([4, 4, 3, 3]), &taped).cast(half).require_grad();
    let grid = Tensor::<4>::from_data(floats([2, 5, 3, 2]), device).cast(half);
    drop(images.clone().inner().grid_sample_2d(grid, GridSampleOptions::default()).into_data());
    let pooled = max_pool2d(images.clone(), MaxPoolOptions::new([2, 2]).with_stride([2, 2]));
    let features = conv2d(pooled, weight.clone(), None, ConvOptions::new([1, 1], [1, 1], [1, 1], 1));
    let resized = interpolate(features, InterpolateOptions::new(InterpolateMode::Nearest).with_output_size([7, 9]));
    let averaged = avg_pool2d(resized, AvgPoolOptions::new([3, 3]).with_padding([1, 1]));
    let gradients = adaptive_avg_pool2d(averaged, [3, 5]).powi_scalar(2).sum().backward();
    for operand in [images, weight] {
        drop(operand.grad(&gradients).expect("it takes part").into_data());
    }
}

/// Products and layers of half types: chains in f32, and one rounding.
fn half_layers(x: &Tensor<2>, y: &Tensor<2>) {
    let images = x.clone().slice([0..32, 0..18]).reshape([2, 4, 6, 12]);
    let weight = y.clone().slice([0..12, 0..12]).reshape([4, 4, 3, 3]);
    let bias = y.clone().slice([0..1, 0..4]).reshape([4]);
    let padded = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    let transposed = ConvTransposeOptions::new([2, 2], [1, 1], [0, 0], [1, 1], 1);
    drop(x.clone().matmul(y.clone().transpose()).into_data());
    let results = [
        conv2d(images.clone(), weight.clone(), Some(bias.clone()), padded),
        conv_transpose2d(images.clone(), weight, Some(bias), transposed),
        max_pool2d(images.clone(), MaxPoolOptions::new([2, 2]).with_stride([2, 2])),
        avg_pool2d(images.clone(), AvgPoolOptions::new([3, 3]).with_padding([1, 1])),
        adaptive_avg_pool2d(images.clone(), [3, 5]),
        interpolate(images, InterpolateOptions::new(InterpolateMode::Bilinear).with_output_size([9, 7])),
    ];
    results.into_iter().for_each(|result| drop(result.into_data()));
}

/// A short training.
pub fn training() {
    enable();
    set_random_seed(812);
    report("digest", programs::mlp::train_for(&Device::default().autodiff(), 2));
    report_check();
}

/// Under the default guarantee.
pub fn run_to_run() {
    let settings = Determinism::default().check_against_reference(1);
    assert_eq!(enable_op_determinism(settings.clone()), Err(Error::ReferenceNeedsGpuToGpu));
    assert!(!is_op_determinism_enabled());
    assert_eq!(enable_op_determinism(settings.clone().check_against_reference(0)), Ok(()));
    assert_eq!(settings.guarantee(Guarantee::GpuToGpu).check_against_reference(0), {
        Determinism::default().guarantee(Guarantee::GpuToGpu)
    });
}

/// With a variable that is no number.
pub fn wrong_variable() {
    let error = enable_op_determinism(Determinism::default()).expect_err("the variable is no number");
    let text = error.to_string();
    assert!(text.contains("`BURN_DETERMINISTIC_REFERENCE` is `often`"), "{text}");
}
