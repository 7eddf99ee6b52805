//! Pools of images: averages and maxima of windows, and their gradients.
//!
//! # Order contract
//!
//! ```text
//! average        acc = +0; for the pixels of the window in row-major order { acc = acc + x }; acc / count
//! its gradient   acc = +0; for the windows that have the pixel in row-major order { acc = acc + dy / count }
//! maximum        the first pixel of the window in row-major order that no other is above, and its index in the image
//! its gradient   acc = +0; for the windows that reach over the pixel in row-major order, of those whose index is the
//!                pixel's { acc = acc + dy }
//! ```
//!
//! A row-major order of planes has these first. Each operation is rounded. Half types are computed in f32 and rounded
//! once.
//!
//! - The count is that of the pixels of the window, with those of the padding if they are asked for. Pixels beyond the
//!   padding are not counted. A window of no pixel has the sum +0, and the average NaN where it counts none.
//! - A sum is never -0. The average of a window of zeros is +0, whatever their signs.
//! - Of a maximum every NaN is above every number, and none above another; no zero is above one of the other sign. So
//!   the maximum is the first NaN of a window that has one, with its payload, and a zero has the sign of the first one.
//!   -inf is a number. Floats are compared as integers. It is the rule of [`reduce::extreme`](crate::reduce::extreme).
//! - A window of no pixel has the maximum -inf and the index 0. No gradient goes there.
//! - An index of no pixel, or of one that the window does not reach over, gets no gradient.
//!
//! [Adaptive](adaptive_average) windows share the pixels of an axis out: window `o` of `m` has those from `o n / m` to
//! below `(o + 1) n / m`, rounded down and up. f64 has the device's division.
//!
//! # Cost
//!
//! A unit has an element of the result and reads its window, or of a gradient its windows. There is one plan. One launch,
//! or one for each 59,999 terms of the longest sum.

mod axis;
mod kernel;
mod launch;
pub mod reference;
mod window;

pub use window::Window;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::require_units;
use crate::dtype::float_accumulator;
use crate::dtype::key::key_type;
use crate::error::require_shapes;
use crate::grid::UNITS;
use crate::index::require_counts;
use crate::view::{addressable, require_reach, require_shape};
use axis::{Lengths, Windows, require_some};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use launch::Averages;

/// The averages of the windows of `input`, `[batch, channels, height, width]`: `[batch, channels, rows, columns]`, where
/// `windows` is `[rows, columns]`. The padding is counted if `count_include_pad` says so. A window's dilation is 1.
///
/// # Errors
///
/// Refuses operands of other shapes, images without pixels, windows without pixels, a dilation, shapes that 31-bit
/// indices do not reach, and element types the device does not compute.
pub fn average(
    client: &Client,
    input: TensorHandle,
    windows: [usize; 2],
    window: &Window,
    count_include_pad: bool,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "pool::average";
    let [batch, channels, height, width] = axes(KERNEL, "input", input.shape())?;
    let [rows, columns] = windows;
    let pool = strided(KERNEL, [height, width], windows, window, count_include_pad)?;
    averaged(client, KERNEL, &pool, &input, vec![batch, channels, rows, columns], false)
}

/// The gradient of [`average`], `[batch, channels, height, width]`, from that of its result, where `pixels` is `[height,
/// width]`.
///
/// # Errors
///
/// As [`average`].
pub fn average_gradient(
    client: &Client,
    gradient: TensorHandle,
    pixels: [usize; 2],
    window: &Window,
    count_include_pad: bool,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "pool::average_gradient";
    let [batch, channels, rows, columns] = axes(KERNEL, "gradient", gradient.shape())?;
    let [height, width] = pixels;
    let pool = strided(KERNEL, pixels, [rows, columns], window, count_include_pad)?;
    averaged(client, KERNEL, &pool, &gradient, vec![batch, channels, height, width], true)
}

