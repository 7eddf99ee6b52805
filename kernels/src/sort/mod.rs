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
//! order, hence [`topk`], at its beginning. Values are moved, not computed: they keep every bit, the signs and payloads of
//! NaNs among them. `f16` and `bf16` are widened to `f32` to be compared, which is exact; devices widen NaNs differently
//! (CUDA drops sign and payload), so an order that told NaNs apart would depend on the device.
//!
//! The `k` first elements in descending order are [`topk`]; their indices count along the axis.
//!
//! # Cost
//!
//! [`plan`](plan::plan) chooses one of three algorithms:
//!
//! * **Enumeration sort** for short lines: the rank of an element is the number of elements that come before it. One launch,
//!   `length / 8` reads for each element.
//! * **Selection** for `k <= 32` and at most half the line: each chunk of a line keeps its first `k` elements, and so on with
//!   what is left, until one chunk is left. Little more than one read for each element in all.
//! * **Radix sort** of all lines together for the others: stable passes by the digits of the elements' values, the lowest
//!   first, then by those of the line's number. `O(elements)` a pass; four passes for 32-bit types from 2^17 elements on and up
//!   to eight for fewer, twice as many for 64-bit types, and one or two for the lines. 16 to 20 bytes of scratch an element.
//!
//! Guarantee: the same bits on every device.

