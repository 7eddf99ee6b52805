//! Float tensors.

use super::{Case, at, check, check_within, positive, special, x};
use burn::prelude::*;
use burn::tensor::activation::*;

macro_rules! unary {
    ($($name:ident)*) => { &[$((stringify!($name), |d| {
        vec![
            x([3, 5], d).$name().into_data(),
            positive([67], d).$name().into_data(),
            x([5, 3], d).transpose().$name().into_data(),
            special(d).$name().into_data(),
            x([0, 3], d).$name().into_data(),
        ]
    })),*] };
}

const UNARY: &[Case] = unary![round floor ceil trunc abs sign neg square is_nan is_inf is_finite];

macro_rules! function {
    ($($name:ident)*) => { &[$((stringify!($name), |d| {
        vec![
            (x([3, 5], d) / 2.5).$name().into_data(),
            positive([67], d).$name().into_data(),
            (x([4, 6], d).transpose().slice([1..5, 0..3]) / 2.5).$name().into_data(),
        ]
    })),*] };
}

const FUNCTIONS: &[Case] = function![erf recip deg2rad rad2deg exp log1p sinh cosh tanh atan asinh];

/// What WGSL allows a sine or cosine up to pi, and what is made of them.
const TRIGONOMETRY: f64 = 1.0 / 2048.0;

macro_rules! below_one {
    ($($name:ident)*) => { &[$((stringify!($name), |d| {
        vec![
            (x([3, 5], d) / 2.5).$name().into_data(),
            (x([4, 6], d).transpose().slice([1..5, 0..3]) / 2.5).$name().into_data(),
        ]
    })),*] };
}

const TRIGONOMETRIC: &[Case] = below_one![sin cos tan asin acos atanh];

const POSITIVE: &[Case] = &[
    ("log", |d| vec![positive([40], d).log().into_data()]),
    ("sqrt", |d| vec![positive([40], d).sqrt().into_data()]),
    ("acosh", |d| vec![(positive([40], d) + 1.0).acosh().into_data()]),
    ("powf", |d| {
        vec![positive([4, 5], d).powf(x([4, 5], d)).into_data(), positive([4, 5], d).powf(x([1, 5], d)).into_data()]
    }),
    ("powf_scalar", |d| vec![positive([9], d).powf_scalar(1.7).into_data(), x([9], d).powf_scalar(2.0).into_data()]),
    ("powi", |d| {
        vec![
            x([9], d).powi_scalar(3).into_data(),
            x([9], d).powi_scalar(0).into_data(),
            positive([9], d).powi_scalar(-2).into_data(),
        ]
    }),
    ("hypot", |d| vec![x([4, 5], d).hypot(x([1, 5], d)).into_data()]),
    ("atan2", |d| vec![x([4, 5], d).atan2(x([5, 4], d).transpose()).into_data()]),
];

const BINARY: &[Case] = &[
    ("add", |d| vec![(x([3, 5], d) + x([5, 3], d).transpose()).into_data(), (x([3, 1], d) + x([1, 5], d)).into_data()]),
    ("sub", |d| vec![(x([3, 5], d) - x([1, 5], d)).into_data(), (x([3, 5], d) - 0.3).into_data()]),
    ("mul", |d| vec![(x([3, 5], d) * x([3, 1], d)).into_data(), (x([3, 5], d) * 3).into_data()]),
    ("div", |d| vec![(x([3, 5], d) / positive([3, 5], d)).into_data(), (x([3, 5], d) / 7.0).into_data()]),
    ("division by zero", |d| vec![(special(d) / 0.0).into_data()]),
    ("remainder", |d| {
        vec![x([40], d).remainder(positive([40], d)).into_data(), x([40], d).remainder_scalar(0.7).into_data()]
    }),
    ("fmod", |d| vec![x([40], d).fmod_scalar(0.7).into_data()]),
    ("clamp", |d| {
        vec![
            x([9], d).clamp(-0.5, 0.5).into_data(),
            x([9], d).clamp_min(0.1).into_data(),
            x([9], d).clamp_max(0.1).into_data(),
        ]
    }),
    ("max_pair", |d| {
        vec![x([3, 5], d).max_pair(x([5, 3], d).transpose()).into_data(), x([9], d).min_pair(-x([9], d)).into_data()]
    }),
    ("is_close", |d| {
        vec![
            x([9], d).is_close(x([9], d) + 1e-7, None, None).into_data(),
            special(d).is_close(special(d), None, None).into_data(),
        ]
    }),
    ("all_close", |d| vec![TensorData::from([x([9], d).all_close(x([9], d), None, None)])]),
    ("cross", |d| {
        vec![
            x([4, 3], d).cross(positive([4, 3], d), 1).into_data(),
            x([3, 4], d).cross(positive([3, 4], d), 0).into_data(),
        ]
    }),
];

