//! Pools of images.

use super::{Output, operand, run};
use burn_backend::cubecl::dtype_to_elem_type;
use burn_backend::ops::conv::calculate_pool_output_size;
use burn_backend::{IntDType, Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::pool::{self, Window};
use burn_deterministic_kernels::reduce;

/// The averages of windows.
#[allow(clippy::too_many_arguments)]
pub(in crate::backend) fn average(
    operation: &'static str,
    x: CubeTensor,
    kernel_size: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    count_include_pad: bool,
    ceil_mode: bool,
    plain: impl FnOnce(CubeTensor, [usize; 2], [usize; 2], [usize; 2], bool, bool) -> CubeTensor,
) -> CubeTensor {
    let window = Window { kernel_size, stride, padding, dilation: [1, 1] };
    let windows = windows(&x, &window, ceil_mode);
    run(
        operation,
        &[&x],
        Output::like(&x, with_last(&x, windows)),
        |client| pool::average(client, operand(&x), windows, &window, count_include_pad),
        || plain(x.clone(), kernel_size, stride, padding, count_include_pad, ceil_mode),
    )
}

/// The gradient of [`average`] by the image `x`.
#[allow(clippy::too_many_arguments)]
pub(in crate::backend) fn average_gradient(
    operation: &'static str,
    x: CubeTensor,
    gradient: CubeTensor,
    kernel_size: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    count_include_pad: bool,
    ceil_mode: bool,
    plain: impl FnOnce(CubeTensor, CubeTensor, [usize; 2], [usize; 2], [usize; 2], bool, bool) -> CubeTensor,
) -> CubeTensor {
    let window = Window { kernel_size, stride, padding, dilation: [1, 1] };
    run(
        operation,
        &[&x, &gradient],
        Output::like(&x, x.shape()),
        |client| pool::average_gradient(client, operand(&gradient), last(&x), &window, count_include_pad),
        || plain(x.clone(), gradient.clone(), kernel_size, stride, padding, count_include_pad, ceil_mode),
    )
}

/// The averages of windows that share the pixels of an image out. That of the whole image is a mean.
pub(in crate::backend) fn adaptive_average<const N: usize>(
    operation: &'static str,
    x: CubeTensor,
    windows: [usize; N],
    plain: impl FnOnce(CubeTensor, [usize; N]) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&x],
        Output::like(&x, with_last(&x, windows)),
        |client| match windows[..] {
            [1, 1] => reduce::mean(client, operand(&x), &[2, 3]),
            _ => pool::adaptive_average(client, operand(&x), windows),
        },
        || plain(x.clone(), windows),
    )
}

/// The gradient of [`adaptive_average`] by an image of two axes.
pub(in crate::backend) fn adaptive_average_gradient_2d(
    operation: &'static str,
    x: CubeTensor,
    gradient: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    adaptive_average_gradient::<2>(operation, x, gradient, plain)
}

/// The gradient of [`adaptive_average`] by an image of three axes.
pub(in crate::backend) fn adaptive_average_gradient_3d(
    operation: &'static str,
    x: CubeTensor,
    gradient: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    adaptive_average_gradient::<3>(operation, x, gradient, plain)
}

fn adaptive_average_gradient<const N: usize>(
    operation: &'static str,
    x: CubeTensor,
    gradient: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&x, &gradient],
        Output::like(&x, x.shape()),
        |client| pool::adaptive_average_gradient(client, operand(&gradient), last::<N>(&x)),
        || plain(x.clone(), gradient.clone()),
    )
}

/// The maxima of windows.
#[allow(clippy::too_many_arguments)]
pub(in crate::backend) fn maximum(
    operation: &'static str,
    x: CubeTensor,
    kernel_size: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    ceil_mode: bool,
    plain: impl FnOnce(CubeTensor, [usize; 2], [usize; 2], [usize; 2], [usize; 2], bool) -> CubeTensor,
) -> CubeTensor {
    let window = Window { kernel_size, stride, padding, dilation };
    let windows = windows(&x, &window, ceil_mode);
    run(
        operation,
        &[&x],
        Output::like(&x, with_last(&x, windows)),
        |client| pool::maximum(client, operand(&x), windows, &window),
        || plain(x.clone(), kernel_size, stride, padding, dilation, ceil_mode),
    )
}

/// The maxima of windows, and their indices.
pub(in crate::backend) fn maximum_with_indices(
    operation: &'static str,
    x: CubeTensor,
    window: &Window,
    ceil_mode: bool,
    dtype: IntDType,
    plain: impl FnOnce(CubeTensor) -> (CubeTensor, CubeTensor),
) -> (CubeTensor, CubeTensor) {
    let windows = windows(&x, window, ceil_mode);
    let values = Output::like(&x, with_last(&x, windows));
    let indices = Output { dtype: dtype.into(), ..values.clone() };
    run(
        operation,
        &[&x],
        (values, indices),
        |client| pool::maximum_with_indices(client, operand(&x), windows, window, dtype_to_elem_type(dtype.into())),
        || plain(x.clone()),
    )
}

/// The gradient of [`maximum_with_indices`] by the image `x`.
pub(in crate::backend) fn maximum_gradient(
    operation: &'static str,
    x: CubeTensor,
    window: &Window,
    gradient: CubeTensor,
    indices: CubeTensor,
    plain: impl FnOnce(CubeTensor, CubeTensor, CubeTensor) -> CubeTensor,
) -> CubeTensor {
    run(
        operation,
        &[&x, &gradient, &indices],
        Output::like(&x, x.shape()),
        |client| pool::maximum_gradient(client, operand(&gradient), operand(&indices), last(&x), window),
        || plain(x.clone(), gradient.clone(), indices.clone()),
    )
}

/// How many windows an image has along each axis.
fn windows(x: &CubeTensor, window: &Window, ceil_mode: bool) -> [usize; 2] {
    let Window { kernel_size, stride, padding, dilation } = window;
    let pixels: [usize; 2] = last(x);
    [0, 1].map(|n| calculate_pool_output_size(kernel_size[n], stride[n], padding[n], dilation[n], pixels[n], ceil_mode))
}

/// The last `N` sizes of a tensor.
fn last<const N: usize>(x: &CubeTensor) -> [usize; N] {
    let shape = x.shape();
    let first = shape.num_dims() - N;
    core::array::from_fn(|n| shape[first + n])
}

/// The shape of a tensor with other last sizes.
fn with_last<const N: usize>(x: &CubeTensor, last: [usize; N]) -> Shape {
    let mut shape = x.shape();
    let first = shape.num_dims() - N;
    for (n, size) in last.into_iter().enumerate() {
        shape[first + n] = size;
    }
    shape
}
