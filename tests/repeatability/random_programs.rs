//! Programs that nobody thought of: 5 to 50 random operations, run twice under different stress, agree in every output.

use crate::bits::{assert_same, floats, indices};
use crate::one_kind::devices_of_one_kind;
use crate::repeatability::stress::{Stress, beside_others};
use burn::prelude::*;
use burn::tensor::module::{attention, avg_pool1d, conv1d, conv2d, max_pool1d, max_pool2d};
use burn::tensor::ops::{AttentionModuleOptions, AvgPoolOptions, ConvOptions, MaxPoolOptions};
use burn::tensor::{DType, Distribution, FloatDType, IndexingUpdateOp, activation};
use burn_deterministic::set_random_seed;
use proptest::prelude::*;
use proptest::sample;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::{Cell, RefCell};
use std::ops::Range;

const PROGRAMS: u32 = if cfg!(feature = "heavy") { 500 } else { 12 };

/// Rows and columns are at most this many; longer results are cut.
const LONGEST: usize = 70;

type Matrix = Tensor<2>;

macro_rules! operations {
    ($($name:ident)*) => {
        /// What a step of a program does with two earlier matrices and a small number.
        #[derive(Debug, Clone, Copy, PartialEq)]
        enum Operation {
            $($name),*
        }

        const OPERATIONS: &[Operation] = &[$($name),*];
    };
}

operations! {
    Add Divide Tanh Exp Transpose Matmul SumRows MeanColumns
    Product LargestOfRows Softmax Slice SliceAssign Flip Concatenate Repeat
    Scatter ScatterProduct SelectAssign Select Gather CumulativeSum Sort MaskWhere
    Integers Quotients Remainder Halves Normal Dropout Convolution AveragePool MaxPool Channels Gradient
    Activations Statistics LayerNorm CrossEntropy Views Attention Images Products Recurrent Sequence Update Elsewhere Backward
}

/// What [`Backward`] has no gradient of.
const WITHOUT_GRADIENT: &[Operation] = &[ScatterProduct, Integers, Quotients, Gradient, Elsewhere, Backward];

use Operation::*;

/// One step: its operands are the `left`-th and `right`-th of the matrices, counted round and round. The left one is given up
/// where the step is its `last` use.
#[derive(Debug, Clone)]
pub struct Step {
    operation: Operation,
    left: usize,
    right: usize,
    number: usize,
    last: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let fields = (sample::select(OPERATIONS), any::<u16>(), any::<u16>(), 0_usize..1000, any::<bool>());
    fields.prop_map(|(operation, left, right, number, last)| Step {
        operation,
        left: left.into(),
        right: right.into(),
        number,
        last,
    })
}

/// `matrix`'s values, over and over, in another shape.
fn fitted(matrix: &Matrix, [rows, columns]: [usize; 2]) -> Matrix {
    let values = matrix.dims().iter().product::<usize>();
    let at = Tensor::<1, Int>::arange(0..(rows * columns) as i64, &matrix.device()).remainder_scalar(values as i64);
    matrix.clone().reshape([values]).select(0, at).reshape([rows, columns])
}

/// Indices below `bound`, many of them equal.
fn places<const D: usize>(shape: [usize; D], bound: usize, device: &Device) -> Tensor<D, Int> {
    Tensor::from_data(indices(shape, bound), device)
}

/// The loss of a lookup with duplicates and a product, and its gradient at `table`.
fn gradient(table: &Matrix, factors: &Matrix) -> Matrix {
    let [rows, columns] = table.dims();
    let table = Tensor::from_inner(table.clone()).require_grad();
    let looked_up = table.clone().select(0, Tensor::from_inner(places([2 * rows], rows, &table.device().inner())));
    let weights = Tensor::from_inner(fitted(factors, [columns, 5]));
    let upstream = Tensor::from_inner(fitted(factors, [2 * rows, 5]));
    let gradients = (looked_up.matmul(weights).tanh() * upstream).sum().backward();
    table.grad(&gradients).expect("the loss depends on the table")
}

