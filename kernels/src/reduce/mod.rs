//! Reductions over any set of axes, in one order.
//!
//! # Order contract
//!
//! The elements of one output are `x[0..n]`, row-major over the reduced axes in ascending axis order. They are combined
//! in the [columns order](crate::order), which depends on `n` alone: it is the same for every layout of the input.
//!
//! * `sum`, `prod`: that order with `+` or `*`. A sum of one element is that element, -0 included. Nothing is
//!   contracted: no kernel here has a product that feeds a sum.
//! * `mean`: the sum, divided once by `n` converted to the accumulator's type.
//! * f16 and bf16 are widened to f32, stay f32 between passes and are rounded once at the end, to nearest, as
//!   [`elementwise`](crate::elementwise) rounds. f32 and f64 are their own accumulators. i8, i16, u8 and u16 accumulate in
//!   32 bits; integers wrap, and their mean truncates.
//! * A NaN in a sum, product or mean gives a NaN; its sign and payload are the device's.
//! * `max`, `min`, `max_abs`, `any`, `all` do not depend on order at all. Floats are compared as integers, so that no
//!   driver's rule for NaN, -0 or subnormals matters: **a NaN anywhere gives the type's positive quiet NaN (f32
//!   `0x7fc00000`)**, and -0 is below +0. For `any` and `all` every element but zero is true; they give 0 or 1.
//! * `argmax`, `argmin` and their pairs with values: see [`extreme`].
//!
//! The empty sum is +0, the empty product 1, the empty mean NaN for floats, the empty `any` 0 and the empty `all` 1;
//! other empty reductions are refused, also where the result has no element.
//!
//! The elements may be the results of a program of [`elementwise`](crate::elementwise), computed where they are read
//! ([`reduce_program`]): the order is the same, and each result passes an optimisation barrier before it is added.
//!
//! # Cost
//!
//! A pass, which is one launch, reduces each block of [`COLUMNS_BLOCK`](crate::order::COLUMNS_BLOCK) = 4096 elements of an
//! output to one value; the next pass reduces these values, until one is left: one pass up to 4096 elements, two up to
//! 4096^2, three up to 2^32; one pass also where a cube has all blocks of an output. The first pass reads each element once. A unit reads one block at most, which is well below
//! [`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS). A tensor whose kept or reduced axes do not collapse to two strides each is
//! copied first.
//!
//! # Plans
//!
//! | first pass | a unit reduces | and reads at a time | used for |
//! |---|---|---|---|
//! | [`Single`](plan::Pass::Single) | a block, or some of its columns | one element | any layout |
//! | [`FourOutputs`](plan::Pass::FourOutputs) | the same of each of four outputs | one element of each | columns |
//! | [`ShortRows`](plan::Pass::ShortRows) | a row of at most 64 | elements of many rows, with its cube | short rows |
//! | [`AllBlocks`](plan::Pass::AllBlocks) | a column of a block, a cube all blocks | one element | rows of 2 to 4 blocks |
//! | [`FourElements`](plan::Pass::FourElements) | a block | four adjacent elements of an output | rows, on software drivers |
//!
//! Each can also compute a program's results where they read them. Later passes read single values of blocks.
//!
//! Guarantee: run to run for everything. The same bits on every device for what is integer or compared, and for `sum`
//! and `prod` where the device rounds correctly, keeps subnormals and does not reassociate; for `mean` where it also
//! divides correctly rounded.

mod each;
pub mod extreme;
mod kernel;
mod launch;
mod operands;
mod operation;
pub mod plan;
pub mod reference;
mod view;

pub(crate) use kernel::accumulator::{lift, lower, step};
pub use operation::Operation;

