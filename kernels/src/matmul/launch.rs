//! Launches products.

use super::kernel;
use super::operands::{NAME, Operands, is_along_k, reads_fours, swapped};
use super::plan::{CubeTile, Plan, Vectors};
use super::single_launch::{self, Product};
use super::tiled_kernel;
use crate::buffer::unwritten;
use crate::device;
use crate::order::{self, BLOCK};
use crate::view::{is_in_vectors, vector_width};
use crate::{KernelError, grid};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Blocks of `k` of a unit without shared memory in one launch: a block is an iteration for each step, and two more.
const BLOCKS_A_LAUNCH: usize = grid::MAX_ITERATIONS / (BLOCK + 2);

impl Operands {
    /// The product in type `to`, of the sums of blocks that `launch` writes to its target, `[parts, .., m, n]`.
    pub fn product(
        self,
        client: &Client,
        to: ElemType,
        parts: usize,
        launch: impl FnOnce(Self, TensorHandle) -> Result<(), KernelError>,
    ) -> Result<TensorHandle, KernelError> {
        let output = self.output(client, to);
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
            let (product, kind) = Product::new(self, plan);
            return single_launch::launch(client, kind, &[(product, target)]);
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

/// Whether elements of `dtype`, of two or four bytes, [are in vectors](is_in_vectors) of four along an axis of this
/// length and stride.
fn is_in_fours(dtype: ElemType, (length, stride): (usize, usize), others: impl IntoIterator<Item = usize>) -> bool {
    matches!(dtype.size(), 2 | 4) && is_in_vectors(4, length, stride, others)
}
