//! Samples images at the points of a grid.
//!
//! # Order contract
//!
//! Every product is rounded before it is added. A point of the grid is `(g_x, g_y)`: across, then down. Along an axis
//! of `n` pixels, `g` in -1..=1 becomes the coordinate
//!
//! ```text
//! p = (g + 1) * (n - 1) * 0.5                   corners aligned: -1 and 1 are the centres of the outer pixels
//! p = (g + 1) * n * 0.5 - 0.5                  otherwise: their outer edges
//! ```
//!
//! and where the padding reflects, with `low, span` = `0, n - 1` or `-0.5, n`:
//!
//! ```text
//! d = |p - low|;  r = -floor(d / (2 span)) * 2 span + d;  p = (span - |r - span|) + low      p = low if span = 0
//! ```
//!
//! Then `p` is clamped to `-8..=n + 8`, beyond which results do not change. [`Filter::Nearest`] reads the pixel nearest
//! to `p`, ties to even. The others read `t` pixels an axis from `floor(p) - (t / 2 - 1)` on, with weights of `u = p -
//! floor(p)`:
//!
//! ```text
//! Linear    1 - u, u
//! Cubic     far(1 + u), near(u), near(1 - u), far(2 - u)                 Keys' cubic (1981), a = -0.75
//!           near(x) = (1.25 x - 2.25) * (x * x) + 1;  far(x) = ((-0.75 x + 3.75) * x - 6) * x + 3
//! Lanczos3  s(2 + u), s(1 + u), s(u), s(1 - u), s(2 - u), s(3 - u), each divided by their sum in that order
//! value = acc = +0; for each row ascending {
//!             line = +0; for each column ascending { line = w_x * pixel + line }
//!             acc = w_y * line + acc }
//! ```
//!
//! A pixel outside the image is +0, or that of the padding: on the border, or mirrored at the centres of the outer
//! pixels if corners are aligned, else at their outer edges. A NaN coordinate, or an infinite one that is to be
//! reflected, gives NaN. Everything is computed in f32 for half types, with one rounding.
//!
//! [`Filter::Lanczos3`] and reflected coordinates divide, by [`quotient`](crate::quotient); f64 has the device's division.
//!
//! # Cost
//!
//! One launch; a unit computes a point in one channel, or in several of them where there are many elements. A grid
//! whose rows and columns do not join to one axis is copied first.

mod kernel;
mod params;
pub mod reference;

pub use params::{Filter, Padding, SampleParams};

use crate::KernelError;
use crate::buffer::unwritten;
use crate::coarsening::{self, Plan, Problem};
use crate::device::{Machine, require_units};
use crate::dtype::float_accumulator;
use crate::grid::{UNITS, axis_grids};
use crate::known_answer;
use crate::planned::require_plan;
use crate::quotient::Quotients;
use crate::view::{AxisView, addressable, require_shape};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Samples `input` `[batch, channels, height, width]` at the points `places` `[batch, rows, columns, 2]`: `[batch,
/// channels, rows, columns]`. Launched by `plan`, or by the one that [`coarsening::plan`] chooses over the channels; no
/// plan changes the result.
///
/// # Errors
///
/// Refuses shapes that do not fit together, images without pixels, more than 2^31 elements, element types the device
/// does not compute, and a plan that does not apply ([`KernelError::Plan`]).
pub fn sample(
    client: &Client,
    input: TensorHandle,
    places: TensorHandle,
    params: SampleParams,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    const KERNEL: &str = "grid_sample::sample";
    let refuse = |reason: String| Err(KernelError::Shape { kernel: KERNEL, reason });
    let (&[batch, channels, height, width], &[_, rows, columns, _]) = (&input.shape()[..], &places.shape()[..]) else {
        return refuse(format!("input {:?} and grid {:?}, want four axes each", input.shape(), places.shape()));
    };
    require_shape(KERNEL, "grid", places.shape(), &[batch, rows, columns, 2])?;
    let shape = vec![batch, channels, rows, columns];
    addressable(KERNEL, &[&shape, &[4, height], &[4, width]])?;
    let units = shape.iter().product::<usize>();
    if units > 0 && height * width == 0 {
        return refuse(format!("input {:?} has no pixels", input.shape()));
    }
    let accumulator = float_accumulator(client, KERNEL, &[&input, &places])?;
    require_units(client, KERNEL, UNITS)?;
    let dtype = input.dtype;
    let output = unwritten(client, shape, dtype);
    if units == 0 {
        return Ok(output);
    }
    let problem = Problem { elements: units, shared: channels, iterations: 1 };
    let plan = plan.unwrap_or_else(|| coarsening::plan(&problem, Machine::of(client)));
    require_plan(KERNEL, &plan, plan.refuses(&problem))?;
    let span = plan.span;
    let divides = params.filter == Filter::Lanczos3 || params.padding == Padding::Reflection;
    let quotients = if divides { known_answer::quotients(client) } else { Quotients::Device };
    let numbers = AxisView::new(client, KERNEL, places, 1..3)?;
    for (count, dim, unit) in axis_grids(batch, channels.div_ceil(span), rows * columns) {
        // SAFETY: a unit owns an element of the output in each of its channels, of which it leaves out
        // those that do not exist; it reads its two numbers of the grid, and pixels only at rows and columns inside the
        // image.
        unsafe {
            kernel::sample::launch_unchecked(
                client,
                count,
                dim,
                input.clone().into_arg(),
                numbers.buffer(),
                output.clone().into_arg().into_buffer_arg(),
                (rows * columns) as u32,
                span as u32,
                unit,
                numbers.strides(),
                params,
                quotients,
                [dtype, accumulator],
            );
        }
    }
    Ok(output)
}