const COMPARISONS: &[Case] = &[
    ("equal", |d| vec![special(d).equal(special(d).flip([0])).into_data(), special(d).equal(special(d)).into_data()]),
    ("not_equal", |d| {
        vec![special(d).not_equal(special(d).flip([0])).into_data(), special(d).not_equal_scalar(0.0).into_data()]
    }),
    ("greater", |d| {
        vec![special(d).greater(special(d).flip([0])).into_data(), special(d).greater_scalar(0.5).into_data()]
    }),
    ("greater_equal", |d| {
        vec![
            special(d).greater_equal(special(d).flip([0])).into_data(),
            special(d).greater_equal_scalar(0.5).into_data(),
        ]
    }),
    ("lower", |d| vec![special(d).lower(special(d).flip([0])).into_data(), special(d).lower_scalar(0.5).into_data()]),
    ("lower_equal", |d| {
        vec![special(d).lower_equal(special(d).flip([0])).into_data(), special(d).lower_equal_scalar(0.5).into_data()]
    }),
    ("equal_scalar", |d| vec![special(d).equal_scalar(0.0).into_data(), special(d).equal_scalar(1.5).into_data()]),
    ("any all", |d| {
        let nan = || special(d).narrow(0, 0, 1);
        vec![
            special(d).any().into_data(),
            special(d).all().into_data(),
            nan().any().into_data(),
            nan().all().into_data(),
            (special(d) * 0.0).any_dim(0).into_data(),
            special(d).narrow(0, 3, 2).any().into_data(),
        ]
    }),
    ("contains_nan", |d| vec![special(d).contains_nan().into_data(), x([3], d).contains_nan().into_data()]),
    ("bool", |d| vec![special(d).bool().into_data()]),
    ("int", |d| vec![(x([40], d) * 20.0).int().into_data()]),
];

macro_rules! reductions {
    ($($name:ident)*) => { &[$((stringify!($name), |d| {
        let cube = || x([4, 5, 6], d);
        vec![
            cube().$name(0).into_data(),
            cube().$name(1).into_data(),
            cube().$name(2).into_data(),
            cube().permute([2, 0, 1]).$name(1).into_data(),
            x([1, 300], d).$name(1).into_data(),
            x([300, 2], d).$name(0).into_data(),
            x([1], d).$name(0).into_data(),
        ]
    })),*] };
}

const REDUCTIONS: &[Case] = reductions![
    sum_dim mean_dim prod_dim max_dim min_dim argmax argmin max_abs_dim cumsum cumprod cummin cummax sort
    sort_descending argsort argsort_descending median
];

const MORE_REDUCTIONS: &[Case] = &[
    ("sum", |d| vec![x([4, 5], d).sum().into_data(), x([1000], d).sum().into_data(), x([0], d).sum().into_data()]),
    ("mean", |d| vec![x([4, 5], d).mean().into_data(), x([4, 5, 2], d).permute([2, 1, 0]).mean().into_data()]),
    ("prod", |d| vec![x([4, 5], d).prod().into_data()]),
    ("max", |d| {
        vec![x([4, 5], d).max().into_data(), x([4, 5], d).min().into_data(), x([4, 5], d).max_abs().into_data()]
    }),
    ("sum_dims", |d| {
        vec![
            x([4, 5, 6], d).sum_dims(&[0, 2]).into_data(),
            x([4, 5, 6], d).mean_dims(&[1, 2]).into_data(),
            x([4, 5, 6], d).prod_dims(&[0, 1]).into_data(),
        ]
    }),
    ("max_dims", |d| {
        vec![
            x([4, 5, 6], d).max_dims(&[0, 2]).into_data(),
            x([4, 5, 6], d).min_dims(&[0, 2]).into_data(),
            x([4, 5, 6], d).max_abs_dims(&[0, 2]).into_data(),
        ]
    }),
    ("max_dim_with_indices", |d| {
        let (a, b) = x([4, 50], d).max_dim_with_indices(1);
        let (e, f) = x([4, 50], d).min_dim_with_indices(0);
        vec![a.into_data(), b.into_data(), e.into_data(), f.into_data()]
    }),
    ("ties", |d| {
        let values = Tensor::<2>::from_data([[1.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0]], d);
        vec![values.clone().argmax(1).into_data(), values.argmin(1).into_data()]
    }),
    ("topk", |d| vec![x([4, 50], d).topk(3, 1).into_data(), x([50, 4], d).topk(50, 0).into_data()]),
    ("topk_with_indices", |d| {
        let (values, at) = x([4, 50], d).topk_with_indices(7, 1);
        vec![values.into_data(), at.into_data()]
    }),
    ("argtopk", |d| vec![x([4, 50], d).argtopk(7, 1).into_data()]),
    ("sort_with_indices", |d| {
        let (a, b) = x([4, 50], d).sort_with_indices(1);
        let (e, f) = x([4, 50], d).sort_descending_with_indices(0);
        vec![a.into_data(), b.into_data(), e.into_data(), f.into_data()]
    }),
    ("median_with_indices", |d| {
        let (a, b) = x([4, 51], d).median_with_indices(1);
        vec![a.into_data(), b.into_data()]
    }),
    ("var", |d| vec![x([4, 50], d).var(1).into_data(), x([4, 50], d).var_bias(0).into_data()]),
    ("var_mean", |d| {
        let (a, b) = x([4, 50], d).var_mean(1);
        let (e, f) = x([4, 50], d).var_mean_bias(1);
        vec![a.into_data(), b.into_data(), e.into_data(), f.into_data()]
    }),
    ("cov", |d| vec![x([4, 50], d).cov(1, 1).into_data()]),
    ("dot", |d| vec![x([50], d).dot(positive([50], d)).into_data()]),
    ("matmul", |d| {
        vec![
            x([4, 5], d).matmul(x([5, 6], d)).into_data(),
            x([2, 1, 4, 5], d).matmul(x([1, 3, 5, 6], d)).into_data(),
            x([5, 4], d).transpose().matmul(x([6, 5], d).transpose()).into_data(),
            x([1, 70], d).matmul(x([70, 1], d)).into_data(),
            x([3, 0], d).matmul(x([0, 2], d)).into_data(),
        ]
    }),
    ("norms", |d| {
        vec![burn::tensor::module::layer_norm(x([4, 50], d), positive([50], d), Some(x([50], d)), 1e-5).into_data()]
    }),
    ("select of floats", |d| vec![x([4, 50], d).select(1, at([9], 50, d)).into_data()]),
    ("softmax of specials", |d| vec![softmax(special(d).narrow(0, 3, 6), 0).into_data()]),
];

