//! The orders of pools in plain Rust: f32, and half types as the f32s that they hold, before the rounding.
//!
//! Operands are contiguous and row-major: planes `[.., height, width]`, of which each is pooled by itself.

use super::window::{Window, shared};
use std::ops::Range;

/// The averages of windows.
pub fn average(
    x: &[f32],
    [height, width]: [usize; 2],
    [rows, columns]: [usize; 2],
    window: &Window,
    count_include_pad: bool,
) -> Vec<f32> {
    let mut result = Vec::new();
    for plane in planes(x, height * width) {
        for (row, column) in pairs(0..rows, 0..columns) {
            let (mut sum, mut count) = (0.0, 0);
            for (i, j) in pairs(0..window.kernel_size[0], 0..window.kernel_size[1]) {
                let (y, x) = (row * window.stride[0] + i, column * window.stride[1] + j);
                if count_include_pad && y < height + 2 * window.padding[0] && x < width + 2 * window.padding[1] {
                    count += 1;
                }
                let (y, x) = (y.checked_sub(window.padding[0]), x.checked_sub(window.padding[1]));
                if let (Some(y), Some(x)) = (y.filter(|&y| y < height), x.filter(|&x| x < width)) {
                    sum += plane[y * width + x];
                    count += usize::from(!count_include_pad);
                }
            }
            result.push(sum / count as f32);
        }
    }
    result
}

/// The gradient of [`average`] from that of its result.
pub fn average_gradient(
    gradient: &[f32],
    input: [usize; 2],
    [rows, columns]: [usize; 2],
    window: &Window,
    count_include_pad: bool,
) -> Vec<f32> {
    let by_rows = having(input[0], rows, |o| counted(o, input[0], window, 0, count_include_pad));
    let by_columns = having(input[1], columns, |o| counted(o, input[1], window, 1, count_include_pad));
    let mut result = Vec::new();
    for plane in planes(gradient, rows * columns) {
        for (down, across) in by_rows.iter().flat_map(|down| by_columns.iter().map(move |across| (down, across))) {
            let mut sum = 0.0;
            for (&(row, high), &(column, wide)) in down.iter().flat_map(|o| across.iter().map(move |p| (o, p))) {
                sum += plane[row * columns + column] / (high * wide) as f32;
            }
            result.push(sum);
        }
    }
    result
}

/// The pixels along an axis of window `o`, and how many are counted.
fn counted(o: usize, input: usize, window: &Window, axis: usize, count_include_pad: bool) -> (Range<usize>, usize) {
    let (first, padding) = (o * window.stride[axis], window.padding[axis]);
    let end = first + window.kernel_size[axis];
    let inside = first.saturating_sub(padding)..end.saturating_sub(padding).min(input);
    let count = if count_include_pad { end.min(input + 2 * padding).saturating_sub(first) } else { inside.len() };
    (inside, count)
}

/// For each pixel along an axis the windows that have it, and the number that goes with each.
fn having(pixels: usize, windows: usize, window: impl Fn(usize) -> (Range<usize>, usize)) -> Vec<Vec<(usize, usize)>> {
    let mut having = vec![Vec::new(); pixels];
    for o in 0..windows {
        let (range, count) = window(o);
        range.for_each(|pixel| having[pixel].push((o, count)));
    }
    having
}

/// The averages of the windows that share the pixels of `[.., depth, height, width]` out.
pub fn adaptive(x: &[f32], input: [usize; 3], output: [usize; 3]) -> Vec<f32> {
    let mut result = Vec::new();
    for volume in planes(x, input.iter().product()) {
        for o in triples(output.map(|n| 0..n)) {
            let window = [0, 1, 2].map(|axis| shared(o[axis], input[axis], output[axis]));
            let count = window.iter().map(Range::len).product::<usize>();
            let sum = triples(window).fold(0.0, |sum, at| sum + volume[position(at, input)]);
            result.push(sum / count as f32);
        }
    }
    result
}

