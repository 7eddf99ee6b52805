//! Checks operands, and launches products.

use super::kernel;
use super::plan::{CubeTile, Plan, Problem, Vectors};
use super::single_launch::{self, Factors};
use super::tiled_kernel;
use crate::arithmetic::Products;
use crate::buffer::unwritten;
use crate::device;
use crate::dtype::{accumulator, supported};
use crate::order::{self, BLOCK};
use crate::view::{broadcast_strides, is_in_vectors, largest_offset, transposed, vector_width, with_layout};
use crate::{KernelError, grid};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Blocks of `k` of a unit without shared memory in one launch: a block is an iteration for each step, and two more.
const BLOCKS_A_LAUNCH: usize = grid::MAX_ITERATIONS / (BLOCK + 2);

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

    /// Memory for a result of the operands' type.
    pub fn output(&self, client: &Client) -> TensorHandle {
        unwritten(client, self.output_shape.clone(), self.lhs.dtype)
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

    /// The product in type `to`, of the sums of blocks that `launch` writes to its target, `[parts, .., m, n]`.
    pub fn product(
        self,
        client: &Client,
        to: ElemType,
        parts: usize,
        launch: impl FnOnce(Self, TensorHandle) -> Result<(), KernelError>,
    ) -> Result<TensorHandle, KernelError> {
        let output = unwritten(client, self.output_shape.clone(), to);
        // A sum of blocks is kept in the accumulator type until it is complete.
        if parts == 1 && (self.problem.blocks() == 1 || to == self.accumulator) {
            launch(self, output.clone())?;
            return Ok(output);
        }
        let outputs = self.output_shape.iter().product();
        let workspace = unwritten(client, vec![parts, outputs], self.accumulator);
        launch(self, workspace.clone())?;
        order::parts::chain(client, NAME, workspace, parts, None, &output, true)?;
        Ok(output)
    }

    /// Writes the sums of blocks, `[parts, .., m, n]`, to `target`: every block its own part, or one part.
    pub fn launch(self, client: &Client, plan: Plan, target: TensorHandle) -> Result<(), KernelError> {
        if let CubeTile::Single { .. } = plan.tile {
            let (factors, kind) = Factors::new(self, plan);
            return single_launch::launch(client, kind, &[(factors, target)]);
        }
        let (problem, products) = (&self.problem, self.multiplied());
        let n = problem.n as u32;
        let (vectors, [row, column]) = match plan.swap {
            true => (problem.swapped_vectors, [1, n]),
            false => (problem.vectors, [n, 1]),
        };
        let (lhs, rhs) = swapped(self.lhs, self.rhs, plan.swap);
        let [rows, columns] = plan.tile.unit();
        // A unit with other columns than in whole vectors reads single elements.
        let vectors = match vectors {
            Vectors::Columns if !columns.is_multiple_of(4) => Vectors::None,
            vectors => vectors,
        };
        let (tiles, cubes) = (plan.tiles(problem) as u32, plan.cubes(problem));
        device::require_units(client, NAME, plan.tile.units())?;
        device::require_shared_memory(client, NAME, plan.tile.staged() * self.accumulator.size())?;
        let dtypes = [lhs.dtype, self.accumulator, target.dtype];
        let inner = |tensor: &TensorHandle| {
            let strides = tensor.strides();
            [strides[strides.len() - 2], strides[strides.len() - 1]]
        };
        let ([lhs_row, lhs_k], [rhs_k, rhs_column]) = (inner(&lhs), inner(&rhs));
        let (blocks, span) = match plan.tile {
            _ if plan.split => (1, 1),
            CubeTile::Tiled { .. } => (problem.blocks(), 1),
            _ => (problem.blocks(), BLOCKS_A_LAUNCH),
        };
        let single = blocks == 1;
        let [rows_axis, columns_axis] = [lhs.shape().len() - 2, lhs.shape().len() - 1];
        let lhs_along_k = is_along_k(&lhs, columns_axis, rows_axis);
        let rhs_along_k = is_along_k(&rhs, rows_axis, columns_axis);
        let columns_stored = (rhs.shape()[columns_axis], column as usize);
        let width = |reads: bool| if reads { 4 } else { 1 };
        let [lhs_width, rhs_width, output_width] = match plan.tile {
            CubeTile::Tiled { .. } => [
                width(reads_fours(&lhs, if lhs_along_k { columns_axis } else { rows_axis })),
                width(reads_fours(&rhs, if rhs_along_k { rows_axis } else { columns_axis })),
                width(is_in_fours(target.dtype, columns_stored, [])),
            ],
            _ => [
                width(vectors == Vectors::Steps),
                width(vectors != Vectors::None),
                match vectors {
                    Vectors::Columns => vector_width(target.dtype, columns_stored.0, columns_stored.1, []),
                    Vectors::Steps | Vectors::None => 1,
                },
            ],
        };
        let sizes = || {
            let sizes = [lhs.shape()[rows_axis], problem.k, rhs.shape()[columns_axis]];
            let [m, k, n] = sizes.map(|size| size as u32);
            let [lhs_row, lhs_k, rhs_k, rhs_column] = [lhs_row, lhs_k, rhs_k, rhs_column].map(|stride| stride as u32);
            tiled_kernel::SizesLaunch::new(m, k, n, lhs_row, lhs_k, rhs_k, rhs_column, row, column)
        };
        // Launches that follow each other continue the sums in `target`.
        for first in (0..blocks).step_by(span) {
            let count = grid::cubes(cubes);
            let dim = CubeDim::new_1d(plan.tile.units());
            let blocks = kernel::BlocksLaunch::new(first as u32, span as u32);
            let (lhs, rhs, target) = (lhs.clone(), rhs.clone(), target.clone().into_arg().into_buffer_arg());
            match plan.tile {
                CubeTile::Single { .. } => unreachable!("it has a launch of its own"),
                // SAFETY: row and column indices are clamped to the operands' extents, k indices end at k, stores are
                // masked to the output's extents, and tiles at or beyond `tiles` return. Vectors are whole in the
                // operands and the output, whose extents and strides are multiples of their width.
                CubeTile::Direct { .. } | CubeTile::Separate { .. } => unsafe {
                    kernel::direct::launch_unchecked(
                        client,
                        count,
                        dim,
                        lhs_width,
                        rhs_width,
                        output_width,
                        lhs.into_arg(),
                        rhs.into_arg(),
                        target,
                        tiles,
                        blocks,
                        row,
                        column,
                        rows,
                        columns,
                        matches!(plan.tile, CubeTile::Separate { .. }),
                        vectors == Vectors::Columns,
                        single,
                        products,
                        dtypes,
                    );
                },
                // SAFETY: as above, where what a unit fetches ahead is clamped to the last steps of `k` too; the staged tiles are
                // indexed below `pitch * depth * STAGES` by construction.
                CubeTile::Tiled { sides, vectors, depth } => unsafe {
                    tiled_kernel::tiled::launch_unchecked(
                        client,
                        count,
                        dim,
                        lhs_width,
                        rhs_width,
                        output_width,
                        lhs.into_arg(),
                        rhs.into_arg(),
                        target,
                        tiles,
                        blocks,
                        sizes(),
                        sides,
                        vectors,
                        depth,
                        lhs_along_k,
                        rhs_along_k,
                        single,
                        products,
                        dtypes,
                    );
                },
            }
        }
        Ok(())
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

/// Whether elements of `dtype`, of two or four bytes, [are in vectors](is_in_vectors) of four along an axis of this
/// length and stride.
fn is_in_fours(dtype: ElemType, (length, stride): (usize, usize), others: impl IntoIterator<Item = usize>) -> bool {
    matches!(dtype.size(), 2 | 4) && is_in_vectors(4, length, stride, others)
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
