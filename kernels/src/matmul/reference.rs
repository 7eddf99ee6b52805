//! The order contract of [`matmul`](super::matmul) in plain Rust.

use crate::arithmetic::MultiplyAdd;
pub use crate::order::reference::dot;

/// Row-major `[m, k] x [k, n] -> [m, n]`.
pub fn matmul(lhs: &[f32], rhs: &[f32], [m, k, n]: [usize; 3], multiply_add: MultiplyAdd) -> Vec<f32> {
    let element = |i: usize, j: usize| dot((0..k).map(|p| (lhs[i * k + p], rhs[p * n + j])), multiply_add);
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}
