//! Reductions along an axis, scans, orders of a line, and what is composed of reductions.

use super::{Case, columns, rows, weights};
use burn::prelude::*;
use burn::tensor::activation::*;
use burn::tensor::module::ctc_loss;

/// The sum of a row, in which plain Burn's order depends on how many rows there are.
pub fn sum_of_rows() -> Case {
    Case::new("sum of rows", "float_sum_dim", 5000, |x, _| x.sum_dim(1))
}

pub fn sums(_: &Device) -> Vec<Case> {
    vec![
        sum_of_rows(),
        Case::new("sum of short rows", "float_sum_dim", 37, |x, _| x.sum_dim(1)),
        Case::new("sum of long rows", "float_sum_dim", 20_000, |x, _| x.sum_dim(1)),
        Case::new("sum of columns", "float_sum_dim", 5000, |x, _| columns(x).sum_dim(0).transpose()),
        Case::new("sum of the middle axis", "float_sum_dim", 700 * 9, |x, _| rows(x.reshape([-1, 700, 9]).sum_dim(1))),
        Case::new("sum_dims", "float_sum_dims", 3 * 40 * 5, |x, _| rows(x.reshape([-1, 3, 40, 5]).sum_dims(&[1, 3]))),
        Case::new("mean_dim", "float_mean_dim", 1000, |x, _| x.mean_dim(1)),
        Case::new("mean_dim of columns", "float_mean_dim", 300, |x, _| columns(x).mean_dim(0).transpose()),
        Case::new("prod_dim", "float_prod_dim", 400, |x, _| (x * 0.01 + 1.0).prod_dim(1)),
        Case::new("var", "", 1000, |x, _| x.var(1)),
        Case::new("var_mean of columns", "", 300, |x, _| {
            let (variance, mean) = columns(x).var_mean(0);
            Tensor::cat(vec![variance, mean], 0).transpose()
        }),
        Case::new("euclidean norm", "", 1000, |x, _| x.square().sum_dim(1).sqrt()),
    ]
}

pub fn extremes(_: &Device) -> Vec<Case> {
    let case = |operations: &'static str, run: fn(Tensor<3>) -> Tensor<3>| {
        Case::new(operations, operations, 90 * 9, move |x, _| rows(run(x.reshape([-1, 90, 9]))))
    };
    vec![
        case("float_max_dim", |x| x.max_dim(1)),
        case("float_min_dim", |x| x.min_dim(2)),
        case("float_max_abs_dim", |x| x.max_abs_dim(1)),
        case("float_argmax", |x| x.argmax(1).float()),
        case("float_argmin", |x| x.argmin(2).float()),
        case("float_max_dim_with_indices", |x| {
            let (values, places) = x.max_dim_with_indices(1);
            Tensor::cat(vec![values, places.float()], 2)
        }),
        case("float_min_dim_with_indices", |x| {
            let (values, places) = x.min_dim_with_indices(2);
            Tensor::cat(vec![values, places.float()], 1)
        }),
        case("float_any_dim", |x| (x.abs() - 1.8).clamp_min(0.0).any_dim(2).float()),
        case("float_all_dim", |x| (x.abs() - 0.2).clamp_min(0.0).all_dim(2).float()),
        Case::new("argmax of columns", "float_argmax", 300, |x, _| columns(x).argmax(0).float().transpose()),
    ]
}

pub fn scans(_: &Device) -> Vec<Case> {
    let case = |operations: &'static str, length: usize, run: fn(Tensor<2>) -> Tensor<2>| {
        Case::new(format!("{operations} of {length}"), operations, length, move |x, _| run(x))
    };
    vec![
        case("float_cumsum", 60, |x| x.cumsum(1)),
        case("float_cumsum", 5000, |x| x.cumsum(1)),
        case("float_cumsum", 900, |x| columns(x).cumsum(0).transpose()),
        case("float_cumsum", 90 * 9, |x| rows(x.reshape([-1, 90, 9]).cumsum(1))),
        case("float_cumprod", 500, |x| (x * 0.01 + 1.0).cumprod(1)),
        case("float_cummax", 500, |x| x.cummax(1)),
        case("float_cummin", 500, |x| columns(x).cummin(0).transpose()),
    ]
}

pub fn orders(_: &Device) -> Vec<Case> {
    let case = |operations: &'static str, run: fn(Tensor<2>) -> Tensor<2>| {
        Case::new(operations, operations, 300, move |x, _| run(x))
    };
    let composed = |name: &'static str, run: fn(Tensor<2>) -> Tensor<2>| Case::new(name, "", 300, move |x, _| run(x));
    vec![
        composed("sort", |x| x.sort(1)),
        composed("sort_with_indices", |x| {
            let (values, places) = x.sort_with_indices(1);
            Tensor::cat(vec![values, places.float()], 1)
        }),
        composed("argsort", |x| x.argsort(1).float()),
        case("float_topk", |x| x.topk(20, 1)),
        case("float_topk_with_indices", |x| {
            let (values, places) = x.topk_with_indices(20, 1);
            Tensor::cat(vec![values, places.float()], 1)
        }),
        case("float_argtopk", |x| x.argtopk(20, 1).float()),
        Case::new("topk of columns", "float_topk", 300, |x, _| columns(x).topk(20, 0).transpose()),
        Case::new("median", "", 300, |x, _| x.median(1)),
    ]
}

pub fn softmaxes(_: &Device) -> Vec<Case> {
    vec![
        Case::new("softmax", "", 1000, |x, _| softmax(x, 1)),
        Case::new("softmax of columns", "", 300, |x, _| softmax(columns(x), 0).transpose()),
        Case::new("log_softmax", "", 1000, |x, _| log_softmax(x, 1)),
        Case::new("softmin", "", 300, |x, _| softmin(x, 1)),
        Case::new("quiet_softmax", "", 300, |x, _| quiet_softmax(x, 1)),
        Case::new("cross entropy of each sample", "", 10, |x, at| {
            let target = at.slice_dim(1, 0..1);
            -log_softmax(x, 1).gather(1, target)
        }),
        Case::new("squared error of each sample", "", 300, |x, _| {
            let target = weights([1, 300], &x.device());
            (x - target).square().mean_dim(1)
        }),
        Case::new("ctc_loss", "ctc_loss", 12 * 6, |x, at| {
            let [samples, _] = x.dims();
            let log_probs = log_softmax(x.reshape([-1, 12, 6]), 2).swap_dims(0, 1);
            let targets = at.clone().slice_dim(1, 0..4).remainder_scalar(5) + 1;
            let lengths = at.slice_dim(1, 4..5).reshape([samples]);
            let inputs = lengths.clone().remainder_scalar(3) + 10;
            ctc_loss(log_probs, targets, inputs, lengths.remainder_scalar(3) + 2, 0).reshape([-1, 1])
        }),
    ]
}
