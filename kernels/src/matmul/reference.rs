//! The order contract of [`matmul`](super::matmul) in plain Rust.

use super::BLOCK;
use crate::arithmetic::MultiplyAdd;

/// One output element: the operands' `k` pairs in ascending order.
pub fn dot(pairs: impl ExactSizeIterator<Item = (f32, f32)>, multiply_add: MultiplyAdd) -> f32 {
    let (mut total, mut chain) = (0.0, 0.0);
    let k = pairs.len();
    for (p, (a, b)) in pairs.enumerate() {
        chain = multiply_add.apply(a, b, chain);
        if (p + 1) % BLOCK == 0 || p + 1 == k {
            total = if p < BLOCK { chain } else { total + chain };
            chain = 0.0;
        }
    }
    total
}

/// Row-major `[m, k] x [k, n] -> [m, n]`.
pub fn matmul(lhs: &[f32], rhs: &[f32], [m, k, n]: [usize; 3], multiply_add: MultiplyAdd) -> Vec<f32> {
    let element = |i: usize, j: usize| dot((0..k).map(|p| (lhs[i * k + p], rhs[p * n + j])), multiply_add);
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}
