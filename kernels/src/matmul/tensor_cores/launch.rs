//! Launches products on tensor cores.

use super::super::kernel::BlocksLaunch;
use super::super::operands::{NAME, Operands, reads_along};
use super::super::plan::Problem;
use super::super::tiled_kernel::SizesLaunch;
use super::gathered::GatheredFactor;
use super::kernel;
use super::plan::{self, Plan, Tile, VECTOR};
use crate::arithmetic::Products;
use crate::dtype::F32;
use crate::planned::require_plan;
use crate::{KernelError, device, grid};
use cubecl::ir::features::MmaConfig;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// The type as which elements of `dtype` are multiplied.
fn factor(dtype: ElemType) -> ElemType {
    match dtype {
        F32 => ElemType::Float(FloatKind::TF32),
        _ => dtype,
    }
}

/// Whether CUDA says that the device's warps multiply fragments of this type, with sums of f32. Warps of other runtimes have other sizes, and
/// their tensor cores other sums.
pub(super) fn has_fragments(client: &Client, dtype: ElemType) -> bool {
    let (factor, k) = (factor(dtype), 32 / dtype.size() as u32);
    let fragments = MmaConfig { a_type: factor, b_type: factor, cd_type: F32, m: 16, n: 16, k };
    client.name() == "cuda" && client.properties().features.matmul.cmma.contains(&fragments)
}

/// `lhs x rhs` of a type that the device [has fragments](has_fragments) of, with results of type `to`, whatever its sums are.
pub(super) fn multiply(
    client: &Client,
    lhs: TensorHandle,
    rhs: TensorHandle,
    to: ElemType,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let operands = Operands::new(client, Products::Native, lhs, rhs)?;
    if let Some(zeros) = operands.zeros(client, to) {
        return Ok(zeros);
    }
    let problem = operands.problem;
    let plan = plan.unwrap_or_else(|| plan::plan(&problem));
    require_plan(NAME, &plan, plan.refuses(&problem))?;
    operands.product(client, to, plan.parts(&problem), |operands, target| launch(client, operands, plan, target))
}

/// Writes the sums of blocks, `[parts, .., m, n]`, to `target`: every block its own part, or one part.
fn launch(client: &Client, operands: Operands, plan: Plan, target: TensorHandle) -> Result<(), KernelError> {
    let Operands { lhs, rhs, problem, .. } = operands;
    let blocks = if plan.split { 1 } else { problem.blocks() };
    let (rows, columns) = (rhs.shape().len() - 2, rhs.shape().len() - 1);
    let along_k = is_along(&rhs, rows, columns);
    let launch = Launch {
        kernel: NAME,
        problem,
        tile: plan.tile,
        width: width(&rhs, if along_k { rows } else { columns }),
        along_k,
        output_width: if problem.n.is_multiple_of(4) { 4 } else { 1 },
        lhs,
        rhs,
        gathered: None,
        bias: None,
        single: blocks == 1,
    };
    // Launches that follow each other continue the sums in `target`.
    for first in 0..blocks {
        let blocks = BlockRange { first, count: plan.parts(&problem), part: 0 };
        // SAFETY: no factor is gathered, and `target` has the outputs of all parts.
        unsafe { launch.enqueue(client, blocks, &target)? };
    }
    Ok(())
}

/// A product whose blocks are launched.
pub(crate) struct Launch {
    /// The operation, as errors name it.
    pub kernel: &'static str,
    /// The size of the product.
    pub problem: Problem,
    /// The outputs of a cube.
    pub tile: Tile,
    /// `[.., m, k]`, of f16, bf16 or f32.
    pub lhs: TensorHandle,
    /// `[.., k, n]` of the same batch. The last two strides of one that is gathered are not used.
    pub rhs: TensorHandle,
    /// Whether vectors of `rhs` are along `k`.
    pub along_k: bool,
    /// Elements of these vectors; of a factor that is gathered, 16 bytes of them.
    pub width: usize,
    /// Where the elements of `rhs` are, unless strides say it.
    pub gathered: Option<GatheredFactor>,
    /// A value of each row of each matrix, which is added to its sum: of chains of one block.
    pub bias: Option<TensorHandle>,
    /// Neighbouring columns that are stored together.
    pub output_width: usize,
    /// Whether a block opens the sum of an output, in place of continuing it.
    pub single: bool,
}

