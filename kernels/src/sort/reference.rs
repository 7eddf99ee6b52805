//! The order contract in plain Rust.

use crate::sort::Direction;
use std::cmp::Ordering;

/// The indices of a line's elements in order; `compare` is [`f32::total_cmp`] for floats, [`Ord::cmp`] for integers.
pub fn argsort<T>(line: &[T], direction: Direction, compare: impl Fn(&T, &T) -> Ordering) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..line.len()).collect();
    // The standard library's stable sort leaves equal elements in their order, whichever way they are compared.
    indices.sort_by(|&a, &b| match direction {
        Direction::Ascending => compare(&line[a], &line[b]),
        Direction::Descending => compare(&line[b], &line[a]),
    });
    indices
}
