//! Random numbers.

use super::{Rows, both};
use burn_backend::ops::{FloatTensorOps, IntTensorOps};
use burn_backend::{Distribution, FloatDType::F32, IntDType::I32, Shape};

pub fn compare(rows: &mut Rows<'_>) {
    let device = rows.device.clone();
    let shape = || Shape::new([1 << 20]);
    let float = [
        ("dropout mask of 2^20 elements", Distribution::Bernoulli(0.5)),
        ("uniform random numbers, 2^20", Distribution::Uniform(-1.0, 3.0)),
        ("normal random numbers, 2^20", Distribution::Normal(1.0, 1.0)),
    ];
    for (name, distribution) in float {
        rows.draw(name, both!(B => B::float_random(shape(), distribution, &device, F32)));
    }
    // So many values that the mean of Burn's and ours agree within a hundredth.
    let uniform = Distribution::Uniform(0.0, 8.0);
    rows.draw("uniform random ints, 2^20", both!(B => B::int_random(shape(), uniform, &device, I32)));
}
