//! The order contract of [`attention`](super::attention) in plain Rust.

use super::Params;
use crate::arithmetic::MultiplyAdd;
use crate::{matmul, reduce};

/// One head: `queries` of `[queries, width]`, `keys` of `[keys, width]`, `values` of `[keys, columns]`, contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The queries.
    pub queries: &'a [f32],
    /// The keys.
    pub keys: &'a [f32],
    /// The values.
    pub values: &'a [f32],
    /// Elements of a query and of a key.
    pub width: usize,
    /// Elements of a value.
    pub columns: usize,
    /// `[queries, keys]`: whether the key is masked.
    pub mask: Option<&'a [bool]>,
    /// `[queries, keys]`: added to the scores.
    pub bias: Option<&'a [f32]>,
}

/// Functions that every device computes in its own way, of many numbers at once.
#[derive(Clone, Copy)]
pub struct Functions<'a> {
    /// The exponential function.
    pub exponential: &'a dyn Fn(&[f32]) -> Vec<f32>,
    /// The hyperbolic tangent.
    pub hyperbolic_tangent: &'a dyn Fn(&[f32]) -> Vec<f32>,
}

/// `[queries, columns]`.
pub fn attention(head: Head<'_>, params: Params, functions: Functions<'_>, multiply_add: MultiplyAdd) -> Vec<f32> {
    let Head { queries, keys, values, width, columns, mask, bias } = head;
    let (rows, count) = (queries.len() / width, keys.len() / width);
    let transposed: Vec<f32> = (0..width * count).map(|at| keys[at % count * width + at / count]).collect();
    let products = matmul::reference::matmul(queries, &transposed, [rows, width, count], multiply_add);
    let mut scores: Vec<f32> = products.iter().map(|product| product * params.scale).collect();
    if let Some(softcap) = params.softcap {
        let parts: Vec<f32> = scores.iter().map(|score| score / softcap).collect();
        scores = (functions.hyperbolic_tangent)(&parts).iter().map(|part| part * softcap).collect();
    }
    for (at, score) in scores.iter_mut().enumerate() {
        let (row, key) = (at / count, at % count);
        if mask.is_some_and(|mask| mask[at]) || params.causal && key + rows > row + count {
            *score = f32::NEG_INFINITY;
        }
        if let Some(bias) = bias {
            *score += bias[at];
        }
    }
    let largest = |line: &[f32]| line.iter().copied().fold(f32::MIN, f32::max);
    let exponents: Vec<f32> = scores.chunks(count).flat_map(|line| line.iter().map(|s| s - largest(line))).collect();
    let exps = (functions.exponential)(&exponents);
    let divided = |line: &[f32]| -> Vec<f32> {
        let sum = reduce::reference::sum(line);
        let sum = if sum < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { sum };
        line.iter().map(|exp| exp / sum).collect()
    };
    let probabilities: Vec<f32> = exps.chunks(count).flat_map(divided).collect();
    matmul::reference::matmul(&probabilities, values, [rows, count, columns], multiply_add)
}