/// The blocks of a launch: `count` from `first` on, of which each has a part of the output, from `part` on.
pub(crate) struct BlockRange {
    pub first: usize,
    pub count: usize,
    pub part: usize,
}

impl Launch {
    /// Writes the sums of blocks to `target`, or adds them to those there.
    ///
    /// # Safety
    ///
    /// The places of a gathered factor are in `rhs`, and those of its outputs, of all parts, in `target`, where vectors of
    /// `output_width` columns begin at multiples of it. If none is gathered, `target` has the outputs of all parts.
    pub unsafe fn enqueue(
        &self,
        client: &Client,
        blocks: BlockRange,
        target: &TensorHandle,
    ) -> Result<(), KernelError> {
        let Self { tile, problem, lhs, rhs, .. } = self;
        assert!(self.bias.is_none() || problem.blocks() <= 1, "a bias is added once: {problem:?}");
        device::require_units(client, self.kernel, tile.units())?;
        device::require_shared_memory(client, self.kernel, tile.shared_bytes(self.gathered.is_some()))?;
        let tiles = tile.count(problem) * blocks.count;
        let bytes = lhs.dtype.size();
        let (rows, columns) = (lhs.shape().len() - 2, lhs.shape().len() - 1);
        let lhs_along_k = is_along(lhs, columns, rows);
        let lhs_width = width(lhs, if lhs_along_k { columns } else { rows });
        let [m, k, n] = [problem.m, problem.k, problem.n].map(|size| size as u32);
        let [lhs_row, lhs_k] = [rows, columns].map(|axis| lhs.strides()[axis] as u32);
        let [rhs_k, rhs_column] = [rows, columns].map(|axis| rhs.strides()[axis] as u32);
        let output_row = self.gathered.as_ref().map_or(n, |factor| factor.output_row as u32);
        // SAFETY: places and steps are clamped to the operands' extents, stores are masked to the output's, and tiles at
        // or beyond `tiles` return; the caller's promise is about what is gathered. Vectors are whole in the operands, which begin at multiples of 16 bytes, and in the rows of the output. Cubes have whole
        // warps. Shared memory is aligned to 32 bytes, and fragments begin at multiples of them, their lines at multiples of 16.
        unsafe {
            kernel::on_tensor_cores::launch_unchecked(
                client,
                grid::cubes(tiles),
                CubeDim::new_1d(tile.units()),
                lhs_width,
                self.width,
                self.output_width,
                VECTOR as usize / bytes,
                lhs.clone().into_arg(),
                rhs.clone().into_arg(),
                target.clone().into_arg().into_buffer_arg(),
                tiles as u32,
                BlocksLaunch::new(blocks.first as u32, 1),
                SizesLaunch::new(m, k, n, lhs_row, lhs_k, rhs_k, rhs_column, output_row, 1),
                self.gathered.as_ref().map(|factor| factor.launch(blocks.part)).into(),
                self.bias.clone().map(|bias| bias.into_arg().into_buffer_arg()).into(),
                *tile,
                bytes as u32,
                lhs_along_k,
                self.along_k,
                self.single,
                [lhs.dtype, factor(lhs.dtype), target.dtype],
            );
        }
        Ok(())
    }
}

/// Whether neighbours in memory are neighbours along axis `k`, rather than along the `other` one.
fn is_along(tensor: &TensorHandle, k: usize, other: usize) -> bool {
    let (shape, strides) = (tensor.shape(), tensor.strides());
    shape[k] != 1 && (shape[other] == 1 || strides[k] < strides[other])
}

/// Elements that a unit reads at once along `axis`: 16 bytes, or half of them.
fn width(tensor: &TensorHandle, axis: usize) -> usize {
    let widths = [VECTOR, VECTOR / 2].map(|bytes| bytes as usize / tensor.dtype.size());
    widths.into_iter().find(|&width| reads_along(tensor, axis, width)).unwrap_or(1)
}
