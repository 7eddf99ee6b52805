//! Cumulative operations along one axis, in one order and at linear cost.
//!
//! # Order contract
//!
//! The result at element `i` is the [blocked order](crate::order) of the elements `x[0..=i]`: blocks of
//! [`BLOCK`](crate::order::BLOCK) = 1024 elements, counted from the first element,
//!
//! ```text
//! local[i] = x[i]                     at the beginning s = 1024 floor(i / 1024) of a block
//!            local[i-1] + x[i]        elsewhere
//! y[i]     = local[i]                 in the first block
//!            y[s-1] + local[i]        in the others
//! ```
//!
//! with `+` standing for the operation. The order of a result depends on its position alone: what follows it, padding
//! for one, does not change it. A cumulative sum of non-negative numbers is monotone.
//!
//! | operation | `left + right` | the grouping matters |
//! |---|---|---|
//! | `Sum`, `Prod` | sum, product | for floats; integers wrap |
//! | `Min`, `Max` | `right` if it is beyond `left`, else `left` | no |
//!
//! * A chain starts from its first value, so the first result is the first element, -0 included.
//! * `f16` and `bf16` are widened to `f32` for `Sum` and `Prod`, stay `f32` between blocks, and each result is rounded
//!   once. All other types are computed as they are.
//! * `Min` and `Max` compare floats as integers by the rule of [`reduce::extreme`](crate::reduce::extreme): -0 and +0
//!   tie, a NaN beats everything that is not one, NaNs tie, and the first of equals stays. So from the first NaN on all
//!   results are that NaN, and a result is one of the elements to the bit.
//! * A NaN in a sum or product makes all later results NaN; their signs and payloads are the device's.
//!
//! # Cost
//!
//! Reduce-then-scan (Dotsenko et al., "Fast scan algorithms on graphics processors", 2008): a unit a block reduces it,
//! a unit a line chains the blocks' totals, a unit a block scans it. Two reads and one write an element, and two
//! launches and one for every [`chained`](Plan::chained) blocks of a line begun; one read and one launch where a line
//! has one block. Along the last axis a GPU reads eight blocks side by side, stretch by stretch, through shared memory
//! ([`staged`](Plan::staged)). An axis has at most 2^30 elements.
//!
//! Guarantee: run to run for everything; the same bits on every device for integers, `Min` and `Max`, and for `Sum`
//! and `Prod` where the device rounds correctly, keeps subnormals and does not reassociate.

mod kernel;
mod launch;
mod operation;
pub mod plan;
pub mod reference;
mod staged_kernel;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::{Machine, require_units};
use crate::dtype::supported;
use crate::grid::UNITS;
use crate::planned::require_plan;
use crate::view::{AxisView, axis_length, checked_elements};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use launch::Launch;

pub use operation::Operation;
pub use plan::{Plan, Problem};

/// Defines a function for each operation, for callers that take one as a function.
macro_rules! functions_of_operations {
    ($($(#[$documentation:meta])* $name:ident = $operation:ident;)*) => {$(
        $(#[$documentation])*
        ///
        /// # Errors
        ///
        /// As [`scan`].
        pub fn $name(client: &Client, input: TensorHandle, axis: usize) -> Result<TensorHandle, KernelError> {
            scan(client, Operation::$operation, input, axis, None)
        }
    )*};
}

functions_of_operations! {
    /// The sums of all elements up to each one along `axis`.
    cumsum = Sum;
    /// The products of all elements up to each one along `axis`.
    cumprod = Prod;
    /// The smallest of all elements up to each one along `axis`.
    cummin = Min;
    /// The largest of all elements up to each one along `axis`.
    cummax = Max;
}

/// Any of the above, launched by `plan`, or by the one that [`plan::plan`] chooses; no plan changes the result.
///
/// # Errors
///
/// An axis the tensor does not have, a tensor that 32-bit indices do not reach, an axis of more than 2^30 elements or a
/// plan that does not apply ([`KernelError::Plan`]), or an element type without a kernel on this device.
pub fn scan(
    client: &Client,
    operation: Operation,
    input: TensorHandle,
    axis: usize,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    const REMEDY: &str = "use f64, f32, f16, bf16 or an integer type that the device has";
    let name = operation.name();
    let (shape, dtype) = (input.shape().to_vec(), input.dtype);
    supported(client, name, dtype, REMEDY)?;
    let (accumulator, key) = operation.types(dtype);
    let Some(key) = key.filter(|&key| client.properties().supports_type(key)) else {
        return Err(KernelError::Dtype { kernel: name, dtype, remedy: REMEDY });
    };
    require_units(client, name, UNITS)?;
    let elements = checked_elements(name, &shape)?;
    let length = axis_length(name, &shape, axis)?;
    if elements == 0 {
        return Ok(unwritten(client, shape, dtype));
    }
    let problem = Problem { outer: shape[..axis].iter().product(), length, inner: shape[axis + 1..].iter().product() };
    let plan = plan.unwrap_or_else(|| plan::plan(&problem, Machine::of(client)));
    require_plan(name, &plan, plan.refuses(&problem))?;
    let output = unwritten(client, shape, dtype);
    let input = AxisView::new(client, name, input, axis..axis + 1)?;
    let launch = Launch { client, operation, problem, types: [dtype, accumulator, key] };
    launch.run(&input, &output, plan)?;
    Ok(output)
}
