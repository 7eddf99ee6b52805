//! The order contract in plain Rust.
//!
//! Tensors are row-major slices; `combine` is the operation of the update, in the type it is computed in. An index that
//! is `None` names nothing.

use crate::order::reference::blocked_sparse;

/// `tensor[outer, rows, inner]` updated by `values[outer, positions, inner]`: the value at `(o, p, i)` updates row
/// `row_of(o, p, i)`.
pub fn update<T: Copy>(
    [outer, rows, inner]: [usize; 3],
    tensor: &[T],
    values: &[T],
    row_of: impl Fn(usize, usize, usize) -> Option<usize>,
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let positions = values.len() / (outer * inner).max(1);
    let mut present = vec![Vec::new(); tensor.len()];
    for (source, &value) in values.iter().enumerate() {
        let (o, p, i) = (source / inner / positions, source / inner % positions, source % inner);
        if let Some(row) = row_of(o, p, i) {
            present[(o * rows + row) * inner + i].push((p, value));
        }
    }
    let update =
        |(&before, terms): (&T, &Vec<_>)| blocked_sparse(terms, &combine).map_or(before, |v| combine(before, v));
    tensor.iter().zip(&present).map(update).collect()
}

/// [`Addressing::Elements`](super::Addressing::Elements): one index a value, `indices[outer, positions, inner]`.
pub fn scatter<T: Copy>(
    shape @ [_, rows, inner]: [usize; 3],
    tensor: &[T],
    indices: &[i64],
    values: &[T],
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let positions = values.len() / (shape[0] * inner).max(1);
    update(shape, tensor, values, |o, p, i| row(indices[(o * positions + p) * inner + i], rows), combine)
}

/// [`Addressing::Rows`](super::Addressing::Rows): one index a position, `indices[positions]`.
pub fn select_assign<T: Copy>(
    shape @ [_, rows, _]: [usize; 3],
    tensor: &[T],
    indices: &[i64],
    values: &[T],
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    update(shape, tensor, values, |_, p, _| row(indices[p], rows), combine)
}

/// [`Addressing::Tuples`](super::Addressing::Tuples): one tuple of `sizes.len()` indices a position, into `tensor[sizes.., width]`.
pub fn scatter_nd<T: Copy>(
    sizes: &[usize],
    width: usize,
    tensor: &[T],
    indices: &[i64],
    values: &[T],
    combine: impl Fn(T, T) -> T,
) -> Vec<T> {
    let rows = tuple_rows(sizes, indices);
    update([1, sizes.iter().product(), width], tensor, values, |_, p, _| rows[p], combine)
}

/// The row-major rows that index tuples name in a tensor whose first axes have these `sizes`.
pub fn tuple_rows(sizes: &[usize], indices: &[i64]) -> Vec<Option<usize>> {
    let of = |tuple: &[i64]| {
        tuple.iter().zip(sizes).try_fold(0, |rows, (&index, &size)| row(index, size).map(|at| rows * size + at))
    };
    indices.chunks(sizes.len()).map(of).collect()
}

/// The row that an index names.
fn row(index: i64, rows: usize) -> Option<usize> {
    usize::try_from(index).ok().filter(|&row| row < rows)
}