const ACTIVATIONS: &[Case] = &[
    ("relu", |d| vec![relu(x([40], d)).into_data()]),
    ("relu6", |d| vec![relu6(x([40], d) * 5.0).into_data()]),
    ("hardtanh", |d| vec![hardtanh(x([40], d), -1.0, 1.0).into_data()]),
    ("tanhshrink", |d| vec![tanhshrink(x([40], d)).into_data()]),
    ("leaky_relu", |d| vec![leaky_relu(x([40], d), 0.1).into_data()]),
    ("gelu", |d| vec![gelu(x([40], d)).into_data(), gelu_approximate(x([40], d)).into_data()]),
    ("prelu", |d| vec![prelu(x([2, 4, 3], d), x([4], d)).into_data(), prelu(x([2, 4, 3], d), x([1], d)).into_data()]),
    ("softmax", |d| vec![softmax(x([4, 50], d), 1).into_data(), softmax(x([4, 50], d), 0).into_data()]),
    ("softmin", |d| vec![softmin(x([4, 50], d), 1).into_data()]),
    ("quiet_softmax", |d| vec![quiet_softmax(x([4, 50], d), 1).into_data()]),
    ("log_softmax", |d| vec![log_softmax(x([4, 50], d), 1).into_data()]),
    ("softplus", |d| vec![softplus(x([40], d), 1.5).into_data()]),
    ("sigmoid", |d| {
        vec![
            sigmoid(x([40], d)).into_data(),
            log_sigmoid(x([40], d)).into_data(),
            hard_sigmoid(x([40], d), 0.2, 0.5).into_data(),
        ]
    }),
    ("silu", |d| vec![silu(x([40], d)).into_data(), hard_swish(x([40], d)).into_data(), mish(x([40], d)).into_data()]),
    ("elu", |d| {
        vec![elu(x([40], d), 0.7).into_data(), celu(x([40], d), 0.7).into_data(), selu(x([40], d)).into_data()]
    }),
    ("glu", |d| vec![glu(x([3, 8], d), 1).into_data()]),
    ("softsign", |d| vec![softsign(x([40], d)).into_data()]),
    ("shrink", |d| {
        vec![
            hard_shrink(x([40], d), 0.5).into_data(),
            soft_shrink(x([40], d), 0.5).into_data(),
            shrink(x([40], d), 0.5, 0.1).into_data(),
        ]
    }),
    ("threshold", |d| vec![threshold(x([40], d), 0.5, 7.0).into_data(), thresholded_relu(x([40], d), 0.5).into_data()]),
];

#[test]
fn float_elements() {
    check(UNARY);
    check(FUNCTIONS);
    check_within(TRIGONOMETRY, TRIGONOMETRIC);
    check(POSITIVE);
    check(BINARY);
    check(COMPARISONS);
}

#[test]
fn float_reductions() {
    check(REDUCTIONS);
    check(MORE_REDUCTIONS);
}

#[test]
fn activations() {
    check(ACTIVATIONS);
}
