//! Tensors without elements, with many axes, and with their axes in an order of their own in memory.

use super::{Case, TOLERANCE, at, check, check_within, n, x};
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp::Add;
use burn::tensor::activation::softmax;
use burn::tensor::module::{conv2d, embedding, layer_norm, linear};
use burn::tensor::ops::ConvOptions;

fn b<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D, Bool> {
    n(shape, device).greater_scalar(5)
}

/// `[2, 4, 5, 12]` in memory, of which four channels are left out, as `[2, 8, 4, 5]`.
fn channels_last(device: &Device) -> Tensor<4> {
    x([2, 4, 5, 12], device).slice([0..2, 0..4, 0..5, 0..8]).permute([0, 3, 1, 2])
}

const WINDOWS: &[Case] = &[
    ("windows", |d| {
        let mut all = Vec::new();
        for length in [4, 5, 7, 9] {
            for (size, step) in [(2, 2), (2, 1), (2, 3), (3, 2), (4, 2), (4, 4)] {
                all.push(n([2, length], d).unfold::<3, _>(1, size, step).into_data());
                all.push(b([2, length], d).unfold::<3, _>(1, size, step).into_data());
                let windows = || x([2, length], d).unfold::<3, _>(1, size, step);
                all.push(windows().into_data());
                all.push(windows().floor().into_data());
                all.push((windows() + windows().flip([0])).into_data());
                all.push(windows().sum_dim(2).into_data());
                all.push(windows().max_dim(2).into_data());
                all.push(windows().reshape([-1]).into_data());
                all.push(x([length, 2], d).unfold::<3, _>(0, size, step).into_data());
                all.push(x([length, 2], d).transpose().unfold::<3, _>(1, size, step).into_data());
                all.push(x([2, length, 1], d).unfold::<4, _>(1, size, step).into_data());
            }
        }
        all
    }),
    ("long windows", |d| {
        let windows = || x([3, 62], d).unfold::<3, _>(1, 8, 4);
        vec![
            windows().max_dim(2).into_data(),
            windows().argmax(2).into_data(),
            windows().matmul(x([3, 8, 2], d)).into_data(),
            windows().swap_dims(1, 2).cumsum(2).into_data(),
            windows().unfold::<4, _>(2, 4, 2).into_data(),
        ]
    }),
];

const EMPTY: &[Case] = &[
    ("elements", |d| {
        let z = || Tensor::<3>::zeros([2, 0, 3], d);
        vec![
            (z() + Tensor::ones([1, 1, 3], d)).into_data(),
            z().exp().into_data(),
            z().cos().into_data(),
            z().powf_scalar(2.0).into_data(),
            z().clamp(0.0, 1.0).into_data(),
            z().greater_scalar(0.0).into_data(),
            z().mask_fill(z().is_nan(), 1.0).into_data(),
            z().int().bitwise_and_scalar(1).into_data(),
            z().bool().bool_not().into_data(),
        ]
    }),
    ("reductions", |d| {
        let z = || Tensor::<3>::zeros([2, 0, 3], d);
        vec![
            z().sum().into_data(),
            z().sum_dim(1).into_data(),
            z().sum_dims(&[0, 2]).into_data(),
            z().prod_dim(1).into_data(),
            z().mean_dim(2).into_data(),
            z().max_dim(2).into_data(),
            z().argmax(2).into_data(),
            z().int().sum_dim(1).into_data(),
            z().any().into_data(),
            z().all().into_data(),
            z().any_dim(1).into_data(),
            z().bool().all_dim(1).into_data(),
            z().cumsum(1).into_data(),
            z().cummax(0).into_data(),
            z().sort(1).into_data(),
            z().topk(1, 2).into_data(),
            softmax(z(), 2).into_data(),
        ]
    }),
    ("moves", |d| {
        let z = || Tensor::<3>::zeros([2, 0, 3], d);
        vec![
            z().permute([2, 1, 0]).into_data(),
            z().repeat(&[1, 2, 2]).into_data(),
            x([2, 3, 4], d).repeat(&[1, 0, 2]).into_data(),
            z().flip([0, 1]).into_data(),
            Tensor::cat(vec![z(), x([2, 1, 3], d), z()], 1).into_data(),
            z().pad([(1, 1), (0, 0)], 2.0).into_data(),
            z().slice_assign([0..1, 0..0, 0..2], Tensor::zeros([1, 0, 2], d)).into_data(),
            z().unfold::<4, _>(2, 2, 1).into_data(),
        ]
    }),
    ("indexed", |d| {
        let z = || Tensor::<3>::zeros([2, 0, 3], d);
        vec![
            z().select(0, at([3], 2, d)).into_data(),
            z().gather(0, Tensor::zeros([1, 0, 3], d)).into_data(),
            z().scatter(0, Tensor::zeros([1, 0, 3], d), Tensor::zeros([1, 0, 3], d), Add).into_data(),
            z().select_assign(0, at([1], 2, d), Tensor::zeros([1, 0, 3], d), Add).into_data(),
            x([3, 4], d).mask_select(b([3, 4], d).bool_and(b([3, 4], d).bool_not())).into_data(),
        ]
    }),
    ("products", |d| {
        vec![
            Tensor::<3>::zeros([2, 4, 0], d).matmul(Tensor::zeros([2, 0, 3], d)).into_data(),
            Tensor::<3>::zeros([2, 0, 4], d).matmul(x([2, 4, 3], d)).into_data(),
            linear(Tensor::<2>::zeros([0, 3], d), x([3, 2], d), Some(x([2], d))).into_data(),
            layer_norm(Tensor::<2>::zeros([0, 3], d), x([3], d), None, 1e-5).into_data(),
            embedding(x([3, 2], d), Tensor::<2, Int>::zeros([2, 0], d)).into_data(),
            conv2d(
                Tensor::<4>::zeros([0, 2, 4, 4], d),
                x([3, 2, 2, 2], d),
                Some(x([3], d)),
                ConvOptions::new([1, 1], [0, 0], [1, 1], 1),
            )
            .into_data(),
        ]
    }),
];

