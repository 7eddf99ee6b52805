//! Several element-wise operations in one kernel, with the bits of one kernel each.
//!
//! # Order contract
//!
//! A [`Program`] is a list of instructions on words of 32 bits, read as f32 or i32, and on conditions. Each float
//! instruction is one IEEE operation, rounded on its own: `r = op(a, b)`. No instruction is merged with another,
//! whatever the program: the value of an element does not depend on which operations share a kernel, and a sequence of
//! operations may be cut anywhere. A select keeps every bit of the word it chooses.
//!
//! Compilers would merge them (`a * b + c` to a fused multiply-add, `a * b + a * c` to `a * (b + c)`, `x * c1 * c2` to
//! one product). So each float result passes through an optimisation barrier: its bits are combined by exclusive or
//! with a zero that only the launch knows. The cost is one integer instruction; element-wise kernels wait for memory.
//! Integer instructions are exact and wrap: kernels compute them unsigned, whose overflow every language defines.
//!
//! # Layout
//!
//! Operands broadcast to the program's shape and may have any strides; results are contiguous. A unit computes four
//! neighbouring elements where their number is a multiple of four and an operand can be read in vectors, else one. Axes that one stride
//! covers in every operand are joined; an element's place on those left is found by multiplication with inverses (T.
//! Granlund and P. L. Montgomery, "Division by Invariant Integers using Multiplication", 1994), since drivers divide lane
//! by lane.

mod kernel;
mod launch;
mod program;
pub mod reference;

pub(crate) use kernel::{Form, Inputs, InputsLaunch, Outputs, OutputsLaunch, compute};
pub(crate) use launch::Bound;
pub use launch::{Operands, Results};
pub use program::{Binary, Comparison, Condition, Instruction, IntBinary, Logic, Program, Unary, Value};

use crate::KernelError;
use cubecl::prelude::*;
use std::sync::Arc;

/// Runs `program` on every element of `shape`.
///
/// `condition_dtype` is the storage type of bool tensors, read and written as 0 and 1.
///
/// # Errors
///
/// [`KernelError::Shape`] when an operand does not broadcast to `shape`, or `shape` has more than `u32::MAX` elements;
/// [`KernelError::Device`] when the device has no cubes of [`UNITS`](crate::grid::UNITS) units.
pub fn run(
    client: &Client,
    program: &Arc<Program>,
    shape: &[usize],
    operands: Operands,
    condition_dtype: ElemType,
) -> Result<Results, KernelError> {
    let bound = Bound::new(client, program, shape, operands, condition_dtype)?;
    bound.run(client)?;
    Ok(bound.into_results())
}
