//! Element types other than the defaults: right where the device has them, an error that says so where it does not.

use super::{Case, TOLERANCE, assert_close, at, check_within, n, x};
use crate::skip::skip;
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp::Add;
use burn::tensor::{DType, FloatDType, IntDType};

macro_rules! integers {
    ($($dtype:ident)*) => { &[$((DType::$dtype, (stringify!($dtype), |d| {
        // Below 50, so that no sum or product leaves the range of the narrowest.
        let n = || n([4, 6], d).abs().cast(IntDType::$dtype);
        let small = || n().clamp(0, 3);
        vec![
            n().into_data(),
            (n() + n().transpose().reshape([4, 6])).into_data(),
            (n() * 2).into_data(),
            n().max_dim(1).into_data(),
            n().argmax(1).into_data(),
            n().sort(1).into_data(),
            small().sum_dim(1).into_data(),
            small().prod_dim(0).into_data(),
            small().cumsum(1).into_data(),
            n().float().into_data(),
            n().equal(n().flip([0])).into_data(),
            n().select(0, Tensor::<1, Int>::from_data([3, 0], d)).into_data(),
            small().scatter(0, at([9, 6], 4, d), small().repeat_dim(0, 3).slice([0..9, 0..6]), Add).into_data(),
            Tensor::cat(vec![n(), n()], 0).into_data(),
        ]
    }))),*] };
}

macro_rules! floats {
    ($($dtype:ident)*) => { &[$((DType::$dtype, (stringify!($dtype), |d| {
        let x = || x([4, 6], d).cast(FloatDType::$dtype);
        vec![
            x().into_data(),
            (x() + x().transpose().reshape([4, 6])).into_data(),
            (x() * 2.0).into_data(),
            x().abs().sqrt().into_data(),
            x().max_dim(1).into_data(),
            x().argmax(1).into_data(),
            x().sort(1).into_data(),
            x().sum_dim(1).into_data(),
            x().mean_dim(0).into_data(),
            x().cumsum(1).into_data(),
            x().matmul(x().transpose()).into_data(),
            x().greater(x().flip([0])).into_data(),
            x().scatter(0, at([9, 6], 4, d), x().repeat_dim(0, 3).slice([0..9, 0..6]), Add).into_data(),
            x().cast(FloatDType::F32).into_data(),
        ]
    }))),*] };
}

const INTEGERS: &[(DType, Case)] = integers![I64 I32 I16 I8 U64 U32 U16 U8];
const FLOATS: &[(DType, Case)] = floats![F64 F32 F16 BF16];

/// What a dozen operations may lose of a half type's 11 or 8 bits.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2.0_f64.powi(-8),
        DType::BF16 => 2.0_f64.powi(-5),
        _ => TOLERANCE,
    }
}

fn check_dtypes(cases: &[(DType, Case)]) {
    let device = crate::deterministic_device();
    for (dtype, case) in cases {
        if device.supports_dtype(*dtype) {
            check_within(tolerance(*dtype), &[*case]);
        } else {
            skip(format_args!("the device has no {dtype:?}"));
        }
    }
}

#[test]
fn integer_dtypes() {
    check_dtypes(INTEGERS);
}

#[test]
fn float_dtypes() {
    check_dtypes(FLOATS);
}

/// Drivers compute them in 16 and 32 bits. In 64 they are right, or an error.
#[test]
fn elementary_functions_in_f64() {
    let device = crate::deterministic_device();
    if !device.supports_dtype(DType::F64) {
        return skip("the device has no f64");
    }
    let x = |device: &Device| x([4, 6], device).cast(FloatDType::F64).abs();
    let on_the_reference = x(&Device::flex());
    let functions: [fn(Tensor<2>) -> Tensor<2>; 5] =
        [Tensor::exp, Tensor::log, Tensor::tanh, |x| x.powf_scalar(1.7), |x| burn::tensor::activation::softmax(x, 1)];
    for function in functions {
        match function(x(&device)).try_into_data() {
            Ok(got) => assert_close(&[function(on_the_reference.clone()).into_data()], &[got], TOLERANCE),
            Err(error) => assert!(error.to_string().contains("cast the tensor to f32"), "{error}"),
        }
    }
}

#[test]
fn a_dtype_that_the_device_lacks_is_an_error() {
    let device = crate::deterministic_device();
    let lacking =
        [DType::I8, DType::U16, DType::I64, DType::U64].into_iter().find(|dtype| !device.supports_dtype(*dtype));
    let Some(dtype) = lacking else { return skip("the device has every integer dtype") };
    let there = n([4, 6], &device).cast(dtype) * 2;
    let error = there.try_into_data().expect_err("nothing can be computed").to_string();
    assert!(error.contains(&format!("the device has no {}", dtype.name())), "{error}");
}