/// The gradient of [`adaptive`] from that of its result.
pub fn adaptive_gradient(gradient: &[f32], input: [usize; 3], output: [usize; 3]) -> Vec<f32> {
    let windows = [0, 1, 2].map(|axis| {
        having(input[axis], output[axis], |o| {
            let range = shared(o, input[axis], output[axis]);
            (range.clone(), range.len())
        })
    });
    let mut result = Vec::new();
    for volume in planes(gradient, output.iter().product()) {
        for i in triples(input.map(|n| 0..n)) {
            let near = [0, 1, 2].map(|axis| &windows[axis][i[axis]]);
            let terms = triples(near.map(|windows| 0..windows.len())).map(|at| {
                let of = [0, 1, 2].map(|axis| near[axis][at[axis]]);
                volume[position(of.map(|(o, _)| o), output)]
                    / of.map(|(_, count)| count).iter().product::<usize>() as f32
            });
            result.push(terms.fold(0.0, |sum, term| sum + term));
        }
    }
    result
}

/// The maxima of windows, and their indices in the plane.
pub fn maximum(
    x: &[f32],
    [height, width]: [usize; 2],
    [rows, columns]: [usize; 2],
    window: &Window,
) -> (Vec<f32>, Vec<usize>) {
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for plane in planes(x, height * width) {
        for (row, column) in pairs(0..rows, 0..columns) {
            let mut found: Option<usize> = None;
            for (i, j) in pairs(0..window.kernel_size[0], 0..window.kernel_size[1]) {
                let y = (row * window.stride[0] + i * window.dilation[0]).checked_sub(window.padding[0]);
                let x = (column * window.stride[1] + j * window.dilation[1]).checked_sub(window.padding[1]);
                let (Some(y), Some(x)) = (y.filter(|&y| y < height), x.filter(|&x| x < width)) else { continue };
                let at = y * width + x;
                if found.is_none_or(|found| is_above(plane[at], plane[found])) {
                    found = Some(at);
                }
            }
            values.push(found.map_or(f32::NEG_INFINITY, |at| plane[at]));
            indices.push(found.unwrap_or(0));
        }
    }
    (values, indices)
}

/// Whether a maximum is `a` where it was `b`.
fn is_above(a: f32, b: f32) -> bool {
    a > b || (a.is_nan() && !b.is_nan())
}

/// The gradient of [`maximum`] from that of its values, and from its indices.
pub fn maximum_gradient(
    gradient: &[f32],
    indices: &[usize],
    [height, width]: [usize; 2],
    [rows, columns]: [usize; 2],
    window: &Window,
) -> Vec<f32> {
    let reaching = |axis: usize, pixel: usize, windows: usize| {
        let reach = window.dilation[axis] * (window.kernel_size[axis] - 1) + 1;
        let place = pixel + window.padding[axis];
        (0..windows).filter(move |o| (o * window.stride[axis]..o * window.stride[axis] + reach).contains(&place))
    };
    let by_rows: Vec<Vec<usize>> = (0..height).map(|y| reaching(0, y, rows).collect()).collect();
    let by_columns: Vec<Vec<usize>> = (0..width).map(|x| reaching(1, x, columns).collect()).collect();
    let mut result = Vec::new();
    for (plane, indices) in planes(gradient, rows * columns).zip(planes(indices, rows * columns)) {
        for (y, x) in pairs(0..height, 0..width) {
            let windows =
                by_rows[y].iter().flat_map(|row| by_columns[x].iter().map(move |column| row * columns + column));
            let terms = windows.filter(|&at| indices[at] == y * width + x).map(|at| plane[at]);
            result.push(terms.fold(0.0, |sum, term| sum + term));
        }
    }
    result
}

fn planes<T>(x: &[T], size: usize) -> impl Iterator<Item = &[T]> {
    x.chunks(size.max(1))
}

/// Row-major ascending pairs.
fn pairs(rows: Range<usize>, columns: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
    rows.flat_map(move |row| columns.clone().map(move |column| (row, column)))
}

/// Row-major ascending positions.
fn triples([depth, rows, columns]: [Range<usize>; 3]) -> impl Iterator<Item = [usize; 3]> {
    depth.flat_map(move |d| pairs(rows.clone(), columns.clone()).map(move |(row, column)| [d, row, column]))
}

fn position([d, h, w]: [usize; 3], [_, height, width]: [usize; 3]) -> usize {
    (d * height + h) * width + w
}
