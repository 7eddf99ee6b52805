//! An operation that cannot be deterministic says so at the read, and only there.

use crate::process::{Program, report};
use burn::nn::DropoutConfig;
use burn::prelude::*;
use burn::tensor::module::deform_conv2d;
use burn::tensor::ops::DeformConvOptions;
use burn::tensor::{DType, Distribution};
use burn_deterministic::{Determinism, Error, OnViolation, enable_op_determinism, set_random_seed};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn enabled_device() -> Device {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    Device::default()
}

/// Requires that both kinds of reads, and reads of what is computed from the tensor, give an error with `text`.
fn assert_refused<const D: usize>(tensor: Tensor<D>, text: &str) {
    let read = tensor.clone().try_into_data().expect_err("a refused operation has no result").to_string();
    assert!(read.contains(text), "{read}\nlacks\n{text}");
    let dependent = (tensor.clone() * 2.0 + 1.0).sum();
    let read = dependent.try_into_data().expect_err("nothing can be computed from a refused operation").to_string();
    assert!(read.contains(text), "{read}\nlacks\n{text}");
    let panic = catch_unwind(AssertUnwindSafe(|| tensor.into_data())).expect_err("a plain read panics");
    let panic = panic.downcast_ref::<String>().expect("with a text");
    assert!(panic.contains(text), "{panic}\nlacks\n{text}");
}

fn assert_values<const D: usize>(tensor: Tensor<D>, expected: &[f32]) {
    assert_eq!(tensor.into_data().try_to_vec::<f32>().expect("f32"), expected);
}

/// What is said of a random operation without a seed on this device.
fn unseeded_text<const N: usize>(shape: [usize; N]) -> String {
    // The device as the backend names it, which Burn's device wraps.
    let device = format!("{:?}", crate::cube_device());
    Error::Unseeded { operation: "float_random", shape: shape.into(), dtype: DType::F32, device }.to_string()
}

pub fn unseeded() {
    let device = enabled_device();
    let before = Tensor::<1>::from_data([1.0, 2.0, 3.0], &device) * 2.0;
    let pending = before.clone() + 1.0;
    let random = Tensor::<2>::random([4, 5], Distribution::Default, &device);
    assert_refused(random, &unseeded_text([4, 5]));
    assert_values(before.clone(), &[2.0, 4.0, 6.0]);
    assert_values(pending, &[3.0, 5.0, 7.0]);
    assert_values(before.sum(), &[12.0]);
    set_random_seed(3);
    let draw = || Tensor::<2>::random([4, 5], Distribution::Default, &device).into_data();
    let first = draw();
    set_random_seed(3);
    assert_eq!(draw().as_bytes(), first.as_bytes());
}

pub fn unseeded_dropout() {
    let device = enabled_device().autodiff();
    let weights = Tensor::<2>::ones([3, 4], &device).require_grad();
    let dropped = DropoutConfig::new(0.5).init().forward(weights.clone() * 3.0);
    let gradients = dropped.clone().sum().backward();
    assert_refused(dropped, &unseeded_text([3, 4]));
    assert_refused(weights.grad(&gradients).expect("the weights took part"), &unseeded_text([3, 4]));
    assert_values(weights.clone().sum(), &[12.0]);
    set_random_seed(3);
    let dropped = DropoutConfig::new(0.5).init().forward(weights.clone());
    let gradients = dropped.sum().backward();
    let gradient = weights.grad(&gradients).expect("the weights took part").into_data();
    let gradient = gradient.try_to_vec::<f32>().expect("f32");
    assert!(gradient.iter().all(|value| [0.0, 2.0].contains(value)), "{gradient:?}");
}

pub fn unseeded_thread() {
    let device = enabled_device();
    set_random_seed(3);
    let draw = |device: &Device| Tensor::<1>::random([6], Distribution::Normal(0.0, 1.0), device);
    let elsewhere = {
        let device = device.clone();
        std::thread::spawn(move || assert_refused(draw(&device), &unseeded_text([6])))
    };
    elsewhere.join().expect("the assertions of that thread hold");
    let draws_of_thread = || {
        let device = device.clone();
        std::thread::spawn(move || {
            set_random_seed(4);
            (draw(&device), draw(&device).into_data())
        })
    };
    let quiet = draws_of_thread().join().expect("a thread with a seed");
    let beside = draws_of_thread();
    let ours = (0..10).fold(draw(&device), |sum, _| sum + draw(&device));
    let beside = beside.join().expect("a thread with a seed");
    assert_eq!(beside.0.into_data().as_bytes(), quiet.0.into_data().as_bytes());
    assert_eq!(beside.1.as_bytes(), quiet.1.as_bytes());
    assert_eq!(ours.into_data().shape().as_slice(), [6]);
}

pub fn unsupported() {
    let device = enabled_device();
    let before = Tensor::<1>::from_data([1.0, 2.0], &device) + 1.0;
    let zeros = |shape: [usize; 4]| Tensor::<4>::zeros(shape, &device);
    let options = DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1);
    // Nine taps have eighteen offsets.
    let refused =
        || deform_conv2d(zeros([1, 2, 5, 5]), zeros([1, 16, 3, 3]), zeros([3, 2, 3, 3]), None, None, options.clone());
    let text = refused().try_into_data().expect_err("the offsets do not fit").to_string();
    for part in ["`deform_conv2d` was refused", "[1, 2, 5, 5] f32", "offset [1, 16, 3, 3], want [1, 18, 3, 3]"] {
        assert!(text.contains(part), "{text}\nlacks\n{part}");
    }
    assert_refused(refused(), "`deform_conv2d` was refused");
    assert_values(before, &[2.0, 3.0]);
    assert_values(Tensor::<1>::ones([5], &device).sum(), &[5.0]);
}

pub fn warned() {
    let settings = Determinism::default().on_violation(OnViolation::Warn);
    enable_op_determinism(settings).expect("this process has run no tensor operation");
    let device = Device::default();
    let draw = || Tensor::<1>::random([6], Distribution::Uniform(1.0, 2.0), &device).into_data();
    let values = (draw(), draw()).1.try_to_vec::<f32>().expect("f32");
    assert!(values.iter().all(|value| (1.0..=2.0).contains(value)), "{values:?}");
    report("text", unseeded_text([6]));
}

#[test]
fn a_random_operation_without_a_seed() {
    Program::new("unseeded").run();
}

#[test]
fn dropout_without_a_seed() {
    Program::new("unseeded_dropout").run();
}

#[test]
fn a_thread_without_a_seed() {
    Program::new("unseeded_thread").run();
}

#[test]
fn an_operation_whose_operands_do_not_fit() {
    Program::new("unsupported").run();
}

#[test]
fn warn_lets_it_pass_and_says_so_once() {
    let output = Program::new("warned").run();
    let text = format!("warning, this run is NOT deterministic: {}", output.reported("text"));
    assert_eq!(output.stderr().matches(&text).count(), 1, "{output}");
}
