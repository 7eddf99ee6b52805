//! Pooling. One- and two-dimensional pooling run the same kernels.

use super::{Rows, both, floats};
use burn_backend::IntDType::I32;
use burn_backend::ops::ModuleOps;
use burn_cubecl::CubeBackend;

pub fn compare(rows: &mut Rows<'_>) {
    let (x, gradient) = (floats([16, 64, 28, 28]), floats([16, 64, 14, 14]));
    let pool = both!(B => B::max_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false));
    rows.add("max_pool2d, 16 x 64 x 28 x 28", pool);
    let with_indices = both!(B => {
        let results = B::max_pool2d_with_indices(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false, I32);
        (results.output, results.indices)
    });
    rows.add("max_pool2d with indices, 16 x 64 x 28 x 28", with_indices);
    let at = CubeBackend::max_pool2d_with_indices(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false, I32).indices;
    let backward = both!(B => {
        let (x, gradient, at) = (x.clone(), gradient.clone(), at.clone());
        B::max_pool2d_with_indices_backward(x, [2, 2], [2, 2], [0, 0], [1, 1], false, gradient, at).x_grad
    });
    rows.add("max_pool2d gradient", backward);
    let pool = both!(B => B::avg_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], true, false));
    rows.add("avg_pool2d, 16 x 64 x 28 x 28", pool);
    let backward = both!(B => {
        B::avg_pool2d_backward(x.clone(), gradient.clone(), [2, 2], [2, 2], [0, 0], true, false)
    });
    rows.add("avg_pool2d gradient", backward);
    rows.add("adaptive_avg_pool2d to 7 x 7", both!(B => B::adaptive_avg_pool2d(x.clone(), [7, 7])));
    rows.add("adaptive_avg_pool2d to 1 x 1", both!(B => B::adaptive_avg_pool2d(x.clone(), [1, 1])));
    let small = floats([16, 64, 7, 7]);
    let backward = both!(B => B::adaptive_avg_pool2d_backward(x.clone(), small.clone()));
    rows.add("adaptive_avg_pool2d gradient, from 7 x 7", backward);
    let signal = floats([16, 64, 784]);
    let pool = both!(B => B::max_pool1d(signal.clone(), 4, 4, 0, 1, false));
    rows.add("max_pool1d, 16 x 64 x 784", pool);
    let (volume, small) = (floats([4, 32, 16, 16, 16]), floats([4, 32, 4, 4, 4]));
    let pool = both!(B => B::adaptive_avg_pool3d(volume.clone(), [4, 4, 4]));
    rows.add("adaptive_avg_pool3d, 4 x 32 x 16 x 16 x 16 to 4 x 4 x 4", pool);
    let backward = both!(B => B::adaptive_avg_pool3d_backward(volume.clone(), small.clone()));
    rows.add("adaptive_avg_pool3d gradient", backward);
}
