//! What IEEE 754 rounds correctly, to the bit.

use super::Driver;
use super::specials::{flushed, same};
use burn::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Every special value beside every other, then random bits, whose exponents cancel and carry in every way.
fn operands() -> [Vec<f32>; 2] {
    let special = super::specials::VALUES;
    let mut pairs: Vec<_> = special.iter().flat_map(|&left| special.iter().map(move |&right| [left, right])).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    pairs.extend((0..20_000).map(|_| [f32::from_bits(rng.random()), f32::from_bits(rng.random())]));
    pairs.extend((0..20_000).map(|_| [rng.random_range(-4.0..4.0), rng.random_range(-4.0..4.0)]));
    [0, 1].map(|side| pairs.iter().map(|pair| pair[side]).collect())
}

type Ours = fn(Tensor<1>, Tensor<1>) -> Tensor<1>;

/// With what the driver makes of every intermediate result.
type Exact = fn(f32, f32, fn(f32) -> f32) -> f32;

const OPERATIONS: &[(&str, Ours, Exact)] = &[
    ("add", |x, y| x + y, |x, y, _| x + y),
    ("sub", |x, y| x - y, |x, y, _| x - y),
    ("mul", |x, y| x * y, |x, y, _| x * y),
    ("div", |x, y| x / y, |x, y, _| x / y),
    ("add_scalar", |x, _| x + 0.1, |x, _, _| x + 0.1),
    ("mul_scalar", |x, _| x * 0.1, |x, _, _| x * 0.1),
    ("div_scalar", |x, _| x / 3.0, |x, _, _| x / 3.0),
    ("sqrt", |x, _| x.sqrt(), |x, _, _| x.sqrt()),
    ("recip", |x, _| x.recip(), |x, _, _| 1.0 / x),
    ("square", |x, _| x.square(), |x, _, _| x * x),
    ("neg", |x, _| -x, |x, _, _| -x),
    ("abs", |x, _| x.abs(), |x, _, _| x.abs()),
    ("floor", |x, _| x.floor(), |x, _, _| x.floor()),
    ("ceil", |x, _| x.ceil(), |x, _, _| x.ceil()),
    ("trunc", |x, _| x.trunc(), |x, _, _| x.trunc()),
    ("round", |x, _| x.round(), |x, _, _| x.round_ties_even()),
    // Two roundings, which no compiler may merge: the fused kernel puts a wall between any two operations.
    ("product and sum", |x, y| x.clone() * y.clone() + x, |x, y, of| of(x * y) + x),
    ("sum of products", |x, y| x.clone() * y.clone() + x.clone() * x, |x, y, of| of(x * y) + of(x * x)),
];

#[test]
fn arithmetic_is_rounded_correctly() {
    let device = crate::deterministic_device();
    let keeps_subnormals = Driver::of_this_machine() == Driver::Lavapipe;
    let [left, right] = operands();
    let load = |values: &[f32]| Tensor::<1>::from_data(TensorData::new(values.to_vec(), [values.len()]), &device);
    let mut wrong = Vec::new();
    for (name, ours, exact) in OPERATIONS {
        let results = ours(load(&left), load(&right)).into_data().try_into_vec::<f32>().expect("f32");
        for ((&x, &y), got) in left.iter().zip(&right).zip(results) {
            let wanted = exact(x, y, |x| x);
            let or_flushed = flushed(exact(flushed(x), flushed(y), flushed));
            if !same(got, wanted) && (keeps_subnormals || !same(got, or_flushed)) {
                wrong.push(format!("{name} of {x:e} and {y:e}: {got:e}, not {wanted:e}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