/// A half type that the device has, or else f32.
fn half(device: &Device) -> FloatDType {
    let halves = [(DType::BF16, FloatDType::BF16), (DType::F16, FloatDType::F16)];
    halves.into_iter().find(|(dtype, _)| device.supports_dtype(*dtype)).map_or(FloatDType::F32, |(_, half)| half)
}

/// The gradients at `left` and `right` of a loss of what `steps` make of them.
fn backward(steps: &[Step], left: &Matrix, right: &Matrix) -> Matrix {
    let leaves = [left, right].map(|leaf| Tensor::from_inner(leaf.clone()).require_grad());
    let mut matrices = leaves.to_vec();
    for step in steps.iter().filter(|step| !WITHOUT_GRADIENT.contains(&step.operation)) {
        let result = next(step, &mut matrices, &[]);
        matrices.push(result);
    }
    let losses = matrices.iter().map(|matrix| (matrix.clone() * fitted(matrix, matrix.dims()).tanh()).sum());
    let gradients = losses.reduce(|sum, loss| sum + loss).expect("a matrix is left").backward();
    let of = |leaf: &Matrix| leaf.grad(&gradients).expect("what is left depends on each");
    let [left, right] = leaves.each_ref().map(of);
    let dims = left.dims();
    (left + fitted(&right, dims)).clamp(-8.0, 8.0)
}

/// Step `t + 1` of a recurrent layer with gates: its four products of one size are slices of one.
fn cell(left: &Matrix, right: &Matrix, hidden: Matrix, memory: Matrix) -> (Matrix, Matrix) {
    let columns = left.dims()[1];
    let weights = fitted(right, [columns, 4 * columns]) / columns as f32;
    let gates = left.clone().matmul(weights.clone()) + hidden.matmul(weights) + fitted(right, [1, 4 * columns]);
    let [input, forget, candidate, output] = [0, 1, 2, 3].map(|gate| gates.clone().narrow(1, gate * columns, columns));
    let memory = activation::sigmoid(forget) * memory + activation::sigmoid(input) * candidate.tanh();
    (activation::sigmoid(output) * memory.clone().tanh(), memory)
}

/// The result of a step of these matrices, which follows on `before`.
fn next(step: &Step, matrices: &mut Vec<Matrix>, before: &[Step]) -> Matrix {
    let right = matrices[step.right % matrices.len()].clone();
    let left = step.left % matrices.len();
    let left = if step.last && matrices.len() > 3 { matrices.swap_remove(left) } else { matrices[left].clone() };
    apply(step, left, &right, before)
}

