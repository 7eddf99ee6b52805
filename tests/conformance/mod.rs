//! Burn's tensor API, method by method, against Burn's own CPU backend, which shares no code with this one.
//!
//! Bits are other tests' business: here a value may differ by what two libraries of elementary functions differ by.

mod boolean;
mod dtypes;
mod extents;
mod float;
mod gradients;
mod integer;
mod shape;

use crate::bits;
use burn::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A piece of a user's program: its name, and what it reads.
type Case = (&'static str, fn(&Device) -> Vec<TensorData>);

/// Allowed difference, relative to a value of more than 1: 64 units in the last place of f32, which is what WGSL
/// allows its elementary functions in these ranges.
const TOLERANCE: f64 = 64.0 * f32::EPSILON as f64;

/// From -2 to 2.
fn x<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(bits::floats(shape), device)
}

/// From 0.25 to 2.25.
fn positive<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    x(shape, device).abs() + 0.25
}

/// From -50 to 49, with duplicates.
fn n<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D, Int> {
    Tensor::from_data(bits::indices(shape, 100), device) - 50
}

/// Indices below `bound`.
fn at<const D: usize>(shape: [usize; D], bound: usize, device: &Device) -> Tensor<D, Int> {
    Tensor::from_data(bits::indices(shape, bound), device)
}

/// What a comparison or a rounding meets at its borders.
fn special(device: &Device) -> Tensor<1> {
    let values = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        0.5,
        1.5,
        -0.5,
        -2.5,
        f32::MAX,
        f32::MIN_POSITIVE,
        1.0,
        -1.0,
        f32::NAN,
        16_777_216.0,
    ];
    Tensor::from_data(values, device)
}

fn assert_close(expected: &[TensorData], got: &[TensorData], tolerance: f64) {
    assert_eq!(expected.len(), got.len());
    for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
        assert_eq!(got.shape(), expected.shape(), "shape of result {index}");
        let values = |data: &TensorData| data.clone().convert::<f64>().try_into_vec::<f64>().expect("f64");
        for (at, (expected, got)) in values(expected).into_iter().zip(values(got)).enumerate() {
            let same = expected == got || (expected.is_nan() && got.is_nan());
            let close = (expected - got).abs() <= tolerance * expected.abs().max(1.0);
            assert!(same || close, "element {at} of result {index}: {got} instead of {expected}");
        }
    }
}

/// Runs every case on both backends, and lists all that disagree.
fn check(cases: &[Case]) {
    check_within(TOLERANCE, cases);
}

fn check_within(tolerance: f64, cases: &[Case]) {
    let (ours, reference) = (crate::deterministic_device(), Device::flex());
    burn_deterministic::set_random_seed(3);
    let disagreeing: Vec<&str> = cases
        .iter()
        .filter(|(name, case)| {
            let agreed = catch_unwind(AssertUnwindSafe(|| assert_close(&case(&reference), &case(&ours), tolerance)));
            if agreed.is_err() {
                eprintln!("^ {name}");
            }
            agreed.is_err()
        })
        .map(|(name, _)| *name)
        .collect();
    assert!(disagreeing.is_empty(), "{} of {} disagree: {disagreeing:?}", disagreeing.len(), cases.len());
}
