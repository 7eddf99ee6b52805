//! The order contract in plain Rust.

use super::comparison::Direction;
use std::cmp::Ordering;

/// The order of floats: NaNs are equal and above everything; `compare` orders the others, -0 below +0, as
/// [`f32::total_cmp`] does.
pub fn float_order<T>(is_nan: fn(T) -> bool, compare: fn(&T, &T) -> Ordering) -> impl Fn(&T, &T) -> Ordering + Copy
where
    T: Copy,
{
    move |&a, &b| match (is_nan(a), is_nan(b)) {
        (false, false) => compare(&a, &b),
        (a, b) => a.cmp(&b),
    }
}

/// The indices of a line's elements in order; `compare` is [`float_order`] for floats, [`Ord::cmp`] for integers.
pub fn argsort<T>(line: &[T], direction: Direction, compare: impl Fn(&T, &T) -> Ordering) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..line.len()).collect();
    // The standard library's stable sort leaves equal elements in their order, whichever way they are compared.
    indices.sort_by(|&a, &b| match direction {
        Direction::Ascending => compare(&line[a], &line[b]),
        Direction::Descending => compare(&line[b], &line[a]),
    });
    indices
}
