//! Operations that move elements, or take them by index.

use super::{Case, at, check, n, x};
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp::{Add, Assign, Max, Min, Mul};
use burn::tensor::ops::PadMode;

const MOVES: &[Case] = &[
    ("reshape", |d| {
        vec![x([3, 4], d).reshape([2, 6]).into_data(), x([3, 4], d).transpose().reshape([-1, 2]).into_data()]
    }),
    ("reshape of a slice", |d| {
        vec![
            // CubeCL 0.11.3 reads these as though every stride were a multiple of the least.
            x([7, 13], d).slice([1..7, 11..13]).reshape([1, 6, 2]).into_data(),
            x([6, 14], d).slice([0..5, 0..12]).reshape([5, 3, 4]).into_data(),
            x([6, 14], d).slice([0..5, 0..12]).reshape([5, 3, 4]).repeat_dim(0, 2).into_data(),
            n([6, 14], d).slice([0..5, 0..12]).reshape([5, 3, 4]).into_data(),
            x([6, 14], d).greater_elem(0.1).slice([0..5, 0..12]).reshape([5, 3, 4]).into_data(),
            x([7, 13], d).slice([1..7, 11..13]).transpose().unsqueeze::<3>().swap_dims(1, 2).into_data(),
        ]
    }),
    ("permute", |d| {
        vec![
            x([2, 3, 4], d).permute([2, 0, 1]).into_data(),
            x([2, 3, 4], d).swap_dims(0, 2).into_data(),
            x([2, 3, 4], d).movedim(0, 2).into_data(),
        ]
    }),
    ("flip", |d| vec![x([2, 3, 4], d).flip([0, 2]).into_data()]),
    ("flatten", |d| vec![x([2, 3, 4], d).flatten::<2>(1, 2).into_data()]),
    ("squeeze", |d| {
        vec![
            x([2, 1, 4], d).squeeze_dim::<2>(1).into_data(),
            x([2, 4], d).unsqueeze::<4>().into_data(),
            x([2, 4], d).unsqueeze_dim::<3>(1).into_data(),
            x([2, 4], d).unsqueeze_dims::<4>(&[0, -1]).into_data(),
            x([1, 2, 1], d).squeeze_dims::<1>(&[0, 2]).into_data(),
        ]
    }),
    ("roll", |d| vec![x([4, 5], d).roll(&[1, -2], &[0, 1]).into_data(), x([4, 5], d).roll_dim(7, 1).into_data()]),
    ("slice", |d| {
        vec![
            x([6, 7], d).slice([1..5, 2..7]).into_data(),
            x([6, 7], d).slice(s![.., 1..6;2]).into_data(),
            x([6, 7], d).slice(s![..;-1, ..;-3]).into_data(),
            x([6, 7], d).slice(s![-3..-1, -2]).into_data(),
            x([6, 7], d).slice(s![2..2, ..]).into_data(),
            n([6, 7], d).slice(s![..;-2, 3]).into_data(),
        ]
    }),
    ("slice_assign", |d| {
        vec![
            x([6, 7], d).slice_assign([1..3, 2..5], x([2, 3], d)).into_data(),
            x([6, 7], d).slice_assign(s![..;2, 1..7;3], x([3, 2], d)).into_data(),
            x([6, 7], d).slice_assign(s![..;-1, ..], x([6, 7], d)).into_data(),
            n([6, 7], d).slice_assign([1..3, 2..5], n([2, 3], d)).into_data(),
        ]
    }),
    ("slice_fill", |d| {
        vec![
            x([6, 7], d).slice_fill([1..3, 2..5], 9.0).into_data(),
            x([6, 7], d).slice_fill(s![..;2, 3], 9.0).into_data(),
        ]
    }),
    ("narrow chunk split", |d| {
        let mut all = vec![
            x([6, 7], d).narrow(1, 2, 3).into_data(),
            x([6, 7], d).slice_dim(0, 1..4).into_data(),
            x([6, 7], d).select_dim::<1>(0, 2).into_data(),
        ];
        all.extend(x([7, 3], d).chunk(3, 0).into_iter().map(Tensor::into_data));
        all.extend(x([7, 3], d).split(2, 0).into_iter().map(Tensor::into_data));
        all.extend(x([7, 3], d).split_with_sizes(vec![1, 4, 2], 0).into_iter().map(Tensor::into_data));
        all.extend(x([3, 4], d).iter_dim(0).map(Tensor::into_data));
        all
    }),
    ("cat stack", |d| {
        vec![
            Tensor::cat(vec![x([2, 3], d), x([4, 3], d), x([0, 3], d)], 0).into_data(),
            Tensor::cat(vec![x([3, 2], d), x([2, 3], d).transpose()], 1).into_data(),
            Tensor::stack::<3>(vec![x([2, 3], d), x([2, 3], d) + 1.0], 1).into_data(),
            Tensor::cat(vec![n([2, 3], d), n([4, 3], d)], 0).into_data(),
        ]
    }),
    ("repeat expand", |d| {
        vec![
            x([2, 3], d).repeat(&[2, 3]).into_data(),
            x([2, 3], d).repeat_dim(1, 4).into_data(),
            x([1, 3], d).expand([4, 3]).into_data(),
            x([3], d).expand::<2, _>([2, 3]).into_data(),
        ]
    }),
    ("pad", |d| {
        vec![
            x([4, 5], d).pad((1, 2, 3, 0), PadMode::Constant(7.0)).into_data(),
            x([4, 5], d).pad((1, 2, 3, 0), PadMode::Reflect).into_data(),
            x([4, 5], d).pad((1, 2, 3, 0), PadMode::Edge).into_data(),
        ]
    }),
    ("triu tril", |d| {
        vec![x([4, 5], d).triu(1).into_data(), x([4, 5], d).tril(-1).into_data(), Tensor::<2>::eye(4, d).into_data()]
    }),
    ("unfold", |d| {
        vec![x([3, 10], d).unfold::<3, _>(1, 4, 3).into_data(), n([10], d).unfold::<2, _>(0, 4, 3).into_data()]
    }),
    ("meshgrid", |d| {
        let grids = burn::tensor::grid::meshgrid(&[x([3], d), x([4], d)], burn::tensor::grid::GridOptions::default());
        grids.into_iter().map(Tensor::into_data).collect()
    }),
    ("affine_grid_2d", |d| vec![burn::tensor::grid::affine_grid_2d(x([2, 2, 3], d), [2, 1, 4, 5]).into_data()]),
    ("zeros ones full empty", |d| {
        vec![
            Tensor::<2>::zeros([2, 3], d).into_data(),
            Tensor::<2>::ones([2, 3], d).into_data(),
            Tensor::<2>::full([2, 3], 2.5, d).into_data(),
            x([2, 3], d).zeros_like().into_data(),
            x([2, 3], d).full_like(4.0).into_data(),
            x([0], d).into_data(),
        ]
    }),
];

