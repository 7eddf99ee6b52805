//! Indexed updates and indexed reads.
//!
//! # Order contract of the updates
//!
//! Let `t` be an element of the tensor and `v[0], .., v[n-1]` the values whose index names it, in **ascending order of
//! their source**: the position along the scattered axis for [`scatter`] and [`select_assign`], the row-major position
//! of the index tuple for [`scatter_nd`]. The result is
//!
//! ```text
//! level = v                                             # n terms
//! while level.len() > 1:                                # chunks of 64, the last may be shorter
//!     level = [ ((c[0] + c[1]) + c[2]) + ..  for c in level.chunks(64) ]
//! result = t + level[0]                                 # or t, bit for bit, when n == 0
//! ```
//!
//! with `+` standing for the update's operation, but for sums into few rows (below). The chunks are by rank among the
//! sources of one destination, so they depend on the indices alone. The operations:
//!
//! | update | `left + right` | the tree matters |
//! |---|---|---|
//! | `Assign` | `right` | no: the last source wins |
//! | `Add`, `Mul` | sum, product | for floats; integers wrap |
//! | `Min`, `Max` | `right` if it is NaN, or beyond `left` and `left` is not NaN; else `left` | no: the first of equal values (so of -0 and +0) wins, NaN wins over numbers, the last NaN over others |
//! | `Or` | 1 if either is not 0, else 0 | no |
//!
//! **Sums into few rows.** `Add` of floats with at most 256 rows along the scattered axis and more than 4096 sources goes
//! by runs of 512 consecutive sources, `v[a], .., v[b-1]` being the values of run `k` whose index names `t`:
//!
//! ```text
//! total[k] = ((-0 + v[a]) + v[a+1]) + ..                # -0 where the run has none
//! total    = sum of total[0], total[1], ..              # in the order of `reduce`
//! result   = t + total                                  # or t, bit for bit, where total is -0
//! ```
//!
//! Adding -0 changes no number. For [`scatter_nd`] the rows are those that its tuples tell apart.
//!
//! `f16` and `bf16` are widened to `f32`, the result is rounded once. All other types are computed as they are.
//!
//! An index outside its axis, negative ones among them, updates nothing in the updates and reads zero in the reads
//! ([`gather`], [`select`], [`gather_nd`]); [`bounds`] tells whether there was one.
//!
//! # Cost
//!
//! Sums into few rows take a launch for the totals, which are at most about half as many as the values, their sum's and
//! one more, and no sort. For all else [`plan`] has the choices. Few updates are walked by each destination element in
//! one launch; on software drivers, where they are few beside the elements, by each other, after a copy of the tensor.
//! Otherwise the sources are sorted by destination with stable integer passes, at `O(sources)` a pass and about 16 bytes
//! of scratch a source; whole rows are then folded without sorting them, so the width of a row does not enter the sort.
//!
//! Software drivers need few units, and pay for each access to memory. There a unit goes through a whole line in the order
//! of its sources, if lines are many, and keeps the tree of each of its rows: four accesses a value, and 8 bytes of scratch
//! an element, 4 more for each level of chunks that its sources may fill. Otherwise one pass puts the values of single
//! elements that are for one bin of rows side by side, and a unit goes through a bin like that: 8 bytes of scratch a source
//! and 8 a row, and 4 more a row for each level. The sources of longer rows, and those of single elements where they or the
//! rows named are few, are linked to a list for each row, at 4 bytes a source and a row. The row's elements go through it as
//! they are copied, or, where few rows of many have one, once the tensor is.
//!
//! No launch makes a unit loop more than [`MAX_ITERATIONS`](crate::launch::MAX_ITERATIONS) times: a plan of the caller's
//! choice that would is refused, as are more than about `2^31` sources.

pub(crate) mod accepts;
pub(crate) mod axes;
mod bins;
pub mod bounds;
mod gather;
pub(crate) mod kernel;
mod lines;
mod lists;
pub mod plan;
pub mod reference;
mod runs;
pub(crate) mod segment;
mod tree;
mod update;

pub use gather::{gather, gather_nd, select};
pub use plan::Plan;
pub use update::{scatter, scatter_nd, scatter_nd_planned, scatter_planned, select_assign, select_assign_planned};

/// Terms that one chain of the order contract combines.
pub const CHUNK: usize = 64;

/// Consecutive sources whose values one chain adds, in sums into few rows.
pub const RUN: usize = 512;

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
