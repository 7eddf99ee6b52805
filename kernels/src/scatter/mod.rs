//! Indexed updates: `scatter`, `select_assign` and `scatter_nd`.
//!
//! # Order contract
//!
//! A source is one value with the index of its destination. Its **position** `p` is its place along the scattered axis
//! ([`scatter`], [`select_assign`]), or the row-major place of its index tuple ([`scatter_nd`]); `n` is the number of
//! positions. For a destination element `t`, let `v[p]` be the value at position `p` if its index names `t`, and absent
//! otherwise. The result is the [blocked order](crate::order) over the values that are present:
//!
//! ```text
//! block(q) = chain of the v[p] that are present, 1024 q <= p < 1024 (q + 1), p ascending
//! total    = chain of the block(q) with a value present, q ascending
//! result   = t + total                  or t, bit for bit, if no value is present
//! ```
//!
//! with `+` the update's operation:
//!
//! | update | `left + right` | the grouping matters |
//! |---|---|---|
//! | `Assign` | `right` | no; the last value wins |
//! | `Add` | sum; for floats the other operand, bit for bit, where one is -0 | for floats; integers wrap |
//! | `Mul` | product | for floats; integers wrap |
//! | `Min`, `Max` | `right` if it is NaN, or beyond `left` and `left` is not NaN; else `left` | no; the first of equal values (so of -0 and +0) wins, NaN wins over numbers, the last NaN over others |
//! | `Or` | 1 if either is not 0, else 0 | no |
//!
//! The order depends on the positions of a destination's sources alone: not on the other destinations, their number, or
//! the width of a row. `f16` and `bf16` are widened to `f32`, the result is rounded once. All other types are computed as
//! they are. An index outside its axis, a negative one among them, updates nothing;
//! [`index_check`](crate::index_check) tells whether there was one.
//!
//! # Plans
//!
//! [`Plan`] has three ways to the same bits. `e` is the number of destination elements, `m` that of values, and there are
//! `b = ceil(n / 1024)` blocks of positions. A column is one of the `outer x inner` elements of a row.
//!
//! | plan | who computes | reads | scratch | launches |
//! |---|---|---|---|---|
//! | `BruteForce` | one unit per destination; it reads every index of its column | `e n` | none | 1 |
//! | `Privatised` | one unit per block of positions and column, with a total of its own for each row; `Add` only | `m + b e` | `b e` totals | 2 |
//! | `Segmented` | sort by destination, CSR row offsets, then one unit per destination reduces its segment | `m + e` | 16 bytes a key, a total for every 16 keys, for fewer beyond 2^20 positions | 4 a radix pass, and 2 to 5 |
//!
//! No unit loops more than [`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS) times in a launch; a plan that would is refused.

mod brute_force;
mod combine;
mod operands;
pub mod plan;
mod privatised;
pub mod reference;
mod segmented;

pub use plan::{Indexed, Plan, Problem};

use crate::KernelError;
use crate::device::Machine;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use operands::Scatter;

/// How a value is combined with the element it updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Update {
    /// The value replaces the element.
    Assign,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// The smaller, NaN if either is.
    Min,
    /// The larger, NaN if either is.
    Max,
    /// Logical or of booleans stored as integers.
    Or,
}

/// Updates `tensor` with `values` at `indices` along `dim`. `indices` and `values` have one shape, that of `tensor`
/// but for `dim`. Returns a new tensor.
///
/// # Errors
///
/// Shapes that do not fit together or that 32-bit indices do not reach, an element type without a kernel on this device,
/// or more sources than any plan takes ([`KernelError::Plan`]).
pub fn scatter(
    client: &Client,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    Scatter::along(client, dim, tensor, indices, values, update)?.run(None)
}

/// [`scatter`] by a plan of the caller's choice, which cannot change the result.
///
/// # Errors
///
/// As [`scatter`], and a plan that does not apply ([`KernelError::Plan`]).
pub fn scatter_planned(
    client: &Client,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
    plan: Plan,
) -> Result<TensorHandle, KernelError> {
    Scatter::along(client, dim, tensor, indices, values, update)?.run(Some(plan))
}

/// Updates the rows of `tensor` along `dim` that the one-dimensional `indices` name with those of `values`, whose
/// shape is that of `tensor` but for `dim`, where it has one row an index. Returns a new tensor.
///
/// # Errors
///
/// As [`scatter`].
pub fn select_assign(
    client: &Client,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    Scatter::rows(client, dim, tensor, indices, values, update)?.run(None)
}

/// [`select_assign`] by a plan of the caller's choice, which cannot change the result.
///
/// # Errors
///
/// As [`scatter_planned`].
pub fn select_assign_planned(
    client: &Client,
    dim: usize,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
    plan: Plan,
) -> Result<TensorHandle, KernelError> {
    Scatter::rows(client, dim, tensor, indices, values, update)?.run(Some(plan))
}

/// Updates the rows of each line of `tensor[lines, rows, inner]` that `indices[lines, positions]` name with those of
/// `values[lines, positions, inner]`. Returns a new tensor.
///
/// # Errors
///
/// As [`scatter`].
pub fn update_lines(
    client: &Client,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    Scatter::lines(client, tensor, indices, values, update)?.run(None)
}

/// [`update_lines`] by a plan of the caller's choice, which cannot change the result.
///
/// # Errors
///
/// As [`scatter_planned`].
pub fn update_lines_planned(
    client: &Client,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
    plan: Plan,
) -> Result<TensorHandle, KernelError> {
    Scatter::lines(client, tensor, indices, values, update)?.run(Some(plan))
}

/// Updates the slices of `tensor` that the tuples along the last axis of `indices[.., k]` name by their position in the
/// first `k` axes with those of `values`, of shape `indices[..] ++ tensor[k..]`. Returns a new tensor.
///
/// # Errors
///
/// As [`scatter`].
pub fn scatter_nd(
    client: &Client,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
) -> Result<TensorHandle, KernelError> {
    Scatter::slices(client, tensor, indices, values, update)?.run(None)
}

/// [`scatter_nd`] by a plan of the caller's choice, which cannot change the result.
///
/// # Errors
///
/// As [`scatter_planned`].
pub fn scatter_nd_planned(
    client: &Client,
    tensor: TensorHandle,
    indices: TensorHandle,
    values: TensorHandle,
    update: Update,
    plan: Plan,
) -> Result<TensorHandle, KernelError> {
    Scatter::slices(client, tensor, indices, values, update)?.run(Some(plan))
}

impl Scatter<'_> {
    /// Launches the given plan, or the one that [`plan::plan`] chooses.
    fn run(self, plan: Option<Plan>) -> Result<TensorHandle, KernelError> {
        let Some(problem) = self.problem() else { return Ok(self.copy()) };
        let kernel = self.kernel;
        let chosen = plan.unwrap_or_else(|| plan::plan(&problem, Machine::of(self.client)));
        if let Some(refused) = chosen.refuses(&problem) {
            let reason = match plan {
                Some(_) => refused,
                None => format!("{problem:?} has more values than a launch takes; update in several calls"),
            };
            return Err(KernelError::Plan { kernel, reason });
        }
        Ok(match chosen {
            Plan::BruteForce => self.brute_force(&problem),
            Plan::Privatised => self.privatised(&problem),
            Plan::Segmented(sort) => self.segmented(&problem, sort),
        })
    }
}
