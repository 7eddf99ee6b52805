//! What the operations of [`operations`](crate::operations) do not show of layers: indices, modes without a gradient,
//! ties with NaN.

use crate::bits::{assert_same, floats};
use crate::deterministic_device;
use crate::operations::{doubles, operand};
use burn::prelude::*;
use burn::tensor::IntDType;
use burn::tensor::module::*;
use burn::tensor::ops::*;

/// Ten in all.
const REPEATS: usize = 9;

fn one_result(name: &str, run: impl Fn() -> TensorData) {
    let first = run();
    for repeat in 1..=REPEATS {
        assert_same(&format!("{name}, repeat {repeat}"), &first, &run());
    }
}

#[test]
fn maximum_pools_name_the_elements_that_the_cpu_names() {
    let options = || MaxPoolOptions::new([3, 2]).with_stride([1, 1]).with_padding([1, 1]);
    let indices = |device: &Device| {
        let input = Tensor::<4>::from_data(floats([2, 3, 6, 5]), device);
        max_pool2d_with_indices(input, options()).1.cast(IntDType::I32).into_data()
    };
    let ours = indices(&deterministic_device());
    assert_same("indices of max_pool2d", &indices(&Device::flex()), &ours);
}

/// Burn leaves open which element a window with a NaN in it names, and backends differ: here it is the first NaN.
#[test]
fn maximum_pools_of_nan_have_one_result() {
    let device = deterministic_device().autodiff();
    let mut values = floats([96]).try_to_vec::<f32>().expect("f32");
    for at in [0, 7, 8, 50, 51, 95] {
        values[at] = f32::NAN;
    }
    let values = TensorData::new(values, [1, 2, 6, 8]);
    let options = || MaxPoolOptions::new([3, 3]).with_stride([1, 1]).with_padding([1, 1]);
    let run = || {
        let input = Tensor::<4>::from_data(values.clone(), &device).require_grad();
        let result = max_pool2d(input.clone(), options());
        let upstream = Tensor::from_data(floats(result.dims()), &device);
        let gradients = (result.clone() * upstream).sum().backward();
        (result, input.grad(&gradients).expect("it took part"))
    };
    one_result("max_pool2d of NaN", || run().0.into_data());
    one_result("gradient of max_pool2d of NaN", || run().1.into_data());
}

#[test]
fn grid_samples_of_every_mode_and_padding() {
    let paddings = [GridSamplePaddingMode::Zeros, GridSamplePaddingMode::Border, GridSamplePaddingMode::Reflection];
    for (padding, align) in paddings.into_iter().flat_map(|padding| [(padding, false), (padding, true)]) {
        let sampled = |device: &Device, mode| {
            let options = GridSampleOptions::new(mode).with_padding_mode(padding).with_align_corners(align);
            let input = Tensor::<4>::from_data(floats([2, 3, 5, 4]), device);
            let grid = Tensor::<1>::from_data(operand(1, 168), device).reshape([2, 6, 7, 2]);
            input.grid_sample_2d(grid, options).into_data()
        };
        // The CPU backend knows one more mode than `operations` has, and burn-autodiff does not.
        let device = deterministic_device();
        let ours = sampled(&device, InterpolateMode::Nearest);
        assert_same("nearest", &sampled(&Device::flex(), InterpolateMode::Nearest), &ours);
        for mode in [InterpolateMode::NearestExact, InterpolateMode::Bicubic, InterpolateMode::Lanczos3] {
            one_result(&format!("{mode:?}"), || sampled(&device, mode.clone()));
        }
    }
}

/// With corners aligned, a grid of the places of `interpolate`'s outputs is `interpolate`.
#[test]
fn grid_samples_of_a_regular_grid_are_interpolations() {
    let device = deterministic_device();
    let places = (0..9 * 13).flat_map(|n| [(n % 13) as f32 / 6.0 - 1.0, (n / 13) as f32 / 4.0 - 1.0]);
    let grid = TensorData::new(places.collect::<Vec<f32>>(), [1, 9, 13, 2]);
    for mode in [InterpolateMode::Bilinear, InterpolateMode::Bicubic] {
        let input = Tensor::<4>::from_data(floats([1, 3, 5, 4]), &device);
        let options = GridSampleOptions::new(mode.clone())
            .with_padding_mode(GridSamplePaddingMode::Border)
            .with_align_corners(true);
        let sampled = doubles(input.clone().grid_sample_2d(Tensor::from_data(grid.clone(), &device), options));
        let options = InterpolateOptions::new(mode.clone()).with_output_size([9, 13]);
        let resized = doubles(interpolate(input, options));
        let close = |(sampled, resized): (&f64, &f64)| (sampled - resized).abs() < 1.0 / 8192.0;
        assert!(sampled.iter().zip(&resized).all(close), "{mode:?}: {sampled:?} and {resized:?}");
    }
}
