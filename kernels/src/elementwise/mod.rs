//! Several element-wise operations in one kernel, with the bits of one kernel each.
//!
//! # Order contract
//!
//! A [`Program`] is a list of instructions on words of 32 bits, read as f32 or i32, and on conditions. Each float
//! instruction is one IEEE operation, rounded on its own: `r = op(a, b)`. No instruction is merged with another,
//! whatever the program: the value of an element does not depend on which operations share a kernel, and a sequence of
//! operations may be cut anywhere. A select keeps every bit of the word it chooses.
//!
//! f16 and bf16 are computed in f32, and each operation is rounded once to the type, to nearest, ties to even: `r =
//! round(op(a, b))`, by integers, so that no device's cast decides. Of sums, differences, products, quotients and square
//! roots that is the nearest number of the half type to the exact result: f32 has 24 digits, at least `2 p + 2` of types
//! of p = 11 and p = 8 digits, so that no result is so near to a tie of the half type that its f32 is the tie (S. A.
//! Figueroa, "When is double rounding innocuous?", 1995). A subnormal result of p digits has an f32 of 16 digits more,
//! which is enough for the quotient of two numbers of 8 digits, and exact for a product.
//!
//! The remainder of floats is exact, by integers, but for the one sum that gives it the divisor's sign.
//!
//! Compilers would merge them (`a * b + c` to a fused multiply-add, `a * b + a * c` to `a * (b + c)`, `x * c1 * c2` to
//! one product). So each float result passes through an optimisation barrier: its bits are combined by exclusive or
//! with a zero that only the launch knows. The cost is one integer instruction; element-wise kernels wait for memory.
//! Integer instructions are exact and wrap: kernels compute them unsigned, whose overflow every language defines. Those that
//! languages leave undefined have one result, of every type: what is divided by 0 gives 0, the least integer divided by -1
//! itself, a shift by as many bits as the type has or more 0, or -1 where a negative number goes to the right.
//!
//! # Layout
//!
//! The place of an element in its row is its index along the last axis of the program's shape, and no operation on floats.
//! An operand with a window has elements for a part of one axis of that shape alone, and is read there; whether an element
//! lies in it is found as its place is. Operands broadcast to the program's shape and may have any strides; results are
//! contiguous. A unit computes four neighbouring elements where their number, and that of the elements behind each window's
//! axis, is a multiple of four and an operand can be read in vectors, else one. Axes that one stride
//! covers in every operand are joined; an element's place on those left is found by multiplication with inverses (T.
//! Granlund and P. L. Montgomery, "Division by Invariant Integers using Multiplication", 1994), since drivers divide lane
//! by lane.

mod each;
mod integer;
mod integers;
mod kernel;
mod launch;
mod program;
pub mod reference;
mod remainder;
pub(crate) mod rounding;

pub use each::shares_launches;
pub use integers::of_integers;
pub(crate) use kernel::{
    Evaluated, Form, Inputs, InputsLaunch, Outputs, OutputsLaunch, Part, compute, evaluate, mask, word,
};
pub(crate) use launch::{Bound, Reused};
pub use launch::{Call, Operands, Results};
pub use program::{
    Binary, Comparison, Condition, Extent, Half, Instruction, IntBinary, Logic, Program, RowReduction, Unary, Value,
    Window,
};

use crate::KernelError;
use cubecl::prelude::*;
use std::sync::Arc;

/// The results of each program, with the bits of [`run`]. On a GPU several programs are in one launch, as many as it takes.
///
/// # Errors
///
/// As [`run`].
pub fn run_each(client: &Client, calls: Vec<Call<'_>>) -> Result<Vec<Results>, KernelError> {
    let programs = Bound::each(client, calls)?;
    each::run(client, &programs)?;
    Ok(programs.into_iter().map(Bound::into_results).collect())
}

/// Runs `program` on every element of `shape`.
///
/// `condition_dtype` is the storage type of bool tensors, read and written as 0 and 1.
///
/// # Errors
///
/// [`KernelError::Shape`] when an operand does not broadcast to `shape`, `shape` has more than `u32::MAX` elements, operands
/// and outputs are of two half types, the program has places in rows of one element, or an operand's window is none of the shape's, or
/// one along an axis of one element or with one element behind it;
/// [`KernelError::Device`] when the device has no cubes of [`UNITS`](crate::grid::UNITS) units.
pub fn run(
    client: &Client,
    program: &Arc<Program>,
    shape: &[usize],
    operands: Operands,
    condition_dtype: ElemType,
) -> Result<Results, KernelError> {
    run_donated(client, program, shape, operands, condition_dtype, &[])
}

/// As [`run`], with the same bits, and results in the memory of operands that the caller gives up ("donates"): a large result of
/// the shape and type of a dense word operand with an index in `donated` overwrites that, if no other handle has its memory. No
/// kernel that another thread has launched may still read such an operand, and none may read the result before this thread has
/// waited for the device: CubeCL has a thread wait for what another one has launched only if it has not since the memory was
/// reserved.
///
/// # Panics
///
/// When an index is no word operand's, or is there twice.
///
/// # Errors
///
/// As [`run`].
pub fn run_donated(
    client: &Client,
    program: &Arc<Program>,
    shape: &[usize],
    operands: Operands,
    condition_dtype: ElemType,
    donated: &[usize],
) -> Result<Results, KernelError> {
    let bound = Bound::donated(client, Call { program, shape, operands, condition_dtype }, donated)?;
    bound.run(client)?;
    Ok(bound.into_results())
}
