//! Pools, resizing and reads between the elements.

use super::{Case, rows};
use burn::prelude::*;
use burn::tensor::module::*;
use burn::tensor::ops::*;

pub fn pools(_: &Device) -> Vec<Case> {
    let line = |operations: &'static str, run: fn(Tensor<3>) -> Tensor<3>| {
        Case::new(operations, operations, 3 * 14, move |x, _| rows(run(x.reshape([-1, 3, 14]))))
    };
    let image = |operations: &'static str, run: fn(Tensor<4>) -> Tensor<4>| {
        Case::new(operations, operations, 3 * 9 * 8, move |x, _| rows(run(x.reshape([-1, 3, 9, 8]))))
    };
    vec![
        line("avg_pool1d", |x| avg_pool1d(x, AvgPoolOptions::new([5]).with_stride([2]).with_padding([1]))),
        line("adaptive_avg_pool1d", |x| adaptive_avg_pool1d(x, 4)),
        line("max_pool1d", |x| max_pool1d(x, MaxPoolOptions::new([4]).with_stride([1]).with_padding([1]))),
        line("max_pool1d_with_indices", |x| {
            let options = MaxPoolOptions::new([4]).with_stride([2]).with_padding([1]);
            let (values, places) = max_pool1d_with_indices(x, options);
            Tensor::cat(vec![values, places.float()], 2)
        }),
        image("avg_pool2d", |x| avg_pool2d(x, AvgPoolOptions::new([3, 2]).with_stride([2, 1]).with_padding([1, 0]))),
        image("adaptive_avg_pool2d", |x| adaptive_avg_pool2d(x, [4, 5])),
        image("max_pool2d", |x| max_pool2d(x, MaxPoolOptions::new([3, 3]).with_stride([1, 2]).with_padding([1, 1]))),
        image("max_pool2d_with_indices", |x| {
            let options = MaxPoolOptions::new([3, 2]).with_stride([1, 1]).with_padding([1, 1]);
            let (values, places) = max_pool2d_with_indices(x, options);
            Tensor::cat(vec![values, places.float()], 2)
        }),
        Case::new("adaptive_avg_pool2d to one", "adaptive_avg_pool2d", 3 * 40 * 40, |x, _| {
            rows(adaptive_avg_pool2d(x.reshape([-1, 3, 40, 40]), [1, 1]))
        }),
        Case::new("adaptive_avg_pool3d", "adaptive_avg_pool3d", 2 * 5 * 4 * 6, |x, _| {
            rows(adaptive_avg_pool3d(x.reshape([-1, 2, 5, 4, 6]), [2, 3, 4]))
        }),
    ]
}

pub fn sampling(_: &Device) -> Vec<Case> {
    let interpolated = |mode: InterpolateMode| {
        Case::new(format!("interpolate, {mode:?}"), "interpolate", 3 * 5 * 4, move |x, _| {
            let options = InterpolateOptions::new(mode.clone()).with_output_size([9, 13]);
            rows(interpolate(x.reshape([-1, 3, 5, 4]), options))
        })
    };
    let sampled = |mode: InterpolateMode| {
        Case::new(format!("grid_sample_2d, {mode:?}"), "float_grid_sample_2d", 60 + 84, move |x, _| {
            let grid = x.clone().slice_dim(1, 60..144).reshape([-1, 6, 7, 2]);
            let options = GridSampleOptions::new(mode.clone()).with_padding_mode(GridSamplePaddingMode::Reflection);
            rows(x.slice_dim(1, 0..60).reshape([-1, 3, 5, 4]).grid_sample_2d(grid, options))
        })
    };
    vec![
        interpolated(InterpolateMode::Nearest),
        interpolated(InterpolateMode::Bilinear),
        interpolated(InterpolateMode::Bicubic),
        interpolated(InterpolateMode::Lanczos3),
        sampled(InterpolateMode::Nearest),
        sampled(InterpolateMode::Bilinear),
        sampled(InterpolateMode::Bicubic),
    ]
}
