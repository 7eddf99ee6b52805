//! Launches.

use super::kernel::{self, BlocksLaunch, IndexMapLaunch, IndexMapsLaunch, SpatialLaunch, Variant};
use super::plan::{self, CubeTile, Pass, Plan, Problem, UnitTile, WeightColumns};
use super::shape::{Axis, Geometry, view_data, view_weight};
use super::terms::WeightStepsLaunch;
use super::tiled_kernel::{self, TiledVariant};
use super::tiled_weight_kernel::{self, TiledWeightVariant};
use super::weight_kernel::{self, RoundLaunch};
use crate::buffer::{dense, unwritten};
use crate::dtype::float_accumulator;
use crate::error::require_shapes;
use crate::order::parts::{self, Bias};
use crate::planned::require_plan;
use crate::view::require_shape;
use crate::{KernelError, device, device::Machine, grid, subnormals};
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// What a pass reads.
pub struct Operands {
    /// The input of [`Pass::ToOutput`] and [`Pass::ToWeight`], the output's side of [`Pass::ToInput`].
    pub source: TensorHandle,
    /// The output's side of [`Pass::ToWeight`], else the weight.
    pub other: TensorHandle,
    /// One value a channel of the result; a weight gradient has none.
    pub bias: Option<TensorHandle>,
}

/// One pass by a plan of the caller's choice, or by that of [`plan::plan`]; no plan changes the result.
///
/// `kernel` is the operation, as errors name it.
///
/// # Errors
///
/// Refuses operands that do not have the geometry's shapes, element types the device does not compute, and a plan that
/// is [refused](Plan::refuses).
pub fn run_pass(
    client: &Client,
    kernel: &'static str,
    problem: &Problem,
    operands: Operands,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let launch = Launch { client, kernel, problem };
    let plan = plan.unwrap_or_else(|| match subnormals::is_kept(client) {
        true => plan::of_few_products(problem, Machine::of(client)),
        false => plan::plan(problem, Machine::of(client)),
    });
    require_plan(kernel, &plan, plan.refuses(problem))?;
    match plan {
        Plan::Activations { .. } | Plan::Tiled { .. } => launch.activations(operands, plan),
        Plan::Weight { span, .. } | Plan::TiledWeight { span, .. } => launch.weight(operands, plan, span),
    }
}

/// The checked operands of a pass between activations, as views, and what it writes.
struct Activations {
    source: TensorHandle,
    weight: TensorHandle,
    bias: Option<TensorHandle>,
    result: TensorHandle,
    /// The type that chains are computed in.
    sum: ElemType,
    /// Whether no tap lies outside the source, along each axis.
    inside: [bool; 3],
}

struct Launch<'a> {
    client: &'a Client,
    kernel: &'static str,
    problem: &'a Problem,
}

