//! Indexed updates: `scatter`, `select_assign` and `scatter_nd`.
//!
//! # Order contract
//!
//! A source is one value with the index of its destination. Its **position** `p` is its place along the scattered axis, or
//! the row-major place of its index tuple ([`Addressing::Tuples`]); `n` is the number of positions. For a destination element `t`, let `v[p]` be the value at position `p` if its index names `t`, and absent
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
//! [`Plan`] has four algorithms, with equal bits. `e` is the number of destination elements, `m` that of values, and
//! `b = ceil(n / 1024)` that of blocks of positions. A column is all positions, or all rows, at one place of `[outer, inner]`.
//!
//! | plan | who computes | reads | scratch | launches |
//! |---|---|---|---|---|
//! | `BruteForce` | one unit per destination; it reads every index of its column | `e n` | none | 1 |
//! | `Privatised` | one unit per block of positions and column, with a total of its own for each row; `Add` only | `m + b e` | `b e` totals | 2 |
//! | `SortedBlocks` | a cube per block of positions and column, or block alone where columns share indices: sorts the block by row in shared memory, then one unit per row reduces its run; `Add` only, or one block | `m + b e` | `b e` totals, none for one block | 1 or 2 |
//! | `Segmented` | sort by destination, CSR row offsets, then one unit per destination reduces its segment | `m + e` | 16 bytes a key, a total for every 16 keys, for fewer beyond 2^20 positions | 3 or 4 a radix pass, and 2 to 5 (3 for a tensor of one axis) |
//!
//! No unit loops more than [`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS) times in a launch; a plan that would is refused.

mod brute_force;
mod combine;
mod operands;
pub mod plan;
mod privatised;
pub mod reference;
mod segmented;
mod sorted_blocks;
mod update;

pub use operands::{Addressing, Operands};
pub use plan::{Indexed, Plan, Problem};
pub use update::Update;

use crate::device::Machine;
use crate::index_check::{self, Flag};
use crate::planned::require_plan;
use crate::{KernelError, subnormals};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use operands::Scatter;

/// Updates a tensor with values, by `plan`, or by the one that [`plan::plan`] chooses; no plan changes the result. Returns a
/// new tensor.
///
/// # Errors
///
/// Shapes that do not fit together or that 32-bit indices do not reach, an element type without a kernel on this device, a
/// plan that does not apply, and more sources than any plan takes ([`KernelError::Plan`]).
pub fn update(
    client: &Client,
    addressing: Addressing,
    operands: Operands,
    update: Update,
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    Scatter::new(client, addressing, operands, update)?.by(addressing.name(), plan, None)
}

/// The same, which sets `flag` if an index, or a part of a tuple, is outside its axis: in the update's own kernel where that reads
/// each index, or else by a [check](crate::index_check::check) beside it.
///
/// # Errors
///
/// As [`update`].
pub fn update_checked(
    client: &Client,
    addressing: Addressing,
    operands: Operands,
    update: Update,
    plan: Option<Plan>,
    flag: Flag<'_>,
) -> Result<TensorHandle, KernelError> {
    let (tensor, indices) = (operands.tensor.shape().to_vec(), operands.indices.clone());
    let scatter = Scatter::new(client, addressing, operands, update)?;
    let check = Check { sizes: addressing.sizes(&tensor, indices.shape()), indices, flag };
    scatter.by(addressing.name(), plan, Some(check))
}

/// Which indices are checked against which sizes.
struct Check<'a> {
    indices: TensorHandle,
    sizes: Vec<usize>,
    flag: Flag<'a>,
}

impl<'a> Scatter<'a> {
    fn by(
        mut self,
        kernel: &'static str,
        plan: Option<Plan>,
        check: Option<Check<'a>>,
    ) -> Result<TensorHandle, KernelError> {
        let (client, problem) = (self.client, self.problem);
        let beside = |check: Option<Check<'a>>| {
            check.map_or(Ok(()), |Check { indices, sizes, flag }| index_check::check(client, indices, &sizes, flag))
        };
        if problem.elements() == 0 || problem.positions == 0 {
            beside(check)?;
            return Ok(self.copy());
        }
        let chosen = || match subnormals::is_kept(client) {
            true => plan::of_few_operations(&problem, Machine::of(client)),
            false => plan::plan(&problem, Machine::of(client)),
        };
        let Some(plan) = plan.or_else(chosen) else {
            let reason = format!("{problem:?} has more values than a launch takes; update in several calls");
            return Err(KernelError::Plan { kernel, reason });
        };
        require_plan(kernel, &plan, plan.refuses(&problem))?;
        match (&check, plan) {
            // Tuples are rows by now, which do not tell which part is outside; and a sort has many kernels that read keys.
            (Some(Check { sizes, flag, .. }), Plan::BruteForce | Plan::Privatised | Plan::SortedBlocks)
                if sizes.len() == 1 =>
            {
                self.flag = Some(*flag);
            }
            _ => beside(check)?,
        }
        Ok(match plan {
            Plan::BruteForce => self.brute_force(),
            Plan::Privatised => self.privatised(),
            Plan::SortedBlocks => self.sorted_blocks(),
            Plan::Segmented(sort) => {
                let sorted = self.sort(sort);
                self.reduce(&sorted)
            }
        })
    }
}
