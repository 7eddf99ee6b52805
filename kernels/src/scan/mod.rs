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
//! with `+` standing for the operation. The order of a result depends on its position alone: what follows it, padding for
//! one, does not change it. A cumulative sum of non-negative numbers is monotone.
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
//! [`Plan`] has two ways to the same bits: one unit per line, or reduce-then-scan where lines are few or long (the three
//! kernels of Dotsenko et al., "Fast scan algorithms on graphics processors", 2008). An axis has at most 2^30 elements.
//!
//! Guarantee: run to run for everything; the same bits on every device for integers, `Min` and `Max`, and for `Sum`
//! and `Prod` where the device rounds correctly, keeps subnormals and does not reassociate.

mod kernel;
pub mod plan;
pub mod reference;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::{Machine, require_units};
use crate::dtype::{accumulator, supported};
use crate::grid::{UNITS, axis_grids};
use crate::order::BLOCK;
use crate::reduce;
use crate::view::{AxisView, axis_length, checked_elements};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use kernel::LinesLaunch;

pub use plan::{Plan, Problem};

/// What is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The sum so far.
    Sum,
    /// The product so far.
    Prod,
    /// The smallest element so far.
    Min,
    /// The largest element so far.
    Max,
}

impl Operation {
    /// The name errors carry.
    fn name(self) -> &'static str {
        match self {
            Self::Sum => "scan::cumsum",
            Self::Prod => "scan::cumprod",
            Self::Min => "scan::cummin",
            Self::Max => "scan::cummax",
        }
    }

    /// The type results are kept in between blocks, and the type they are compared in.
    fn types(self, dtype: ElemType) -> (ElemType, Option<ElemType>) {
        match self {
            Self::Min => (dtype, reduce::Operation::Min.accumulator(dtype)),
            Self::Max => (dtype, reduce::Operation::Max.accumulator(dtype)),
            Self::Sum | Self::Prod => (accumulator(dtype), Some(accumulator(dtype))),
        }
    }
}

/// The sums of all elements up to each one along `axis`.
///
/// # Errors
///
/// As [`scan`].
pub fn cumsum(client: &Client, input: TensorHandle, axis: usize) -> Result<TensorHandle, KernelError> {
    scan(client, Operation::Sum, input, axis)
}

/// The products of all elements up to each one along `axis`.
///
/// # Errors
///
/// As [`scan`].
pub fn cumprod(client: &Client, input: TensorHandle, axis: usize) -> Result<TensorHandle, KernelError> {
    scan(client, Operation::Prod, input, axis)
}

/// The smallest of all elements up to each one along `axis`.
///
/// # Errors
///
/// As [`scan`].
pub fn cummin(client: &Client, input: TensorHandle, axis: usize) -> Result<TensorHandle, KernelError> {
    scan(client, Operation::Min, input, axis)
}

/// The largest of all elements up to each one along `axis`.
///
/// # Errors
///
/// As [`scan`].
pub fn cummax(client: &Client, input: TensorHandle, axis: usize) -> Result<TensorHandle, KernelError> {
    scan(client, Operation::Max, input, axis)
}

/// Any of the above.
///
/// # Errors
///
/// An axis the tensor does not have, a tensor that 32-bit indices do not reach, an axis of more than 2^30 elements
/// ([`KernelError::Plan`]), or an element type without a kernel on this device.
pub fn scan(
    client: &Client,
    operation: Operation,
    input: TensorHandle,
    axis: usize,
) -> Result<TensorHandle, KernelError> {
    run(client, operation, input, axis, None)
}

/// [`scan`] by a plan of the caller's choice, which cannot change the result.
///
/// # Errors
///
/// As [`scan`], and a plan that does not apply ([`KernelError::Plan`]).
pub fn scan_planned(
    client: &Client,
    operation: Operation,
    input: TensorHandle,
    axis: usize,
    plan: Plan,
) -> Result<TensorHandle, KernelError> {
    run(client, operation, input, axis, Some(plan))
}

fn run(
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
    if let Some(reason) = plan.refuses(&problem) {
        return Err(KernelError::Plan { kernel: name, reason });
    }
    let output = unwritten(client, shape, dtype);
    let input = AxisView::new(client, name, input, axis..axis + 1)?;
    let launch = Launch { client, operation, problem, types: [dtype, accumulator, key] };
    match plan {
        Plan::Sequential => launch.sequential(&input, &output),
        Plan::ReduceThenScan { chained } => launch.reduce_then_scan(&input, &output, chained),
    }
    Ok(output)
}

/// The launches of one scan.
struct Launch<'a> {
    client: &'a Client,
    operation: Operation,
    problem: Problem,
    types: [ElemType; 3],
}

impl Launch<'_> {
    fn lines(&self) -> LinesLaunch {
        let Problem { outer, length, inner } = self.problem;
        LinesLaunch::new(outer as u32, length as u32, inner as u32, BLOCK as u32)
    }

    fn sequential(&self, input: &AxisView, output: &TensorHandle) {
        let Problem { outer, inner, .. } = self.problem;
        for (count, dim, tile) in axis_grids(outer, 1, inner) {
            // SAFETY: units stop at the number of lines; the view covers what the lines and its strides reach, and the
            // output has as many elements as the lines.
            unsafe {
                kernel::scan_lines::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    output.clone().into_arg().into_buffer_arg(),
                    self.lines(),
                    tile,
                    input.strides(),
                    self.operation,
                    self.types,
                );
            }
        }
    }

    fn reduce_then_scan(&self, input: &AxisView, output: &TensorHandle, chained: usize) {
        let Problem { outer, inner, .. } = self.problem;
        let blocks = self.problem.blocks();
        let totals_length = outer * blocks * inner;
        let totals = self.client.empty(totals_length * self.types[1].size());
        // SAFETY: `totals` is made with this length, in elements of the accumulator type.
        let totals_arg = || unsafe { BufferArg::from_raw_parts(totals.clone(), totals_length) };
        for (count, dim, tile) in axis_grids(outer, blocks, inner) {
            // SAFETY: units stop at the number of blocks, the length of `totals`; the view covers what the lines and
            // its strides reach.
            unsafe {
                kernel::reduce_blocks::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    totals_arg(),
                    self.lines(),
                    tile,
                    input.strides(),
                    self.operation,
                    self.types,
                );
            }
        }
        let firsts = (1..blocks).step_by(chained);
        for (first, (count, dim, tile)) in firsts.flat_map(|first| axis_grids(outer, 1, inner).map(move |g| (first, g)))
        {
            // SAFETY: units stop at the number of lines, each of which has its totals in `totals`.
            unsafe {
                kernel::chain_totals::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    totals_arg(),
                    self.lines(),
                    tile,
                    first as u32,
                    (first + chained).min(blocks) as u32,
                    self.operation,
                    [self.types[1], self.types[2]],
                );
            }
        }
        for (count, dim, tile) in axis_grids(outer, blocks, inner) {
            // SAFETY: as for the totals; the output has as many elements as the lines.
            unsafe {
                kernel::scan_blocks::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    input.buffer(),
                    totals_arg(),
                    output.clone().into_arg().into_buffer_arg(),
                    self.lines(),
                    tile,
                    input.strides(),
                    self.operation,
                    self.types,
                );
            }
        }
    }
}
