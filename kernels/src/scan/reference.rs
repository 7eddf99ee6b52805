//! The order contract in plain Rust.

pub use crate::order::reference::blocked_prefixes as scan;

/// `right` if it is smaller than `left` or the first NaN, else `left`.
pub fn smaller(left: f32, right: f32) -> f32 {
    if !left.is_nan() && (right.is_nan() || right < left) { right } else { left }
}

/// `right` if it is larger than `left` or the first NaN, else `left`.
pub fn larger(left: f32, right: f32) -> f32 {
    if !left.is_nan() && (right.is_nan() || right > left) { right } else { left }
}
