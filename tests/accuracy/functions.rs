//! Functions of one element, and of two, over their whole domain.

use super::Measured;
use super::table::FUNCTIONS;
use burn::prelude::*;
use burn::tensor::activation::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI};

/// A result that is one of the two nearest.
const BOUND: f64 = 1.0;

/// Values that f32 tells apart poorly or well: all magnitudes with either sign, some near every power of two, and an
/// even spread; then random ones.
fn values() -> Vec<f32> {
    let mut values = Vec::new();
    for exponent in -126..=127 {
        let power = 2f32.powi(exponent);
        for mantissa in [1.0, 1.0 + f32::EPSILON, 1.25, 1.5, 1.999, 2.0 - f32::EPSILON] {
            values.extend([power * mantissa, -power * mantissa]);
        }
    }
    values.extend((-8000..=8000).map(|n| n as f32 / 1000.0));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    values.extend((0..4000).map(|_| rng.random_range(-4.0f32..4.0)));
    values.extend((0..2000).map(|_| rng.random_range(-90.0f32..90.0)));
    values
}

/// `|x f'(x)|`, by a difference.
pub(super) fn terms(exact: impl Fn(f64) -> f64, x: f64) -> f64 {
    let step = 1e-6;
    let slope = (exact(x * (1.0 + step)) - exact(x * (1.0 - step))) / (2.0 * step);
    if slope.is_finite() { slope.abs() } else { 0.0 }
}

/// Whether a value is subnormal or nearly so, and drivers may take it or its terms for zero: `specials` is about these.
fn is_tiny(value: f64) -> bool {
    value != 0.0 && value.abs() < 16.0 * f64::from(f32::MIN_POSITIVE)
}

pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) ours: fn(Tensor<1>) -> Tensor<1>,
    pub(super) exact: fn(f64) -> f64,
    pub(super) domain: fn(f64) -> bool,
    /// The largest term of the formula that Burn, or WGSL's definition, computes it by: near zero `tanh` is a difference
    /// of two values near one.
    pub(super) within: fn(f64) -> f64,
}

macro_rules! functions {
    ($($name:literal: $ours:expr, $exact:expr, $domain:expr, $within:expr;)*) => {
        &[$(Function { name: $name, ours: $ours, exact: $exact, domain: $domain, within: $within }),*]
    };
}

const EVERYWHERE: fn(f64) -> bool = |_| true;

/// No term is larger than the result.
const DIRECT: fn(f64) -> f64 = |_| 0.0;

/// Differences from one.
const ONE: fn(f64) -> f64 = |_| 1.0;

