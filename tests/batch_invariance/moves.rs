//! Copies, reads at indices and updates along an axis of a sample.

use super::{BOUND, Case, INDICES, rows, weights};
use crate::bits::indices;
use burn::prelude::*;
use burn::tensor::IndexingUpdateOp::{Add, Mul};
use burn::tensor::module::{embedding, unfold4d};
use burn::tensor::ops::{PadMode, UnfoldOptions};

pub fn moves(_: &Device) -> Vec<Case> {
    let case = |operations: &'static str, run: fn(Tensor<3>) -> Tensor<3>| {
        Case::new(operations, operations, 6 * 7, move |x, _| rows(run(x.reshape([-1, 6, 7]))))
    };
    vec![
        case("float_repeat_dim", |x| x.repeat_dim(1, 3)),
        case("float_swap_dims", |x| x.swap_dims(1, 2)),
        // burn-fusion has these two as operations on ints, whatever the type.
        case("int_permute", |x| x.permute([0, 2, 1])),
        case("int_flip", |x| x.flip([1, 2])),
        case("float_reshape", |x| x.reshape([-1, 3, 14])),
        case("float_slice", |x| x.slice_dim(1, 1..5).slice_dim(2, 2..7)),
        case("float_cat", |x| Tensor::cat(vec![x.clone(), x.clone().flip([1]), x], 2)),
        case("float_pad", |x| x.pad((2, 1, 1, 3), PadMode::Reflect)),
        Case::new("float_slice_assign", "float_slice_assign", 6 * 7, |x, _| {
            let x = x.reshape([-1, 6, 7]);
            let samples = x.dims()[0];
            let values = x.clone().slice_dim(1, 0..2).slice_dim(2, 0..3) * 2.0;
            rows(x.slice_assign([0..samples, 3..5, 4..7], values))
        }),
        Case::new("float_expand", "float_expand", 7, |x, _| {
            let samples = x.dims()[0];
            rows(x.reshape([-1, 1, 7]).expand([samples, 9, 7]))
        }),
        Case::new("float_unfold", "float_unfold", 40, |x, _| rows(x.unfold::<3, _>(1, 7, 2))),
        Case::new("unfold4d by windows", "float_unfold", 3 * 7 * 6, |x, _| {
            rows(unfold4d(x.reshape([-1, 3, 7, 6]), [3, 2], UnfoldOptions::new([2, 1], [0, 0], [1, 1])))
        }),
        Case::new("unfold4d by a convolution", "conv2d", 3 * 7 * 6, |x, _| {
            rows(unfold4d(x.reshape([-1, 3, 7, 6]), [3, 2], UnfoldOptions::new([2, 1], [1, 0], [1, 2])))
        }),
    ]
}

pub fn reads(_: &Device) -> Vec<Case> {
    vec![
        Case::new("gather", "float_gather", BOUND, |x, at| x.gather(1, at)),
        Case::new("select", "float_select", BOUND * 5, |x, _| {
            let places = Tensor::from_data(indices([33], BOUND), &x.device());
            rows(x.reshape([-1, BOUND as i32, 5]).select(1, places))
        }),
        Case::new("gather_nd", "float_gather_nd", BOUND, |x, at| {
            let [samples, _] = x.dims();
            let sample = Tensor::<1, Int>::arange(0..samples as i64, &x.device());
            let sample = sample.reshape([-1, 1]).expand([samples, INDICES]);
            let places = Tensor::cat(vec![sample.reshape([-1, 1]), at.reshape([-1, 1])], 1);
            x.gather_nd::<2, 1>(places).reshape([samples, INDICES])
        }),
        Case::new("embedding", "float_select", 1, |x, at| rows(embedding(weights([BOUND, 6], &x.device()), at))),
    ]
}

pub fn updates(_: &Device) -> Vec<Case> {
    let sums = |sources: usize| {
        Case::new(format!("scatter of {sources}"), "float_scatter", BOUND + sources, move |x, at| {
            let (target, values) = (x.clone().slice_dim(1, 0..BOUND), x.slice_dim(1, BOUND..BOUND + sources));
            let at = at.repeat_dim(1, sources.div_ceil(INDICES)).slice_dim(1, 0..sources);
            target.scatter(1, at, values, Add)
        })
    };
    let rows_of = |sources: usize| {
        Case::new(format!("select_assign of {sources}"), "float_select_assign", BOUND + sources, move |x, _| {
            let (target, values) = (x.clone().slice_dim(1, 0..BOUND), x.slice_dim(1, BOUND..BOUND + sources));
            let places = Tensor::from_data(indices([sources], BOUND), &target.device());
            target.select_assign(1, places, values, Add)
        })
    };
    vec![
        sums(50),
        sums(700),
        sums(5000),
        rows_of(40),
        rows_of(700),
        rows_of(5000),
        Case::new("scatter of a product", "float_scatter", BOUND + INDICES, |x, at| {
            let values = x.clone().slice_dim(1, BOUND..BOUND + INDICES);
            x.slice_dim(1, 0..BOUND).scatter(1, at, values, Mul)
        }),
    ]
}
