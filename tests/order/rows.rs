//! Operations with reductions of rows between them have the bits of a kernel each, in one kernel and in parts.

use crate::bits::{assert_same, floats, indices};
use crate::skip::skip;
use burn::prelude::*;
use burn::tensor::{DType, FloatDType, IndexingUpdateOp, activation};

/// A piece of a program: its matrices, read after each operation where it `stops`.
pub(super) type Program = fn(&Tensor<2>, &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>>;

/// What reads nothing, and what reads every matrix at once.
fn in_one(_: &Tensor<2>) {}

fn apart(matrix: &Tensor<2>) {
    drop(matrix.clone().into_data());
}

fn softmax(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let largest = x.clone().max_dim(1);
    stop(&largest);
    let shifted = x.clone() - largest;
    stop(&shifted);
    let exponential = shifted.exp();
    stop(&exponential);
    let total = exponential.clone().sum_dim(1);
    stop(&total);
    vec![exponential / total]
}

fn masked(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let mask = Tensor::<2, Int>::from_data(indices([rows, columns], 2), &x.device()).equal_elem(1);
    let masked = (x.clone() * 0.125).mask_fill(mask.clone(), f32::NEG_INFINITY);
    stop(&masked);
    let least = masked.clone().max_dim(1);
    stop(&least);
    let shifted = masked - least.clone();
    stop(&shifted);
    let total = shifted.clone().exp().sum_dim(1);
    stop(&total);
    let logarithm = total.log();
    stop(&logarithm);
    vec![(shifted - logarithm.clone()).mask_fill(mask, 0.0), logarithm, least]
}

fn norm(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let columns = x.dims()[1];
    let [scale, shift] = [1, 2].map(|n| Tensor::<1>::from_data(floats([columns * n]), &x.device()).cast(x.dtype()));
    let mean = x.clone().mean_dim(1);
    stop(&mean);
    let centred = x.clone() - mean.clone();
    stop(&centred);
    let variance = (centred.clone() * centred.clone()).mean_dim(1);
    stop(&variance);
    let deviation = (variance + 1e-5).sqrt();
    stop(&deviation);
    // Moves between them.
    let normal = centred / deviation.clone() * scale.reshape([1, columns]);
    stop(&normal);
    let shifted = normal + shift.slice(columns..2 * columns).unsqueeze();
    stop(&shifted);
    // Of one value a row, its own sum.
    let inverse = deviation.clone().powf_scalar(-2.0).sum_dim(1) + deviation.clone().powf_scalar(1.5);
    stop(&inverse);
    vec![shifted * inverse.clone(), mean, deviation, inverse]
}

/// Ends in a reduction of rows, begins with none of an operand, and has several at once.
fn sums(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let product = x.clone() * x.clone().tanh();
    stop(&product);
    let (total, least) = (product.clone().sum_dim(1), product.clone().min_dim(1));
    stop(&total);
    stop(&least);
    let weighted = product * (total - least);
    stop(&weighted);
    let end = weighted.clone().prod_dim(1);
    stop(&end);
    // Along the other axis it is no reduction of a row.
    vec![weighted.clone().sum_dim(0), end, weighted]
}

/// Rows of a half type that are widened, summed as f32, and rounded again.
fn of_two_widths(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let wide = x.clone().cast(FloatDType::F32) * 1.1;
    stop(&wide);
    let total = wide.clone().sum_dim(1);
    stop(&total);
    let narrow = (wide - total.clone()).cast(x.dtype());
    stop(&narrow);
    let mean = narrow.clone().mean_dim(1);
    stop(&mean);
    vec![narrow.clone() * mean.clone(), narrow, mean, total]
}

/// Begins with one value a row, and goes on with more.
fn widened(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let first = x.clone().slice([0..rows, 0..1]);
    stop(&first);
    let raised = first * Tensor::ones([rows, 1], (&x.device(), x.dtype())) * 1.5 + 0.25;
    stop(&raised);
    let shifted = x.clone() - raised.clone();
    stop(&shifted);
    let spread = Tensor::<2>::ones([rows, columns], (&x.device(), x.dtype())) * raised.clone();
    stop(&spread);
    let total = (spread.clone() * shifted.clone()).sum_dim(1);
    stop(&total);
    let full = Tensor::full([rows, columns], 0.1, (&x.device(), x.dtype()));
    stop(&full);
    vec![shifted + total.clone(), total, spread, raised, full]
}

/// Reads and updates each row at one index, finds its first largest and smallest elements, and updates zeros there, as Burn's gradients
/// do.
fn at_indices(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let [rows, columns] = x.dims();
    let zeros = || Tensor::<2>::zeros([rows, columns], (&x.device(), x.dtype()));
    let class = Tensor::<2, Int>::from_data(indices([rows, 1], columns), &x.device());
    let (largest, largest_at) = x.clone().max_dim_with_indices(1);
    stop(&largest);
    let shifted = x.clone() - largest.clone();
    stop(&shifted);
    let (least, least_at) = shifted.clone().min_dim_with_indices(1);
    stop(&least);
    let chosen = shifted.clone().gather(1, class.clone());
    stop(&chosen);
    let at_class = zeros();
    stop(&at_class);
    let at_class = at_class.scatter(1, class.clone(), chosen.clone() * 1.5, IndexingUpdateOp::Add);
    stop(&at_class);
    let weighted = at_class.clone() * x.clone() + shifted.clone();
    stop(&weighted);
    let total = weighted.clone().sum_dim(1);
    stop(&total);
    let at_largest = zeros().scatter(1, largest_at.clone(), total.clone(), IndexingUpdateOp::Add);
    stop(&at_largest);
    // Of what is not zeros; columns, which end it.
    let both = at_largest.scatter(1, class, total.clone() * 0.1, IndexingUpdateOp::Add);
    stop(&both);
    let of_columns = (both.clone() * at_class.clone()).sum_dim(0);
    let places = [largest_at, least_at].map(|places| places.float().cast(x.dtype()));
    vec![chosen, at_class, weighted, total, both, of_columns, largest, least].into_iter().chain(places).collect()
}

/// Has products, slices and sums of other tensors between its operations, which run before them.
fn apart_from_others(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let columns = x.dims()[1].min(100);
    let x = x.clone().slice([0..x.dims()[0], 0..columns]);
    let weights = Tensor::<2>::from_data(floats([columns, columns]), &x.device());
    let raised = x.clone() * 1.5 + 0.5;
    stop(&raised);
    let product = x.clone().matmul(weights.clone());
    stop(&product);
    let sum = raised + product;
    stop(&sum);
    let others = x.clone().mean_dim(1) + x.clone().transpose().sum_dim(0).transpose();
    stop(&others);
    let again = x.clone().matmul(weights.transpose()) * others;
    stop(&again);
    // Of a result: a kernel of its own.
    let end = sum.clone().tanh().matmul(again.clone().transpose());
    stop(&end);
    vec![sum.clone().mask_fill(sum.greater(again.clone()), 0.0), again, end]
}

/// Products and moves before the operations that read them.
fn led_by_products(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let columns = x.dims()[1].min(100);
    let x = x.clone().slice([0..x.dims()[0], 0..columns]);
    let weights = Tensor::<2>::from_data(floats([columns, columns]), &x.device());
    let bias = Tensor::<1>::from_data(floats([columns]), &x.device());
    let product = x.clone().matmul(weights.clone().transpose());
    stop(&product);
    let gate = activation::sigmoid(product + bias.clone().unsqueeze());
    stop(&gate);
    let again = gate.clone().matmul(weights).cast(FloatDType::F32);
    stop(&again);
    let sum = again.clone().cast(FloatDType::F32) * gate.clone() + bias.unsqueeze();
    stop(&sum);
    // One reduction behind a product, and rows behind a sum of columns.
    let product = sum.clone().matmul(x.transpose());
    stop(&product);
    let total = product.exp().sum_dim(1);
    stop(&total);
    let shifted = sum.clone() - sum.clone().sum_dim(0);
    stop(&shifted);
    vec![shifted.clone() / shifted.sum_dim(1), total, sum, again, gate]
}

/// Products of equal sizes, more than a launch has, that read one matrix and that read moves of it, and a second layer.
fn gates(x: &Tensor<2>, stop: &dyn Fn(&Tensor<2>)) -> Vec<Tensor<2>> {
    let columns = x.dims()[1].min(100);
    let x = x.clone().slice([0..x.dims()[0], 0..columns]);
    let all = Tensor::<2>::from_data(floats([10 * columns, columns]), &x.device());
    let weights = |n: usize| all.clone().slice([n * columns..(n + 1) * columns, 0..columns]);
    let bias = Tensor::<1>::from_data(floats([columns]), &x.device());
    let layer = |x: &Tensor<2>| {
        let mut sum = x.clone();
        for n in 0..9 {
            let weights = if n % 3 == 1 { weights(n).transpose() } else { weights(n) };
            let product = x.clone().matmul(weights);
            stop(&product);
            let gate = activation::sigmoid(product + bias.clone().unsqueeze());
            stop(&gate);
            sum = sum + gate;
            stop(&sum);
        }
        sum
    };
    let first = layer(&x);
    let second = layer(&first);
    let outer = first.clone().transpose().matmul(second.clone()) + x.clone().transpose().matmul(second.clone());
    stop(&outer);
    vec![outer, second, first]
}

/// Programs of floats of any type.
const OF_ANY_TYPE: [(&str, Program); 6] = [
    ("softmax", softmax),
    ("masked", masked),
    ("norm", norm),
    ("sums", sums),
    ("widened", widened),
    ("at indices", at_indices),
];

#[test]
fn reductions_of_rows_have_the_same_bits_however_they_are_cut() {
    let device = crate::deterministic_device();
    check(
        &[&OF_ANY_TYPE[..], &[("others", apart_from_others), ("products", led_by_products), ("gates", gates)]].concat(),
        |x| x,
        &device,
    );
}

#[test]
fn reductions_of_rows_of_half_types_have_the_same_bits_however_they_are_cut() {
    let device = crate::deterministic_device();
    let programs = [&OF_ANY_TYPE[..], &[("widths", of_two_widths)]].concat();
    for (dtype, half) in [(DType::F16, FloatDType::F16), (DType::BF16, FloatDType::BF16)] {
        if !device.supports_dtype(dtype) {
            skip(format_args!("the device has no {dtype:?}"));
            continue;
        }
        check(&programs, |x| x.cast(half), &device);
    }
}

/// Of one element, of one block, and of more than one kernel has.
const SHAPES: [[usize; 2]; 6] = [[3, 1], [1, 7], [5, 64], [4, 100], [3, 1000], [2, 4100]];

/// Reads the results of `programs`, in one kernel where they fit.
pub(super) fn read_all(programs: &[(&str, Program)], device: &Device) {
    for shape in SHAPES {
        for (_, program) in programs {
            let results = program(&Tensor::from_data(floats(shape), device), &in_one);
            results.into_iter().for_each(|result| drop(result.into_data()));
        }
    }
}

/// The results of `programs` on matrices that are `made`, in one kernel where they fit, and in parts.
pub(super) fn check(programs: &[(&str, Program)], made: impl Fn(Tensor<2>) -> Tensor<2>, device: &Device) {
    for shape in SHAPES {
        for (name, program) in programs {
            let x = made(Tensor::from_data(floats(shape), device));
            let read = |matrices: Vec<Tensor<2>>| matrices.into_iter().map(Tensor::into_data).collect::<Vec<_>>();
            let (one, parts) = (read(program(&x, &in_one)), read(program(&x, &apart)));
            for (index, (one, parts)) in one.iter().zip(&parts).enumerate() {
                assert_same(&format!("{name} of {:?} {shape:?}, result {index}", x.dtype()), parts, one);
            }
        }
    }
}

#[test]
fn gradients_through_rows_have_the_same_bits_in_a_batch_and_alone() {
    let device = crate::deterministic_device().autodiff();
    let gradient = |x: Tensor<2>, weights: Tensor<2>| {
        let x = x.require_grad();
        let gradients = (activation::softmax(x.clone(), 1) * weights).sum().backward();
        x.grad(&gradients).expect("the sum depends on it")
    };
    let [x, weights] = [1, 2].map(|n| Tensor::<2>::from_data(floats([6, 40 * n]), &device).slice([0..6, 0..40]));
    let all = gradient(x.clone(), weights.clone()).slice([2..3, 0..40]).into_data();
    let alone = gradient(x.slice([2..3, 0..40]), weights.slice([2..3, 0..40])).into_data();
    assert_same("row 2", &all, &alone);
}