fn sigmoid_of(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus_of(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn gelu_by_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + (FRAC_2_PI.sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

pub(super) const ALL: &[Function] = functions! {
    "exp": |x| x.exp(), f64::exp, EVERYWHERE, DIRECT;
    "log": |x| x.log(), f64::ln, |x| x > 0.0, DIRECT;
    "log1p": |x| x.log1p(), f64::ln_1p, |x| x > -1.0, ONE;
    "sin": |x| x.sin(), f64::sin, |x| x.abs() <= PI, ONE;
    "cos": |x| x.cos(), f64::cos, |x| x.abs() <= PI, ONE;
    "tan": |x| x.tan(), f64::tan, |x| x.abs() <= 1.5, ONE;
    "sin beyond pi": |x| x.sin(), f64::sin, |x| (PI..1000.0).contains(&x.abs()), ONE;
    "cos beyond pi": |x| x.cos(), f64::cos, |x| (PI..1000.0).contains(&x.abs()), ONE;
    "sinh": |x| x.sinh(), f64::sinh, |x| x.abs() < 88.0, ONE;
    "cosh": |x| x.cosh(), f64::cosh, |x| x.abs() < 88.0, DIRECT;
    "tanh": |x| x.tanh(), f64::tanh, EVERYWHERE, ONE;
    "asin": |x| x.asin(), f64::asin, |x| x.abs() <= 1.0, DIRECT;
    "acos": |x| x.acos(), f64::acos, |x| x.abs() <= 1.0, DIRECT;
    "atan": |x| x.atan(), f64::atan, EVERYWHERE, DIRECT;
    "asinh": |x| x.asinh(), f64::asinh, |x| x.abs() < 1e19, ONE;
    "acosh": |x| x.acosh(), f64::acosh, |x| (1.0..1e19).contains(&x), DIRECT;
    "atanh": |x| x.atanh(), f64::atanh, |x| x.abs() < 1.0, ONE;
    "erf": |x| x.erf(), libm::erf, EVERYWHERE, ONE;
    "powf_scalar": |x| x.powf_scalar(1.7), |x| x.powf(f64::from(1.7f32)), |x| x > 0.0, |x| (1.7 * x.ln()).abs() * x.powf(1.7);
    "powf_scalar of 0.5": |x| x.powf_scalar(0.5), f64::sqrt, |x| x > 0.0, |x| (0.5 * x.ln()).abs() * x.sqrt();
    "powf_scalar of -1.5": |x| x.powf_scalar(-1.5), |x| x.powf(-1.5), |x| x > 0.0, |x| (1.5 * x.ln()).abs() * x.powf(-1.5);
    "powi_scalar of 3": |x| x.powi_scalar(3), |x| x.powi(3), EVERYWHERE, |x| (3.0 * x.abs().ln()).abs() * x.powi(3).abs();
    "powi_scalar of 7": |x| x.powi_scalar(7), |x| x.powi(7), EVERYWHERE, |x| (7.0 * x.abs().ln()).abs() * x.powi(7).abs();
    "powi_scalar of -2": |x| x.powi_scalar(-2), |x| x.powi(-2), |x| x.abs() > 1e-18, |x| (2.0 * x.abs().ln()).abs() * x.powi(-2);
    "deg2rad": |x| x.deg2rad(), f64::to_radians, EVERYWHERE, DIRECT;
    "rad2deg": |x| x.rad2deg(), f64::to_degrees, EVERYWHERE, DIRECT;
    "sigmoid": sigmoid, sigmoid_of, EVERYWHERE, DIRECT;
    "log_sigmoid": log_sigmoid, |x| -softplus_of(-x), EVERYWHERE, ONE;
    "softplus": |x| softplus(x, 1.0), softplus_of, EVERYWHERE, ONE;
    "gelu": gelu, |x| 0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2), |x| x.abs() < 1e38, f64::abs;
    "gelu_approximate": gelu_approximate, gelu_by_tanh, |x| x.abs() < 1e12, f64::abs;
    "silu": silu, |x| x * sigmoid_of(x), EVERYWHERE, f64::abs;
    "mish": mish, |x| x * softplus_of(x).tanh(), EVERYWHERE, f64::abs;
    "elu": |x| elu(x, 1.0), |x| if x > 0.0 { x } else { x.exp_m1() }, EVERYWHERE, ONE;
    "celu": |x| celu(x, 2.0), |x| if x > 0.0 { x } else { 2.0 * (x / 2.0).exp_m1() }, EVERYWHERE, |_| 2.0;
    "softsign": softsign, |x| x / (1.0 + x.abs()), EVERYWHERE, DIRECT;
    "tanhshrink": tanhshrink, |x| x - x.tanh(), EVERYWHERE, |x| x.abs().max(1.0);
    "hard_sigmoid": |x| hard_sigmoid(x, 0.25, 0.5), |x| (0.25 * x + 0.5).clamp(0.0, 1.0), EVERYWHERE, ONE;
    "hard_swish": hard_swish, |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0), EVERYWHERE, f64::abs;
};

#[test]
fn functions_of_one_element() {
    let device = crate::deterministic_device();
    let mut measured = Measured::new(FUNCTIONS);
    for &Function { name, ours, exact, domain, within } in ALL {
        let values: Vec<f32> = values().into_iter().filter(|&x| domain(f64::from(x))).collect();
        let operand = Tensor::<1>::from_data(TensorData::new(values.clone(), [values.len()]), &device);
        let results = ours(operand).into_data().try_into_vec::<f32>().expect("f32");
        for (x, got) in values.into_iter().zip(results) {
            let wanted = exact(f64::from(x));
            if !is_tiny(wanted) {
                let ulps = super::error(got, wanted, terms(exact, f64::from(x)).max(within(x.into())));
                measured.note(name, BOUND, ulps, || format!("of {x:e}: {got:e} for {wanted:e}"));
            }
        }
    }
    measured.conclude();
}

struct Pair {
    name: &'static str,
    ours: fn(Tensor<1>, Tensor<1>) -> Tensor<1>,
    exact: fn(f64, f64) -> f64,
    domain: fn(f64, f64) -> bool,
}

macro_rules! pairs {
    ($($name:literal: $ours:expr, $exact:expr, $domain:expr;)*) => {
        &[$(Pair { name: $name, ours: $ours, exact: $exact, domain: $domain }),*]
    };
}

const PAIRS: &[Pair] = pairs! {
    "powf": |x, y| x.powf(y), f64::powf, |x, y| x > 0.0 && y.abs() < 40.0;
    "atan2": |x, y| x.atan2(y), f64::atan2, |x, y| x.abs().max(y.abs()) < 1e30 && x.abs().min(y.abs()) > 1e-30;
    "hypot": |x, y| x.hypot(y), f64::hypot, |_, _| true;
    "remainder": |x, y| x.remainder(y), |x, y| x - (x / y).floor() * y, |x, y| (1e-30..1e4).contains(&(x / y).abs());
};

#[test]
fn functions_of_two_elements() {
    let device = crate::deterministic_device();
    let mut measured = Measured::new(FUNCTIONS);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let all = values();
    let partners: Vec<f32> = (0..all.len()).map(|_| all[rng.random_range(0..all.len())]).collect();
    for Pair { name, ours, exact, domain } in PAIRS {
        let pairs = all.iter().copied().zip(partners.iter().copied());
        let pairs: Vec<(f32, f32)> = pairs.filter(|&(x, y)| domain(x.into(), y.into())).collect();
        let load = |values: Vec<f32>| {
            let count = values.len();
            Tensor::<1>::from_data(TensorData::new(values, [count]), &device)
        };
        let (left, right) = pairs.iter().copied().unzip();
        let results = ours(load(left), load(right)).into_data().try_into_vec::<f32>().expect("f32");
        for ((x, y), got) in pairs.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).zip(results) {
            let wanted = exact(x, y);
            if !is_tiny(wanted) {
                let ulps = super::error(got, wanted, terms(|x| exact(x, y), x) + terms(|y| exact(x, y), y));
                measured.note(name, BOUND, ulps, || format!("of {x:e} and {y:e}: {got:e} for {wanted:e}"));
            }
        }
    }
    measured.conclude();
}

#[test]
fn entries_are_about_functions() {
    let names = ALL.iter().map(|function| function.name).chain(PAIRS.iter().map(|pair| pair.name));
    let names: Vec<_> = names.collect();
    assert!(FUNCTIONS.iter().all(|entry| names.contains(&entry.operation)));
}
