//! Reads and updates at indices, moves of elements, and orders.

use super::{Operation, at, flat};
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp::Add;
use burn::tensor::module::embedding;

pub fn lookups() -> Vec<Operation> {
    vec![
        Operation::new("embedding", &[11 * 6], |x| {
            flat(embedding(x[0].clone().reshape([11, 6]), at([8, 20], 11, &x[0])))
        }),
        Operation::new("select", &[5 * 9], |x| flat(x[0].clone().reshape([5, 9]).select(1, at([50], 9, &x[0])))),
        Operation::new("gather", &[7 * 6], |x| flat(x[0].clone().reshape([7, 6]).gather(0, at([40, 6], 7, &x[0])))),
        Operation::new("gather_nd", &[5 * 4 * 3], |x| {
            flat(x[0].clone().reshape([5, 4, 3]).gather_nd::<2, 2>(at([70, 2], 4, &x[0])))
        }),
        Operation::new("mask_select", &[60], |x| x[0].clone().mask_select(at([60], 3, &x[0]).equal_elem(1))),
        Operation::new("take", &[5 * 9], |x| flat(x[0].clone().reshape([5, 9]).take::<2, 3>(1, at([4, 6], 9, &x[0])))),
    ]
}

pub fn updates() -> Vec<Operation> {
    vec![
        Operation::new("scatter", &[6 * 5, 30 * 5], |x| {
            let values = x[1].clone().reshape([30, 5]);
            flat(x[0].clone().reshape([6, 5]).scatter(0, at([30, 5], 6, &x[0]), values, Add))
        }),
        Operation::new("select_assign", &[6 * 5, 6 * 40], |x| {
            let values = x[1].clone().reshape([6, 40]);
            flat(x[0].clone().reshape([6, 5]).select_assign(1, at([40], 5, &x[0]), values, Add))
        }),
        Operation::new("scatter_nd", &[4 * 5 * 3, 50 * 3], |x| {
            let values = x[1].clone().reshape([50, 3]);
            flat(x[0].clone().reshape([4, 5, 3]).scatter_nd(at([50, 2], 4, &x[0]), values, Add))
        }),
        // Read again and again, so that what was updated has a sum of gradients.
        Operation::new("scatter, then select", &[6, 30], |x| {
            let sums = x[0].clone().scatter(0, at([30], 6, &x[0]), x[1].clone(), Add);
            sums.select(0, at([80], 6, &x[0]))
        }),
        Operation::new("slice_assign", &[6 * 7, 3 * 4], |x| {
            flat(x[0].clone().reshape([6, 7]).slice_assign([2..5, 1..5], x[1].clone().reshape([3, 4])))
        }),
        Operation::new("mask_where", &[6 * 7, 7], |x| {
            let mask = at([6, 7], 2, &x[0]).equal_elem(1);
            flat(x[0].clone().reshape([6, 7]).mask_where(mask, x[1].clone().reshape([1, 7]).expand([6, 7])))
        }),
        Operation::new("mask_fill", &[40], |x| {
            let mask = at([9, 40], 2, &x[0]).equal_elem(1);
            flat(x[0].clone().reshape([1, 40]).expand([9, 40]).mask_fill(mask, 0.25))
        }),
    ]
}

pub fn moves() -> Vec<Operation> {
    vec![
        Operation::new("repeat_dim", &[4 * 5], |x| flat(x[0].clone().reshape([4, 5]).repeat_dim(0, 7))),
        Operation::new("repeat", &[4 * 5], |x| flat(x[0].clone().reshape([4, 5]).repeat(&[3, 2]))),
        Operation::new("expand", &[5], |x| flat(x[0].clone().reshape([1, 5]).expand([70, 5]))),
        Operation::new("cat", &[12, 8], |x| {
            let [x, y] = [x[0].clone(), x[1].clone()];
            let x = [x.clone(), y, x.clone(), x.clone(), x.clone(), x].map(|x| x.reshape([-1, 4]));
            flat(Tensor::<2>::cat(x.into(), 0))
        }),
        Operation::new("stack", &[12], |x| flat(Tensor::stack::<2>(vec![x[0].clone(); 5], 1))),
        Operation::new("chunks", &[24], |x| {
            let parts = x[0].clone().chunk(5, 0).into_iter().chain(x[0].clone().split(7, 0));
            Tensor::cat(parts.chain([x[0].clone()]).collect(), 0)
        }),
        Operation::new("triangles", &[36], |x| {
            let square = x[0].clone().reshape([6, 6]);
            flat(square.clone().triu(1) + square.clone().tril(2) + square.transpose())
        }),
        Operation::new("flip, roll and slice", &[6 * 7], |x| {
            let x = x[0].clone().reshape([6, 7]);
            flat(x.clone().flip([1]) + x.clone().roll(&[2, 3], &[0, 1]) + x.slice([0..6, 2..3]))
        }),
        Operation::new("pad", &[30], |x| {
            let x = x[0].clone().reshape([5, 6]);
            flat(x.pad((2, 1, 1, 3), burn::tensor::ops::PadMode::Reflect))
        }),
    ]
}

pub fn ordered() -> Vec<Operation> {
    vec![
        Operation::new("sort", &[5 * 13], |x| flat(x[0].clone().reshape([5, 13]).sort(1))),
        Operation::new("topk", &[5 * 13], |x| flat(x[0].clone().reshape([5, 13]).topk(4, 1))),
        // Every row is read several times.
        Operation::new("topk of repeated rows", &[3 * 13], |x| {
            flat(x[0].clone().reshape([3, 13]).repeat_dim(0, 5).topk(4, 1))
        }),
        Operation::new("median", &[5 * 13], |x| flat(x[0].clone().reshape([5, 13]).median(1))),
        Operation::new("max_dim", &[6 * 9], |x| {
            let x = x[0].clone().reshape([6, 9]);
            Tensor::cat(vec![flat(x.clone().max_dim(1)), flat(x.clone().min_dim(0)), flat(x.max_abs_dim(1))], 0)
        }),
        Operation::new("max", &[40], |x| Tensor::cat(vec![x[0].clone().max(), x[0].clone().min()], 0)),
        Operation::new("max_pair", &[40, 40], |x| {
            x[0].clone().max_pair(x[1].clone()) + x[0].clone().min_pair(x[1].clone() * 0.5)
        }),
        Operation::new("cummax", &[4 * 30], |x| flat(x[0].clone().reshape([4, 30]).cummax(1))),
        Operation::new("cummin", &[30 * 4], |x| flat(x[0].clone().reshape([30, 4]).cummin(0))),
    ]
}