const INDEXED: &[Case] = &[
    ("select", |d| {
        vec![
            x([6, 7], d).select(0, at([9], 6, d)).into_data(),
            x([6, 7], d).select(1, at([2], 7, d)).into_data(),
            n([6, 7], d).select(1, at([2], 7, d)).into_data(),
            x([6, 7], d).select(0, at([0], 6, d)).into_data(),
        ]
    }),
    ("take", |d| vec![x([6, 7], d).take::<2, 3>(0, at([2, 4], 6, d)).into_data()]),
    ("gather", |d| {
        vec![
            x([6, 7], d).gather(0, at([9, 7], 6, d)).into_data(),
            x([6, 7], d).gather(1, at([6, 3], 7, d)).into_data(),
            n([6, 7], d).gather(1, at([6, 3], 7, d)).into_data(),
        ]
    }),
    ("gather_nd", |d| {
        vec![
            x([6, 7], d).gather_nd::<2, 1>(Tensor::cat(vec![at([9, 1], 6, d), at([9, 1], 7, d)], 1)).into_data(),
            x([6, 7], d).gather_nd::<2, 2>(at([9, 1], 6, d)).into_data(),
        ]
    }),
    ("scatter", |d| {
        vec![
            x([6, 7], d).scatter(0, at([20, 7], 6, d), x([20, 7], d), Add).into_data(),
            x([6, 7], d).scatter(1, at([6, 3], 7, d), x([6, 3], d), Add).into_data(),
            n([6, 7], d).scatter(0, at([20, 7], 6, d), n([20, 7], d), Add).into_data(),
            x([6, 7], d).scatter(0, at([0, 7], 6, d), x([0, 7], d), Add).into_data(),
        ]
    }),
    ("select_assign", |d| {
        vec![
            x([6, 7], d).select_assign(0, at([20], 6, d), x([20, 7], d), Add).into_data(),
            n([6, 7], d).select_assign(1, at([20], 7, d), n([6, 20], d), Add).into_data(),
        ]
    }),
    ("scatter_nd", |d| {
        [Add, Mul, Min, Max]
            .map(|update| x([6, 7], d).scatter_nd::<2, 2>(at([9, 1], 6, d), x([9, 7], d), update).into_data())
            .to_vec()
    }),
    ("scatter_nd of distinct", |d| {
        vec![
            x([6, 7], d)
                .scatter_nd::<2, 2>(Tensor::<2, Int>::from_data([[4], [0], [2]], d), x([3, 7], d), Assign)
                .into_data(),
        ]
    }),
    ("mask_where", |d| {
        vec![
            x([6, 7], d).mask_where(n([6, 7], d).greater_scalar(3), x([6, 7], d) * 10.0).into_data(),
            x([6, 7], d).mask_where(n([1, 7], d).greater_scalar(3).expand([6, 7]), x([6, 7], d) * 10.0).into_data(),
            x([6, 7], d).mask_fill(n([6, 7], d).greater_scalar(3), -9.0).into_data(),
            x([6, 7], d).mask_select(n([6, 7], d).greater_scalar(3)).into_data(),
            n([6, 7], d).mask_fill(n([6, 7], d).greater_scalar(3), -9).into_data(),
        ]
    }),
    ("one_hot_fill", |d| {
        vec![
            at([4], 5, d).one_hot_fill::<2>(5, 3.0, -1.0, -1).into_data(),
            at([4], 5, d).float().one_hot::<2>(5).into_data(),
        ]
    }),
];

#[test]
fn moves() {
    check(MOVES);
}

#[test]
fn indexed() {
    check(INDEXED);
}
