//! Reductions over any set of axes, in one order.
//!
//! # Order contract
//!
//! The elements of one output are numbered `x[0..n]`, row-major over the reduced axes in ascending axis order. One
//! pass cuts them into blocks of 4096; a block is read as rows of 64, each of its 64 columns is one ascending chain,
//! and the columns' values are one ascending chain:
//!
//! ```text
//! pass(x)[b] = chain over c in 0..min(64, m) of chain over r with 64 r + c < m of x[4096 b + 64 r + c]
//!              where m = min(4096, n - 4096 b)
//! chain of v = (((v[0] + v[1]) + v[2]) + ..)
//! while n > 1: x = pass(x)
//! ```
//!
//! A chain starts from its first value, so that a sum of one element is that element, -0 included. Up to 64 elements
//! are one plain chain. The order depends on `n` alone, which makes it the same for every layout of the input.
//!
//! * `sum`, `prod`: that order with `+` or `*`. Nothing is contracted: no kernel here has a product that feeds a sum.
//! * `mean`: the sum, divided once by `n` (rounded to the accumulator's type).
//! * f16 and bf16 are widened to f32, stay f32 between passes and are rounded once at the end. f32 and f64 are
//!   their own accumulators. i8, i16, u8 and u16 accumulate in 32 bits; integers wrap, and their mean truncates.
//! * A NaN in a sum, product or mean gives a NaN; its sign and payload are the device's.
//! * `max`, `min`, `max_abs`, `any`, `all` do not depend on order at all. Floats are compared as integers, so that no
//!   driver's rule for NaN, -0 or subnormals comes in: **a NaN anywhere gives the quiet NaN `0x7fc00000`**, and -0 is
//!   below +0. `any` and `all` take what is not zero for true and give 0 or 1.
//! * `argmax`, `argmin` and their pairs with values: see [`extreme`].
//!
//! The empty sum is +0, the empty product 1, the empty mean NaN for floats, the empty `any` 0 and the empty `all` 1;
//! other empty reductions are refused, also where there is no output to put them in.
//!
//! The elements may come from a program of [`elementwise`](crate::elementwise), which computes each where it is read
//! ([`fold_program`]): the order is the same, and each result of the program passes through that module's wall before it
//! is added.
//!
//! Cost: `n` reads an output and one launch for each factor of 4096 of `n`; axes that do not join to two loops are
//! copied first. A unit walks at most one block, well below [`MAX_ITERATIONS`](crate::grid::MAX_ITERATIONS).
//!
//! Guarantee: run to run for everything. The same bits on every device for what is integer or compared, and for `sum`
//! and `prod` where the device rounds correctly, keeps subnormals and does not reassociate; for `mean` where it also
//! divides correctly rounded.

pub mod extreme;
pub(crate) mod kernel;
pub mod plan;
pub mod reference;

use crate::device::Machine;
use crate::elementwise::{Bound, InputsLaunch, Operands, OutputsLaunch, Program, Results};
use crate::order::{COLUMNS, COLUMNS_BLOCK as BLOCK};
use crate::{KernelError, buffer, grid};
use cubecl::ir::{ElemType, FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::{TensorHandle, into_contiguous};
use kernel::GeometryLaunch;
use kernel::source::Source;
use plan::{Plan, View};
use std::sync::Arc;

/// What a fold computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The sum divided by the number of elements.
    Mean,
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
    /// The largest magnitude. That of the smallest signed integer wraps to itself.
    MaxAbs,
    /// Whether some element is not zero.
    Any,
    /// Whether no element is zero.
    All,
}

impl Operation {
    /// The name errors carry.
    fn name(self) -> &'static str {
        match self {
            Self::Sum => "reduce::sum",
            Self::Prod => "reduce::prod",
            Self::Mean => "reduce::mean",
            Self::Max => "reduce::max",
            Self::Min => "reduce::min",
            Self::MaxAbs => "reduce::max_abs",
            Self::Any => "reduce::any",
            Self::All => "reduce::all",
        }
    }

    /// The type in which elements of `dtype` are folded; `None` where the operation has no version for it.
    pub(crate) fn accumulator(self, dtype: ElemType) -> Option<ElemType> {
        let compared = matches!(self, Self::Max | Self::Min | Self::MaxAbs);
        let logical = matches!(self, Self::Any | Self::All);
        match dtype {
            ElemType::Float(_) if logical => None,
            ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16) => match compared {
                true => Some(ElemType::Int(IntKind::I32)),
                false => Some(ElemType::Float(FloatKind::F32)),
            },
            ElemType::Float(FloatKind::F64) => match compared {
                true => Some(ElemType::Int(IntKind::I64)),
                false => Some(dtype),
            },
            ElemType::Int(_) | ElemType::UInt(_) if logical => Some(ElemType::UInt(UIntKind::U32)),
            ElemType::Int(IntKind::I64) | ElemType::UInt(UIntKind::U64) => Some(dtype),
            ElemType::Int(_) => Some(ElemType::Int(IntKind::I32)),
            ElemType::UInt(_) => Some(ElemType::UInt(UIntKind::U32)),
            _ => None,
        }
    }
}

