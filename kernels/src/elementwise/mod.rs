//! Several element-wise operations in one kernel, with the bits of one kernel each.
//!
//! # Order contract
//!
//! A [`Program`] is a list of instructions on f32 values and on conditions. Each float instruction is one IEEE
//! operation, rounded on its own: `r = op(a, b)`. No instruction is merged with another, whatever the program. So the
//! value of an element does not depend on which operations share a kernel, and a run of operations may be cut anywhere.
//!
//! Compilers would merge them (`a * b + c` to a fused multiply-add, `a * b + a * c` to `a * (b + c)`, `x * c1 * c2` to
//! one product). So each float result passes through `opaque`: its bits, exclusive-or a zero that the
//! compiler cannot know, because the launch passes it in. The cost is one integer instruction; element-wise kernels
//! wait for memory.
//!
//! # Layout
//!
//! Operands broadcast to the program's shape and may have any strides. Results are contiguous.

mod kernel;
mod program;
pub mod reference;

pub use program::{Binary, Comparison, Condition, Instruction, Logic, Program, Unary, Value};

use crate::launch::unwritten;
use crate::{KernelError, device, launch};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use cubecl::zspace::{Shape, Strides};
use std::sync::Arc;

const KERNEL: &str = "elementwise";

/// The operands of one run of a [`Program`].
#[derive(Debug)]
pub struct Operands {
    /// f32 tensors, by the index that [`Value::Input`] names.
    pub floats: Vec<TensorHandle>,
    /// Bool tensors in their storage type, by the index that [`Condition::Input`] names.
    pub conditions: Vec<TensorHandle>,
    /// Scalars, by the index that [`Value::Scalar`] names.
    pub scalars: Vec<f32>,
}

/// The results of one run of a [`Program`], in the order of its outputs.
#[derive(Debug)]
pub struct Results {
    /// f32 tensors.
    pub floats: Vec<TensorHandle>,
    /// Bool tensors in the storage type asked for.
    pub conditions: Vec<TensorHandle>,
}

/// Runs `program` on every element of `shape`.
///
/// `condition_dtype` is the storage type of bool tensors, read and written as 0 and 1.
///
/// # Errors
///
/// [`KernelError::Shape`] when an operand does not broadcast to `shape`, or `shape` has more than `u32::MAX` elements;
/// [`KernelError::Device`] when the device has no cubes of [`launch::UNITS`] units.
pub fn run(
    client: &Client,
    program: &Arc<Program>,
    shape: &[usize],
    operands: Operands,
    condition_dtype: ElemType,
) -> Result<Results, KernelError> {
    let elements = shape.iter().product::<usize>();
    if u32::try_from(elements).is_err() {
        let reason = format!("{elements} elements are more than {}", u32::MAX);
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    let output = |dtype: ElemType| unwritten(client, shape.to_vec(), dtype);
    let float = ElemType::Float(cubecl::ir::FloatKind::F32);
    let results = Results {
        floats: program.float_outputs().iter().map(|_| output(float)).collect(),
        conditions: program.condition_outputs().iter().map(|_| output(condition_dtype)).collect(),
    };
    if elements == 0 {
        return Ok(results);
    }
    let mut linear = Vec::new();
    let mut floats = SequenceArg::new();
    for operand in operands.floats {
        floats.push(argument(operand, shape, &mut linear)?);
    }
    let mut conditions = SequenceArg::new();
    for operand in operands.conditions {
        conditions.push(argument(operand, shape, &mut linear)?);
    }
    let mut scalars = SequenceArg::new();
    operands.scalars.into_iter().for_each(|scalar| scalars.push(scalar));
    let mut dimensions = SequenceArg::new();
    shape.iter().for_each(|dimension| dimensions.push(*dimension as u32));
    let mut float_outputs = SequenceArg::new();
    results.floats.iter().for_each(|output| float_outputs.push(output.clone().into_arg()));
    let mut condition_outputs = SequenceArg::new();
    results.conditions.iter().for_each(|output| condition_outputs.push(output.clone().into_arg()));
    device::require_units(client, KERNEL, launch::UNITS)?;
    let (count, dim) = launch::grid(elements);
    // SAFETY: units beyond `elements` stop; offsets of operands come from strides checked against `shape`, and every
    // output holds `elements` elements.
    unsafe {
        kernel::elementwise::launch_unchecked(
            client,
            count,
            dim,
            floats,
            conditions,
            scalars,
            dimensions,
            float_outputs,
            condition_outputs,
            elements as u32,
            0,
            program.clone(),
            linear,
            condition_dtype,
        );
    }
    Ok(results)
}

/// `operand` with the strides with which it broadcasts to `shape`; notes in `linear` whether its elements lie in the
/// order of `shape`, one after the other.
fn argument(operand: TensorHandle, shape: &[usize], linear: &mut Vec<bool>) -> Result<TensorArg, KernelError> {
    let Some(missing) = shape.len().checked_sub(operand.shape().len()) else {
        return Err(mismatch(operand.shape(), shape));
    };
    let mut strides = vec![0; shape.len()];
    for (axis, (&size, &stride)) in operand.shape().iter().zip(operand.strides().iter()).enumerate() {
        match (size, shape[missing + axis]) {
            (1, _) => {}
            (size, wanted) if size == wanted => strides[missing + axis] = stride,
            _ => return Err(mismatch(operand.shape(), shape)),
        }
    }
    let mut expected = 1;
    let is_linear = shape.iter().zip(&strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || stride == expected;
        expected *= size;
        fits
    });
    linear.push(is_linear);
    let dtype = operand.dtype;
    Ok(TensorHandle::new(operand.handle, Shape::from(shape.to_vec()), Strides::from(strides), dtype).into_arg())
}

fn mismatch(operand: &[usize], shape: &[usize]) -> KernelError {
    KernelError::Shape {
        kernel: KERNEL,
        reason: format!("an operand of shape {operand:?} does not broadcast to {shape:?}"),
    }
}
