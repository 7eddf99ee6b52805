//! A result is a function of an operand's values, not of where they lie.

use crate::bits::{assert_same, floats, indices};
use crate::deterministic_device as device;
use burn::prelude::*;
use burn::tensor::DType;
use burn::tensor::IndexingUpdateOp::{Add, Mul};
use burn::tensor::activation;
use burn::tensor::kind::Basic;
use burn::tensor::module::{avg_pool2d, conv2d, conv2d_weight_backward, embedding, layer_norm};
use burn::tensor::ops::{AvgPoolOptions, ConvOptions};

/// Requires equal bits of `operation` for every layout of its operand.
fn check<K: Basic, const D: usize, const R: usize>(
    name: &str,
    values: TensorData,
    operation: impl Fn(Tensor<D, K>) -> Tensor<R>,
) {
    let result = |operand| operation(operand).into_data();
    let uploaded = Tensor::<D, K>::from_data(values, &device());
    let expected = result(uploaded.clone());
    for (layout, operand) in layouts(&uploaded) {
        assert_same(&format!("{name}, {layout} operand"), &expected, &result(operand));
    }
    // The same row, or slice, all over: lying there once, and as often as it counts.
    let row = uploaded.clone().slice_dim(0, 0..1);
    let expanded = row.expand(uploaded.shape());
    let copied = Tensor::from_data(expanded.to_data(), &device());
    assert_same(&format!("{name}, expanded operand"), &result(copied), &result(expanded));
}

/// The same values in other places.
fn layouts<K: Basic, const D: usize>(tensor: &Tensor<D, K>) -> Vec<(String, Tensor<D, K>)> {
    let device = tensor.device();
    let mut layouts = Vec::new();
    for (a, b) in (0..D).flat_map(|b| (0..b).map(move |a| (a, b))) {
        let transposed = Tensor::<D, K>::from_data(tensor.clone().swap_dims(a, b).into_data(), &device);
        layouts.push((format!("transposed ({a}, {b})"), transposed.swap_dims(a, b)));
    }
    for dim in 0..D {
        let larger = Tensor::cat(vec![tensor.clone(), tensor.clone()], dim);
        let larger = Tensor::<D, K>::from_data(larger.into_data(), &device);
        let length = tensor.dims()[dim];
        layouts.push((format!("sliced ({dim})"), larger.clone().slice_dim(dim, length..2 * length)));
        // It begins at a multiple of 8 elements, where a slice of f32 is a view on CUDA.
        let front = Tensor::cat(vec![larger.clone(); 8], dim).slice_dim(dim, 0..8);
        let padded = Tensor::cat(vec![front, larger], dim);
        let padded = Tensor::<D, K>::from_data(padded.into_data(), &device);
        layouts.push((format!("inside another ({dim})"), padded.slice_dim(dim, 8..8 + length)));
        // Every other one of some parts.
        let (dims, parts) = (tensor.dims(), tensor.dims()[..dim].iter().product::<usize>());
        let apart = tensor.clone().reshape([parts as i32, 1, -1]);
        let apart = Tensor::cat(vec![apart.clone(), apart], 1);
        let apart = Tensor::<3, K>::from_data(apart.into_data(), &device);
        layouts.push((format!("in parts ({dim})"), apart.slice_dim(1, 0..1).reshape(dims)));
    }
    let copied = Tensor::<D, K>::from_data(tensor.to_data(), &device);
    layouts.push(("copied".to_owned(), copied));
    layouts
}

#[test]
fn reductions() {
    let values = || floats([37, 130]);
    check("sum", values(), |x: Tensor<2>| x.sum());
    check("sum_dim(0)", values(), |x: Tensor<2>| x.sum_dim(0));
    check("sum_dim(1)", values(), |x: Tensor<2>| x.sum_dim(1));
    check("mean_dim(0)", values(), |x: Tensor<2>| x.mean_dim(0));
    check("mean_dim(1)", values(), |x: Tensor<2>| x.mean_dim(1));
    check("max_dim(1)", values(), |x: Tensor<2>| x.max_dim(1));
    check("argmin(0)", values(), |x: Tensor<2>| x.argmin(0).float());
    check("prod_dim(1)", values(), |x: Tensor<2>| x.prod_dim(1));
    check("var(1)", values(), |x: Tensor<2>| x.var(1));
    check("cumsum(1)", values(), |x: Tensor<2>| x.cumsum(1));
    check("sum of 3 dimensions", floats([5, 33, 18]), |x: Tensor<3>| x.sum_dim(1).sum_dim(0));
    check("sum of one dimension", floats([4099]), |x: Tensor<1>| x.sum());
}