/// The sum over `axes`, which keep size one.
///
/// # Errors
///
/// As [`fold`].
pub fn sum(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
    fold(client, Operation::Sum, input, axes, None)
}

/// The product over `axes`, which keep size one.
///
/// # Errors
///
/// As [`fold`].
pub fn prod(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
    fold(client, Operation::Prod, input, axes, None)
}

/// The mean over `axes`, which keep size one; of integers truncated towards zero.
///
/// # Errors
///
/// As [`fold`].
pub fn mean(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
    fold(client, Operation::Mean, input, axes, None)
}

/// The largest element over `axes`, which keep size one.
///
/// # Errors
///
/// As [`fold`].
pub fn max(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
    fold(client, Operation::Max, input, axes, None)
}

/// The smallest element over `axes`, which keep size one.
///
/// # Errors
///
/// As [`fold`].
pub fn min(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
    fold(client, Operation::Min, input, axes, None)
}

/// The largest magnitude over `axes`, which keep size one.
///
/// # Errors
///
/// As [`fold`].
pub fn max_abs(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
    fold(client, Operation::MaxAbs, input, axes, None)
}

/// Whether some element over `axes` is not zero, as 0 or 1 of the input's type.
///
/// # Errors
///
/// As [`fold`].
pub fn any(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
    fold(client, Operation::Any, input, axes, None)
}

/// Whether no element over `axes` is zero, as 0 or 1 of the input's type.
///
/// # Errors
///
/// As [`fold`].
pub fn all(client: &Client, input: TensorHandle, axes: &[usize]) -> Result<TensorHandle, KernelError> {
    fold(client, Operation::All, input, axes, None)
}

/// Any of the above, with every pass on `forced` instead of the [planned](plan::plan_fold) cube.
///
/// # Errors
///
/// Refuses axes that the tensor does not have, a tensor that 32-bit indices do not reach, extremes of no elements and means
/// of no integers, element types that the device does not compute, and a forced cube that it does not have.
pub fn fold(
    client: &Client,
    operation: Operation,
    input: TensorHandle,
    axes: &[usize],
    forced: Option<Plan>,
) -> Result<TensorHandle, KernelError> {
    let name = operation.name();
    let dtype = input.dtype;
    let accumulator = operation.accumulator(dtype).filter(|&a| {
        let properties = client.properties();
        properties.supports_type(dtype) && properties.supports_type(a)
    });
    let Some(accumulator) = accumulator else {
        return Err(KernelError::Dtype { kernel: name, dtype, remedy: "cast the tensor to another type" });
    };
    let (reduced, shape) = reduced_shape(name, input.shape(), input.strides(), axes)?;
    let n = (0..reduced.len()).filter(|&i| reduced[i]).map(|i| input.shape()[i]).product::<usize>();
    if n == 0 {
        return empty(client, operation, dtype, shape);
    }
    if operation == Operation::Mean && accumulator == ElemType::Int(IntKind::I32) && n > i32::MAX as usize {
        let reason = format!("mean of {n} elements of {dtype}, want at most {} to divide by", i32::MAX);
        return Err(KernelError::Shape { kernel: name, reason });
    }
    let outputs = shape.iter().product::<usize>();
    if outputs == 0 {
        return Ok(TensorHandle::new_contiguous(shape, client.empty(0), dtype));
    }

    let (source, view) = readable(client, input, &reduced);
    let passes = Passes { operation, accumulator, dtype, n, forced };
    let result = passes.run(client, First::Stored(&source), view)?;
    Ok(TensorHandle::new_contiguous(shape, result, dtype))
}

