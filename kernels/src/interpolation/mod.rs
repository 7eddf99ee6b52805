//! Resizing images, and its gradient.
//!
//! # Order contract
//!
//! Resizing is separable: along each axis, output `o` is the sum of inputs `i` with the weights `w[i, o]` of
//! [`weights`], which depend on the two lengths alone. [`resize`] is a chain over the inputs that an output reads, in ascending
//! order, along the width and then along the height; the nearest filters move the one that they read, with every bit. The gradient
//! is a chain over the outputs that read an input, in ascending order, along the height and then along the width. Every product is
//! rounded before it is added.
//!
//! ```text
//! line[b, c, i_y, o_x] = acc = +0; for i_x that o_x reads ascending { acc = w[i_x, o_x] * x[b, c, i_y, i_x] + acc }
//! y[b, c, o_y, o_x] = acc = +0; for i_y that o_y reads ascending { acc = w[i_y, o_y] * line[b, c, i_y, o_x] + acc }
//!
//! rows[b, c, i_y, o_x] = acc = +0; for o_y that read i_y ascending { acc = w[i_y, o_y] * dy[b, c, o_y, o_x] + acc }
//! gradient[b, c, i_y, i_x] = acc = +0; for o_x that read i_x ascending { acc = w[i_x, o_x] * rows[b, c, i_y, o_x] + acc }
//! ```
//!
//! An output reads every input in its window of taps, those with a weight of zero too. Half types keep chains, `line` and
//! `rows` in f32, with one rounding at the end.
//!
//! # Cost
//!
//! `resize` is one launch, `(taps + 1) * taps` products an element. The gradient has two, a chain of about `taps * output / input`
//! steps an element in each, and `rows` as scratch memory; one launch for the nearest filters. The tables of weights are kept on
//! the device. An input that more than [`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS) outputs of
//! an axis read is refused.

mod kernel;
pub mod plan;
pub mod reference;
mod resize;
mod resize_kernel;
mod tables;
pub mod weights;

pub use resize::resize;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::coarsening;
use crate::device::{Machine, require_units};
use crate::dtype::float_accumulator;
use crate::grid::{MAX_ITERATIONS, UNITS, grid};
use crate::planned::require_plan;
use crate::view::{addressable, require_shape};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use plan::{Plan, Problem};
use tables::{Axis, ByInput};
use weights::Filter;

/// The gradient of `input_shape` `[batch, channels, height, width]` from that of the resized images, launched by
/// `plan`, or by the one that [`plan::plan`] chooses; no plan changes the result.
///
/// # Errors
///
/// Refuses shapes that do not fit together or have no pixels to resize, more than 2^31 elements, element types the
/// device does not compute, and a plan that does not apply ([`KernelError::Plan`]).
pub fn input_gradient(
    client: &Client,
    output_gradient: TensorHandle,
    input_shape: &[usize],
    filter: Filter,
    align_corners: bool,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "interpolation::input_gradient";
    let refuse = |reason: String| Err(KernelError::Shape { kernel: KERNEL, reason });
    let (&[batch, channels, height, width], &[_, _, rows, columns]) = (input_shape, &output_gradient.shape()[..])
    else {
        return refuse(format!("input {input_shape:?}, gradient {:?}, want four axes", output_gradient.shape()));
    };
    require_shape(KERNEL, "output gradient", output_gradient.shape(), &[batch, channels, rows, columns])?;
    let between = [batch, channels, height, columns];
    addressable(KERNEL, &[input_shape, &between, output_gradient.shape(), &[height], &[width], &[rows], &[columns]])?;
    if (height == 0 && rows > 0) || (width == 0 && columns > 0) {
        return refuse(format!("input {input_shape:?} has no pixels to resize"));
    }
    let accumulator = float_accumulator(client, KERNEL, &[&output_gradient])?;
    require_units(client, KERNEL, UNITS)?;
    let dtype = output_gradient.dtype;
    let tables = [(height, rows), (width, columns)]
        .map(|(input, output)| ByInput::of(client, Axis { input, output, filter, align_corners, accumulator }));
    if let Some(longest) = tables.iter().map(|table| table.longest).max().filter(|&longest| longest > MAX_ITERATIONS) {
        return refuse(format!("{longest} outputs of an axis read one input, want at most {MAX_ITERATIONS}"));
    }
    let [down, across] = tables;
    let elements = input_shape.iter().product();
    // A loop over columns around one over rows, each with an iteration to leave it.
    let iterations = across.longest * (down.longest + 3) + 3;
    let images = coarsening::Problem { elements, shared: batch * channels, iterations };
    let problem = Problem { nearest: matches!(filter, Filter::Nearest | Filter::NearestExact), images };
    let plan = plan.unwrap_or_else(|| plan::plan(&problem, Machine::of(client)));
    if elements > 0 {
        require_plan(KERNEL, &plan, plan.refuses(&problem))?;
    }
    if let Plan::Joint(images) = plan {
        return Ok(joint(client, output_gradient, input_shape, [&down, &across], [dtype, accumulator], images.span));
    }
    let partial = along::<2>(client, output_gradient, height, &down, [dtype, accumulator, accumulator]);
    Ok(along::<3>(client, partial, width, &across, [accumulator, accumulator, dtype]))
}

/// Both passes in one launch, of `span` images a unit.
fn joint(
    client: &Client,
    source: TensorHandle,
    input_shape: &[usize],
    [down, across]: [&ByInput; 2],
    dtypes: [ElemType; 2],
    span: usize,
) -> TensorHandle {
    let output = unwritten(client, input_shape.to_vec(), dtypes[0]);
    if input_shape.contains(&0) {
        return output;
    }
    let images = input_shape[0] * input_shape[1];
    let units = images.div_ceil(span) * input_shape[2] * input_shape[3];
    let (count, dim) = grid(units);
    // SAFETY: a unit below `units` owns an element of the output in each of its images, of which it leaves out those
    // that do not exist; the offsets lie within the source's axes.
    unsafe {
        kernel::sums::launch_unchecked(
            client,
            count,
            dim,
            source.into_arg(),
            down.offsets(),
            across.offsets(),
            output.clone().into_arg(),
            units as u32,
            span as u32,
            dtypes,
        );
    }
    output
}

/// One pass along `AXIS`, whose result has `length` elements there.
fn along<const AXIS: usize>(
    client: &Client,
    source: TensorHandle,
    length: usize,
    table: &ByInput,
    dtypes: [ElemType; 3],
) -> TensorHandle {
    let [_, _, result] = dtypes;
    let mut shape = source.shape().to_vec();
    shape[AXIS] = length;
    let units: usize = shape.iter().product();
    let output = unwritten(client, shape, result);
    if units == 0 {
        return output;
    }
    let (count, dim) = grid(units);
    // SAFETY: a unit below `units` owns an element of the output; the table's windows lie within the source's axis, and
    // its offsets within its weights.
    unsafe {
        kernel::weighted_sums::launch_unchecked(
            client,
            count,
            dim,
            source.into_arg(),
            table.offsets(),
            table.first(),
            table.weights(),
            output.clone().into_arg(),
            units as u32,
            AXIS,
            dtypes,
        );
    }
    output
}
