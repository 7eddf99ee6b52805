//! The same order in plain Rust: the specification.

pub use crate::order::reference::columns as reduce;

/// The sum of f32 values; +0 when there are none.
pub fn sum(values: &[f32]) -> f32 {
    reduce(values, |a, b| a + b).unwrap_or(0.0)
}

/// The product of f32 values; 1 when there are none.
pub fn prod(values: &[f32]) -> f32 {
    reduce(values, |a, b| a * b).unwrap_or(1.0)
}

/// The mean of f32 values: their [`sum`] divided once by their number.
pub fn mean(values: &[f32]) -> f32 {
    sum(values) / values.len() as f32
}

/// The quiet NaN that stands for every NaN a comparison meets.
const NAN: f32 = f32::from_bits(0x7fc0_0000);

/// The largest value, -0 below +0; NaN where there is one.
pub fn max(values: &[f32]) -> Option<f32> {
    match values.iter().any(|x| x.is_nan()) {
        true => Some(NAN),
        false => values.iter().copied().max_by(f32::total_cmp),
    }
}

/// The smallest value, -0 below +0; NaN where there is one.
pub fn min(values: &[f32]) -> Option<f32> {
    match values.iter().any(|x| x.is_nan()) {
        true => Some(NAN),
        false => values.iter().copied().min_by(f32::total_cmp),
    }
}

/// The largest magnitude; NaN where there is one.
pub fn max_abs(values: &[f32]) -> Option<f32> {
    let magnitudes: Vec<f32> = values.iter().map(|x| x.abs()).collect();
    max(&magnitudes)
}

/// The index of the first NaN, or else of the first of the largest values.
pub fn argmax(values: &[f32]) -> Option<usize> {
    let first = |found: &dyn Fn(f32) -> bool| values.iter().position(|&x| found(x));
    first(&f32::is_nan).or_else(|| first(&|x| values.iter().all(|&y| x >= y)))
}

/// The index of the first NaN, or else of the first of the smallest values.
pub fn argmin(values: &[f32]) -> Option<usize> {
    let first = |found: &dyn Fn(f32) -> bool| values.iter().position(|&x| found(x));
    first(&f32::is_nan).or_else(|| first(&|x| values.iter().all(|&y| x <= y)))
}
