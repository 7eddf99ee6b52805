//! The order contract in plain Rust.

use crate::scan::block_length;

/// The results along one line, in the order of the module's contract.
pub fn scan<T: Copy>(line: &[T], combine: impl Fn(T, T) -> T) -> Vec<T> {
    let block = block_length(line.len());
    let mut results: Vec<T> = Vec::with_capacity(line.len());
    for values in line.chunks(block) {
        let before = results.last().copied();
        let mut local = values[0];
        for (at, &value) in values.iter().enumerate() {
            local = if at == 0 { value } else { combine(local, value) };
            results.push(before.map_or(local, |before| combine(before, local)));
        }
    }
    results
}

/// `right` if it is smaller than `left` or the first NaN, else `left`.
pub fn smaller(left: f32, right: f32) -> f32 {
    if !left.is_nan() && (right.is_nan() || right < left) { right } else { left }
}

/// `right` if it is larger than `left` or the first NaN, else `left`.
pub fn larger(left: f32, right: f32) -> f32 {
    if !left.is_nan() && (right.is_nan() || right > left) { right } else { left }
}