mod comparison;
mod kernel;
mod launch;
pub mod plan;
pub mod reference;

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::{Machine, require_units};
use crate::dtype::U32;
use crate::dtype::supported;
use crate::error::{require_plan, require_shapes};
use crate::grid::UNITS;
use crate::view::{AxisView, axis_length, checked_elements};
pub use comparison::Direction;
use comparison::form;
use cubecl::ir::{ElemType, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use kernel::Wanted;
use launch::Launch;
pub use plan::{Plan, Problem};

/// The elements along `axis` in order.
///
/// # Errors
///
/// As [`sort_with_indices`].
pub fn sort(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    direction: Direction,
) -> Result<TensorHandle, KernelError> {
    let sorting = Sorting { kernel: "sort::sort", axis, direction, kept: None, index: None, plan: None };
    sorting.run(client, input, true).map(|(values, _)| values)
}

/// The indices along `axis` of its elements in order, as `index`.
///
/// # Errors
///
/// As [`sort_with_indices`].
pub fn argsort(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    direction: Direction,
    index: ElemType,
) -> Result<TensorHandle, KernelError> {
    let sorting = Sorting { kernel: "sort::argsort", axis, direction, kept: None, index: Some(index), plan: None };
    sorting.run(client, input, false).map(|(_, indices)| indices)
}

/// The elements along `axis` in order, and their indices as `index`.
///
/// # Errors
///
/// An axis the tensor does not have, a tensor that 32-bit indices do not reach, an axis longer than `index` can count, an
/// element or index type that is not a plain number or that the device does not have, or more elements than any plan takes
/// ([`KernelError::Plan`]).
pub fn sort_with_indices(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    direction: Direction,
    index: ElemType,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    sort_planned(client, input, axis, direction, index, None)
}

/// [`sort_with_indices`] by a plan of the caller's choice, or by that of [`plan::plan`]; no plan changes the result.
///
/// # Errors
///
/// As [`sort_with_indices`], and a plan that does not apply ([`KernelError::Plan`]).
pub fn sort_planned(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    direction: Direction,
    index: ElemType,
    plan: Option<Plan>,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    let kernel = "sort::sort_with_indices";
    Sorting { kernel, axis, direction, kept: None, index: Some(index), plan }.run(client, input, true)
}

/// The `k` largest elements along `axis`, in descending order.
///
/// # Errors
///
/// As [`sort_with_indices`], and a `k` beyond the length of the axis.
pub fn topk(client: &Client, input: TensorHandle, axis: usize, k: usize) -> Result<TensorHandle, KernelError> {
    let sorting = Sorting {
        kernel: "sort::topk",
        axis,
        direction: Direction::Descending,
        kept: Some(k),
        index: None,
        plan: None,
    };
    sorting.run(client, input, true).map(|(values, _)| values)
}

/// The indices along `axis` of its `k` largest elements, in descending order of these, as `index`.
///
/// # Errors
///
/// As [`topk`].
pub fn argtopk(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    k: usize,
    index: ElemType,
) -> Result<TensorHandle, KernelError> {
    let direction = Direction::Descending;
    let sorting = Sorting { kernel: "sort::argtopk", axis, direction, kept: Some(k), index: Some(index), plan: None };
    sorting.run(client, input, false).map(|(_, indices)| indices)
}

/// The `k` largest elements along `axis`, in descending order, and their indices as `index`.
///
/// # Errors
///
/// As [`topk`].
pub fn topk_with_indices(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    k: usize,
    index: ElemType,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    topk_planned(client, input, axis, k, index, None)
}

/// [`topk_with_indices`] by a plan of the caller's choice, or by that of [`plan::plan`]; no plan changes the result.
///
/// # Errors
///
/// As [`topk`], and a plan that does not apply ([`KernelError::Plan`]).
pub fn topk_planned(
    client: &Client,
    input: TensorHandle,
    axis: usize,
    k: usize,
    index: ElemType,
    plan: Option<Plan>,
) -> Result<(TensorHandle, TensorHandle), KernelError> {
    let (kernel, direction) = ("sort::topk_with_indices", Direction::Descending);
    Sorting { kernel, axis, direction, kept: Some(k), index: Some(index), plan }.run(client, input, true)
}

/// What is asked for.
struct Sorting {
    kernel: &'static str,
    axis: usize,
    direction: Direction,
    /// Elements of each line that the result has, if not all.
    kept: Option<usize>,
    /// The type of the indices, if they are asked for.
    index: Option<ElemType>,
    plan: Option<Plan>,
}

impl Sorting {
    /// The values and the indices; what was not asked for is empty.
    fn run(
        self,
        client: &Client,
        input: TensorHandle,
        values: bool,
    ) -> Result<(TensorHandle, TensorHandle), KernelError> {
        let Self { kernel, axis, direction, kept, index, plan } = self;
        let (mut shape, dtype) = (input.shape().to_vec(), input.dtype);
        let length = axis_length(kernel, input.shape(), axis)?;
        let kept = kept.unwrap_or(length);
        let (form, carrier) = form(client, kernel, dtype, direction)?;
        let index_dtype = index.unwrap_or(U32);
        check_index(client, kernel, index_dtype, length)?;
        require_units(client, kernel, UNITS)?;
        let elements = checked_elements(kernel, &shape)?;
        require_shapes(kernel, kept <= length, || {
            format!("the {kept} largest along axis {axis} of shape {shape:?}, want at most {length}")
        })?;
        let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
        let problem = Problem { outer, length, inner, kept, bits: form.bits, two_words: form.wide };
        let plan = plan.unwrap_or_else(|| plan::plan(&problem, Machine::of(client)));
        let is_empty = elements == 0 || kept == 0;
        if !is_empty {
            require_plan(kernel, plan.refuses(&problem))?;
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
        let input = AxisView::new(client, kernel, input, axis..axis + 1)?;
        let launch = Launch { client, problem, form, wanted, types: [carrier, index_dtype] };
        match plan {
            Plan::Rank => launch.rank(&input, &outputs),
            Plan::Radix(radix) => launch.radix(&input, &outputs, radix),
            Plan::Select(choice) => launch.select(&input, &outputs, choice),
        }
        Ok(outputs)
    }
}

/// Refuses index types that the device does not have or that cannot count to `length`.
fn check_index(client: &Client, kernel: &'static str, index: ElemType, length: usize) -> Result<(), KernelError> {
    let remedy = "ask for indices of an integer type that the device has";
    let counts = match index {
        ElemType::Int(IntKind::I8) => 1 << 7,
        ElemType::Int(IntKind::I16) => 1 << 15,
        ElemType::UInt(UIntKind::U8) => 1 << 8,
        ElemType::UInt(UIntKind::U16) => 1 << 16,
        ElemType::Int(IntKind::I32) => 1 << 31,
        ElemType::Int(_) | ElemType::UInt(_) => usize::MAX,
        _ => return Err(KernelError::Dtype { kernel, dtype: index, remedy }),
    };
    supported(client, kernel, index, remedy)?;
    require_shapes(kernel, length <= counts, || {
        format!("indices of an axis of {length} elements as {index}, which counts {counts}")
    })
}
