//! The checked operands of a product.

use super::plan::{Problem, Vectors};
use crate::KernelError;
use crate::arithmetic::Products;
use crate::buffer::unwritten;
use crate::dtype::{accumulator, supported};
use crate::order::BLOCK;
use crate::view::{broadcast_strides, is_in_vectors, largest_offset, transposed, with_layout};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Indices are 32 bits, and those of the last tile or block run past the edge before they are clamped.
const MAX_ELEMENTS: usize = u32::MAX as usize - BLOCK;

pub(super) const NAME: &str = "matmul";

/// Checked operands: batch axes broadcast by strides of 0, and merged into the rows where `rhs` is the same for all.
pub(super) struct Operands {
    pub lhs: TensorHandle,
    pub rhs: TensorHandle,
    pub output_shape: Vec<usize>,
    /// The type the chains run in.
    pub accumulator: ElemType,
    /// How floats are multiplied.
    products: Products,
    /// What the plan looks at.
    pub problem: Problem,
}

impl Operands {
    pub fn new(client: &Client, products: Products, lhs: TensorHandle, rhs: TensorHandle) -> Result<Self, KernelError> {
        if lhs.dtype != rhs.dtype {
            return Err(KernelError::Dtype {
                kernel: NAME,
                dtype: rhs.dtype,
                remedy: "cast both operands to one type",
            });
        }
        supported(client, NAME, lhs.dtype, "cast to f32, or to i32 for integers")?;
        let refuse = |what: &str| KernelError::Shape {
            kernel: NAME,
            reason: format!("{what}, got lhs {:?} and rhs {:?}", lhs.shape(), rhs.shape()),
        };
        let rank = lhs.shape().len();
        if rank < 2 || rhs.shape().len() != rank {
            return Err(refuse("operands need the same rank of at least 2"));
        }
        let (batch, rows, columns) = (rank - 2, rank - 2, rank - 1);
        let (m, k, n) = (lhs.shape()[rows], lhs.shape()[columns], rhs.shape()[columns]);
        if rhs.shape()[rows] != k {
            return Err(refuse("columns of lhs and rows of rhs must agree"));
        }
        let wider = |(&l, &r): (&usize, &usize)| if l == 1 { r } else { l };
        let batches: Vec<usize> = lhs.shape()[..batch].iter().zip(&rhs.shape()[..batch]).map(wider).collect();
        let broadcast = |tensor: &TensorHandle| {
            let (shape, strides) = (tensor.shape(), tensor.strides());
            if shape[..batch] == batches {
                return Some(tensor.clone());
            }
            let of_batches = broadcast_strides(&shape[..batch], &strides[..batch], &batches)?;
            let shape = [&batches[..], &shape[batch..]].concat();
            Some(with_layout(tensor.clone(), shape, [&of_batches[..], &strides[batch..]].concat()))
        };
        let (Some(lhs), Some(rhs)) = (broadcast(&lhs), broadcast(&rhs)) else {
            return Err(refuse("batch axes must agree or be 1"));
        };
        let output_shape = [&batches[..], &[m, n]].concat();
        let reach = |tensor: &TensorHandle| largest_offset(tensor.shape(), tensor.strides()).saturating_add(1);
        let extents =
            [("lhs", reach(&lhs)), ("rhs", reach(&rhs)), ("the result", output_shape.iter().product()), ("k", k)];
        for (what, elements) in extents {
            if elements > MAX_ELEMENTS {
                return Err(KernelError::Shape {
                    kernel: NAME,
                    reason: format!("{what} reaches over {elements} elements, more than the {MAX_ELEMENTS} addressed"),
                });
            }
        }
        let accumulator = accumulator(lhs.dtype);
        let (lhs, rhs) = merge_batch_into_rows(lhs, rhs);
        let rank = lhs.shape().len();
        let (rows, columns) = (rank - 2, rank - 1);
        let steps = reads_vectors(&lhs, columns) && reads_vectors(&rhs, rows);
        let vectors = |columns: bool| match columns {
            true => Vectors::Columns,
            false if steps => Vectors::Steps,
            false => Vectors::None,
        };
        let problem = Problem {
            batch: lhs.shape()[..rows].iter().product(),
            m: lhs.shape()[rows],
            k,
            n,
            element: lhs.dtype.size(),
            accumulator: accumulator.size(),
            vectors: vectors(reads_vectors(&rhs, columns)),
            swapped_vectors: vectors(reads_vectors(&lhs, rows)),
        };
        Ok(Self { lhs, rhs, output_shape, accumulator, products, problem })
    }