const AXES: &[Case] = &[
    ("six axes", |d| {
        let t = || x([2, 3, 2, 2, 3, 2], d).permute([5, 3, 1, 0, 4, 2]);
        vec![
            (t() + x([2, 1, 3, 1, 3, 1], d)).into_data(),
            t().sum_dims(&[1, 3, 5]).into_data(),
            t().mean_dim(5).into_data(),
            t().max_dim(0).into_data(),
            t().argmax(4).into_data(),
            t().cumsum(2).into_data(),
            t().sort(2).into_data(),
            t().topk(1, 4).into_data(),
            softmax(t(), 2).into_data(),
            t().matmul(t().transpose()).into_data(),
            t().gather(2, at([2, 2, 7, 2, 3, 2], 3, d)).into_data(),
            t().select(4, at([5], 3, d)).into_data(),
            t().scatter(4, at([2, 2, 3, 2, 4, 2], 3, d), x([2, 2, 3, 2, 4, 2], d), Add).into_data(),
            t().gather_nd::<2, 5>(at([3, 2], 2, d)).into_data(),
            t().slice(s![.., .., 1..3, .., 0..2, ..]).repeat(&[1, 2, 1, 1, 2, 1]).into_data(),
        ]
    }),
    ("eight axes", |d| {
        let t = || x([2, 1, 3, 2, 1, 2, 2, 2], d).permute([7, 5, 3, 1, 0, 4, 2, 6]);
        vec![
            (t() + t().flip([1])).into_data(),
            t().sum_dims(&[0, 4, 6]).into_data(),
            t().cumsum(6).into_data(),
            t().max_dim(2).into_data(),
            t().argmin(6).into_data(),
            t().sort(6).into_data(),
            softmax(t(), 6).into_data(),
            t().matmul(t().transpose()).into_data(),
            t().select(6, at([5], 3, d)).into_data(),
            t().scatter(6, at([2, 2, 2, 1, 2, 1, 4, 2], 3, d), x([2, 2, 2, 1, 2, 1, 4, 2], d), Add).into_data(),
        ]
    }),
    ("channels last", |d| {
        let t = || channels_last(d);
        let dense = || Tensor::<4>::from_data(channels_last(d).to_data(), d);
        vec![
            (t() * t()).into_data(),
            (t() * 2.0 - dense()).reshape([-1]).into_data(),
            (dense() - t() * 2.0).reshape([-1]).into_data(),
            (t() * 100.0).int().float().reshape([2, 160]).into_data(),
            t().equal(t().flip([1])).into_data(),
            t().mask_where(t().greater_scalar(0.5), -t()).into_data(),
            (t() + x([1, 8, 1, 1], d)).exp().into_data(),
            t().sum_dims(&[0, 2, 3]).into_data(),
            t().argmin(2).into_data(),
            t().matmul(t().transpose()).into_data(),
            Tensor::cat(vec![t(), dense()], 1).into_data(),
            t().slice([0..2, 0..2, 1..3, 0..5]).reshape([-1]).into_data(),
        ]
    }),
];

#[test]
fn windows() {
    check(WINDOWS);
}

#[test]
fn without_elements() {
    check(EMPTY);
}

#[test]
fn axes() {
    check_within(2.0 * TOLERANCE, AXES);
}
