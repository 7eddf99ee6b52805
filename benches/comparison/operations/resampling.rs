//! Interpolation, sampling at a grid, and windows.

use super::{Rows, both, floats};
use burn_backend::ops::{
    FloatTensorOps, GridSampleOptions, InterpolateMode, InterpolateOptions, ModuleOps, UnfoldOptions,
};

pub fn compare(rows: &mut Rows<'_>) {
    let (x, gradient) = (floats([4, 16, 64, 64]), floats([4, 16, 128, 128]));
    let modes = [
        ("interpolate nearest, 4 x 16 x 64 x 64 to 128 x 128", InterpolateMode::Nearest),
        ("interpolate bilinear", InterpolateMode::Bilinear),
        ("interpolate bicubic", InterpolateMode::Bicubic),
        ("interpolate lanczos3", InterpolateMode::Lanczos3),
    ];
    for (name, mode) in modes {
        let options = || InterpolateOptions::new(mode.clone());
        rows.add(name, both!(B => B::interpolate(x.clone(), [128, 128], options())));
    }
    // Burn's CubeCL backends have no other gradient.
    let options = || InterpolateOptions::new(InterpolateMode::Nearest);
    let backward = both!(B => B::interpolate_backward(x.clone(), gradient.clone(), [128, 128], options()));
    rows.add("interpolate nearest gradient", backward);
    let grid = floats([4, 64, 64, 2]);
    let sample = both!(B => B::float_grid_sample_2d(x.clone(), grid.clone(), GridSampleOptions::default()));
    rows.add("grid_sample_2d, 4 x 16 x 64 x 64", sample);

    let options = || UnfoldOptions::new([1, 1], [1, 1], [1, 1]);
    rows.add("unfold4d, 4 x 16 x 64 x 64, 3 x 3", both!(B => B::unfold4d(x.clone(), [3, 3], options())));
    let columns = floats([4, 16 * 9, 64 * 64]);
    let fold = both!(B => B::fold4d(columns.clone(), [64, 64], [3, 3], options()));
    rows.add("fold4d (unfold4d's gradient)", fold);
}