#[test]
fn normalisations() {
    let values = || floats([6, 19, 40]);
    let gamma = || Tensor::<1>::from_data(floats([40]), &device());
    check("softmax", values(), |x: Tensor<3>| activation::softmax(x, 1));
    check("log_softmax", values(), |x: Tensor<3>| activation::log_softmax(x, 2));
    check("layer_norm", values(), |x: Tensor<3>| layer_norm(x, gamma(), Some(gamma()), 1e-5));
}

#[test]
fn elementwise_chains() {
    let other = || Tensor::<2>::from_data(floats([45, 28]), &device());
    let values = || floats([45, 28]);
    check("chain", values(), |x: Tensor<2>| ((x.clone() * other() + x.clone()) / 3.0).tanh() * x.exp() - other());
    check("broadcast chain", values(), |x: Tensor<2>| {
        let row = other().slice_dim(0, 0..1);
        let mask = x.clone().greater(row.clone());
        (x.clone() - row).mask_fill(mask, 0.5).powf_scalar(2.0) + x.transpose().transpose().sqrt().abs()
    });
    check("gelu", values(), |x: Tensor<2>| activation::gelu(x * 2.0) + activation::sigmoid(other()));
}

#[test]
fn matmul() {
    let lhs = || Tensor::<2>::from_data(floats([33, 70]), &device());
    let rhs = || Tensor::<2>::from_data(floats([70, 41]), &device());
    check("matmul, left", floats([33, 70]), |x: Tensor<2>| x.matmul(rhs()));
    check("matmul, right", floats([70, 41]), |x: Tensor<2>| lhs().matmul(x));
    check("batched matmul", floats([3, 33, 70]), |x: Tensor<3>| x.matmul(rhs().unsqueeze()));
}

#[test]
fn scatters() {
    let target = || Tensor::<2>::from_data(floats([7, 24]), &device());
    let values = || Tensor::<2>::from_data(floats([300, 24]), &device());
    let at = || Tensor::<2, Int>::from_data(indices([300, 24], 7), &device());
    let rows = || Tensor::<1, Int>::from_data(indices([300], 7), &device());
    let tuples = || Tensor::<2, Int>::from_data(indices([300, 1], 7), &device());
    check("scatter, target", floats([7, 24]), |x: Tensor<2>| x.scatter(0, at(), values(), Add));
    check("scatter, values", floats([300, 24]), |x: Tensor<2>| target().scatter(0, at(), x, Add));
    check("scatter, indices", indices([300, 24], 7), |x: Tensor<2, Int>| target().scatter(0, x, values(), Add));
    check("scatter mul, values", floats([300, 24]), |x: Tensor<2>| target().scatter(0, at(), x, Mul));
    check("select_assign, values", floats([300, 24]), |x: Tensor<2>| target().select_assign(0, rows(), x, Add));
    check("scatter_nd, values", floats([300, 24]), |x: Tensor<2>| target().scatter_nd(tuples(), x, Add));
    check("scatter_nd, indices", indices([300, 1], 7), |x: Tensor<2, Int>| target().scatter_nd(x, values(), Add));
}

#[test]
fn embedding_gradient() {
    let weights = || Tensor::<2>::from_data(floats([9, 16]), &device().autodiff()).require_grad();
    let factors = || Tensor::<3>::from_data(floats([12, 20, 16]), &device().autodiff());
    check("embedding gradient, indices", indices([12, 20], 9), |x: Tensor<2, Int>| {
        let weights = weights();
        let x = Tensor::from_inner(x);
        let gradients = (embedding(weights.clone(), x) * factors()).sum().backward();
        weights.grad(&gradients).expect("the weights took part")
    });
}

#[test]
fn convolution_and_pooling() {
    let options = || ConvOptions::new([1, 2], [1, 0], [1, 1], 2);
    let input = || Tensor::<4>::from_data(floats([3, 4, 9, 11]), &device());
    let weight = || Tensor::<4>::from_data(floats([6, 2, 3, 2]), &device());
    let gradient = || Tensor::<4>::from_data(floats([3, 6, 9, 5]), &device());
    check("conv2d, input", floats([3, 4, 9, 11]), |x: Tensor<4>| conv2d(x, weight(), None, options()));
    check("conv2d, weight", floats([6, 2, 3, 2]), |x: Tensor<4>| conv2d(input(), x, None, options()));
    check("conv2d weight gradient, input", floats([3, 4, 9, 11]), |x: Tensor<4>| {
        conv2d_weight_backward(x, weight(), gradient(), options())
    });
    check("conv2d weight gradient, gradient", floats([3, 6, 9, 5]), |x: Tensor<4>| {
        conv2d_weight_backward(input(), weight(), x, options())
    });
    let pool = || AvgPoolOptions::new([3, 2]).with_stride([2, 1]).with_padding([1, 0]);
    check("avg_pool2d", floats([3, 4, 9, 11]), |x: Tensor<4>| avg_pool2d(x, pool()));
}