/// The averages of the windows that share out the pixels of `input`, `[batch, channels, .., height, width]` with planes or
/// without: as many along each axis as `windows` says.
///
/// # Errors
///
/// Refuses operands of other shapes, images without pixels, shapes that 31-bit indices do not reach, and element types
/// the device does not compute.
pub fn adaptive_average<const N: usize>(
    client: &Client,
    input: TensorHandle,
    windows: [usize; N],
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "pool::adaptive_average";
    let (shape, pixels) = replaced(KERNEL, "input", input.shape(), windows)?;
    averaged(client, KERNEL, &sharing(KERNEL, pixels, windows)?, &input, shape, false)
}

/// The gradient of [`adaptive_average`] from that of its result, where the images have `pixels` along each axis.
///
/// # Errors
///
/// As [`adaptive_average`].
pub fn adaptive_average_gradient<const N: usize>(
    client: &Client,
    gradient: TensorHandle,
    pixels: [usize; N],
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "pool::adaptive_average_gradient";
    let (shape, windows) = replaced(KERNEL, "gradient", gradient.shape(), pixels)?;
    averaged(client, KERNEL, &sharing(KERNEL, pixels, windows)?, &gradient, shape, true)
}

/// The maxima of the windows of `input`, `[batch, channels, height, width]`: `[batch, channels, rows, columns]`, where
/// `windows` is `[rows, columns]`.
///
/// # Errors
///
/// Refuses operands of other shapes, images without pixels, windows without pixels, shapes that 31-bit indices do not
/// reach, and element types the device does not compare.
pub fn maximum(
    client: &Client,
    input: TensorHandle,
    windows: [usize; 2],
    window: &Window,
) -> Result<TensorHandle, KernelError> {
    Ok(maxima(client, "pool::maximum", input, windows, window, None)?.0)
}

/// [`maximum`], and of each the row-major index in its image, as `index_dtype`.
///
/// # Errors
///
/// As [`maximum`], and refuses an index type that does not count an image's pixels.
pub fn maximum_with_indices(
    client: &Client,
    input: TensorHandle,
    windows: [usize; 2],
    window: &Window,
    index_dtype: ElemType,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    let (values, indices) = maxima(client, "pool::maximum_with_indices", input, windows, window, Some(index_dtype))?;
    Ok((values, indices.expect("indices were asked for")))
}

/// The gradient of [`maximum`], `[batch, channels, height, width]`, from that of its result and its indices, where
/// `pixels` is `[height, width]`.
///
/// # Errors
///
/// Refuses operands of other shapes, images without pixels, windows without pixels, shapes that 31-bit indices do not
/// reach, and element types the device does not compute.
pub fn maximum_gradient(
    client: &Client,
    gradient: TensorHandle,
    indices: TensorHandle,
    pixels: [usize; 2],
    window: &Window,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "pool::maximum_gradient";
    let [batch, channels, rows, columns] = axes(KERNEL, "gradient", gradient.shape())?;
    require_shape(KERNEL, "indices", indices.shape(), gradient.shape())?;
    let [height, width] = pixels;
    let lengths = Lengths::of_window(KERNEL, pixels, [rows, columns], window)?;
    let shape = vec![batch, channels, height, width];
    addressable(KERNEL, &[&shape, gradient.shape()])?;
    let accumulator = float_accumulator(client, KERNEL, &[&gradient])?;
    require_reach(KERNEL, [&indices])?;
    require_counts(client, KERNEL, indices.dtype, height * width)?;
    require_units(client, KERNEL, UNITS)?;
    if shape.contains(&0) {
        return Ok(unwritten(client, shape, gradient.dtype));
    }
    require_some(KERNEL, &lengths)?;
    Ok(launch::maximum_gradients(client, &gradient, &indices, shape, lengths, accumulator))
}

