//! NaN, infinities, signed zeros and subnormal numbers: what DESIGN.md says becomes of them.

use super::Driver;
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp;
use burn::tensor::activation::{relu, softmax};
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;

/// A value of every kind.
pub const VALUES: &[f32] = &[
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    f32::from_bits(1),
    -f32::from_bits(1),
    f32::from_bits(0x007f_ffff),
    f32::MAX,
    f32::MIN,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    16_777_216.0,
    1.0 + f32::EPSILON,
];

/// Equal bits, or NaN both.
pub fn same(left: f32, right: f32) -> bool {
    left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
}

/// A subnormal number as zero, with its sign.
pub fn flushed(value: f32) -> f32 {
    if value.is_subnormal() { 0.0f32.copysign(value) } else { value }
}

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;
const TINY: f32 = f32::from_bits(5);

fn load<const N: usize>(values: [f32; N]) -> Tensor<1> {
    Tensor::from_data(values, &crate::deterministic_device())
}

#[track_caller]
fn assert_values<const D: usize>(got: Tensor<D>, wanted: &[f32]) {
    let got = got.into_data().try_into_vec::<f32>().expect("f32");
    let alike = got.len() == wanted.len() && got.iter().zip(wanted).all(|(&got, &wanted)| same(got, wanted));
    assert!(alike, "{got:?}, not {wanted:?}");
}

#[track_caller]
fn assert_places<const D: usize>(got: Tensor<D, Int>, wanted: &[i64]) {
    assert_eq!(got.into_data().convert::<i64>().try_into_vec::<i64>().expect("i64"), wanted);
}

#[test]
fn a_nan_is_the_largest_and_the_smallest() {
    let x = || load([1.0, NAN, -INF, NAN, INF, 3.0]);
    assert_values(x().max(), &[NAN]);
    assert_values(x().min(), &[NAN]);
    assert_places(x().argmax(0), &[1]);
    assert_places(x().argmin(0), &[1]);
    assert_values(x().cummax(0), &[1.0, NAN, NAN, NAN, NAN, NAN]);
    assert_values(x().cummin(0), &[1.0, NAN, NAN, NAN, NAN, NAN]);
    let (value, place) = x().max_dim_with_indices(0);
    assert_values(value, &[NAN]);
    assert_places(place, &[1]);
}

#[test]
fn a_nan_is_sorted_behind_infinity() {
    let x = || load([1.0, NAN, -INF, INF, -3.0]);
    assert_values(x().sort(0), &[-INF, -3.0, 1.0, INF, NAN]);
    assert_values(x().topk(3, 0), &[NAN, INF, 1.0]);
    assert_places(x().argtopk(2, 0), &[1, 3]);
}

#[test]
fn a_nan_goes_through_arithmetic_and_reductions() {
    let x = || load([1.0, NAN, 2.0]);
    assert_values(x() * 0.0, &[0.0, NAN, 0.0]);
    assert_values(x().sum(), &[NAN]);
    assert_values(x().prod(), &[NAN]);
    assert_values(x().mean(), &[NAN]);
    assert_values(x().cumsum(0), &[1.0, NAN, NAN]);
    assert_values(softmax(x(), 0), &[NAN, NAN, NAN]);
    assert_values(x().unsqueeze::<2>().matmul(load([0.0, 0.0, 0.0]).unsqueeze_dim::<2>(1)), &[NAN]);
    let at = Tensor::<1, Int>::from_data([0, 1, 0], &crate::deterministic_device());
    assert_values(load([0.0, 5.0]).scatter(0, at, x(), IndexingUpdateOp::Add), &[3.0, NAN]);
}

#[test]
fn a_nan_is_unlike_itself_and_not_positive() {
    let x = || load([NAN, 1.0]);
    assert_values(x().equal(x()).float(), &[0.0, 1.0]);
    assert_values(x().greater_elem(0.0).float() + x().lower_elem(0.0).float(), &[0.0, 1.0]);
    assert_values(relu(x()), &[NAN, 1.0]);
}

#[test]
fn infinities_follow_ieee() {
    assert_values(load([INF, INF, -INF, 1.0]) + load([1.0, -INF, -INF, INF]), &[INF, NAN, -INF, INF]);
    assert_values(load([1.0, -1.0, 0.0, INF]) / load([0.0, 0.0, 0.0, INF]), &[INF, -INF, NAN, NAN]);
    assert_values(load([INF, -INF, 0.0]).exp(), &[INF, 0.0, 1.0]);
    assert_values(load([f32::MAX, f32::MAX]).sum(), &[INF]);
    // A mask of -inf takes elements out.
    assert_values(softmax(load([-INF, 0.0, 0.0, -INF]), 0), &[0.0, 0.5, 0.5, 0.0]);
}

