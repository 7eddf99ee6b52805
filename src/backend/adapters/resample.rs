//! Interpolation: resizing an image, its gradient, and sampling it at the points of a grid.

use super::{Output, operand, run};
use burn_backend::ops::{GridSampleOptions, GridSamplePaddingMode, InterpolateMode, InterpolateOptions};
use burn_backend::{Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::grid_sample::{self, Padding, SampleParams};
use burn_deterministic_kernels::interpolation::{self, weights};

/// Resizes the image `x`, `[batch, channels, height, width]`.
pub(in crate::backend) fn interpolate(
    operation: &'static str,
    x: CubeTensor,
    output_size: [usize; 2],
    options: InterpolateOptions,
    plain: impl FnOnce(CubeTensor, [usize; 2], InterpolateOptions) -> CubeTensor,
) -> CubeTensor {
    let filter = filter(options.mode.clone());
    // Operands of other ranks are the kernel's to refuse.
    let shape = match x.shape()[..] {
        [batch, channels, ..] => Shape::new([batch, channels, output_size[0], output_size[1]]),
        _ => x.shape(),
    };
    run(
        operation,
        &[&x],
        Output::like(&x, shape),
        |client| interpolation::resize(client, operand(&x), output_size, filter, options.align_corners, None),
        || plain(x.clone(), output_size, options.clone()),
    )
}

/// The gradient of resizing by the image `x`, `[batch, channels, height, width]`.
pub(in crate::backend) fn interpolate_backward(
    operation: &'static str,
    x: CubeTensor,
    gradient: CubeTensor,
    output_size: [usize; 2],
    options: InterpolateOptions,
    plain: impl FnOnce(CubeTensor, CubeTensor, [usize; 2], InterpolateOptions) -> CubeTensor,
) -> CubeTensor {
    let filter = filter(options.mode.clone());
    run(
        operation,
        &[&x, &gradient],
        Output::like(&x, x.shape()),
        |client| {
            interpolation::input_gradient(client, operand(&gradient), &x.shape(), filter, options.align_corners, None)
        },
        || plain(x.clone(), gradient.clone(), output_size, options.clone()),
    )
}

/// Samples `tensor`, `[batch, channels, height, width]`, at the points of `grid`, `[batch, out height, out width, 2]`.
pub(in crate::backend) fn grid_sample(
    operation: &'static str,
    tensor: CubeTensor,
    grid: CubeTensor,
    options: GridSampleOptions,
    plain: impl FnOnce(CubeTensor, CubeTensor, GridSampleOptions) -> CubeTensor,
) -> CubeTensor {
    let params = sample_params(&options);
    // Operands of other ranks are the kernel's to refuse.
    let shape = match (&tensor.shape()[..], &grid.shape()[..]) {
        (&[_, channels, ..], &[batch, height, width, _]) => Shape::new([batch, channels, height, width]),
        _ => tensor.shape(),
    };
    run(
        operation,
        &[&tensor, &grid],
        Output::like(&tensor, shape),
        |client| grid_sample::sample(client, operand(&tensor), operand(&grid), params, None),
        || plain(tensor.clone(), grid.clone(), options.clone()),
    )
}

/// The filter of a resized image, as the kernels name it.
pub(crate) fn filter(mode: InterpolateMode) -> weights::Filter {
    match mode {
        InterpolateMode::Nearest => weights::Filter::Nearest,
        InterpolateMode::NearestExact => weights::Filter::NearestExact,
        InterpolateMode::Bilinear => weights::Filter::Linear,
        InterpolateMode::Bicubic => weights::Filter::Cubic,
        InterpolateMode::Lanczos3 => weights::Filter::Lanczos3,
    }
}

/// How a grid samples, as the kernels name it.
pub(crate) fn sample_params(options: &GridSampleOptions) -> SampleParams {
    SampleParams {
        filter: match options.mode {
            InterpolateMode::Nearest | InterpolateMode::NearestExact => grid_sample::Filter::Nearest,
            InterpolateMode::Bilinear => grid_sample::Filter::Linear,
            InterpolateMode::Bicubic => grid_sample::Filter::Cubic,
            InterpolateMode::Lanczos3 => grid_sample::Filter::Lanczos3,
        },
        padding: match options.padding_mode {
            GridSamplePaddingMode::Zeros => Padding::Zeros,
            GridSamplePaddingMode::Border => Padding::Border,
            GridSamplePaddingMode::Reflection => Padding::Reflection,
        },
        align_corners: options.align_corners,
    }
}
