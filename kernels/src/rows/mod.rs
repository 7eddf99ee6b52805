//! Programs that reduce rows: element-wise operations, and reductions along the last axis between them, in one kernel.
//!
//! Softmax, layer norm and their like: each element is read once and each result written once.
//!
//! # Order contract
//!
//! The program is one of [`elementwise`](crate::elementwise), and each of its instructions has that module's contract.
//! [`Reduce`](crate::elementwise::Instruction::Reduce) has that of [`reduce`](crate::reduce): the elements of a row are
//! `x[0..n]`, in the [columns order](crate::order); a mean is divided once by `n`. A result of a half type is
//! [rounded](crate::elementwise::Half::rounding) by the instruction after the one that computes it. So the bits are those of a
//! kernel for each operation.
//!
//! An element of a row at an index is that element, bit for bit: a bitwise or of it and of zeros. Of a half type it is read as f32
//! and written back, which may change what NaN it is. What is added there is added by
//! one sum, as in [`scatter`](crate::scatter) of one value; the other elements keep their bits. The first element at an end, and its
//! place, are those of [`reduce::extreme`](crate::reduce::extreme).
//!
//! # Layout
//!
//! A row is the elements along the last axis of the program's shape. An operand of length 1 along it has one value a row, and so
//! has what is computed of such operands, of scalars and of reductions: an instruction of these is computed once a row, by each of
//! its units, and its result has the program's shape with a last axis of 1.
//!
//! A row of up to 64 elements has a unit for each, a longer one 64 units, each with one column. The instructions are parted into
//! phases: those that need no reduction, those that need reductions of the first phase, and so on. What a phase reads that an
//! earlier one has read or computed stays in shared memory. At the end of a phase the first unit of a row chains its columns.
//!
//! What follows from the place of an element and from what is one value a row is computed by each phase that reads it.
//!
//! Rows are at most one block of the columns order, 4096 elements, and what is kept of them at most 32 KiB; [`RowProgram::fits`]
//! says whether a program has such rows.

mod cube;
mod kernel;
mod launch;
mod phases;
pub mod reference;

pub use launch::RowProgram;
