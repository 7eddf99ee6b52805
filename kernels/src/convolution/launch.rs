//! Launches.

use super::kernel::{self, BlocksLaunch, IndexMapLaunch, IndexMapsLaunch, Variant};
use super::plan::{self, Pass, Plan, Problem, UnitTile};
use super::shape::{Axis, Geometry, view_data, view_weight};
use super::weight_kernel::{self, RoundLaunch};
use crate::buffer::{dense, unwritten};
use crate::dtype::float_accumulator;
use crate::error::require_plan;
use crate::order::parts;
use crate::view::require_shape;
use crate::{KernelError, device, device::Machine};
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
/// # Errors
///
/// Refuses operands that do not have the geometry's shapes, element types the device does not compute, and a plan that
/// is [refused](Plan::refuses).
pub fn run_pass(
    client: &Client,
    problem: &Problem,
    operands: Operands,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let launch = Launch { client, problem };
    let plan = plan.unwrap_or_else(|| plan::plan(problem, Machine::of(client)));
    require_plan(problem.kernel, plan.refuses(problem))?;
    device::require_units(client, problem.kernel, launch.cube_units())?;
    match plan {
        Plan::Activations { tile } => launch.activations(operands, tile),
        Plan::Weight { tile, span } => launch.weight(operands, tile, span),
    }
}

struct Launch<'a> {
    client: &'a Client,
    problem: &'a Problem,
}

impl Launch<'_> {
    /// Both passes between activations.
    fn activations(&self, operands: Operands, tile: UnitTile) -> Result<TensorHandle, KernelError> {
        let Operands { source, other: weight, bias } = operands;
        let Problem { kernel, rank, pass, geometry } = *self.problem;
        let Geometry { batch, groups, inputs, outputs, axes } = geometry;
        let transposed = pass == Pass::ToInput;
        let (input, output) = (geometry.input_shape(rank), geometry.output_shape(rank));
        let (name, want, shape, source_channels, channels) = match transposed {
            true => ("output gradient", output, input, outputs, inputs),
            false => ("input", input, output, inputs, outputs),
        };
        require_shape(kernel, name, source.shape(), &want)?;
        require_shape(kernel, "weight", weight.shape(), &geometry.weight_shape(rank))?;
        if let Some(bias) = &bias {
            require_shape(kernel, "bias", bias.shape(), &[groups * channels])?;
        }
        let read: Vec<&TensorHandle> = [&source, &weight].into_iter().chain(&bias).collect();
        let sum = float_accumulator(self.client, kernel, &read)?;
        let dtype = source.dtype;
        let result = unwritten(self.client, shape.clone(), dtype);
        let phased = transposed && axes.iter().any(|axis| axis.stride > 1);
        let inside = match transposed {
            true => axes.iter().all(Axis::outputs_inside),
            false => axes.iter().all(Axis::inputs_inside),
        };
        let positions = axes.map(|axis| if transposed { axis.phased_inputs() } else { axis.output });
        let tiles = groups * channels.div_ceil(tile.rows) * batch.div_ceil(tile.columns);
        let (units, count, dim) = self.grid(positions.iter().product::<usize>() * tiles)?;
        if units == 0 {
            return Ok(result);
        }
        let source = view_data(source, groups);
        let weight = view_weight(weight, groups, transposed);
        let bias = bias.map(|bias| dense(self.client, bias));
        let blocks = self.problem.blocks();
        let variant = Variant { tile, phased, inside, single: blocks == 1 };
        // Between blocks a total is kept in the type it is computed in.
        let totals = match blocks == 1 || dtype == sum {
            true => result.clone(),
            false => unwritten(self.client, shape, sum),
        };
        for launch in plan::launches(blocks, source_channels) {
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
                    maps(axes, transposed),
                    units,
                    variant,
                    [dtype, sum, totals.dtype],
                );
            }
        }
        if totals.dtype != dtype {
            parts::chain(self.client, kernel, totals, 1, &result, true)?;
        }
        Ok(result)
    }

    /// The pass to the weight: rounds of `span` blocks.
    fn weight(&self, operands: Operands, tile: UnitTile, span: usize) -> Result<TensorHandle, KernelError> {
        let Operands { source: input, other: gradient, bias } = operands;
        let Problem { kernel, rank, geometry, .. } = *self.problem;
        let Geometry { groups, inputs, outputs, axes, .. } = geometry;
        if bias.is_some() {
            return Err(self.refuse("a weight gradient has no bias".into()));
        }
        require_shape(kernel, "input", input.shape(), &geometry.input_shape(rank))?;
        require_shape(kernel, "output gradient", gradient.shape(), &geometry.output_shape(rank))?;
        let dtype = input.dtype;
        let sum = float_accumulator(self.client, kernel, &[&input, &gradient])?;
        let result = unwritten(self.client, geometry.weight_shape(rank), dtype);
        let taps = axes.map(|axis| axis.taps);
        let lanes =
            groups * outputs.div_ceil(tile.rows) * inputs.div_ceil(tile.columns) * taps.iter().product::<usize>();
        if lanes == 0 {
            return Ok(result);
        }
        let inside = axes.iter().all(Axis::inputs_inside);
        let blocks = self.problem.blocks();
        // Slot 0 holds the first block, then the total of the rounds before.
        let slots = if span < blocks { span + 1 } else { blocks };
        let shape = vec![slots, groups, outputs, inputs, taps[0], taps[1], taps[2]];
        let scratch = match blocks {
            1 => TensorHandle::new_contiguous(shape, result.handle.clone(), dtype),
            _ => unwritten(self.client, shape, sum),
        };
        let (input, gradient) = (view_data(input, groups), view_data(gradient, groups));
        for first in (0..blocks).step_by(span) {
            let of_round = span.min(blocks - first);
            let slot = usize::from(first > 0);
            let (units, count, dim) = self.grid(of_round * lanes)?;
            // SAFETY: a unit below `units` owns a tap and a tile of channels; it reads positions inside the operands,
            // whose shapes are checked, and writes its own elements of the scratch memory.
            unsafe {
                weight_kernel::weight_gradient_blocks::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.clone().into_arg(),
                    gradient.clone().into_arg(),
                    scratch.clone().into_arg(),
                    maps(axes, false),
                    RoundLaunch::new(first as u32, slot as u32),
                    units,
                    tile,
                    inside,
                    [dtype, sum, scratch.dtype],
                );
            }
            if blocks > 1 {
                let last = first + of_round == blocks;
                parts::chain(self.client, kernel, scratch.clone(), slot + of_round, &result, last)?;
            }
        }
        Ok(result)
    }

    fn cube_units(&self) -> u32 {
        plan::cube_units(Machine::of(self.client))
    }

    /// The grid of `units` units, if 32-bit indices count them.
    fn grid(&self, units: usize) -> Result<(u32, CubeCount, CubeDim), KernelError> {
        plan::grid(units, self.cube_units()).ok_or_else(|| self.refuse(format!("{units} units, want less than 2^31")))
    }

    fn refuse(&self, reason: String) -> KernelError {
        KernelError::Shape { kernel: self.problem.kernel, reason }
    }
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