/// A tensor that a kernel has written: its rows lie behind each other, which those of an uploaded one need not.
fn written<const D: usize>(values: TensorData) -> Tensor<D> {
    Tensor::from_data(values, &device()).neg().neg()
}

/// The same elements, by themselves.
fn apart<const D: usize>(tensor: &Tensor<D>) -> Tensor<D> {
    Tensor::from_data(tensor.to_data(), &device())
}

#[test]
fn views_whose_strides_are_no_multiples_of_each_other() {
    for (rows, columns) in [(5, 14), (5, 13), (3, 62)] {
        let moved = || {
            let part = written::<2>(floats([rows, columns])).slice([0..rows, 0..12]);
            part.swap_dims(0, 1).reshape([3, 4, rows])
        };
        let (view, expected) = (moved(), apart(&moved()));
        let name = |operation: &str| format!("{operation} on a part of [{rows}, {columns}]");
        let patch = || Tensor::<3>::full([1, 1, 2], 7.0, &device());
        let assigned = |tensor: &Tensor<3>| tensor.clone().slice_assign([0..1, 0..1, 0..2], patch()).into_data();
        assert_same(&name("slice_assign"), &assigned(&expected), &assigned(&view));
        assert_same(&name("int"), &expected.clone().int().into_data(), &view.clone().int().into_data());
        if device().supports_dtype(DType::F16) {
            let halves = |tensor: &Tensor<3>| (tensor.clone().cast(DType::F16) * 3.0).into_data();
            assert_same(&name("cast"), &halves(&expected), &halves(&view));
        }
        let sums = |tensor: &Tensor<3>| (tensor.clone().exp() + 1.0).sum_dim(1).into_data();
        assert_same(&name("sum_dim"), &sums(&expected), &sums(&view));
        assert_same(&name("no operation"), &expected.into_data(), &view.into_data());
    }
}

#[test]
fn views_of_views() {
    let tensor = written::<2>(floats([6, 64]));
    let view = tensor.slice([1..6, 8..56]).slice([1..5, 16..40]).slice([0..3, 8..24]);
    let data = floats([6, 64]);
    let expected: Vec<f32> = { data.iter::<f32>().collect::<Vec<_>>() }
        .chunks(64)
        .skip(2)
        .take(3)
        .flat_map(|row| row[32..48].to_vec())
        .collect();
    assert_same("slices", &TensorData::new(expected.clone(), [3, 16]), &view.clone().into_data());
    let squeezed = view.reshape([3, 1, 2, 8]).swap_dims(0, 2).reshape([2, 3, 8]);
    let swapped: Vec<f32> = (0..2)
        .flat_map(|half| (0..3).map(move |row| 16 * row + 8 * half))
        .flat_map(|first| expected[first..first + 8].to_vec())
        .collect();
    assert_same("slices, reshaped and swapped", &TensorData::new(swapped, [2, 3, 8]), &squeezed.into_data());
}

#[test]
fn what_is_assigned_to_a_tensor_does_not_reach_its_views() {
    let zeros = || Tensor::<2>::zeros([2, 4], &device());
    let tensor = written::<2>(floats([4, 32]));
    let before = tensor.clone().to_data();
    let view = tensor.clone().slice([0..4, 8..16]);
    let of_view = view.clone().to_data();
    let assigned = tensor.clone().slice_assign([0..2, 8..12], zeros());
    assert_same("a view of a tensor that was assigned to", &of_view, &view.clone().into_data());
    assert_same("the tensor", &before, &tensor.clone().into_data());
    drop(assigned);
    let assigned = view.slice_assign([0..2, 0..4], zeros());
    assert_same("a tensor of whose view a part was assigned", &before, &tensor.clone().into_data());
    // Nobody else has the memory now.
    drop(tensor);
    let again = assigned.slice_assign([2..4, 0..4], zeros());
    let values = of_view.iter::<f32>().enumerate().map(|(at, value)| if at % 8 < 4 { 0.0 } else { value });
    let expected = TensorData::new(values.collect::<Vec<_>>(), [4, 8]);
    assert_same("a view that was assigned to twice", &expected, &again.into_data());
}
