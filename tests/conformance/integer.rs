//! Int tensors.

use super::{Case, check, n};
use burn::prelude::*;

macro_rules! along {
    ($($name:ident)*) => { &[$((stringify!($name), |d| {
        vec![
            n([4, 5, 6], d).$name(0).into_data(),
            n([4, 5, 6], d).$name(1).into_data(),
            n([4, 5, 6], d).permute([2, 0, 1]).$name(2).into_data(),
            n([2, 300], d).$name(1).into_data(),
        ]
    })),*] };
}

const ALONG: &[Case] = along![
    sum_dim mean_dim max_dim min_dim argmax argmin max_abs_dim cumsum cummin cummax sort sort_descending
];

const CASES: &[Case] = &[
    ("add", |d| vec![(n([3, 5], d) + n([1, 5], d)).into_data(), (n([3, 5], d) + 7).into_data()]),
    ("sub", |d| vec![(n([3, 5], d) - n([3, 1], d)).into_data(), (n([3, 5], d) - 7).into_data()]),
    ("mul", |d| vec![(n([3, 5], d) * n([1, 5], d)).into_data(), (n([3, 5], d) * -7).into_data()]),
    ("div", |d| vec![(n([3, 5], d) / (n([3, 5], d).abs() + 1)).into_data(), (n([3, 5], d) / 7).into_data()]),
    ("remainder", |d| {
        vec![n([3, 5], d).remainder(n([3, 5], d).abs() + 3).into_data(), n([3, 5], d).remainder_scalar(7).into_data()]
    }),
    ("neg abs sign", |d| vec![(-n([9], d)).into_data(), n([9], d).abs().into_data(), n([9], d).sign().into_data()]),
    ("powi", |d| {
        vec![n([9], d).powi_scalar(2).into_data(), n([9], d).powi(n([9], d).abs().remainder_scalar(3)).into_data()]
    }),
    ("clamp", |d| {
        vec![
            n([40], d).clamp(-10, 10).into_data(),
            n([40], d).clamp_min(3).into_data(),
            n([40], d).clamp_max(3).into_data(),
        ]
    }),
    ("sum prod", |d| {
        vec![
            n([40], d).sum().into_data(),
            n([4], d).prod().into_data(),
            n([2, 3], d).prod_dim(1).into_data(),
            n([40], d).mean().into_data(),
        ]
    }),
    ("max min", |d| vec![n([40], d).max().into_data(), n([40], d).min().into_data(), n([40], d).max_abs().into_data()]),
    ("cumprod", |d| vec![n([3, 4], d).cumprod(1).into_data()]),
    ("with indices", |d| {
        let (a, b) = n([4, 50], d).max_dim_with_indices(1);
        let (e, f) = n([4, 50], d).min_dim_with_indices(0);
        vec![a.into_data(), b.into_data(), e.into_data(), f.into_data()]
    }),
    ("topk", |d| vec![n([4, 50], d).topk(3, 1).into_data()]),
    ("bitwise", |d| {
        vec![
            n([9], d).bitwise_and(n([9], d).flip([0])).into_data(),
            n([9], d).bitwise_or(n([9], d).flip([0])).into_data(),
            n([9], d).bitwise_xor(n([9], d).flip([0])).into_data(),
            n([9], d).bitwise_not().into_data(),
            n([9], d).bitwise_and_scalar(6).into_data(),
            n([9], d).bitwise_or_scalar(6).into_data(),
            n([9], d).bitwise_xor_scalar(6).into_data(),
        ]
    }),
    ("shifts", |d| {
        vec![
            n([9], d).abs().bitwise_left_shift_scalar(3).into_data(),
            n([9], d).abs().bitwise_right_shift_scalar(1).into_data(),
            n([9], d).abs().bitwise_left_shift(n([9], d).abs().remainder_scalar(4)).into_data(),
            n([9], d).bitwise_right_shift(n([9], d).abs().remainder_scalar(4)).into_data(),
        ]
    }),
    ("comparisons", |d| {
        vec![
            n([40], d).equal(n([40], d).flip([0])).into_data(),
            n([40], d).not_equal(n([40], d).flip([0])).into_data(),
            n([40], d).greater(n([40], d).flip([0])).into_data(),
            n([40], d).greater_equal(n([40], d).flip([0])).into_data(),
            n([40], d).lower(n([40], d).flip([0])).into_data(),
            n([40], d).lower_equal(n([40], d).flip([0])).into_data(),
            n([40], d).equal_scalar(3).into_data(),
            n([40], d).greater_scalar(3).into_data(),
            n([40], d).lower_equal_scalar(3).into_data(),
        ]
    }),
    ("float", |d| vec![n([40], d).float().into_data()]),
    ("bool", |d| vec![n([40], d).bool().into_data()]),
    ("arange", |d| {
        vec![Tensor::<1, Int>::arange(-3..40, d).into_data(), Tensor::<1, Int>::arange_step(2..40, 7, d).into_data()]
    }),
    ("matmul", |d| {
        vec![n([3, 4], d).matmul(n([4, 5], d)).into_data(), n([2, 3, 4], d).matmul(n([2, 4, 5], d)).into_data()]
    }),
    ("cartesian_grid", |d| vec![Tensor::<2, Int>::cartesian_grid::<_, 3>([3, 4], d).into_data()]),
    ("one_hot", |d| vec![n([9], d).abs().one_hot::<2>(60).into_data()]),
    ("zeros ones full", |d| {
        vec![
            Tensor::<2, Int>::zeros([2, 3], d).into_data(),
            Tensor::<2, Int>::ones([2, 3], d).into_data(),
            Tensor::<2, Int>::full([2, 3], -9, d).into_data(),
        ]
    }),
];

#[test]
fn integers() {
    check(ALONG);
    check(CASES);
}
