//! Planted arithmetic: each fault shows, in the bits of an expression that is right as written.

mod driver;

use cuda_emulator::{Arithmetic, Settings};
use driver::{evaluate, settings};
use std::hint::black_box;

fn planted(arithmetic: Arithmetic, name: &str, expression: &str, input: &[f32]) -> Vec<u32> {
    evaluate(Settings { arithmetic, ..settings(None, false) }, name, expression, input)
}

/// Requires that an expression has the bits of `right` as written, and others with a planted fault.
fn assert_planted(
    arithmetic: Arithmetic,
    name: &str,
    expression: &str,
    input: &[f32],
    right: fn(f32) -> f32,
) -> Vec<f32> {
    let expression = format!("__float_as_uint({expression})");
    let right: Vec<u32> = input.iter().map(|&x| right(x).to_bits()).collect();
    assert_eq!(planted(Arithmetic::AsWritten, name, &expression, input), right, "{expression} as written");
    let got = planted(arithmetic, name, &expression, input);
    assert_ne!(got, right, "{expression}, {arithmetic:?}");
    got.into_iter().map(f32::from_bits).collect()
}

/// 1 + 2^-12, whose square lies half way between two floats.
const TIE: f32 = 1.0 + 1.0 / 4096.0;

#[test]
fn products_are_contracted_with_sums() {
    let contracted = [TIE.mul_add(TIE, -1.0)];
    let got = assert_planted(Arithmetic::Contracted, "contracted", "x * x - 1.0f", &[TIE], |x| x * x - 1.0);
    assert_eq!(got, contracted);
    // Behind a zero of the grid's width, as kernels spell it.
    let hidden = "__uint_as_float(__float_as_uint(fma(x, x, -0.0f)) ^ (gridDim.x >> 31)) - 1.0f";
    let got = assert_planted(Arithmetic::Contracted, "contracted_hidden", hidden, &[TIE], |x| x * x - 1.0);
    assert_eq!(got, contracted);
}

#[test]
fn subnormal_numbers_are_taken_for_zero_in_kernels_alone() {
    let least = f32::from_bits(1);
    let input = [least, -least, f32::MIN_POSITIVE];
    let got = assert_planted(Arithmetic::Flushed, "flushed_operand", "x * 16777216.0f", &input, |x| x * 16777216.0);
    assert_eq!(got.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [0, 1 << 31, (2f32.powi(-102)).to_bits()]);
    let got = assert_planted(Arithmetic::Flushed, "flushed_result", "x * 0.5f", &input[2..], |x| x * 0.5);
    assert_eq!(got, [0.0]);
    assert_eq!(black_box(least) * black_box(4.0), f32::from_bits(4), "this thread is as before");
}

#[test]
fn sums_are_regrouped() {
    let got = assert_planted(Arithmetic::Reassociated, "regrouped", "(x + 1e8f) - 1e8f", &[1.0], |x| (x + 1e8) - 1e8);
    assert_eq!(got, [1.0]);
    let hidden = "__uint_as_float(__float_as_uint(x + 1e8f) ^ (gridDim.x >> 31)) - 1e8f";
    let got = assert_planted(Arithmetic::Reassociated, "regrouped_hidden", hidden, &[1.0], |x| (x + 1e8) - 1e8);
    assert_eq!(got, [1.0]);
}

#[test]
fn quotients_and_roots_are_a_last_place_off() {
    let input: Vec<f32> = (1..2000).map(|n| n as f32 * 0.37).collect();
    let near = |got: Vec<f32>, right: fn(f32) -> f32| {
        for (&x, got) in input.iter().zip(got) {
            assert!(got.to_bits().abs_diff(right(x).to_bits()) <= 2, "{got:e} of {x:e}");
        }
    };
    near(assert_planted(Arithmetic::Approximate, "quotient", "x / 7.3f", &input, |x| x / 7.3), |x| x / 7.3);
    near(assert_planted(Arithmetic::Approximate, "root", "sqrt(x)", &input, f32::sqrt), f32::sqrt);
    let integers =
        planted(Arithmetic::Approximate, "integers", "({ unsigned n = 1000000007u + i; n / 3u; })", &input[..4]);
    assert_eq!(integers, [333_333_335, 333_333_336, 333_333_336, 333_333_336]);
}

#[test]
fn fast_arithmetic_knows_no_nan_and_divides_by_products() {
    let input: Vec<f32> = (1..2000).map(|n| n as f32 * 0.37).collect();
    assert_planted(Arithmetic::Fast, "fast", "x / 7.3f", &input, |x| x / 7.3);
    assert_eq!(planted(Arithmetic::AsWritten, "nan", "isnan(x)", &[f32::NAN]), [1]);
    assert_eq!(planted(Arithmetic::Fast, "nan", "isnan(x)", &[f32::NAN]), [0]);
}