fn apply(step: &Step, left: Matrix, right: &Matrix, before: &[Step]) -> Matrix {
    let [rows, columns] = left.dims();
    let device = left.device();
    let n = step.number;
    let result = match step.operation {
        Add => left + fitted(right, [rows, columns]),
        Divide => left / (fitted(right, [1, columns]).abs() + 0.5),
        Tanh => left.tanh(),
        Exp => left.clamp(-4.0, 4.0).exp(),
        Transpose => left.transpose(),
        Matmul => left.matmul(fitted(right, [columns, 1 + n % 40])) / columns as f32,
        SumRows => left.sum_dim(1) + fitted(right, [1, columns]),
        MeanColumns => left.mean_dim(0),
        Product => left.prod_dim(n % 2).clamp(-8.0, 8.0),
        LargestOfRows => {
            let (values, at) = left.max_dim_with_indices(1);
            Tensor::cat(vec![values, at.float()], 1)
        }
        Softmax => activation::softmax(left, n % 2),
        Slice => {
            let (from_row, from_column) = (n % rows, n % columns);
            left.slice([from_row..rows, from_column..columns])
        }
        SliceAssign => {
            let end = 1 + n % rows;
            left.slice_assign([0..end, 0..columns], fitted(right, [end, columns]))
        }
        Flip => left.flip([n % 2]),
        Concatenate => Tensor::cat(vec![left, fitted(right, [3, columns])], 0),
        Repeat => left.repeat_dim(n % 2, 2),
        Scatter => {
            let at = places([3 * rows, columns], rows, &device);
            left.scatter(0, at, fitted(right, [3 * rows, columns]), IndexingUpdateOp::Add)
        }
        ScatterProduct => {
            let at = places([rows, 2 * columns], columns, &device);
            left.scatter(1, at, fitted(right, [rows, 2 * columns]).tanh(), IndexingUpdateOp::Mul)
        }
        SelectAssign => {
            let at = places([4 * columns], columns, &device);
            left.select_assign(1, at, fitted(right, [rows, 4 * columns]), IndexingUpdateOp::Add)
        }
        Select => left.select(0, places([1 + n % 60], rows, &device)),
        Gather => left.gather(1, places([rows, 1 + n % 60], columns, &device)),
        CumulativeSum => left.cumsum(n % 2).tanh(),
        Sort => left.sort(n % 2),
        MaskWhere => {
            let other = fitted(right, [rows, columns]);
            left.clone().mask_where(left.greater(other.clone()), other)
        }
        Integers => (left * 100.0).int().bitwise_xor_scalar(n as i64).float() / 64.0,
        Quotients => {
            // Zeros and negative numbers among the divisors.
            let (n, m) = ((left * 100.0).int(), (fitted(right, [rows, columns]) * 4.0).int());
            (n.clone() / m.clone() + n.remainder(m)).float() / 64.0
        }
        Remainder => left.remainder(fitted(right, [rows, columns]).abs() + 0.5),
        Halves => {
            let half = half(&device);
            let [a, b] = [left, fitted(right, [rows, columns])].map(|operand| operand.cast(half));
            let sum = a.clone() * b.clone() + a * 0.1;
            let quotients = (sum / (b.clone().abs() + 0.5)).cast(FloatDType::F32);
            match n % 2 {
                0 => quotients,
                _ => quotients.cast(half).matmul(b.transpose()).cast(FloatDType::F32) / columns as f32,
            }
        }
        Channels => {
            // As the gradient of a batch norm: sums and means of what is moved, and of what is computed and moved.
            let by_channel = |x: Tensor<3>| x.swap_dims(0, 1).reshape([columns, 3 * rows]);
            let wide = |x: Matrix| x.reshape([1, columns, 1]);
            let samples = left.reshape([rows, columns, 1]) * fitted(right, [1, 3]).reshape([1, 1, 3]);
            let other = samples.clone() * 0.5 - fitted(right, [1, columns]).reshape([1, columns, 1]);
            let (moved, products) = (by_channel(samples.clone()), by_channel(samples.clone() * other.clone()));
            let [sum, sum_of_products] = [moved.clone(), products.clone()].map(|x| wide(x.sum_dim(1).tanh()));
            let (scale, shift) = (wide(products.mean_dim(1)), wide(moved.mean_dim(1)));
            let result = (samples - shift) * sum - other * scale.tanh() * sum_of_products;
            result.reshape([rows, 3 * columns])
        }
        Normal => left * Tensor::random([rows, columns], Distribution::Normal(0.0, 1.0), &device),
        Dropout => {
            let kept = Tensor::<2>::random([rows, columns], Distribution::Bernoulli(0.7), &device);
            left * kept
        }
        Convolution => {
            let weight = fitted(right, [2 * rows, 3]).reshape([2, rows, 3]) / rows as f32;
            conv1d(left.reshape([1, rows, columns]), weight, None, ConvOptions::new([1], [1], [1], 1))
                .reshape([2, columns])
        }
        AveragePool => {
            avg_pool1d(left.reshape([1, rows, columns]), AvgPoolOptions::new([3]).with_stride([1]).with_padding([1]))
                .reshape([rows, columns])
        }
        MaxPool => {
            max_pool1d(left.reshape([1, rows, columns]), MaxPoolOptions::new([3]).with_stride([1]).with_padding([1]))
                .reshape([rows, columns])
        }
        Gradient => gradient(&left, right),
        Activations => {
            activation::gelu(left.clone()) * activation::sigmoid(fitted(right, [1, columns])) + left.abs().log1p()
        }
        Statistics => {
            // Along both axes, of one tensor and side by side.
            let along = |axis: usize| {
                let spread = left.clone().max_dim(axis) - left.clone().min_dim(axis);
                left.clone().mean_dim(axis) * spread + left.clone().sum_dim(axis).tanh()
            };
            along(0) * along(1)
        }
        LayerNorm => {
            let (variance, mean) = left.clone().var_mean_bias(1);
            (left - mean) / (variance + 1e-5).sqrt() * fitted(right, [1, columns]) + fitted(right, [1, columns]).tanh()
        }
        CrossEntropy => {
            let logits = activation::log_softmax(left.clone(), 1);
            left - logits.gather(1, places([rows, 1], columns, &device)).mean_dim(0)
        }
        Views => {
            let turned = left.reshape([columns, rows]).transpose().reshape([1, rows, columns]).swap_dims(1, 2);
            let whole = turned.reshape([columns, rows]) + 0.5;
            let half = rows.div_ceil(2);
            Tensor::cat(vec![whole.clone().narrow(1, rows - half, half), whole.narrow(1, 0, half) * 2.0], 1)
        }
        Attention => {
            let keys = 1 + n % 20;
            let query = fitted(&left, [rows, 8]).reshape([1, 2, rows, 4]);
            let [key, value] = [fitted(right, [keys, 8]), fitted(right, [keys, 8]).tanh()];
            let [key, value] = [key, value].map(|x| x.reshape([1, keys, 2, 4]).swap_dims(1, 2));
            let options = AttentionModuleOptions { is_causal: n.is_multiple_of(2), ..Default::default() };
            attention(query, key, value, None, None, options).swap_dims(1, 2).reshape([rows, 8])
        }
        Images => {
            let images = fitted(&left, [2 * 3, 6 * 7]).reshape([2, 3, 6, 7]);
            let (weight, bias) = (fitted(right, [4, 27]).reshape([4, 3, 3, 3]), fitted(right, [1, 4]).reshape([4]));
            let options = ConvOptions::new([1 + n % 2, 1], [1, n % 2], [1, 1], 1);
            let features = activation::relu(conv2d(images, weight, Some(bias), options) * 0.2);
            let pooled = max_pool2d(features, MaxPoolOptions::new([2, 2]).with_stride([1, 2]));
            let values = pooled.shape().num_elements();
            pooled.reshape([8, values / 8])
        }
        Products => {
            // Of equal sizes, one after the other and side by side.
            let product = |k: usize| {
                let factor = fitted(right, [columns + k, columns]).narrow(0, k, columns) / columns as f32;
                left.clone().matmul(factor)
            };
            let [a, b, c] = [0, 1, 2].map(product);
            a.tanh() * b + c
        }
        Recurrent => {
            let start = left.zeros_like();
            let (hidden, memory) = cell(&left, right, start.clone(), start);
            cell(&left, right, hidden, memory).0
        }
        Sequence => {
            // Rows one after the other, each of the one before, as a recurrent layer without products.
            let mut result = left.zeros_like();
            let mut state = fitted(right, [1, columns]);
            for row in 0..rows.min(1 + n % 6) {
                state = (state * left.clone().narrow(0, row, 1)).tanh();
                result = result.slice_assign([row..row + 1, 0..columns], state.clone());
            }
            result
        }
        Update => {
            // As an optimizer with moments.
            let gradient = fitted(right, [rows, columns]);
            let first = left.clone() * 0.9 + gradient.clone() * 0.1;
            let second = left.clone().abs() * 0.99 + gradient.square() * 0.01;
            left - first / (second.sqrt() + 1e-3) * 0.1
        }
        Elsewhere => {
            // On another device, if there is one.
            let other = devices_of_one_kind(2).pop().expect("there is a device");
            let there = left.clone().to_device(&other) * 0.5 + right.clone().to_device(&other).mean().reshape([1, 1]);
            left.tanh() + there.to_device(&device)
        }
        Backward => backward(&before[before.len().saturating_sub(1 + n % 12)..], &left, right),
    };
    let [rows, columns] = result.dims();
    result.slice([0..rows.min(LONGEST), 0..columns.min(LONGEST)])
}

