//! The order contract in plain Rust.
//!
//! Tensors are row-major slices; `combine` is the operation of the update, in the type it is computed in.

use crate::reduce::reference::sum;
use crate::scatter::{CHUNK, RUN};

/// The tree of the contract over the sources of one destination, in ascending order.
pub fn fold<T: Copy>(values: &[T], combine: impl Fn(T, T) -> T) -> Option<T> {
    let mut level = values.to_vec();
    while level.len() > 1 {
        level = level.chunks(CHUNK).map(|chunk| chunk[1..].iter().fold(chunk[0], |a, &b| combine(a, b))).collect();
    }
    level.first().copied()
}

/// Updates rows: `keys[s]` is the row of `tensor[rows, width]` that `values[s, width]` updates.
pub fn update_rows<T: Copy>(
    tensor: &[T],
    width: usize,
    keys: &[Option<usize>],
    values: &[T],
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut sources = vec![Vec::new(); tensor.len()];
    for (source, key) in keys.iter().enumerate() {
        for column in 0..width {
            if let Some(row) = key {
                sources[row * width + column].push(values[source * width + column]);
            }
        }
    }
    let update = |(&before, values): (&T, &Vec<T>)| fold(values, &combine).map_or(before, |v| combine(before, v));
    tensor.iter().zip(&sources).map(update).collect()
}

/// `scatter` of `values[outer, sources, inner]` into `tensor[outer, rows, inner]`.
pub fn scatter<T: Copy>(
    [outer, rows, inner]: [usize; 3],
    tensor: &[T],
    indices: &[i64],
    values: &[T],
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let keys = axis_keys([outer, rows, inner], indices);
    update_rows(tensor, 1, &keys, values, combine)
}

/// `scatter` with `Add` of `values[outer, sources, inner]` into the few rows of `tensor[outer, rows, inner]`, by runs.
pub fn scatter_add_runs([outer, rows, inner]: [usize; 3], tensor: &[f32], indices: &[i64], values: &[f32]) -> Vec<f32> {
    let sources = indices.len() / (outer * inner);
    let mut totals = vec![vec![-0.0; sources.div_ceil(RUN)]; tensor.len()];
    for (at, key) in axis_keys([outer, rows, inner], indices).into_iter().enumerate() {
        if let Some(element) = key {
            totals[element][at / inner % sources / RUN] += values[at];
        }
    }
    let update = |(&before, totals): (&f32, &Vec<f32>)| match sum(totals) {
        total if total.to_bits() == (-0f32).to_bits() => before,
        total => before + total,
    };
    tensor.iter().zip(&totals).map(update).collect()
}

/// `select_assign` of `values[outer, sources, inner]` into `tensor[outer, rows, inner]`, with one index a source.
pub fn select_assign<T: Copy>(
    shape @ [outer, _, inner]: [usize; 3],
    tensor: &[T],
    indices: &[i64],
    values: &[T],
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    scatter(shape, tensor, &per_value([outer, inner], indices), values, combine)
}

/// The index of every value of `[outer, sources, inner]` that are updated with one index a source.
pub fn per_value([outer, inner]: [usize; 2], indices: &[i64]) -> Vec<i64> {
    (0..outer).flat_map(|_| indices.iter().flat_map(|&index| std::iter::repeat_n(index, inner))).collect()
}

/// The destination elements that `indices[outer, sources, inner]` name in `[outer, rows, inner]`.
pub fn axis_keys([outer, rows, inner]: [usize; 3], indices: &[i64]) -> Vec<Option<usize>> {
    let sources = indices.len() / (outer * inner).max(1);
    let key = |(at, &index): (usize, &i64)| {
        let row = usize::try_from(index).ok().filter(|&row| row < rows)?;
        let (line, lane) = (at / (sources * inner), at % inner);
        Some((line * rows + row) * inner + lane)
    };
    indices.iter().enumerate().map(key).collect()
}

/// The rows that index tuples of `sizes.len()` parts name in a tensor of leading `sizes`.
pub fn tuple_keys(sizes: &[usize], indices: &[i64]) -> Vec<Option<usize>> {
    let key = |tuple: &[i64]| {
        tuple.iter().zip(sizes).try_fold(0, |row, (&index, &size)| {
            usize::try_from(index).ok().filter(|&at| at < size).map(|at| row * size + at)
        })
    };
    indices.chunks(sizes.len()).map(key).collect()
}
