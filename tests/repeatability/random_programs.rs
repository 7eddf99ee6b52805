//! Programs that nobody thought of: 5 to 50 random operations, run twice under different stress, agree in every output.

use crate::bits::{assert_same, floats, indices};
use crate::repeatability::stress::{Stress, beside_others};
use burn::prelude::*;
use burn::tensor::module::{avg_pool1d, conv1d, max_pool1d};
use burn::tensor::ops::{AvgPoolOptions, ConvOptions, MaxPoolOptions};
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
}

use Operation::*;

/// One step: its operands are the `left`-th and `right`-th matrix so far, counted round and round.
#[derive(Debug, Clone)]
pub struct Step {
    operation: Operation,
    left: usize,
    right: usize,
    number: usize,
}

fn step() -> impl Strategy<Value = Step> {
    (sample::select(OPERATIONS), any::<u16>(), any::<u16>(), 0_usize..1000)
        .prop_map(|(operation, left, right, number)| Step { operation, left: left.into(), right: right.into(), number })
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

fn apply(step: &Step, left: Matrix, right: &Matrix) -> Matrix {
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
            (sum / (b.abs() + 0.5)).cast(FloatDType::F32)
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
    };
    let [rows, columns] = result.dims();
    result.slice([0..rows.min(LONGEST), 0..columns.min(LONGEST)])
}

/// Runs a program and reads every matrix; under stress if there is a seed for it.
pub fn outputs(program: &[Step], stress: Option<u64>, device: &Device) -> Vec<TensorData> {
    set_random_seed(60);
    let mut stress = stress.map(|seed| Stress::new(seed, device));
    let mut matrices = vec![
        Tensor::<2>::from_data(floats([7, 13]), device),
        Tensor::from_data(floats([33, 16]), device),
        Tensor::from_data(floats([1, 64]), device),
    ];
    for step in program {
        let chosen = |index: usize| matrices[index % matrices.len()].clone();
        let result = apply(step, chosen(step.left), &chosen(step.right));
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
        let program = [Step { operation, left: 0, right: 1, number: 5 }];
        let result = outputs(&program, None, &device).pop().expect("four matrices");
        let values = result.try_to_vec::<f32>().expect("f32");
        assert!(!values.is_empty() && values.iter().all(|value| value.is_finite()), "{operation:?}");
        assert!(values.iter().any(|value| *value != 0.0), "{operation:?}");
    }
}
