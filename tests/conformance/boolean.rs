//! Bool tensors.

use super::{Case, at, check, n};
use burn::prelude::*;

fn b<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D, Bool> {
    n(shape, device).greater_scalar(5)
}

const CASES: &[Case] = &[
    ("logic", |d| {
        vec![
            b([3, 5], d).bool_not().into_data(),
            b([3, 5], d).bool_and(b([5, 3], d).transpose()).into_data(),
            b([3, 5], d).bool_or(b([5, 3], d).transpose()).into_data(),
            b([3, 5], d).bool_xor(b([5, 3], d).transpose()).into_data(),
            b([3, 5], d).equal(b([5, 3], d).transpose()).into_data(),
            b([3, 5], d).not_equal(b([5, 3], d).transpose()).into_data(),
        ]
    }),
    ("any all", |d| {
        vec![
            b([3, 5], d).any().into_data(),
            b([3, 5], d).all().into_data(),
            b([3, 5], d).any_dim(1).into_data(),
            b([3, 5], d).all_dim(0).into_data(),
        ]
    }),
    ("int float", |d| vec![b([40], d).int().into_data(), b([40], d).float().into_data()]),
    ("masks", |d| {
        vec![
            Tensor::<2, Bool>::triu_mask([4, 5], 1, d).into_data(),
            Tensor::<2, Bool>::tril_mask([4, 5], 0, d).into_data(),
            Tensor::<2, Bool>::diag_mask([4, 5], -1, d).into_data(),
        ]
    }),
    ("argwhere", |d| vec![b([4, 5], d).argwhere().into_data()]),
    ("nonzero", |d| b([4, 5], d).nonzero().into_iter().map(Tensor::into_data).collect()),
    ("moves", |d| {
        vec![
            b([3, 5], d).transpose().into_data(),
            b([3, 5], d).reshape([5, 3]).into_data(),
            b([3, 5], d).flip([1]).into_data(),
            b([3, 5], d).repeat_dim(0, 2).into_data(),
            b([3, 5], d).slice([1..3, 0..4]).into_data(),
            b([3, 5], d).slice_assign([0..2, 1..3], b([2, 2], d)).into_data(),
            b([1, 5], d).expand([4, 5]).into_data(),
            Tensor::cat(vec![b([3, 5], d), b([2, 5], d)], 0).into_data(),
            b([3, 5], d).select(1, at([7], 5, d)).into_data(),
            b([3, 5], d).gather(1, at([3, 7], 5, d)).into_data(),
            b([10], d).unfold::<2, _>(0, 4, 3).into_data(),
        ]
    }),
    ("mask_where", |d| {
        vec![
            b([3, 5], d).mask_where(b([5, 3], d).transpose(), b([3, 5], d).bool_not()).into_data(),
            b([3, 5], d).mask_fill(b([5, 3], d).transpose(), true).into_data(),
        ]
    }),
    ("mask_select", |d| vec![n([3, 5], d).mask_select(b([3, 5], d)).into_data()]),
    ("zeros ones", |d| {
        vec![
            Tensor::<2, Bool>::zeros([2, 3], d).into_data(),
            Tensor::<2, Bool>::ones([2, 3], d).into_data(),
            Tensor::<2, Bool>::full([2, 3], true, d).into_data(),
            Tensor::<2, Bool>::empty([2, 0], d).into_data(),
        ]
    }),
];

#[test]
fn booleans() {
    check(CASES);
}