#[test]
fn logarithms_and_powers_of_zero_follow_c99() {
    assert_values(load([0.0, -0.0, INF, -1.0]).log(), &[-INF, -INF, INF, NAN]);
    assert_values(load([-1.0, -2.0, INF]).log1p(), &[-INF, NAN, INF]);
    assert_values(load([0.0, 0.0, 0.0, INF]).powf(load([2.0, 0.5, -2.0, -1.0])), &[0.0, 0.0, INF, 0.0]);
    assert_values(load([-2.0, -2.0, NAN, 1.0]).powf(load([3.0, 0.5, 0.0, NAN])), &[-8.0, NAN, 1.0, 1.0]);
    // Of one exponent for all elements, the small whole ones are products.
    assert_values(load([0.0, -0.0, INF]).powf_scalar(2.0), &[0.0, 0.0, INF]);
    assert_values(load([0.0, -2.0, INF]).powf_scalar(-1.0), &[INF, -0.5, 0.0]);
}

#[test]
fn functions_of_infinities_and_large_numbers_follow_c99() {
    assert_values(load([20.0, -20.0, INF, -INF, 100.0]).tanh(), &[1.0, -1.0, 1.0, -1.0, 1.0]);
    assert_values(load([INF, -INF]).erf(), &[1.0, -1.0]);
    assert_values(load([INF, -INF]).sin(), &[NAN, NAN]);
    assert_values(load([INF, -INF]).asinh(), &[INF, -INF]);
    assert_values(load([1.0, -1.0, 2.0]).atanh(), &[INF, -INF, NAN]);
}

/// Padding is left out of a pool, and is no zero. A NaN is above all, zeros tie.
#[test]
fn a_pool_has_no_padding() {
    let pool = MaxPoolOptions::new([3, 3]).with_stride([1, 1]).with_padding([1, 1]);
    for (value, other, maximum) in
        [(-2.0, -3.0, -2.0), (-INF, -INF, -INF), (NAN, INF, NAN), (-0.0, 0.0, -0.0), (0.0, -0.0, 0.0)]
    {
        let pooled = max_pool2d(load([value, other]).reshape([1, 1, 1, 2]), pool.clone());
        assert_values(pooled.reshape([2]), &[maximum; 2]);
    }
}

#[test]
fn zeros_keep_their_sign_and_tie() {
    assert_values(load([0.0, -0.0]) * load([-1.0, 3.0]), &[-0.0, -0.0]);
    assert_values(-load([0.0, -0.0]), &[-0.0, 0.0]);
    assert_values(load([0.0, -0.0]).abs(), &[0.0, 0.0]);
    assert_values(load([0.0, -0.0]).sqrt(), &[0.0, -0.0]);
    assert_values(load([1.0, 1.0]) / load([0.0, -0.0]), &[INF, -INF]);
    assert_values(load([0.0, -0.0]).equal(load([-0.0, 0.0])).float(), &[1.0, 1.0]);
    // The extremes of reductions order them; positions do not.
    assert_values(load([-0.0, 0.0]).max(), &[0.0]);
    assert_values(load([0.0, -0.0]).min(), &[-0.0]);
    assert_places(load([-0.0, 0.0]).argmax(0), &[0]);
    assert_places(load([0.0, -0.0]).argmin(0), &[0]);
    assert_values(load([0.0, -0.0, 0.0, -0.0]).topk(4, 0), &[0.0, 0.0, -0.0, -0.0]);
}

/// Kept on lavapipe, either kept or zeros elsewhere; but moves and orders never look at them.
#[test]
fn subnormal_numbers_are_the_driver_s() {
    let x = || load([TINY, -TINY, f32::MIN_POSITIVE, 1.0]);
    let computed: [(Tensor<1>, [f32; 4]); 4] = [
        (x() * 1.0, [TINY, -TINY, f32::MIN_POSITIVE, 1.0]),
        (x() + x(), [TINY + TINY, -TINY - TINY, 2.0 * f32::MIN_POSITIVE, 2.0]),
        (x() * 0.5, [TINY * 0.5, -TINY * 0.5, f32::MIN_POSITIVE * 0.5, 0.5]),
        (x().cumsum(0), [TINY, 0.0, f32::MIN_POSITIVE, 1.0]),
    ];
    for (got, wanted) in computed {
        let got = got.into_data().try_into_vec::<f32>().expect("f32");
        for (got, wanted) in got.into_iter().zip(wanted) {
            let kept = same(got, wanted);
            // A zero's sign is the driver's, too.
            let zero = wanted.is_subnormal() && got == 0.0;
            let alright = match Driver::of_this_machine() {
                Driver::Lavapipe => kept,
                _ => kept || zero,
            };
            assert!(alright, "{got:e} for {wanted:e}");
        }
    }
    assert_values(x().topk(4, 0), &[1.0, f32::MIN_POSITIVE, TINY, -TINY]);
    assert_values(x().max(), &[1.0]);
    assert_values(x().slice(0..2).min(), &[-TINY]);
    assert_places(x().slice(0..2).argmin(0), &[1]);
    assert_values(x().slice(1..2).repeat_dim(0, 2).flip([0]), &[-TINY, -TINY]);
    let at = Tensor::<1, Int>::from_data([1, 0, 1], &crate::deterministic_device());
    assert_values(x().gather(0, at), &[-TINY, TINY, -TINY]);
}
