//! What is computed along axes: reductions, scans and sorts.

use super::host::{Host, floats, int, of_int, rounded};
use super::limits::not_checked;
use burn_backend::{DType, IntDType, Shape, TensorMetadata};
use burn_deterministic_kernels::elementwise::{Binary, reference::binary};
use burn_deterministic_kernels::reduce::{extreme::Extreme, reference as reduce};
use burn_deterministic_kernels::scan::{self, reference::scan as prefixes};
use burn_deterministic_kernels::sort::{Direction, reference as sort};

impl Host {
    /// Applies `function` to each line along `axis`. Its results, `length` of `dtype`, take the line's place.
    pub fn lines(&self, axis: usize, length: usize, dtype: DType, function: impl Fn(&[u64]) -> Vec<u64>) -> Self {
        let mut shape = self.shape();
        let (n, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
        shape[axis] = length;
        let mut bits = vec![0; shape.num_elements()];
        for (outer, i) in (0..shape[..axis].iter().product()).flat_map(|outer| (0..inner).map(move |i| (outer, i))) {
            let line: Vec<u64> = (0..n).map(|at| self.bits()[(outer * n + at) * inner + i]).collect();
            for (at, value) in function(&line).into_iter().enumerate() {
                bits[(outer * length + at) * inner + i] = value;
            }
        }
        Self::new(&self.device(), shape, dtype, bits)
    }

    /// Reduces `axes`, which keep length one; the elements of a result are row-major over them.
    pub fn over(&self, axes: &[usize], function: impl Fn(&[u64]) -> u64) -> Self {
        let (reduced, kept): (Vec<_>, Vec<_>) = (0..self.rank()).partition(|axis| axes.contains(axis));
        let mut shape = self.shape();
        reduced.iter().for_each(|&axis| shape[axis] = 1);
        let (rows, n) = (shape.num_elements(), reduced.iter().map(|&axis| self.shape()[axis]).product());
        let lines = self.permute(&[kept, reduced].concat()).reshape(Shape::new([rows, n]));
        lines.lines(1, 1, self.dtype(), |line| vec![function(line)]).reshape(shape)
    }

    /// Reduces a whole tensor to shape `[1]`.
    pub fn whole(&self, function: impl Fn(&[u64]) -> u64) -> Self {
        self.over(&(0..self.rank()).collect::<Vec<_>>(), function).reshape(Shape::new([1]))
    }

    /// The indices of the extremes along `axis`.
    pub fn extremes(&self, end: Extreme, axis: usize, dtype: IntDType) -> Self {
        let of = self.dtype();
        self.lines(axis, 1, dtype.into(), |line| vec![search(of, end, line) as u64])
    }

    /// The elements at the extremes along `axis`, and their indices.
    pub fn extremes_with_indices(&self, end: Extreme, axis: usize, dtype: IntDType) -> (Self, Self) {
        let of = self.dtype();
        let values = self.lines(axis, 1, of, |line| vec![line[search(of, end, line)]]);
        (values, self.extremes(end, axis, dtype))
    }

    /// The first `kept` elements of each line along `axis` in order, or all of them.
    pub fn sorted(&self, axis: usize, direction: Direction, kept: Option<usize>) -> Self {
        let (of, kept) = (self.dtype(), kept.unwrap_or(self.shape()[axis]));
        self.lines(axis, kept, of, |line| {
            argsort(of, line, direction).into_iter().take(kept).map(|at| line[at]).collect()
        })
    }

    /// The indices of [`sorted`](Self::sorted).
    pub fn argsorted(&self, axis: usize, direction: Direction, kept: Option<usize>, dtype: IntDType) -> Self {
        let (of, kept) = (self.dtype(), kept.unwrap_or(self.shape()[axis]));
        self.lines(axis, kept, dtype.into(), |line| {
            argsort(of, line, direction).into_iter().take(kept).map(|at| at as u64).collect()
        })
    }

    /// Accumulates along `axis`.
    pub fn scanned(&self, axis: usize, operation: scan::Operation) -> Self {
        let (of, n) = (self.dtype(), self.shape()[axis]);
        if of.is_float() {
            // An extreme of half types, widened and rounded, is itself.
            return self.lines(axis, n, of, |line| {
                let totals = prefixes(&floats(of, line), |a, b| accumulated(operation, a, b));
                totals.into_iter().map(|total| rounded(total, of)).collect()
            });
        }
        self.lines(axis, n, of, |line| {
            let mut total = None;
            let next = |&bits: &u64| {
                let next = int(of, bits);
                let total = *total.insert(total.map_or(next, |total| accumulated_ints(operation, total, next)));
                of_int(of, total)
            };
            line.iter().map(next).collect()
        })
    }
}

/// A step of a scan of floats.
fn accumulated(operation: scan::Operation, left: f32, right: f32) -> f32 {
    match operation {
        scan::Operation::Sum => binary(Binary::Add, left, right),
        scan::Operation::Prod => binary(Binary::Multiply, left, right),
        scan::Operation::Min => scan::reference::smaller(left, right),
        scan::Operation::Max => scan::reference::larger(left, right),
    }
}

/// A step of a scan of integers, of which the lower 64 bits are right.
fn accumulated_ints(operation: scan::Operation, left: i128, right: i128) -> i128 {
    match operation {
        scan::Operation::Sum => left + right,
        scan::Operation::Prod => i128::from((left as i64).wrapping_mul(right as i64)),
        scan::Operation::Min => left.min(right),
        scan::Operation::Max => left.max(right),
    }
}

/// A reduction of floats by its reference, in f32 and rounded once.
pub(super) fn of_floats(dtype: DType, function: impl Fn(&[f32]) -> f32) -> impl Fn(&[u64]) -> u64 {
    move |line| rounded(function(&floats(dtype, line)), dtype)
}

/// An extreme of some elements; a line without an element has none, and the kernel refuses it.
pub(super) fn of_some(extreme: fn(&[f32]) -> Option<f32>) -> impl Fn(&[f32]) -> f32 {
    move |line| extreme(line).unwrap_or_else(|| not_checked("an extreme of no elements"))
}

/// The position of the extreme of a line, the first of equals.
fn search(of: DType, end: Extreme, line: &[u64]) -> usize {
    let found = match (of, end) {
        (of, Extreme::Max) if of.is_float() => reduce::argmax(&floats(of, line)),
        (of, Extreme::Min) if of.is_float() => reduce::argmin(&floats(of, line)),
        (_, Extreme::Max) => (0..line.len()).rev().max_by_key(|&at| int(of, line[at])),
        (_, Extreme::Min) => (0..line.len()).min_by_key(|&at| int(of, line[at])),
    };
    found.unwrap_or_else(|| not_checked("an extreme of no elements"))
}

fn argsort(dtype: DType, line: &[u64], direction: Direction) -> Vec<usize> {
    match dtype {
        dtype if dtype.is_float() => {
            let compare = sort::float_order::<f32>(f32::is_nan, f32::total_cmp);
            sort::argsort(&floats(dtype, line), direction, compare)
        }
        dtype => {
            let ints: Vec<i128> = line.iter().map(|&bits| int(dtype, bits)).collect();
            sort::argsort(&ints, direction, Ord::cmp)
        }
    }
}
