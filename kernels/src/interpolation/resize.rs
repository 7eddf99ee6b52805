//! Resizing images.

use super::resize_kernel;
use super::tables::{Axis, ByOutput};
use super::weights::Filter;
use crate::KernelError;
use crate::buffer::unwritten;
use crate::coarsening::{self, Plan, Problem};
use crate::device::{Machine, require_units};
use crate::dtype::float_accumulator;
use crate::grid::{UNITS, grid};
use crate::planned::require_plan;
use crate::view::addressable;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Images `[batch, channels, height, width]` of another size. Launched by `plan`, or by the one that [`coarsening::plan`] chooses
/// over all images; no plan changes the result.
///
/// # Errors
///
/// Refuses shapes of other than four axes or without pixels to resize, more than 2^31 elements, element types the device does
/// not compute, and a plan that does not apply ([`KernelError::Plan`]).
pub fn resize(
    client: &Client,
    input: TensorHandle,
    [rows, columns]: [usize; 2],
    filter: Filter,
    align_corners: bool,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "interpolation::resize";
    let refuse = |reason: String| Err(KernelError::Shape { kernel: KERNEL, reason });
    let &[batch, channels, height, width] = &input.shape()[..] else {
        return refuse(format!("input {:?}, want four axes", input.shape()));
    };
    let shape = vec![batch, channels, rows, columns];
    addressable(KERNEL, &[input.shape(), &shape, &[6, height], &[6, width], &[6, rows], &[6, columns]])?;
    if (height == 0 && rows > 0) || (width == 0 && columns > 0) {
        return refuse(format!("input {:?} has no pixels to resize", input.shape()));
    }
    let accumulator = float_accumulator(client, KERNEL, &[&input])?;
    require_units(client, KERNEL, UNITS)?;
    let dtype = input.dtype;
    let output = unwritten(client, shape.clone(), dtype);
    let elements = shape.iter().product();
    if elements == 0 {
        return Ok(output);
    }
    let problem = Problem { elements, shared: batch * channels, iterations: 1 };
    let plan = plan.unwrap_or_else(|| coarsening::plan(&problem, Machine::of(client)));
    require_plan(KERNEL, &plan, plan.refuses(&problem))?;
    let [down, across] = [(height, rows), (width, columns)]
        .map(|(input, output)| ByOutput::of(client, Axis { input, output, filter, align_corners, accumulator }));
    let units = (batch * channels).div_ceil(plan.span) * rows * columns;
    let (count, dim) = grid(units);
    // SAFETY: a unit below `units` owns an element of the output in each of its images, of which it leaves out those that do not
    // exist; the inputs that the tables name lie within the source's axes.
    unsafe {
        match filter {
            Filter::Nearest | Filter::NearestExact => resize_kernel::nearest::launch_unchecked(
                client,
                count,
                dim,
                input.into_arg(),
                down.inputs(),
                across.inputs(),
                output.clone().into_arg(),
                units as u32,
                plan.span as u32,
                dtype,
            ),
            _ => resize_kernel::weighted_windows::launch_unchecked(
                client,
                count,
                dim,
                input.into_arg(),
                down.inputs(),
                down.weights(),
                across.inputs(),
                across.weights(),
                output.clone().into_arg(),
                units as u32,
                plan.span as u32,
                filter.taps() as u32,
                [dtype, accumulator],
            ),
        }
    }
    Ok(output)
}
