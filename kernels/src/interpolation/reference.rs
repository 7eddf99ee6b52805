//! The same order in plain Rust: the specification.

use super::weights::{AxisWeights, Filter};

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
