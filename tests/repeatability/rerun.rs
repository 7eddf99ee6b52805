//! Every operation several times on the same operands.

use crate::closed_world::custom::{drifting, promise, read, upload};
use crate::process::{Program, report};
use crate::programs;
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::{Determinism, Digest, OnViolation, enable_op_determinism, set_random_seed};
use std::sync::atomic::Ordering;

const RUNS: u32 = 3;

pub fn trained_again(train: fn(&Device) -> Digest) {
    enable_op_determinism(Determinism::default().rerun(2)).expect("this process has run no tensor operation");
    set_random_seed(812);
    report("digest", train(&Device::default().autodiff()));
}

pub fn short_training(device: &Device) -> Digest {
    programs::mlp::train_for(device, 3)
}

pub fn settings_of_rerun() {
    let enabled = Determinism::default().rerun(1);
    assert_eq!(enabled, Determinism::default());
    assert_eq!(enabled, Determinism::default().rerun(4).rerun(0));
    assert_ne!(Determinism::default().rerun(2), Determinism::default().rerun(3));
}

/// An operation that is not what the program promised.
pub fn drift_is_found() {
    promise();
    enable_op_determinism(Determinism::default().rerun(RUNS)).expect("this process has run no tensor operation");
    let input = upload(vec![1.0; 6], [2, 3]);
    let (honest, calls) = drifting(input.clone(), 0.0);
    assert_eq!(read(honest).expect("it repeats"), [2.0; 6]);
    assert_eq!(calls.load(Ordering::Relaxed), RUNS);
    let (drifts, calls) = drifting(input.clone(), 0.5);
    let text = read(drifts).expect_err("its second run differs").to_string();
    for part in [
        "`tests::drift` (operands [2, 3] f32; device",
        "run 2 has 0x40200000 at [1, 2] of [2, 3] f32",
        "where the first run has 0x40000000",
    ] {
        assert!(text.contains(part), "{text}\nlacks\n{part}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(read(input).expect("an operand"), [1.0; 6]);
}

pub fn drift_is_reported() {
    promise();
    let settings = Determinism::default().rerun(RUNS).on_violation(OnViolation::Warn);
    enable_op_determinism(settings).expect("this process has run no tensor operation");
    let (drifts, calls) = drifting(upload(vec![1.0; 2], [2]), 0.5);
    assert_eq!(read(drifts).expect("it is let pass"), [2.0, 2.0], "the first result stays");
    assert_eq!(calls.load(Ordering::Relaxed), RUNS);
}

/// Operations of each kind that work in place where they may, and random ones.
pub fn repeats_change_nothing() {
    enable_op_determinism(Determinism::default().rerun(RUNS)).expect("this process has run no tensor operation");
    set_random_seed(5);
    let device = Device::default();
    let draw = || Tensor::<2>::random([40, 30], Distribution::Normal(0.0, 1.0), &device);
    let (first, second) = (draw(), draw());
    assert!(first.clone().into_data() != second.clone().into_data(), "two operations draw alike");
    let ones = Tensor::<2>::ones([4, 4], &device);
    let steps = (0..5).fold(ones, |sum, _| (sum + 1.0).slice_assign([0..1, 0..4], Tensor::zeros([1, 4], &device)));
    assert_eq!(steps.sum().into_scalar::<f32>(), 12.0 * 6.0);
    // Products that may share a launch, of which the last takes an operand away.
    let weights: [_; 3] = core::array::from_fn(|_| Tensor::<2>::random([30, 30], Distribution::Default, &device));
    let apart = weights.clone().map(|weights| first.clone().matmul(weights).into_data());
    let copy = first.clone() * 1.0;
    let products = weights.map(|weights| copy.clone().matmul(weights) * 1.0);
    drop(copy);
    assert!(products.map(Tensor::into_data) == apart);
    let total = (first.matmul(second.transpose()).exp() * 0.5).sum();
    report("total", format!("{:08x}", total.into_scalar::<f32>().to_bits()));
    let counts = Tensor::<1, Int>::arange(0..9, &device).powi_scalar(2).sum().into_scalar::<i32>();
    assert_eq!(counts, 204);
    let chosen = Tensor::<1>::from_data([3.0, -1.0, 2.0], &device).greater_elem(0.0).argwhere();
    assert_eq!(chosen.into_data().iter::<i64>().collect::<Vec<_>>(), [0, 2]);
}

/// The same without a repetition.
pub fn once() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(5);
    let device = Device::default();
    let draw = || Tensor::<2>::random([40, 30], Distribution::Normal(0.0, 1.0), &device);
    let (first, second) = (draw(), draw());
    let total = (first.matmul(second.transpose()).exp() * 0.5).sum();
    report("total", format!("{:08x}", total.into_scalar::<f32>().to_bits()));
}

#[test]
fn fewer_than_two_runs_are_one() {
    settings_of_rerun();
}

#[test]
fn an_operation_that_does_not_repeat_is_found() {
    Program::new("drift_is_found").run();
}

#[test]
fn warn_lets_it_pass_and_keeps_the_first_result() {
    let output = Program::new("drift_is_reported").run();
    let stderr = output.stderr();
    assert!(stderr.contains("run 2 has 0x40200000 at [1]") && stderr.contains("run 3 has 0x40400000"), "{output}");
}

#[test]
fn operations_in_place_and_random_ones_repeat() {
    let (again, once) = (Program::new("repeats_change_nothing").run(), Program::new("once").run());
    again.assert_quiet();
    assert_eq!(again.reported("total"), once.reported("total"));
}

#[test]
fn training_ends_with_the_same_digest() {
    let once = Program::new("short_training").run();
    Program::new("short_training_again").run().assert_digest(&once);
}
