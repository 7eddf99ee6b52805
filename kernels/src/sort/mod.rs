//! Sorting along one axis.
//!
//! # Order contract
//!
//! The result along a line is the one stable order: elements by their value, **equal ones by ascending index**, in both
//! directions. So a result is a function of the line alone, whatever way it is found.
//!
//! Floats are compared by their bits as integers, never as floats. All NaNs are equal and above everything, as in NumPy:
//!
//! ```text
//! -inf < .. < -0 < +0 < .. < +inf < NaN
//! ```
//!
//! So -0 and +0 are told apart, ascending order has the NaNs at its end in the order of their indices, and descending
//! order at its beginning. Values are moved, not computed: they keep every bit, the signs and payloads of
//! NaNs among them. `f16` and `bf16` are widened to `f32` to be compared, which is exact; devices widen NaNs differently
//! (CUDA drops sign and payload), so an order that told NaNs apart would depend on the device.
//!
//! # Cost
//!
//! [`plan`](plan::plan) chooses one of three algorithms:
//!
//! * **Enumeration sort** for short lines: the rank of an element is the number of elements that come before it. One launch,
//!   `length / 8` reads for each element.
//! * **Selection** for `k <= 32` and at most half the line: each chunk of a line keeps its first `k` elements; what was
//!   kept is cut into chunks again, until there is one. A unit has a chunk: little more than one read for each element in all,
//!   since of each group of neighbours only the first competes until the groups are chosen (Gaihre et al., "Dr. Top-k", 2021).
//!   Or a cube has one, on a GPU, where units would be too few: one launch for lines of up to 2048 elements.
//! * **Radix sort** of all lines together for the others: stable passes by the digits of the elements' values, the lowest
//!   first, then by those of the line's number. `O(elements)` a pass; four passes for 32-bit types from 2^17 elements on and up
//!   to eight for fewer, twice as many for 64-bit types, and one or two for the lines. 16 to 20 bytes of scratch an element.
//!
//! Guarantee: the same bits on every device.

mod comparison;
mod cube_selection_kernel;
mod kernel;
mod launch;
pub mod plan;
pub mod reference;
mod selection_kernel;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::{Machine, require_shared_memory, require_units};
use crate::dtype::U32;
use crate::error::require_shapes;
use crate::grid::UNITS;
use crate::index::require_counts;
use crate::planned::require_plan;
use crate::view::{AxisView, axis_length, checked_elements};
pub use comparison::Direction;
use comparison::form;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use kernel::Wanted;
use launch::Launch;
pub use plan::{Plan, Problem};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sorting {
    /// The axis along which lines are sorted.
    pub axis: usize,
    /// The end of the order that comes first.
    pub direction: Direction,
    /// Elements of each line that the result has, the first ones in order; all, if it is none.
    pub kept: Option<usize>,
    /// Whether the elements are asked for.
    pub values: bool,
    /// The type of their indices along the axis, if these are asked for.
    pub index: Option<ElemType>,
}

/// The elements along an axis in order, and their indices; what is not asked for is empty. Launched by `plan`, or by the one
/// that [`plan::plan`] chooses; no plan changes the result.
///
/// # Errors
///
/// An axis the tensor does not have, more kept elements than it has, a tensor that 32-bit indices do not reach, an axis
/// longer than the index type can count, an element or index type that is not a plain number or that the device does not
/// have, a plan that does not apply, and more elements than any plan takes ([`KernelError::Plan`]).
pub fn sort(
    client: &Client,
    input: TensorHandle,
    sorting: Sorting,
    plan: Option<Plan>,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    const KERNEL: &str = "sort::sort";
    let Sorting { axis, direction, kept, values, index } = sorting;
    let (mut shape, dtype) = (input.shape().to_vec(), input.dtype);
    let length = axis_length(KERNEL, input.shape(), axis)?;
    let kept = kept.unwrap_or(length);
    let (form, carrier) = form(client, KERNEL, dtype, direction)?;
    let index_dtype = index.unwrap_or(U32);
    require_counts(client, KERNEL, index_dtype, length)?;
    require_units(client, KERNEL, UNITS)?;
    let elements = checked_elements(KERNEL, &shape)?;
    require_shapes(KERNEL, kept <= length, || {
        format!("the first {kept} in order along axis {axis} of shape {shape:?}, want at most {length}")
    })?;
    let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let problem = Problem { outer, length, inner, kept, bits: form.bits, two_words: form.wide };
    let plan = plan.unwrap_or_else(|| plan::plan(&problem, Machine::of(client)));
    let is_empty = elements == 0 || kept == 0;
    if !is_empty {
        require_plan(KERNEL, &plan, plan.refuses(&problem))?;
    }
    if let Plan::Select(selection) = plan {
        require_shared_memory(client, KERNEL, size_of::<u32>() * selection.shared_words(form.wide))?;
    }
    shape[axis] = kept;
    let wanted = Wanted { values, indices: index.is_some() };
    let made = |wanted: bool, dtype: ElemType| {
        // An output that is not wanted is bound, and not written.
        let shape = if wanted { shape.clone() } else { vec![0] };
        unwritten(client, shape, dtype)
    };
    let outputs = (made(wanted.values, dtype), made(wanted.indices, index_dtype));
    if is_empty {
        return Ok(outputs);
    }
    let input = AxisView::new(client, KERNEL, input, axis..axis + 1)?;
    let launch = Launch { client, problem, form, wanted, types: [carrier, index_dtype] };
    match plan {
        Plan::Rank => launch.rank(&input, &outputs),
        Plan::Radix(sort) => launch.radix(&input, &outputs, sort),
        Plan::Select(selection) => launch.select(&input, &outputs, selection),
    }
    Ok(outputs)
}
