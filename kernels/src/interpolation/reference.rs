//! The same order in plain Rust: the specification.

use super::weights::{AxisWeights, Filter, Windows};

/// `[images, height, width]` as `[images, rows, columns]`, both contiguous.
pub fn resize(
    input: &[f32],
    [height, width]: [usize; 2],
    [rows, columns]: [usize; 2],
    filter: Filter,
    align_corners: bool,
) -> Vec<f32> {
    let images = input.len() / (height * width).max(1);
    let down = Windows::new(height, rows, filter, align_corners);
    let across = Windows::new(width, columns, filter, align_corners);
    let window = |table: &Windows, o: usize| -> Vec<(usize, f32)> {
        let [first, count] = table.inputs[o].map(|n| n as usize);
        let weights = &table.weights[o * filter.taps()..][..count];
        (first..).zip(weights.iter().map(|&weight| weight as f32)).collect()
    };
    let mut result = Vec::new();
    for image in 0..images {
        let image = &input[image * height * width..][..height * width];
        for (y, x) in (0..rows).flat_map(|y| (0..columns).map(move |x| (y, x))) {
            let (down, across) = (window(&down, y), window(&across, x));
            let line = |i: usize| across.iter().fold(0.0, |acc, &(at, weight)| weight * image[i * width + at] + acc);
            result.push(match filter {
                Filter::Nearest | Filter::NearestExact => image[down[0].0 * width + across[0].0],
                _ => down.iter().fold(0.0, |acc, &(i, weight)| weight * line(i) + acc),
            });
        }
    }
    result
}

/// The gradient of `[images, height, width]` from that of `[images, rows, columns]`, both contiguous.
pub fn input_gradient(
    gradient: &[f32],
    [height, width]: [usize; 2],
    [rows, columns]: [usize; 2],
    filter: Filter,
    align_corners: bool,
) -> Vec<f32> {
    let images = gradient.len() / (rows * columns).max(1);
    let down = AxisWeights::new(height, rows, filter, align_corners);
    let across = AxisWeights::new(width, columns, filter, align_corners);
    let mut result = Vec::new();
    for image in 0..images {
        let image = &gradient[image * rows * columns..][..rows * columns];
        let mut partial = Vec::new();
        for (i, x) in (0..height).flat_map(|i| (0..columns).map(move |x| (i, x))) {
            partial.push(chain(&down, i, |o| image[o * columns + x]));
        }
        for (y, i) in (0..height).flat_map(|y| (0..width).map(move |i| (y, i))) {
            result.push(chain(&across, i, |o| partial[y * columns + o]));
        }
    }
    result
}

/// The chain of input `i` over the outputs that read it.
fn chain(table: &AxisWeights, i: usize, gradient: impl Fn(usize) -> f32) -> f32 {
    let taps = table.offsets[i] as usize..table.offsets[i + 1] as usize;
    let outputs = table.first[i] as usize..;
    taps.zip(outputs).fold(0.0, |acc, (tap, o)| table.weights[tap] as f32 * gradient(o) + acc)
}
