//! Below the tensor API: training through `Autodiff<Deterministic<CubeBackend>>`.

use crate::bits::{assert_same, floats};
use burn_autodiff::Autodiff;
use burn_backend::ops::{ActivationOps, ConvOptions, FloatTensorOps, ModuleOps};
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Distribution, ExecutionError, FloatDType, TensorData, read_sync};
use burn_cubecl::CubeBackend;
use burn_deterministic::{Deterministic, set_random_seed};

type Inner = Deterministic<CubeBackend>;
type B = Autodiff<Inner>;

fn read(tensor: FloatTensor<Inner>) -> Result<TensorData, ExecutionError> {
    read_sync(Inner::float_into_data(tensor))
}

fn upload<const D: usize>(shape: [usize; D]) -> FloatTensor<B> {
    B::float_from_data(floats(shape), &crate::cube_device())
}

/// Two layers.
fn train(seed: u64) -> Vec<TensorData> {
    set_random_seed(seed);
    let (inputs, targets) = (upload([50, 6]), upload([50, 2]));
    descend(0.1, [initial([6, 20]), initial([20, 2])], |[first, second]| {
        let hidden = B::float_tanh(B::float_matmul(inputs.clone(), first));
        B::float_sub(B::float_matmul(hidden, second), targets.clone())
    })
}

/// The same with a convolution and a max pool, whose kernels are Burn's own.
fn train_with_a_pool(seed: u64) -> Vec<TensorData> {
    set_random_seed(seed);
    let (images, targets) = (upload([6, 1, 8, 8]), upload([6, 2]));
    descend(0.01, [initial([4, 1, 3, 3]), initial([4 * 4 * 4, 2])], |[filters, weight]| {
        let same = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        let features = B::relu(B::conv2d(images.clone(), filters, None, same));
        let pooled = B::max_pool2d(features, [2, 2], [2, 2], [0, 0], [1, 1], false);
        let rows = B::float_reshape(pooled, [6, 4 * 4 * 4].into());
        B::float_sub(B::float_matmul(rows, weight), targets.clone())
    })
}

fn initial<const D: usize>(shape: [usize; D]) -> FloatTensor<B> {
    let normal = Distribution::Normal(0.0, 0.3);
    B::float_random(shape.into(), normal, &crate::cube_device(), FloatDType::F32)
}

/// 20 steps of `rate` down the gradient of the mean squared `error`: the losses, and the weights after them.
fn descend(
    rate: f32,
    mut weights: [FloatTensor<B>; 2],
    error: impl Fn([FloatTensor<B>; 2]) -> FloatTensor<B>,
) -> Vec<TensorData> {
    let mut results = Vec::new();
    for _ in 0..20 {
        weights = weights.map(|weight| B::float_set_require_grad(weight, true));
        let error = error(weights.clone());
        let loss = B::float_mean(B::float_mul(error.clone(), error));
        results.push(read(B::inner(loss.clone())).expect("the loss"));
        let gradients = B::backward(loss);
        weights = weights.map(|weight| {
            let gradient = B::grad(&weight, &gradients).expect("every weight took part");
            let step = Inner::float_mul_scalar(gradient, rate.into());
            B::from_inner(Inner::float_sub(B::inner(weight), step))
        });
    }
    results.extend(weights.map(|weight| read(B::inner(weight)).expect("weights")));
    results
}

fn assert_repeatable(train: fn(u64) -> Vec<TensorData>) {
    crate::deterministic_device();
    let (first, again, other) = (train(5), train(5), train(6));
    for (place, (first, again)) in first.iter().zip(&again).enumerate() {
        assert_same(&format!("result {place}"), first, again);
    }
    assert_ne!(first, other, "another seed is another training");
    let loss = |step: usize| first[step].clone().try_to_vec::<f32>().expect("f32")[0];
    assert!(loss(19) < loss(0), "from {} to {}", loss(0), loss(19));
}

#[test]
fn training_twice_ends_in_the_same_bits() {
    assert_repeatable(train);
}

/// Kernels of Burn's, forward and backward, that a method launches in no block of the stream are no violation.
#[test]
fn training_with_a_pool_twice_ends_in_the_same_bits() {
    assert_repeatable(train_with_a_pool);
}

#[test]
fn a_refusal_comes_back_from_the_read() {
    crate::deterministic_device();
    let zeros = |shape: [usize; 4]| Inner::float_from_data(TensorData::zeros::<f32, _>(shape), &crate::cube_device());
    let options = burn_backend::ops::DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1);
    let (x, offset, weight) = (zeros([1, 2, 5, 5]), zeros([1, 16, 3, 3]), zeros([3, 2, 3, 3]));
    let weight = B::float_set_require_grad(B::from_inner(weight), true);
    let refused = B::deform_conv2d(B::from_inner(x), B::from_inner(offset), weight, None, None, options);
    let sum = B::float_sum(refused);
    let error = read(B::inner(sum)).expect_err("nine taps have eighteen offsets").to_string();
    assert!(error.contains("`deform_conv2d` was refused"), "{error}");
    let alive = read(Inner::float_sum(B::inner(upload([10])))).expect("the device still computes");
    assert_same("sum", &alive, &read(Inner::float_sum(B::inner(upload([10])))).expect("again"));
}