use crate::KernelError;
use crate::dtype::F32;
use crate::elementwise::{self, Bound, Call, Half, Program, Results};
use crate::error::require_shapes;
use cubecl::ir::{ElemType, IntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use each::Reduction;
use launch::{First, Passes};
use operands::{checked, reduced_shape, with_reduced_last};
use operation::accumulator_of;
use plan::{Kind, Plan, Problem, View};
use std::sync::Arc;

/// Defines a function for each operation, for callers that take one as a function.
macro_rules! functions_of_operations {
    ($($(#[$documentation:meta])* $name:ident = $operation:ident;)*) => {$(
        $(#[$documentation])*
        ///
        /// # Errors
        ///
        /// As [`reduce`].
        pub fn $name(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
            reduce(client, Operation::$operation, input, axes, None)
        }
    )*};
}

functions_of_operations! {
    /// The sum over `axes`, which keep size one.
    sum = Sum;
    /// The product over `axes`, which keep size one.
    prod = Prod;
    /// The mean over `axes`, which keep size one; of integers truncated towards zero.
    mean = Mean;
    /// The largest element over `axes`, which keep size one.
    max = Max;
    /// The smallest element over `axes`, which keep size one.
    min = Min;
    /// The largest magnitude over `axes`, which keep size one.
    max_abs = MaxAbs;
    /// Whether some element over `axes` is not zero, as 0 or 1 of the input's type.
    any = Any;
    /// Whether no element over `axes` is zero, as 0 or 1 of the input's type.
    all = All;
}

/// Any of the above over `axes`, which keep size one, launched by `plan`, or by the one that [`plan::plan`] chooses; no plan
/// changes the result.
///
/// # Errors
///
/// Refuses axes that the tensor does not have, a tensor that 32-bit indices do not reach, extremes of no elements and
/// means of no integers, element types that the device does not compute, and a plan that does not apply or whose cubes the
/// device does not have.
pub fn reduce(
    client: &Client,
    operation: Operation,
    input: TensorHandle,
    axes: &[usize],
    plan: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let name = operation.name();
    let dtype = input.dtype;
    let accumulator = accumulator_of(client, operation, dtype)?;
    let shape = reduced_shape(name, input.shape(), input.strides(), axes)?;
    let n = (0..shape.len()).filter(|i| axes.contains(i)).map(|i| input.shape()[i]).product::<usize>();
    if n == 0 {
        return empty(client, operation, dtype, shape);
    }
    require_shapes(
        name,
        !(operation == Operation::Mean && accumulator == ElemType::Int(IntKind::I32) && n > i32::MAX as usize),
        || format!("mean of {n} elements of {dtype}, want at most {} to divide by", i32::MAX),
    )?;
    if shape.contains(&0) {
        return Ok(TensorHandle::new_contiguous(shape, client.empty(0), dtype));
    }
    let (problem, in_place) = Problem::in_place(input.shape(), input.strides(), axes, Kind::Reduction);
    let plan = checked(client, name, plan, &problem)?;
    let input = if in_place { input } else { with_reduced_last(client, input, axes) };
    let passes = Passes { operation, accumulator, dtype, view: problem.view, plan };
    let result = passes.run(client, First::Stored(&input))?;
    Ok(TensorHandle::new_contiguous(shape, result, dtype))
}

/// The reduction over `axes` of the word of f32 that a program [reduces](Program::reduced), and what else the program gives,
/// launched by `plan`, or by the one that [`plan::plan`] chooses. They have the bits of
/// [`elementwise::run`](crate::elementwise::run()) and a [`reduce`] of what it writes.
///
/// # Errors
///
/// Those of [`elementwise::run`](crate::elementwise::run()) and [`reduce`].
///
/// # Panics
///
/// When the program reduces no word.
pub fn reduce_program(
    client: &Client,
    operation: Operation,
    input: Call<'_>,
    axes: &[usize],
    plan: Option<Plan>,
) -> Result<(Results, TensorHandle), KernelError> {
    let reduced = input.program.reduced().expect("a program that reduces a word");
    let strides = dense(input.shape);
    let name = operation.name();
    let shape = reduced_shape(name, input.shape, &strides, axes)?;
    if input.shape.contains(&0) {
        let (results, word) = written(client, input, reduced)?;
        return Ok((results, reduce(client, operation, word, axes, None)?));
    }
    let (problem, in_place) = Problem::in_place(input.shape, &strides, axes, Kind::ProgramReduction);
    let plan = checked(client, name, plan, &problem)?;
    let accumulator = accumulator_of(client, operation, F32)?;
    let passes = Passes { operation, accumulator, dtype: F32, view: problem.view, plan };
    if !plan.fuses || is_computed_apart(&input) {
        let (results, word) = written(client, input, reduced)?;
        let word = if in_place { word } else { with_reduced_last(client, word, axes) };
        let reduced = passes.run(client, First::Stored(&word))?;
        return Ok((results, TensorHandle::new_contiguous(shape, reduced, F32)));
    }
    let bound = Bound::new(client, input)?;
    let reduced = passes.run(client, First::Computed(&bound))?;
    Ok((bound.into_results(), TensorHandle::new_contiguous(shape, reduced, F32)))
}

/// A reduction of what a program computes.
#[derive(Debug)]
pub struct ReductionCall<'a> {
    /// What is done with the word that the program reduces.
    pub operation: Operation,
    /// The program and its operands.
    pub input: Call<'a>,
    /// The axes of its shape that are reduced, and keep size one.
    pub axes: &'a [usize],
    /// Whether the mean is wanted beside it. Of another operation than a sum there is none.
    pub mean: bool,
}

/// What a [`ReductionCall`] gives.
#[derive(Debug)]
pub struct Reduced {
    /// What else the program gives.
    pub results: Results,
    /// The reduction.
    pub reduced: TensorHandle,
    /// The mean of the same elements, of the same shape, with the bits of [`Operation::Mean`]: the sum, divided once by their number. `None`
    /// where it was not wanted, or the sum has had a launch of its own: the caller divides it.
    pub mean: Option<TensorHandle>,
}

/// [`reduce_program`] of each, with the same bits. On a GPU sums and products of few outputs and elements are in one launch, as many
/// as it takes.
///
/// # Errors
///
/// Those of [`reduce_program`].
///
/// # Panics
///
/// When a program reduces no word.
pub fn reduce_program_each(client: &Client, calls: Vec<ReductionCall<'_>>) -> Result<Vec<Reduced>, KernelError> {
    let mut views: Vec<_> = calls.iter().map(|call| view_side_by_side(client, call)).collect();
    if views.iter().flatten().count() == 1 {
        // By itself it has a plan of its own.
        views.fill(None);
    }
    let mut results: Vec<Option<Reduced>> = calls.iter().map(|_| None).collect();
    let (mut indices, mut shapes, mut programs, mut reductions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, (ReductionCall { operation, input, axes, mean }, view)) in calls.into_iter().zip(views).enumerate() {
        let Some(view) = view else {
            let (of_program, reduced) = alone(client, operation, input, axes)?;
            results[index] = Some(Reduced { results: of_program, reduced, mean: None });
            continue;
        };
        assert!(input.program.reduced().is_some(), "a program that reduces a word");
        shapes.push(reduced_shape(operation.name(), input.shape, &dense(input.shape), axes)?);
        programs.push(input);
        reductions.push((operation, view, mean && operation == Operation::Sum));
        indices.push(index);
    }
    let programs = Bound::each(client, programs)?.into_iter();
    let of = |((operation, view, mean), program)| Reduction { operation, view, program, mean };
    let reductions: Vec<_> = reductions.into_iter().zip(programs).map(of).collect();
    let reduced = each::run(client, &reductions)?;
    for (((index, shape), reduction), reduced) in indices.into_iter().zip(shapes).zip(reductions).zip(reduced) {
        let tensor = |handle| TensorHandle::new_contiguous(shape.clone(), handle, F32);
        let (reduced, mean) = reduced;
        let (reduced, mean) = (tensor(reduced), mean.map(tensor));
        results[index] = Some(Reduced { results: reduction.program.into_results(), reduced, mean });
    }
    Ok(results.into_iter().map(|result| result.expect("each has a result")).collect())
}

/// A reduction in launches of its own: of an operand by itself, if the program copies that.
fn alone(
    client: &Client,
    operation: Operation,
    input: Call<'_>,
    axes: &[usize],
) -> Result<(Results, TensorHandle), KernelError> {
    let operand = input.program.reduces_operand().map(|operand| &input.operands.words[operand]);
    match operand.filter(|operand| operand.dtype == F32 && operand.shape()[..] == *input.shape) {
        Some(operand) => Ok((Results::default(), reduce(client, operation, operand.clone(), axes, None)?)),
        None => reduce_program(client, operation, input, axes, None),
    }
}

/// The view of a reduction that shares a launch with others: `None` where the device has no such launches, or the kernel does not
/// have the operation or the program, or it is large enough for a launch of its own.
fn view_side_by_side(client: &Client, call: &ReductionCall<'_>) -> Option<View> {
    let ReductionCall { operation, input, axes, .. } = call;
    let may = elementwise::shares_launches(client)
        && matches!(operation, Operation::Sum | Operation::Prod)
        && !is_computed_apart(input)
        && !input.shape.contains(&0);
    if !may {
        return None;
    }
    let (problem, in_place) = Problem::in_place(input.shape, &dense(input.shape), axes, Kind::ProgramReduction);
    (in_place && problem.view.all_blocks() <= each::MOST_BLOCKS).then_some(problem.view)
}

/// Whether a launch before a reduction computes its program: kernels of reductions read no half types, nor windows, since a vector
/// has to lie in a window or outside of it, and theirs need not.
fn is_computed_apart(input: &Call<'_>) -> bool {
    let is_half = |operand: &TensorHandle| Half::of(operand.dtype).is_some();
    input.program.half().is_some() || input.operands.words.iter().any(is_half) || !input.program.windows().is_empty()
}

/// Runs a program that reduces the word `reduced`, and writes that word too: the program's results, and the word.
fn written(client: &Client, input: Call<'_>, reduced: usize) -> Result<(Results, TensorHandle), KernelError> {
    let Call { program, shape, operands, condition_dtype } = input;
    let output = program.word_outputs().iter().position(|&index| index == reduced);
    let mut program = Program::clone(program);
    if output.is_none() {
        program.output_word(reduced);
    }
    let mut results = elementwise::run(client, &Arc::new(program), shape, operands, condition_dtype)?;
    let word = match output {
        Some(output) => results.words[output].clone(),
        None => results.words.pop().expect("the word just added"),
    };
    Ok((results, TensorHandle::new_contiguous(shape.to_vec(), word.handle, F32)))
}

/// The strides of a dense tensor.
fn dense(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
}

/// The result of a reduction of no elements.
fn empty(
    client: &Client,
    operation: Operation,
    dtype: ElemType,
    shape: Vec<usize>,
) -> Result<TensorHandle, KernelError> {
    let value = match operation {
        Operation::Sum | Operation::Any => 0.0,
        Operation::Prod | Operation::All => 1.0,
        Operation::Mean if dtype.is_float() => f64::NAN,
        _ => {
            let reason = format!("no element to reduce into each of shape {shape:?}, want at least one");
            return Err(KernelError::Shape { kernel: operation.name(), reason });
        }
    };
    let value = InputScalar::new(value, dtype);
    let bytes = value.as_bytes().repeat(shape.iter().product());
    Ok(TensorHandle::new_contiguous(shape, client.create_from_slice(&bytes), dtype))
}