impl Launch<'_> {
    /// Both passes between activations.
    fn activations(&self, operands: Operands, plan: Plan) -> Result<TensorHandle, KernelError> {
        let (result, sum) = unwritten_result(self.client, self.kernel, self.problem, &operands)?;
        let Operands { source, other: weight, bias } = operands;
        let Problem { pass, geometry: Geometry { groups, axes, .. }, .. } = *self.problem;
        let transposed = pass == Pass::ToInput;
        if result.shape().contains(&0) {
            return Ok(result);
        }
        let inside = axes.each_ref().map(if transposed { Axis::outputs_inside } else { Axis::inputs_inside });
        let pass = Activations {
            source: view_data(source, groups),
            weight: view_weight(weight, groups, transposed),
            bias: bias.map(|bias| dense(self.client, bias)),
            result,
            sum,
            inside,
        };
        match plan {
            Plan::Tiled { tile, split: true, packs } => self.tiled_parts(pass, tile, packs),
            Plan::Tiled { tile, split: false, packs } => {
                self.totals(pass, |pass, totals| self.tiled(pass, totals, tile, false, packs))
            }
            Plan::Activations { tile, units } => {
                self.totals(pass, |pass, totals| self.direct(pass, totals, tile, units))
            }
            Plan::Weight { .. } | Plan::TiledWeight { .. } => unreachable!("refused"),
        }
    }

    /// Has `write` compute all blocks of the chains, and rounds their totals, which between blocks are kept in the type they are
    /// computed in.
    fn totals(
        &self,
        pass: Activations,
        write: impl FnOnce(Activations, TensorHandle) -> Result<(), KernelError>,
    ) -> Result<TensorHandle, KernelError> {
        let (result, sum) = (pass.result.clone(), pass.sum);
        if self.problem.blocks() == 1 || result.dtype == sum {
            write(pass, result.clone())?;
            return Ok(result);
        }
        let totals = unwritten(self.client, result.shape().to_vec(), sum);
        write(pass, totals.clone())?;
        parts::chain(self.client, self.kernel, totals, 1, None, &result, true)?;
        Ok(result)
    }

    /// A tile of results a unit.
    fn direct(&self, pass: Activations, totals: TensorHandle, tile: UnitTile, of_cube: u32) -> Result<(), KernelError> {
        let Activations { source, weight, bias, sum, inside, .. } = pass;
        let Problem { geometry: Geometry { batch, groups, axes, .. }, .. } = *self.problem;
        let tiles = groups * self.problem.channels().div_ceil(tile.rows) * batch.div_ceil(tile.columns);
        let (units, count, dim) = self.grid(self.problem.positions() * tiles, of_cube)?;
        let blocks = self.problem.blocks();
        let dtypes = [source.dtype, sum, totals.dtype];
        let products = self.problem.products;
        let inside = inside == [true; 3];
        let variant = Variant { tile, phased: self.problem.phased(), inside, single: blocks == 1, products };
        for launch in plan::launches(blocks, self.problem.source_channels()) {
            let bias = bias.clone().map(|bias| bias.into_arg().into_buffer_arg());
            // SAFETY: a unit below `units` owns a position and a tile of channels and batch entries; it reads taps and
            // positions inside the operands, whose shapes are checked, and reads and writes its own elements of the
            // totals.
            unsafe {
                kernel::convolve::launch_unchecked(
                    self.client,
                    count.clone(),
                    dim,
                    source.clone().into_arg(),
                    weight.clone().into_arg(),
                    bias.into(),
                    view_data(totals.clone(), groups).into_arg(),
                    BlocksLaunch::new(launch.start as u32, launch.end as u32),
                    maps(axes, self.problem.pass == Pass::ToInput),
                    units,
                    variant,
                    dtypes,
                );
            }
        }
        Ok(())
    }

    /// A tile of results a cube, of which each block of the chains gets cubes of its own.
    fn tiled_parts(&self, mut pass: Activations, tile: CubeTile, packs: bool) -> Result<TensorHandle, KernelError> {
        let (result, sum, bias) = (pass.result.clone(), pass.sum, pass.bias.take());
        let (elements, count) = (result.shape().iter().product::<usize>(), self.problem.blocks());
        let blocks = unwritten(self.client, vec![count, elements], sum);
        // The kernel finds its part by itself.
        let first = TensorHandle::new_contiguous(result.shape().clone(), blocks.handle.clone(), sum);
        self.tiled(pass, first, tile, true, packs)?;
        let bias = bias.map(|values| Bias { values, positions: result.shape()[2..].iter().product() });
        parts::chain(self.client, self.kernel, blocks, count, bias, &result, true)?;
        Ok(result)
    }

    /// Packs the weight, or not, and computes a tile of results a cube: all blocks of their chains, or each in a part of its own.
    fn tiled(
        &self,
        pass: Activations,
        totals: TensorHandle,
        tile: CubeTile,
        split: bool,
        packs: bool,
    ) -> Result<(), KernelError> {
        let Activations { source, weight, bias, sum, inside, .. } = pass;
        let Self { kernel, .. } = *self;
        let Geometry { groups, axes, .. } = self.problem.geometry;
        let sources = self.problem.source_channels();
        device::require_units(self.client, kernel, tile.units())?;
        device::require_shared_memory(self.client, kernel, tile.shared_memory(sum.size()))?;
        let steps: [u32; 6] = core::array::from_fn(|axis| weight.strides()[axis] as u32);
        let weight = if packs { self.packed(&weight, sum)? } else { weight };
        let blocks = self.problem.blocks();
        let variant = TiledVariant {
            tile,
            phased: self.problem.phased(),
            inside,
            whole: sources.is_multiple_of(plan::SHARE as usize),
            packed: packs,
            single: split || blocks == 1,
            products: self.problem.products,
        };
        let taps = axes.map(|axis| axis.taps as u32);
        let cubes = tile.cubes(self.problem) * if split { blocks } else { 1 };
        let dtypes = [source.dtype, sum, totals.dtype, weight.dtype];
        let width = if packs { 4 } else { 1 };
        for first in (0..blocks).step_by(if split { blocks } else { 1 }) {
            let bias = bias.clone().map(|bias| bias.into_arg().into_buffer_arg());
            // SAFETY: columns, channels and terms are clamped to the operands, whose shapes are checked, and staged tiles are
            // indexed below their sizes by construction; a cube below `cubes` reads and writes its own elements of the totals.
            unsafe {
                tiled_kernel::convolve_tiled::launch_unchecked(
                    self.client,
                    grid::cubes(cubes),
                    CubeDim::new_1d(tile.units()),
                    width,
                    source.clone().into_arg(),
                    weight.clone().into_arg().into_buffer_arg(),
                    WeightStepsLaunch::new(
                        steps[0],
                        steps[1],
                        steps[2],
                        SpatialLaunch::new(steps[3], steps[4], steps[5]),
                    ),
                    bias.into(),
                    view_data(totals.clone(), groups).into_arg(),
                    first as u32,
                    SpatialLaunch::new(taps[0], taps[1], taps[2]),
                    maps(axes, self.problem.pass == Pass::ToInput),
                    cubes as u32,
                    variant,
                    dtypes,
                );
            }
        }
        Ok(())
    }

    /// A weight whose computed channels are neighbours.
    fn packed(&self, weight: &TensorHandle, sum: ElemType) -> Result<TensorHandle, KernelError> {
        device::require_units(self.client, self.kernel, grid::UNITS)?;
        let elements = self.problem.packed();
        let packed = unwritten(self.client, vec![elements], sum);
        let (cubes, dim) = grid::grid(elements);
        // SAFETY: a unit below `elements` reads an element of the weight, at a channel clamped to it, and writes its own.
        unsafe {
            tiled_kernel::pack_weight::launch_unchecked(
                self.client,
                cubes,
                dim,
                weight.clone().into_arg(),
                packed.clone().into_arg().into_buffer_arg(),
                self.problem.channels().next_multiple_of(plan::PACKED as usize) as u32,
                elements as u32,
                [weight.dtype, sum],
            );
        }
        Ok(packed)
    }

    /// The pass to the weight: rounds of `span` blocks.
    fn weight(&self, operands: Operands, plan: Plan, span: usize) -> Result<TensorHandle, KernelError> {
        let (result, sum) = unwritten_result(self.client, self.kernel, self.problem, &operands)?;
        let Operands { source: input, other: gradient, .. } = operands;
        let Self { kernel, .. } = *self;
        let Problem { geometry, products, .. } = *self.problem;
        let Geometry { groups, inputs, outputs, axes, .. } = geometry;
        let dtype = input.dtype;
        let taps = axes.map(|axis| axis.taps);
        if result.shape().contains(&0) {
            return Ok(result);
        }
        let inside = axes.each_ref().map(Axis::inputs_inside);
        let blocks = self.problem.blocks();
        // Slot 0 holds the first block, then the total of the rounds before.
        let slots = if span < blocks { span + 1 } else { blocks };
        let shape = vec![slots, groups, outputs, inputs, taps[0], taps[1], taps[2]];
        let scratch = match blocks {
            1 => TensorHandle::new_contiguous(shape, result.handle.clone(), dtype),
            _ => unwritten(self.client, shape, sum),
        };
        let (input, gradient) = (view_data(input, groups), view_data(gradient, groups));
        let dtypes = [dtype, sum, scratch.dtype];
        for first in (0..blocks).step_by(span) {
            let of_round = span.min(blocks - first);
            let slot = usize::from(first > 0);
            let round = RoundLaunch::new(first as u32, slot as u32);
            match plan {
                Plan::TiledWeight { tile, columns, .. } => {
                    device::require_units(self.client, kernel, tile.units())?;
                    device::require_shared_memory(self.client, kernel, tile.weight_shared_memory(sum.size(), columns))?;
                    let [rows, tile_columns] = tile.extent();
                    // The table of pairs repeats the last one beyond the edge.
                    let whole_columns = columns == WeightColumns::Pairs || inputs.is_multiple_of(tile_columns);
                    let whole = outputs.is_multiple_of(rows) && whole_columns;
                    let variant = TiledWeightVariant { tile, columns, inside, whole, products };
                    let cubes = of_round * tile.weight_cubes(self.problem, columns);
                    // SAFETY: columns, channels and positions are clamped to the operands, whose shapes are checked, and
                    // staged tiles are indexed below their sizes by construction; a cube below `cubes` writes its own
                    // elements of the scratch memory.
                    unsafe {
                        tiled_weight_kernel::weight_gradient_tiled::launch_unchecked(
                            self.client,
                            grid::cubes(cubes),
                            CubeDim::new_1d(tile.units()),
                            input.clone().into_arg(),
                            gradient.clone().into_arg(),
                            scratch.clone().into_arg(),
                            maps(axes, false),
                            round,
                            cubes as u32,
                            variant,
                            dtypes,
                        );
                    }
                }
                Plan::Weight { tile, units: of_cube, .. } => {
                    let lanes = groups * outputs.div_ceil(tile.rows) * inputs.div_ceil(tile.columns);
                    let (units, count, dim) = self.grid(of_round * lanes * taps.iter().product::<usize>(), of_cube)?;
                    // SAFETY: a unit below `units` owns a tap and a tile of channels; it reads positions inside the
                    // operands, whose shapes are checked, and writes its own elements of the scratch memory.
                    unsafe {
                        weight_kernel::weight_gradient_blocks::launch_unchecked(
                            self.client,
                            count,
                            dim,
                            input.clone().into_arg(),
                            gradient.clone().into_arg(),
                            scratch.clone().into_arg(),
                            maps(axes, false),
                            round,
                            units,
                            tile,
                            inside == [true; 3],
                            products,
                            dtypes,
                        );
                    }
                }
                _ => unreachable!("refused"),
            }
            if blocks > 1 {
                let last = first + of_round == blocks;
                parts::chain(self.client, kernel, scratch.clone(), slot + of_round, None, &result, last)?;
            }
        }
        Ok(result)
    }

    /// The grid of `units` units in cubes of `of_cube`, if the device has those and 32-bit indices count the units.
    fn grid(&self, units: usize, of_cube: u32) -> Result<(u32, CubeCount, CubeDim), KernelError> {
        device::require_units(self.client, self.kernel, of_cube)?;
        plan::grid(units, of_cube).ok_or_else(|| self.refuse(format!("{units} units, want less than 2^31")))
    }

    fn refuse(&self, reason: String) -> KernelError {
        KernelError::Shape { kernel: self.kernel, reason }
    }
}