/// The fold over `axes` of the word of f32 that `program` [folds](Program::folded), which is computed where the fold
/// reads it. The result, and what else `program` gives, have the bits of [`elementwise::run`](crate::elementwise::run())
/// and a [`fold`] of what it writes. The other parameters are those of the two.
///
/// # Errors
///
/// Those of [`elementwise::run`](crate::elementwise::run()) and [`fold`].
///
/// # Panics
///
/// When `program` folds no word.
#[expect(clippy::too_many_arguments, reason = "those of a program and of a fold")]
pub fn fold_program(
    client: &Client,
    operation: Operation,
    program: &Arc<Program>,
    shape: &[usize],
    operands: Operands,
    condition_dtype: ElemType,
    axes: &[usize],
    forced: Option<Plan>,
) -> Result<(Results, TensorHandle), KernelError> {
    let folded = program.folded().expect("a program that folds a word");
    let dtype = ElemType::Float(FloatKind::F32);
    let strides = dense(shape);
    let (reduced, result) = reduced_shape(operation.name(), shape, &strides, axes)?;
    let view = match shape.contains(&0) {
        true => None,
        false => View::of(shape, &strides, &reduced),
    };
    let machine = Machine::of(client);
    let view = view.filter(|view| forced.is_some() || plan::computes(view, machine));
    let accumulator = operation.accumulator(dtype).expect("every fold but the logical ones has a version for f32");
    let Some(view) = view else {
        // Nothing to compute, axes for which the fold makes a copy anyway, or not worth it.
        let written = program.word_outputs().iter().position(|&index| index == folded);
        let mut program = Program::clone(program);
        if written.is_none() {
            program.output_word(folded);
        }
        let mut results = crate::elementwise::run(client, &Arc::new(program), shape, operands, condition_dtype)?;
        let word = match written {
            Some(output) => results.words[output].clone(),
            None => results.words.pop().expect("the word just added"),
        };
        let input = TensorHandle::new_contiguous(shape.to_vec(), word.handle, dtype);
        return Ok((results, fold(client, operation, input, axes, forced)?));
    };
    let bound = Bound::new(client, program, shape, operands, condition_dtype)?;
    let passes = Passes { operation, accumulator, dtype, n: view.axis as usize, forced };
    let folded = passes.run(client, First::Computed(&bound), view)?;
    Ok((bound.into_results(), TensorHandle::new_contiguous(result, folded, dtype)))
}

/// The strides of a dense tensor.
fn dense(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
}

