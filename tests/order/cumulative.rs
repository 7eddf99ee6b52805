//! Cumulative operations of Burn's tensor API: right, right beyond 65,535 elements, the same each time, and
//! differentiable.

use crate::bits::{assert_same, floats, indices};
use crate::deterministic_device as device;
use burn::prelude::*;

/// More elements along an axis than some drivers let a loop walk.
const LONG: usize = 70_000;

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("f32")
}

#[test]
fn a_long_axis_is_accumulated_to_its_end() {
    let ones = Tensor::<2>::ones([3, LONG], &device());
    let count: Vec<f32> = (1..=LONG).map(|n| n as f32).collect();
    assert_eq!(values(ones.cumsum(1)), count.repeat(3));
    let rising: Vec<f32> = (0..LONG).map(|n| (n as f32).sin() + n as f32 / 1000.0).collect();
    let x = Tensor::<1>::from_data(TensorData::new(rising.clone(), [LONG]), &device());
    let accumulate = |step: fn(f32, f32) -> f32| {
        let mut before = rising[0];
        let next = |&value: &f32| {
            before = step(before, value);
            before
        };
        rising.iter().map(next).collect::<Vec<_>>()
    };
    assert_eq!(values(x.clone().cummax(0)), accumulate(f32::max));
    assert_eq!(values(x.cummin(0)), accumulate(f32::min));
}

#[test]
fn integers_are_exact() {
    let data = indices([40, 300], 1000);
    let host: Vec<i32> = data.clone().try_into_vec().expect("i32");
    let sums: Vec<i32> =
        Tensor::<2, Int>::from_data(data, &device()).cumsum(0).into_data().try_into_vec().expect("i32");
    for (at, &sum) in sums.iter().enumerate() {
        let above: i32 = (0..=at / 300).map(|row| host[row * 300 + at % 300]).sum();
        assert_eq!(sum, above, "element {at}");
    }
}

#[test]
fn repeats_give_one_result() {
    let x = Tensor::<1>::from_data(floats([1 << 20]), &device());
    let run = || x.clone().cumsum(0).into_data();
    let first = run();
    for repeat in 0..5 {
        assert_same(&format!("cumsum, repeat {repeat}"), &first, &run());
    }
    // Sums of values from -2 to 2 stay small, and near those of the host.
    let host: Vec<f32> = floats([1 << 20]).try_into_vec().expect("f32");
    let mut exact = 0f64;
    for (got, value) in first.try_into_vec::<f32>().expect("f32").into_iter().zip(host) {
        exact += f64::from(value);
        assert!((f64::from(got) - exact).abs() < 0.1, "{got} for {exact}");
    }
}

/// The gradient of the weighted sum of `operation(x)` with respect to `x`.
fn gradient(x: [f32; 6], operation: impl Fn(Tensor<1>) -> Tensor<1>) -> Vec<f32> {
    let device = device().autodiff();
    let x = Tensor::<1>::from_data(x, &device).require_grad();
    let weights = Tensor::<1>::from_data([1.0f32, 2.0, 4.0, 8.0, 16.0, 32.0], &device);
    let gradients = (operation(x.clone()) * weights).sum().backward();
    values(x.grad(&gradients).expect("x took part"))
}

#[test]
fn gradients() {
    let x = [3.0, 1.0, 2.0, 5.0, -1.0, 4.0];
    // The weights of all results that an element is part of.
    assert_eq!(gradient(x, |x| x.cumsum(0)), [63.0, 62.0, 60.0, 56.0, 48.0, 32.0]);
    // The weights of all results that are the element.
    assert_eq!(gradient(x, |x| x.cummax(0)), [7.0, 0.0, 0.0, 56.0, 0.0, 0.0]);
    assert_eq!(gradient(x, |x| x.cummin(0)), [1.0, 14.0, 0.0, 0.0, 48.0, 0.0]);
    // d(x0 x1 .. xj)/dxi is the product without xi, also where xi is zero.
    let x = [2.0, 1.0, 0.0, 4.0, 1.0, 2.0];
    let weights = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let without = |i: usize, j: usize| (0..=j).filter(|&k| k != i).map(|k| x[k]).product::<f32>();
    let want: Vec<f32> = (0..6).map(|i| (i..6).map(|j| weights[j] * without(i, j)).sum()).collect();
    assert_eq!(gradient(x, |x| x.cumprod(0)), want);
}