    /// How elements are multiplied, where they are floats.
    pub fn multiplied(&self) -> Option<Products> {
        matches!(self.accumulator, ElemType::Float(_)).then_some(self.products)
    }

    /// Whether the product has no outputs, or no steps.
    pub fn is_empty(&self) -> bool {
        self.output_shape.contains(&0) || self.problem.k == 0
    }

    /// Memory for a result of type `to`.
    pub fn output(&self, client: &Client, to: ElemType) -> TensorHandle {
        unwritten(client, self.output_shape.clone(), to)
    }

    /// Zeros of type `to`, for a product without outputs or without steps.
    pub fn zeros(&self, client: &Client, to: ElemType) -> Option<TensorHandle> {
        self.is_empty().then(|| {
            let shape = &self.output_shape;
            let outputs = shape.iter().product::<usize>();
            let zeros = client.create_from_slice(&vec![0; (outputs * to.size()).max(1)]);
            TensorHandle::new_contiguous(shape.clone(), zeros, to)
        })
    }
}

/// The factors of the product, or of the transposed one.
pub(super) fn swapped(lhs: TensorHandle, rhs: TensorHandle, swap: bool) -> (TensorHandle, TensorHandle) {
    if swap { (transposed(rhs), transposed(lhs)) } else { (lhs, rhs) }
}

/// Whether a factor's steps, along axis `k`, lie closer to each other than its places along the `other` one.
pub(super) fn is_along_k(tensor: &TensorHandle, k: usize, other: usize) -> bool {
    tensor.strides()[k] < tensor.strides()[other]
}

/// Whether a unit can read a tensor along `axis` in [vectors](vector_width).
fn reads_vectors(tensor: &TensorHandle, axis: usize) -> bool {
    tensor.dtype.size() == 4 && reads_fours(tensor, axis)
}

/// The same for half types too.
pub(super) fn reads_fours(tensor: &TensorHandle, axis: usize) -> bool {
    matches!(tensor.dtype.size(), 2 | 4) && reads_along(tensor, axis, 4)
}

/// Whether a tensor is in vectors of `width` elements along `axis`.
pub(super) fn reads_along(tensor: &TensorHandle, axis: usize, width: usize) -> bool {
    let (shape, strides) = (tensor.shape(), tensor.strides());
    let others = (0..shape.len()).filter(|&other| other != axis && shape[other] > 1).map(|other| strides[other]);
    is_in_vectors(width, shape[axis], strides[axis], others)
}

/// Makes `[b, m, k] x [same for all b, k, n]` one product `[b * m, k] x [k, n]` where the strides of `lhs` allow it.
fn merge_batch_into_rows(lhs: TensorHandle, rhs: TensorHandle) -> (TensorHandle, TensorHandle) {
    let rank = lhs.shape().len();
    let (shape, strides) = (lhs.shape(), lhs.strides());
    let same_rhs = (0..rank - 2).all(|axis| shape[axis] == 1 || rhs.strides()[axis] == 0);
    let mut next = shape[rank - 2] * strides[rank - 2];
    let rows_continue = (0..rank - 2).rev().filter(|&axis| shape[axis] != 1).all(|axis| {
        let continues = strides[axis] == next;
        next *= shape[axis];
        continues
    });
    if !same_rhs || !rows_continue {
        return (lhs, rhs);
    }
    let rows = shape[..rank - 1].iter().product();
    let lhs_view = (vec![rows, shape[rank - 1]], strides[rank - 2..].to_vec());
    let rhs_view = (rhs.shape()[rank - 2..].to_vec(), rhs.strides()[rank - 2..].to_vec());
    (with_layout(lhs, lhs_view.0, lhs_view.1), with_layout(rhs, rhs_view.0, rhs_view.1))
}