/// What the first pass folds.
#[derive(Clone, Copy)]
enum First<'a> {
    Stored(&'a TensorHandle),
    Computed(&'a Bound),
}

/// A fold, pass after pass.
struct Passes {
    operation: Operation,
    accumulator: ElemType,
    dtype: ElemType,
    /// Elements of an output.
    n: usize,
    forced: Option<Plan>,
}

impl Passes {
    /// The dense results, one for each output of `view`.
    fn run(self, client: &Client, first: First<'_>, mut view: View) -> Result<Handle, KernelError> {
        let Self { operation, accumulator, dtype, n, forced } = self;
        let machine = Machine::of(client);
        let outputs = view.outputs as usize;
        let mut between = None;
        loop {
            let blocks = view.axis.div_ceil(BLOCK);
            let last = blocks == 1;
            let plan = forced.unwrap_or_else(|| plan::plan_fold(&view, machine));
            plan.require(client, operation.name(), COLUMNS, accumulator.size())?;
            let to = if last { dtype } else { accumulator };
            let target = TensorHandle::new_contiguous(
                vec![outputs, blocks as usize],
                client.empty(outputs * blocks as usize * to.size()),
                to,
            );
            // Only the last pass divides.
            let (step, divisor) = match operation {
                Operation::Mean if last => (operation, n),
                Operation::Mean => (Operation::Sum, 1),
                other => (other, 1),
            };
            let pass = Pass { operation: step, accumulator, view, plan, divisor };
            match &between {
                None => pass.launch(client, first, target.clone()),
                Some(source) => pass.launch(client, First::Stored(source), target.clone()),
            }
            if last {
                return Ok(target.handle);
            }
            (between, view) = (Some(target), View::rows(view.outputs, blocks));
        }
    }
}

/// Which axes are reduced, and the shape of the result.
fn reduced_shape(
    name: &'static str,
    shape: &[usize],
    strides: &[usize],
    axes: &[usize],
) -> Result<(Vec<bool>, Vec<usize>), KernelError> {
    if let Some(axis) = axes.iter().find(|&&axis| axis >= shape.len()) {
        let reason = format!("axis {axis} of a tensor of shape {shape:?}, want less than {}", shape.len());
        return Err(KernelError::Shape { kernel: name, reason });
    }
    let last = shape.iter().zip(strides).map(|(&size, &stride)| size.saturating_sub(1) * stride);
    let (elements, span) = (shape.iter().product::<usize>(), last.sum::<usize>());
    if elements.max(span) > u32::MAX as usize {
        let reason = format!("{elements} elements over {span} places in shape {shape:?}, want at most {}", u32::MAX);
        return Err(KernelError::Shape { kernel: name, reason });
    }
    let reduced: Vec<bool> = (0..shape.len()).map(|i| axes.contains(&i)).collect();
    let result = shape.iter().zip(&reduced).map(|(&size, &reduced)| if reduced { 1 } else { size }).collect();
    Ok((reduced, result))
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

/// The input as a view of two times two loops: as it lies where that is possible, else copied with the reduced axes
/// last.
fn readable(client: &Client, input: TensorHandle, reduced: &[bool]) -> (TensorHandle, View) {
    if let Some(view) = View::of(input.shape(), input.strides(), reduced) {
        return (input, view);
    }
    let (kept, gone): (Vec<usize>, Vec<usize>) = (0..reduced.len()).partition(|&i| !reduced[i]);
    let order: Vec<usize> = kept.iter().chain(&gone).copied().collect();
    let shape: Vec<usize> = order.iter().map(|&i| input.shape()[i]).collect();
    let strides: Vec<usize> = order.iter().map(|&i| input.strides()[i]).collect();
    let size = |axes: &[usize]| axes.iter().map(|&i| input.shape()[i]).product::<usize>() as u32;
    let view = View::rows(size(&kept), size(&gone));
    let dtype = input.dtype;
    let permuted = TensorHandle::new(input.handle, shape, strides, dtype);
    (into_contiguous(client, permuted.binding(), dtype), view)
}

/// One launch.
struct Pass {
    operation: Operation,
    accumulator: ElemType,
    view: View,
    plan: Plan,
    /// What a mean divides by: the elements of one output before the first pass.
    divisor: usize,
}

impl Pass {
    fn launch(self, client: &Client, first: First<'_>, target: TensorHandle) {
        let Self { operation, accumulator, view, plan, divisor } = self;
        let blocks = view.axis.div_ceil(BLOCK);
        let cubes = (view.outputs as usize * blocks as usize).div_ceil(plan.width as usize);
        let geometry = GeometryLaunch::of(&view, blocks);
        let cubes = grid::cubes(cubes);
        let dim = CubeDim::new_2d(plan.width, plan.groups);
        let divisor = InputScalar::new(divisor, accumulator);
        let fours = plan.fours && view.in_fours();
        // A kernel binds both sources, whichever it reads.
        let (stored, condition_dtype) = match first {
            First::Stored(source) => (source.clone(), ElemType::UInt(UIntKind::U32)),
            First::Computed(bound) => (buffer::unwritten(client, vec![4], target.dtype), bound.condition_dtype()),
        };
        let dtypes = [stored.dtype, accumulator, target.dtype, condition_dtype];
        if fours {
            let (inputs, outputs, source) = match first {
                First::Stored(_) => (InputsLaunch::none(), OutputsLaunch::none(), Source::Stored),
                First::Computed(bound) => {
                    let (inputs, outputs, form) = bound.in_fours();
                    (inputs, outputs, Source::Computed(form))
                }
            };
            // SAFETY: as below; what a unit reads of such a view are whole vectors.
            unsafe {
                kernel::dense::fold_dense_blocks::launch_unchecked(
                    client,
                    cubes,
                    dim,
                    stored.into_arg().into_buffer_arg(),
                    inputs,
                    outputs,
                    target.into_arg().into_buffer_arg(),
                    geometry,
                    divisor,
                    plan.width,
                    operation,
                    source,
                    dtypes,
                );
            }
            return;
        }
        if plan.fours && view.has_outputs_in_fours() && matches!(first, First::Stored(_)) {
            let [from, through, to, _] = dtypes;
            let units = (view.outputs as usize / 4 * blocks as usize).div_ceil(plan.width as usize);
            // SAFETY: as below, for four outputs a unit.
            unsafe {
                kernel::across::fold_blocks_of_four::launch_unchecked(
                    client,
                    grid::cubes(units),
                    dim,
                    stored.into_arg().into_buffer_arg(),
                    target.into_arg().into_buffer_arg(),
                    geometry,
                    divisor,
                    plan.width,
                    operation,
                    [from, through, to],
                );
            }
            return;
        }
        let (inputs, outputs, source) = match first {
            First::Stored(_) => (InputsLaunch::none(), OutputsLaunch::none(), Source::Stored),
            First::Computed(bound) => {
                let (inputs, outputs, form) = bound.in_singles();
                (inputs, outputs, Source::Computed(form))
            }
        };
        // SAFETY: a unit writes only where its output and block exist, at a place of its own, and reads only elements
        // of the view, which lie in `stored`, or number the elements of a program's shape: `reduced_shape` bounds the
        // last of them. Each element is read once, and what a program writes for it goes to a place of its own.
        unsafe {
            kernel::fold::fold_blocks::launch_unchecked(
                client,
                cubes,
                dim,
                stored.into_arg().into_buffer_arg(),
                inputs,
                outputs,
                target.into_arg().into_buffer_arg(),
                geometry,
                divisor,
                plan.width,
                plan.groups,
                view.axis_inner != view.axis,
                operation,
                source,
                dtypes,
            );
        }
    }
}