/// The result of a pass, not yet written, and the type that its sums are kept in. Refuses operands of other shapes than the
/// pass has, and types that the device does not compute.
pub(super) fn unwritten_result(
    client: &Client,
    kernel: &'static str,
    problem: &Problem,
    operands: &Operands,
) -> Result<(TensorHandle, ElemType), KernelError> {
    let Problem { rank, pass, geometry, .. } = *problem;
    // A wrong length along an axis that the operands do not have would be of no operand's shape.
    require_shapes(kernel, rank <= 3 && geometry.axes[..3 - rank].iter().all(|axis| *axis == Axis::ABSENT), || {
        format!("{geometry:?} has other than {rank} spatial axes")
    })?;
    let (input, output, weight) =
        (geometry.input_shape(rank), geometry.output_shape(rank), geometry.weight_shape(rank));
    let (names, source, other, result) = match pass {
        Pass::ToOutput => (["input", "weight"], input, weight, output),
        Pass::ToInput => (["output gradient", "weight"], output, weight, input),
        Pass::ToWeight => (["input", "output gradient"], input, output, weight),
    };
    require_shape(kernel, names[0], operands.source.shape(), &source)?;
    require_shape(kernel, names[1], operands.other.shape(), &other)?;
    match &operands.bias {
        Some(_) if pass == Pass::ToWeight => {
            return Err(KernelError::Shape { kernel, reason: "a weight gradient has no bias".into() });
        }
        Some(bias) => require_shape(kernel, "bias", bias.shape(), &[geometry.groups * problem.channels()])?,
        None => (),
    }
    let read: Vec<&TensorHandle> = [&operands.source, &operands.other].into_iter().chain(&operands.bias).collect();
    let sum = float_accumulator(client, kernel, &read)?;
    Ok((unwritten(client, result, operands.source.dtype), sum))
}

/// How taps and target positions map to the source along each axis.
fn maps(axes: [Axis; 3], transposed: bool) -> IndexMapsLaunch {
    let [d, h, w] = axes.map(|axis| {
        let (stride, padding, dilation) = (axis.stride as i32, axis.padding as i32, axis.dilation as i32);
        let (common, inverse) = (axis.common(), axis.inverse() as u32);
        let (scale, offset, step) = match transposed {
            true => (1, padding, -(dilation / common as i32)),
            false => (stride, -padding, dilation),
        };
        IndexMapLaunch::new(scale, offset, step, stride as u32, common as u32, inverse)
    });
    IndexMapsLaunch::new(d, h, w)
}
