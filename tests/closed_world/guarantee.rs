//! What `Guarantee::GpuToGpu` gives and refuses. That its bits are those of every device, the examples show: one digest for all.

use crate::driver;
use crate::process::Program;
use crate::skip::skip;
use burn::prelude::*;
use burn::tensor::module::{conv2d, interpolate};
use burn::tensor::ops::{ConvOptions, InterpolateMode, InterpolateOptions};
use burn::tensor::{DType, FloatDType};
use burn_deterministic::{
    Determinism, Error, Guarantee, enable_op_determinism, is_op_determinism_enabled, require_guarantee,
};
use burn_deterministic_kernels::arithmetic::MultiplyAdd;
use burn_deterministic_kernels::{convolution, matmul};

const VARIABLE: &str = "BURN_DETERMINISTIC_GUARANTEE";

/// Whether this device can give it; listed among the skipped where not. lavapipe and the CUDA emulator can.
pub fn is_given() -> bool {
    match require_guarantee(&Device::default(), Guarantee::GpuToGpu) {
        Ok(()) => true,
        Err(error) => {
            assert!(!driver::is_emulator() && !driver::name().contains("llvmpipe"), "{error}");
            skip(error);
            false
        }
    }
}

fn values(count: usize, seed: u32) -> Vec<f32> {
    let word = |n: usize| (n as u32 ^ seed).wrapping_mul(0x9e37_79b1);
    (0..count).map(|n| (word(n) >> 8) as f32 / 8_388_608.0 - 1.0).collect()
}

fn bits(tensor: Tensor<4>) -> Vec<u32> {
    tensor.into_data().iter::<f32>().map(f32::to_bits).collect()
}

/// Products have the bits of rounded ones, on a device that fuses too.
pub fn products_of_every_device() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    let device = Device::default();
    let [m, k, n] = [5, 1100, 7];
    let (a, b) = (values(m * k, 1), values(k * n, 2));
    let load =
        |values: &[f32], shape: [usize; 4]| Tensor::<4>::from_data(TensorData::new(values.to_vec(), shape), &device);
    let product = load(&a, [1, 1, m, k]).matmul(load(&b, [1, 1, k, n]));
    let want = matmul::reference::matmul(&a, &b, [m, k, n], MultiplyAdd::Unfused);
    assert_eq!(bits(product), want.into_iter().map(f32::to_bits).collect::<Vec<_>>());

    let (input, weight) = ([2, 40, 6, 6], [8, 40, 3, 3]);
    let (x, w) = (values(2 * 40 * 36, 3), values(8 * 40 * 9, 4));
    let params = convolution::ConvolutionParams { stride: [1; 2], padding: [(1, 1); 2], dilation: [1; 2], groups: 1 };
    let geometry = convolution::Geometry::new("test", &input, &weight, &params).expect("it fits");
    let want = convolution::reference::forward(&geometry, MultiplyAdd::Unfused, &x, &w, None);
    let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    let convolved = conv2d(load(&x, input), load(&w, weight), None, options);
    assert_eq!(bits(convolved), want.into_iter().map(f32::to_bits).collect::<Vec<_>>());
}

#[test]
fn products_are_those_of_every_device() {
    if is_given() {
        Program::new("products_of_every_device").env(VARIABLE, "gpu-to-gpu").run();
    }
}

/// Kernels of Burn's whose bits are the device's, and f64.
pub fn refused_on_every_device() {
    enable_op_determinism(Determinism::default().guarantee(Guarantee::GpuToGpu)).expect("nothing has run");
    let device = Device::default();
    let x = || Tensor::<4>::from_data(TensorData::new(values(16, 5), [1, 1, 4, 4]), &device);
    let told = |operation: &str, tensor: Tensor<4>| {
        let text = tensor.try_into_data().expect_err(operation).to_string();
        assert!(text.contains(&format!("`{operation}`")) && text.contains("`Guarantee::RunToRun`"), "{text}");
    };
    for (dtype, half) in [(DType::F16, FloatDType::F16), (DType::BF16, FloatDType::BF16)] {
        let halves = || x().cast(half);
        if device.supports_dtype(dtype) {
            halves().matmul(halves()).exp().try_into_data().expect("they are computed in f32");
            for computed in [halves() + halves(), halves() / 3.0, halves().recip(), halves().remainder(halves())] {
                computed.try_into_data().expect("it is computed in f32, and rounded");
            }
        }
    }
    if device.supports_dtype(DType::F64) {
        let long = || x().cast(FloatDType::F64);
        told("float_mul_scalar", long() * 2.0);
        told("float_add", long() + long());
        told("float_sqrt", long().sqrt());
        told("float_remainder", long().remainder(long()));
        told("float_matmul", x().cast(FloatDType::F64).matmul(x().cast(FloatDType::F64)));
    }
    let y = || x().slice([0..1, 0..1, 0..4, 0..3]);
    for computed in [
        x().exp(),
        x().clamp(-0.5, 0.5),
        x() / 3.0,
        x().powf(x().abs()),
        x().matmul(x()),
        x().remainder(x() + 2.0),
        x().remainder_scalar(2.0),
        y().cross(y(), 3),
    ] {
        computed.try_into_data().expect("it has the bits of every device");
    }
    for mode in [InterpolateMode::Nearest, InterpolateMode::Bilinear, InterpolateMode::Lanczos3] {
        let resized = interpolate(x(), InterpolateOptions::new(mode).with_output_size([8, 8]));
        resized.try_into_data().expect("it has the bits of every device");
    }
}

#[test]
fn what_is_the_devices_own_is_refused() {
    if is_given() {
        Program::new("refused_on_every_device").run();
    }
}

/// A device that cannot give it says why before the first operation, and at it.
pub fn inexact_device() {
    let device = Device::default();
    let refused = require_guarantee(&device, Guarantee::GpuToGpu).expect_err("the test has asked").to_string();
    enable_op_determinism(Determinism::default().guarantee(Guarantee::GpuToGpu)).expect("nothing has run");
    let text = (Tensor::<1>::from_data([1.0, 2.0], &device) + 1.0).try_into_data().expect_err("a refusal").to_string();
    assert!(text.contains(&refused) && text.contains("cannot give `GpuToGpu`"), "{text}");
}

#[test]
fn a_device_that_cannot_give_it_is_refused() {
    match require_guarantee(&Device::default(), Guarantee::GpuToGpu) {
        Err(Error::Inexact { .. }) => drop(Program::new("inexact_device").run()),
        other => {
            other.expect("no other reason on a device that runs the tests");
            skip("the device can give `Guarantee::GpuToGpu`");
        }
    }
}

pub fn guarantee_of_a_wrong_variable() {
    let error = enable_op_determinism(Determinism::default()).expect_err("no such guarantee").to_string();
    assert_eq!(
        error,
        "the environment variable `BURN_DETERMINISTIC_GUARANTEE` is `all`; set it to `run-to-run` or `gpu-to-gpu`, or unset it"
    );
    assert!(!is_op_determinism_enabled());
}

#[test]
fn a_guarantee_that_is_none_is_an_error() {
    Program::new("guarantee_of_a_wrong_variable").env(VARIABLE, "all").run();
}
