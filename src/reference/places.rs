//! Reads and updates at indices. An index outside its axis reads zero, and updates nothing.

use super::host::{Host, int, of_int, rounded, widened};
use burn_backend::tensor::IndexingUpdateOp;
use burn_backend::{DType, Shape, TensorMetadata};
use burn_deterministic_kernels::elementwise::{Binary, reference::binary};
use burn_deterministic_kernels::scatter::{Addressing, Update, reference};

impl Host {
    /// Reads the elements at `indices` along `dim`.
    pub fn gather(&self, dim: usize, indices: &Self) -> Self {
        let [_, rows, inner] = around(&self.shape(), dim);
        let (at, positions) = (indices.indices(), indices.shape()[dim]);
        let read = |place: usize| {
            let (o, i) = (place / inner / positions, place % inner);
            row(at[place], rows).map_or(0, |row| self.bits()[(o * rows + row) * inner + i])
        };
        self.of_bits(indices.shape(), (0..at.len()).map(read).collect())
    }

    /// Reads the rows at `indices` along `dim`.
    pub fn select(&self, dim: usize, indices: &Self) -> Self {
        let [outer, rows, inner] = around(&self.shape(), dim);
        let mut shape = self.shape();
        let indices = indices.indices();
        shape[dim] = indices.len();
        let mut bits = Vec::with_capacity(shape.num_elements());
        for (o, &index) in (0..outer).flat_map(|o| indices.iter().map(move |index| (o, index))) {
            match row(index, rows) {
                Some(row) => bits.extend_from_slice(&self.bits()[(o * rows + row) * inner..][..inner]),
                None => bits.extend(std::iter::repeat_n(0, inner)),
            }
        }
        self.of_bits(shape, bits)
    }

    /// Reads the slices that tuples of indices name.
    pub fn gather_nd(&self, indices: &Self) -> Self {
        let (from, by) = (self.shape(), indices.shape());
        let (tuples, parts) = by.split_at(by.num_dims() - 1);
        let (sizes, rest) = from.split_at(parts[0]);
        let width = rest.iter().product::<usize>();
        let mut bits = Vec::new();
        for row in reference::tuple_rows(sizes, &indices.indices()) {
            match row {
                Some(row) => bits.extend_from_slice(&self.bits()[row * width..][..width]),
                None => bits.extend(std::iter::repeat_n(0, width)),
            }
        }
        self.of_bits(Shape::from([tuples, rest].concat()), bits)
    }

    /// Updates the elements at `indices` with `values`.
    pub fn updated(&self, addressing: Addressing, indices: &Self, values: &Self, update: Update) -> Self {
        let (at, shape, dtype) = (indices.indices(), self.shape(), self.dtype());
        if matches!(dtype, DType::F16 | DType::BF16) && update != Update::Assign {
            // Half types are widened, and the result is rounded once.
            let widen = |tensor: &Self| tensor.map(DType::F32, |bits| rounded(widened(bits, dtype), DType::F32));
            let updated = widen(self).updated(addressing, indices, &widen(values), update);
            return updated.map(dtype, |bits| rounded(widened(bits, DType::F32), dtype));
        }
        let (tensor, values) = (self.bits(), values.bits());
        let combine = |left: u64, right: u64| combined(dtype, update, left, right);
        let bits = match addressing {
            Addressing::Elements { dim } => reference::scatter(around(&shape, dim), tensor, &at, values, combine),
            Addressing::Rows { dim } => reference::select_assign(around(&shape, dim), tensor, &at, values, combine),
            Addressing::Tuples => {
                let (sizes, rest) = shape.split_at(indices.shape()[indices.rank() - 1]);
                reference::scatter_nd(sizes, rest.iter().product(), tensor, &at, values, combine)
            }
            Addressing::Batches => unreachable!("no operation of Burn's updates rows of batches"),
        };
        self.of_bits(shape, bits)
    }

    fn indices(&self) -> Vec<i64> {
        self.bits().iter().map(|&bits| int(self.dtype(), bits) as i64).collect()
    }
}

/// Extents before an axis, along it, and after it.
fn around(shape: &[usize], dim: usize) -> [usize; 3] {
    [shape[..dim].iter().product(), shape[dim], shape[dim + 1..].iter().product()]
}

fn row(index: i64, rows: usize) -> Option<usize> {
    usize::try_from(index).ok().filter(|&row| row < rows)
}

/// `left + right` of the order contract of updates.
fn combined(dtype: DType, update: Update, left: u64, right: u64) -> u64 {
    let (a, b) = (int(dtype, left), int(dtype, right));
    match update {
        Update::Assign => right,
        Update::Or => u64::from(left != 0 || right != 0),
        _ if dtype.is_float() => rounded(combined_floats(update, widened(left, dtype), widened(right, dtype)), dtype),
        Update::Add => of_int(dtype, a + b),
        Update::Mul => of_int(dtype, a.wrapping_mul(b)),
        Update::Min => of_int(dtype, a.min(b)),
        Update::Max => of_int(dtype, a.max(b)),
    }
}

fn combined_floats(update: Update, left: f32, right: f32) -> f32 {
    let beyond = match update {
        Update::Add => return binary(Binary::Add, left, right),
        Update::Mul => return binary(Binary::Multiply, left, right),
        Update::Max => right > left,
        _ => right < left,
    };
    if right.is_nan() || (beyond && !left.is_nan()) { right } else { left }
}

/// What an update does, as the kernels name it.
pub(super) fn kind(update: IndexingUpdateOp) -> Update {
    crate::backend::adapters::scatter::kind(update)
}
