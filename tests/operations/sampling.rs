//! Resizing, and reads between the elements.

use super::{Operation, flat};
use burn::prelude::*;
use burn::tensor::module::interpolate;
use burn::tensor::ops::*;

pub const SIZES: [[usize; 2]; 3] = [[9, 13], [3, 2], [5, 1]];

/// `[2, 3, 5, 4]` in another size.
pub fn resized(x: &Tensor<1>, size: [usize; 2], mode: InterpolateMode, align_corners: bool) -> Tensor<1> {
    let options = InterpolateOptions::new(mode).with_align_corners(align_corners).with_output_size(size);
    flat(interpolate(x.clone().reshape([2, 3, 5, 4]), options))
}

pub fn interpolations() -> Vec<Operation> {
    let mut operations = Vec::new();
    for (size, align) in SIZES.into_iter().flat_map(|size| [(size, false), (size, true)]) {
        for mode in [
            InterpolateMode::Nearest,
            InterpolateMode::NearestExact,
            InterpolateMode::Bilinear,
            InterpolateMode::Bicubic,
            InterpolateMode::Lanczos3,
        ] {
            let name = format!("interpolate, {mode:?}, to {size:?}, {align}");
            let operation = {
                let mode = mode.clone();
                Operation::new(name, &[120], move |x| resized(&x[0], size, mode.clone(), align))
            };
            // Burn's CPU backend lacks one mode, and the gradient of another.
            operations.push(match mode {
                InterpolateMode::NearestExact => operation.reference(move |x| nearest_exact(&x[0], size)),
                InterpolateMode::Lanczos3 => operation.linear(),
                _ => operation,
            });
        }
    }
    operations
}

/// The element whose middle is nearest: an output's middle, in units of the input, rounded down.
fn nearest_exact(x: &Tensor<1>, size: [usize; 2]) -> Tensor<1> {
    let mut x = x.clone().reshape([2, 3, 5, 4]);
    for (axis, (input, output)) in [(5, size[0]), (4, size[1])].into_iter().enumerate() {
        let places: Vec<i32> = (0..output).map(|n| ((2 * n + 1) * input / (2 * output)) as i32).collect();
        let places = Tensor::<1, Int>::from_data(TensorData::new(places, [output]), &x.device());
        x = x.select(axis + 2, places);
    }
    flat(x)
}

pub fn grid_samples() -> Vec<Operation> {
    let paddings = [GridSamplePaddingMode::Zeros, GridSamplePaddingMode::Border, GridSamplePaddingMode::Reflection];
    let mut operations = Vec::new();
    for (padding, align) in paddings.into_iter().flat_map(|padding| [(padding, false), (padding, true)]) {
        let name = format!("grid_sample_2d, {padding:?}, {align}");
        operations.push(Operation::new(name, &[2 * 3 * 5 * 4, 2 * 6 * 7 * 2], move |x| {
            let (input, grid) = (x[0].clone().reshape([2, 3, 5, 4]), x[1].clone().reshape([2, 6, 7, 2]));
            let options =
                GridSampleOptions::new(InterpolateMode::Bilinear).with_padding_mode(padding).with_align_corners(align);
            flat(input.grid_sample_2d(grid, options))
        }));
    }
    operations
}