/// Runs a program and reads the matrices that are left; under stress if there is a seed for it.
pub fn outputs(program: &[Step], stress: Option<u64>, device: &Device) -> Vec<TensorData> {
    set_random_seed(60);
    let mut stress = stress.map(|seed| Stress::new(seed, device));
    let mut matrices = vec![
        Tensor::<2>::from_data(floats([7, 13]), device),
        Tensor::from_data(floats([33, 16]), device),
        Tensor::from_data(floats([1, 64]), device),
    ];
    for (nth, step) in program.iter().enumerate() {
        let result = next(step, &mut matrices, &program[..nth]);
        if let Some(stress) = &mut stress {
            stress.strike(&result);
        }
        matrices.push(result);
    }
    matrices.into_iter().map(Tensor::into_data).collect()
}

/// Hands the programs of these numbers to `body`, the same ones each time.
///
/// # Panics
///
/// With the shortest program found for which `body` panics.
pub fn for_each(numbers: Range<u32>, body: impl Fn(&[Step])) {
    let config = Config { cases: numbers.end, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let programs = prop::collection::vec(step(), 5..=50);
    let left_out = Cell::new(0);
    let agreed = runner.run(&programs, |program| {
        match left_out.get() {
            before if before < numbers.start => left_out.set(before + 1),
            _ => body(&program),
        }
        Ok(())
    });
    if let Err(failure) = agreed {
        panic!("{failure}");
    }
}

#[test]
fn random_programs_agree_under_stress() {
    let device = crate::deterministic_device();
    for_each(0..PROGRAMS, |program| {
        let quiet = outputs(program, None, &device);
        let seed = program.len() as u64;
        let stressed = beside_others(&device, || outputs(program, Some(seed), &device));
        for (index, (quiet, stressed)) in quiet.iter().zip(&stressed).enumerate() {
            assert_same(&format!("matrix {index}"), quiet, stressed);
        }
    });
}

/// A share of the programs is a part of them all, so several processes may each run one.
#[test]
fn shares_of_the_programs_are_all_of_them() {
    let programs = |numbers: Range<u32>| {
        let programs = RefCell::new(Vec::new());
        for_each(numbers, |program| programs.borrow_mut().push(format!("{program:?}")));
        programs.into_inner()
    };
    let all = programs(0..40);
    assert_eq!([programs(0..1), programs(1..17), programs(17..17), programs(17..40)].concat(), all);
    assert!(all.len() == 40 && all[0] != all[1]);
}

/// Programs of any use to the test above: that they are not all zeros, infinities and NaNs.
#[test]
fn random_programs_compute_something() {
    let device = crate::deterministic_device();
    for &operation in OPERATIONS {
        let step = |operation| Step { operation, left: 0, right: 1, number: 5, last: false };
        let program = [step(Recurrent), step(operation)];
        let result = outputs(&program, None, &device).pop().expect("five matrices");
        let values = result.try_to_vec::<f32>().expect("f32");
        assert!(!values.is_empty() && values.iter().all(|value| value.is_finite()), "{operation:?}");
        assert!(values.iter().any(|value| *value != 0.0), "{operation:?}");
    }
}
