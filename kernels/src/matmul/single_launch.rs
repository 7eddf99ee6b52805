//! Launches products with few outputs, one or several of equal sizes at a time.

use super::kernel::BlocksLaunch;
use super::operands::{NAME, Operands, is_along_k, reads_fours, swapped};
use super::plan::{CubeTile, MAX_TILES, Plan};
use super::single_kernel::{self, BatchAxisLaunch, CommonLaunch, FactorsLaunch, Form};
use crate::buffer::Unwritten;
use crate::side_by_side::{MOST, OTHER_BINDINGS};
use crate::view::join;
use crate::{KernelError, device, grid, subnormals};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Bindings of a product: its operands and its output.
const BINDINGS: usize = 3;

/// Most products of a launch on the device. One where kernels are rewritten to keep subnormal numbers, since their compilers take long.
pub(super) fn most(client: &Client) -> usize {
    let bindings = client.properties().hardware.max_bindings as usize;
    match subnormals::is_kept(client) {
        true => 1,
        false => (bindings.saturating_sub(OTHER_BINDINGS) / BINDINGS).clamp(1, MOST),
    }
}

/// What products of one launch have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    plan: Plan,
    dtype: ElemType,
    /// Of matrices, rows, steps and columns.
    sizes: [usize; 4],
    /// Whether `k` is the contiguous axis of each factor.
    along_k: [bool; 2],
    /// Elements of each factor that a unit reads at once.
    widths: [usize; 2],
    /// Number of batch axes.
    axes: usize,
    /// Tiles of a product.
    tiles: usize,
}

impl Kind {
    /// Most products of a launch, of which the device has `most`: a grid has so many tiles.
    pub(super) fn most(&self, most: usize) -> usize {
        most.min(MAX_TILES / self.tiles.max(1)).max(1)
    }
}

/// A product as the kernel of units with one output takes it.
pub(super) struct Product {
    /// Of the product, or of the transposed one. The result is the product's.
    operands: Operands,
    /// Size, stride of `lhs` and stride of `rhs` of the batch axes, the innermost first.
    axes: Vec<[usize; 3]>,
}

impl Product {
    /// The factors of a product, and its kind.
    ///
    /// # Panics
    ///
    /// When the plan is for units of several outputs.
    pub(super) fn new(mut operands: Operands, plan: Plan) -> (Self, Kind) {
        assert!(matches!(plan.tile, CubeTile::Single { .. }), "{plan:?} is no plan of one output a unit");
        (operands.lhs, operands.rhs) = swapped(operands.lhs, operands.rhs, plan.swap);
        let (lhs, rhs) = (&operands.lhs, &operands.rhs);
        let (rows, columns) = (lhs.shape().len() - 2, lhs.shape().len() - 1);
        let along_k = [is_along_k(lhs, columns, rows), is_along_k(rhs, rows, columns)];
        // Vectors of steps, or single elements.
        let width = |reads: bool| if reads { 4 } else { 1 };
        let widths = [width(along_k[0] && reads_fours(lhs, columns)), width(along_k[1] && reads_fours(rhs, rows))];
        let joined = join(0..rows, lhs.shape(), &[&lhs.strides()[..], &rhs.strides()[..]]);
        let axes: Vec<_> =
            joined.into_iter().rev().map(|(size, axis)| [size, lhs.strides()[axis], rhs.strides()[axis]]).collect();
        let problem = &operands.problem;
        let kind = Kind {
            plan,
            dtype: lhs.dtype,
            sizes: [problem.batch, lhs.shape()[rows], problem.k, rhs.shape()[columns]],
            along_k,
            widths,
            axes: axes.len(),
            tiles: plan.tiles(problem),
        };
        (Self { operands, axes }, kind)
    }

    /// The result.
    pub(super) fn output(&self) -> Unwritten<'_> {
        Unwritten { shape: &self.operands.output_shape, dtype: self.operands.lhs.dtype, memory: None }
    }

    fn argument<I: Numeric, L: Size, R: Size>(&self) -> FactorsLaunch<I, L, R> {
        let Operands { lhs, rhs, .. } = &self.operands;
        let inner = |tensor: &TensorHandle| {
            let (shape, strides) = (tensor.shape(), tensor.strides());
            [strides[shape.len() - 2] as u32, strides[shape.len() - 1] as u32]
        };
        let ([lhs_row, lhs_k], [rhs_k, rhs_column]) = (inner(lhs), inner(rhs));
        let axes = self.axes.iter().map(|axis| {
            let [size, lhs, rhs] = axis.map(|of_axis| of_axis as u32);
            BatchAxisLaunch::new(size, lhs, rhs)
        });
        FactorsLaunch::new(buffer(lhs), buffer(rhs), lhs_row, lhs_k, rhs_k, rhs_column, axes.collect())
    }
}

fn buffer(tensor: &TensorHandle) -> BufferArg {
    tensor.clone().into_arg().into_buffer_arg()
}

/// Writes the sums of blocks of products of one `kind`, `[parts, .., m, n]`, to a target each: every block its own part, or
/// one part.
///
/// # Panics
///
/// When there is no product.
pub(super) fn launch(client: &Client, kind: Kind, products: &[(Product, TensorHandle)]) -> Result<(), KernelError> {
    let Kind { plan, dtype, sizes: [batch, m, k, n], along_k, widths, tiles, .. } = kind;
    let (first, target) = &products[0];
    let Operands { problem, accumulator, .. } = first.operands;
    let CubeTile::Single { sides, depth } = plan.tile else { unreachable!("`Factors::new` refuses it") };
    device::require_units(client, NAME, plan.tile.units())?;
    device::require_shared_memory(client, NAME, plan.tile.staged() * accumulator.size())?;
    // Launches that follow each other continue the sums in the targets.
    let blocks = if plan.split { 1 } else { problem.blocks() };
    let form = Form { sides, depth, along_k, single: blocks == 1, products: first.operands.multiplied() };
    let [row, column] = if plan.swap { [1, m as u32] } else { [n as u32, 1] };
    let dtypes = [dtype, accumulator, target.dtype];
    for block in 0..blocks {
        let factors = products.iter().map(|(product, _)| product.argument()).collect();
        let outputs = products.iter().map(|(_, target)| buffer(target)).collect();
        let [tiles_of_each, batches, m, k, n] = [tiles, batch, m, k, n].map(|size| size as u32);
        // SAFETY: row and column indices are clamped to the operands' extents, k indices end at k, stores are masked to
        // the output's extents, and cubes beyond the tiles of all products do nothing. Vectors are whole in the operands,
        // whose extents and strides are multiples of their width; the staged tiles are indexed below the slots of all
        // places by construction.
        unsafe {
            single_kernel::single::launch_unchecked(
                client,
                grid::cubes(tiles * products.len()),
                CubeDim::new_1d(plan.tile.units()),
                widths[0],
                widths[1],
                factors,
                outputs,
                CommonLaunch::new(tiles_of_each, batches, m, k, n, row, column),
                BlocksLaunch::new(block as u32, 1),
                form,
                dtypes,
            );
        }
    }
    Ok(())
}