/// Maxima, and indices if there is a type for them.
fn maxima(
    client: &Client,
    kernel: &'static str,
    input: TensorHandle,
    windows: [usize; 2],
    window: &Window,
    index: Option<ElemType>,
) -> Result<(TensorHandle, Option<TensorHandle>), KernelError> {
    let [batch, channels, height, width] = axes(kernel, "input", input.shape())?;
    let lengths = Lengths::of_window(kernel, [height, width], windows, window)?;
    let shape = vec![batch, channels, windows[0], windows[1]];
    addressable(kernel, &[input.shape(), &shape, &window.kernel_size])?;
    let dtype = input.dtype;
    float_accumulator(client, kernel, &[&input])?;
    let Some(key) = key_type(dtype).filter(|&key| client.properties().supports_type(key)) else {
        return Err(KernelError::Dtype { kernel, dtype, remedy: "cast the tensor to f32" });
    };
    if let Some(index) = index {
        require_counts(client, kernel, index, height * width)?;
    }
    require_units(client, kernel, UNITS)?;
    if shape.contains(&0) {
        return Ok((unwritten(client, shape.clone(), dtype), index.map(|index| unwritten(client, shape, index))));
    }
    require_some(kernel, &lengths)?;
    Ok(launch::maxima(client, &input, shape, lengths, window.kernel_size, key, index))
}

/// An average pool of strided windows.
fn strided(
    kernel: &'static str,
    pixels: [usize; 2],
    windows: [usize; 2],
    window: &Window,
    counts_padding: bool,
) -> Result<Averages, KernelError> {
    if window.dilation != [1, 1] {
        let reason = format!("the average of a window of dilation {:?}, want 1", window.dilation);
        return Err(KernelError::Argument { kernel, reason });
    }
    let [rows, columns] = Lengths::of_window(kernel, pixels, windows, window)?;
    addressable(kernel, &[&window.kernel_size])?;
    let counting = |axis| Lengths { counts_padding, ..axis };
    let axes = [Lengths::ONE, counting(rows), counting(columns)];
    Ok(Averages { axes, windows: Windows::Strided, in_planes: false, table: Vec::new() })
}

/// An average pool of windows that share the pixels out.
fn sharing<const N: usize>(
    kernel: &'static str,
    pixels: [usize; N],
    windows: [usize; N],
) -> Result<Averages, KernelError> {
    // Before the table, which has an entry for each.
    addressable(kernel, &[&pixels, &windows])?;
    let mut table = Vec::new();
    let mut axes = [Lengths::ONE; 3];
    if N == 2 {
        axes[0] = Lengths::shared(1, 1, &mut table);
    }
    for n in 0..N {
        axes[3 - N + n] = Lengths::shared(pixels[n], windows[n], &mut table);
    }
    Ok(Averages { axes, windows: Windows::Shared, in_planes: N == 3, table })
}

/// The averages of the windows of `source`, of `shape`, or the gradient of the pixels.
fn averaged(
    client: &Client,
    kernel: &'static str,
    pool: &Averages,
    source: &TensorHandle,
    shape: Vec<usize>,
    gradient: bool,
) -> Result<TensorHandle, KernelError> {
    addressable(kernel, &[source.shape(), &shape])?;
    let accumulator = float_accumulator(client, kernel, &[source])?;
    require_units(client, kernel, UNITS)?;
    if shape.contains(&0) {
        return Ok(unwritten(client, shape, source.dtype));
    }
    require_some(kernel, &pool.axes)?;
    Ok(pool.launch(client, source, shape, accumulator, gradient))
}

/// The four axes of an operand.
fn axes(kernel: &'static str, name: &str, shape: &[usize]) -> Result<[usize; 4], KernelError> {
    <[usize; 4]>::try_from(shape)
        .map_err(|_| KernelError::Shape { kernel, reason: format!("{name} {shape:?}, want four axes") })
}

/// `shape` with `lengths` in place of its last axes, and those.
fn replaced<const N: usize>(
    kernel: &'static str,
    name: &str,
    shape: &[usize],
    lengths: [usize; N],
) -> Result<(Vec<usize>, [usize; N]), KernelError> {
    require_shapes(kernel, (N == 2 || N == 3) && shape.len() == N + 2, || {
        format!("{name} {shape:?} with {N} axes of an image, want a batch, channels, and two or three")
    })?;
    let mut last = [0; N];
    last.copy_from_slice(&shape[2..]);
    Ok(([&shape[..2], &lengths].concat(), last))
}
