//! The same work again and again gives one result, where plain Burn gives many.

use crate::bits::{assert_same, floats, indices};
use crate::driver;
use crate::process::{self, Program};
use crate::skip::skip;
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp::Add;
use burn::tensor::module::{self, conv2d_weight_backward};
use burn::tensor::ops::ConvOptions;

const REPEATS: usize = if cfg!(feature = "heavy") { 1000 } else { 50 };

/// Values that are scattered.
const VALUES: usize = 1 << 20;

/// The hazard: adds 2^20 values to `rows` rows, in the order in which they arrive, or ours.
struct Scatter {
    target: Tensor<1>,
    at: Tensor<1, Int>,
    values: Tensor<1>,
}

impl Scatter {
    fn new(rows: usize, device: &Device) -> Self {
        Self {
            target: Tensor::zeros([rows], device),
            at: Tensor::from_data(indices([VALUES], rows), device),
            values: Tensor::from_data(floats([VALUES]), device),
        }
    }

    fn run(&self) -> TensorData {
        self.target.clone().scatter(0, self.at.clone(), self.values.clone(), Add).into_data()
    }
}

/// Counts plain Burn's results, up to the first that shows there is more than one.
pub fn plain_scatter() {
    let scatter = Scatter::new(64, &Device::default());
    let first = scatter.run();
    let differs = (1..REPEATS).any(|_| scatter.run().as_bytes() != first.as_bytes());
    process::report("results", if differs { "more than one" } else { "one" });
}

fn one_result(what: &str, mut run: impl FnMut() -> TensorData) {
    let first = run();
    for repeat in 1..REPEATS {
        assert_same(&format!("{what}, repeat {repeat}"), &first, &run());
    }
}

#[test]
fn scatter_into_few_rows() {
    if driver::is_emulator() {
        skip("the CUDA emulator runs no atomics, so plain Burn's hazard does not show");
    } else {
        plain_burn_gives_many();
    }
    let scatter = Scatter::new(64, &crate::deterministic_device());
    one_result("scatter into 64 rows", || scatter.run());
}

fn plain_burn_gives_many() {
    match Program::new("plain_scatter").run().reported("results") {
        "one" => skip(format_args!("plain Burn gave one result in {REPEATS} runs, so that the hazard does not show")),
        results => assert_eq!(results, "more than one"),
    }
}

#[test]
fn scatter_into_many_rows() {
    let scatter = Scatter::new(1 << 18, &crate::deterministic_device());
    one_result("scatter into 2^18 rows", || scatter.run());
}

#[test]
fn scatter_nd_with_duplicates() {
    let device = crate::deterministic_device();
    let target = Tensor::<3>::zeros([8, 9, 16], &device);
    let at = Tensor::<2, Int>::from_data(indices([1 << 13, 2], 8), &device);
    let values = Tensor::<2>::from_data(floats([1 << 13, 16]), &device);
    one_result("scatter_nd", || target.clone().scatter_nd(at.clone(), values.clone(), Add).into_data());
}

#[test]
fn sum() {
    let values = Tensor::<1>::from_data(floats([1 << 24]), &crate::deterministic_device());
    one_result("sum of 2^24", || values.clone().sum().into_data());
}

#[test]
fn matmul() {
    let device = crate::deterministic_device();
    let lhs = Tensor::<2>::from_data(floats([200, 300]), &device);
    let rhs = Tensor::<2>::from_data(floats([300, 150]), &device);
    one_result("matmul", || lhs.clone().matmul(rhs.clone()).into_data());
}

#[test]
fn attention() {
    let device = crate::deterministic_device();
    let heads = || Tensor::<4>::from_data(floats([2, 4, 100, 16]), &device);
    let operands = (heads(), heads(), heads());
    one_result("attention", || {
        let (query, key, value) = operands.clone();
        module::attention(query, key, value, None, None, Default::default()).into_data()
    });
}

#[test]
fn convolution_weight_gradient() {
    let device = crate::deterministic_device();
    let input = Tensor::<4>::from_data(floats([16, 8, 14, 14]), &device);
    let weight = Tensor::<4>::from_data(floats([16, 8, 3, 3]), &device);
    let gradient = Tensor::<4>::from_data(floats([16, 16, 14, 14]), &device);
    let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    one_result("conv2d weight gradient", || {
        let operands = (input.clone(), weight.clone(), gradient.clone());
        conv2d_weight_backward(operands.0, operands.1, operands.2, options.clone()).into_data()
    });
}
