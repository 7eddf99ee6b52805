//! Several element-wise operations in one kernel, with the bits of one kernel each.
//!
//! # Order contract
//!
//! A [`Program`] is a list of instructions on words of 32 bits, which they take for f32 or i32, and on conditions. Each
//! float instruction is one IEEE operation, rounded on its own: `r = op(a, b)`. No instruction is merged with another,
//! whatever the program. So the value of an element does not depend on which operations share a kernel, and a run of
//! operations may be cut anywhere. What only chooses a word keeps every bit of it.
//!
//! Compilers would merge them (`a * b + c` to a fused multiply-add, `a * b + a * c` to `a * (b + c)`, `x * c1 * c2` to
//! one product). So each float result passes through `opaque`: its bits, exclusive-or a zero that the
//! compiler cannot know, because the launch passes it in. The cost is one integer instruction; element-wise kernels
//! wait for memory. Integer instructions are exact and wrap, whatever a compiler makes of them: it sees unsigned ones,
//! whose overflow every language defines.
//!
//! # Layout
//!
//! Operands broadcast to the program's shape and may have any strides. Results are contiguous. A unit computes four
//! elements in a row, one after the other, where an operand can be read in vectors. Axes along which all operands go on
//! alike are joined to one, and those left are told apart without a division, which drivers do lane by lane.

mod kernel;
mod program;
pub mod reference;

pub use program::{Binary, Comparison, Condition, Instruction, Logic, Program, Unary, Value, Whole};

use crate::launch::unwritten;
use crate::{KernelError, device, launch};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use cubecl::zspace::{Shape, Strides};
use kernel::{Axis, AxisLaunch, Reading};
use std::sync::Arc;

const KERNEL: &str = "elementwise";

/// The operands of one run of a [`Program`].
#[derive(Debug)]
pub struct Operands {
    /// f32 and i32 tensors, by the index that [`Value::Input`] names.
    pub words: Vec<TensorHandle>,
    /// Bool tensors in their storage type, by the index that [`Condition::Input`] names.
    pub conditions: Vec<TensorHandle>,
    /// The bits of scalars, by the index that [`Value::Scalar`] names.
    pub scalars: Vec<u32>,
}

/// The results of one run of a [`Program`], in the order of its outputs.
#[derive(Debug)]
pub struct Results {
    /// Words, called u32: the program knows which are floats, and which integers.
    pub words: Vec<TensorHandle>,
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
    let word = ElemType::UInt(cubecl::ir::UIntKind::U32);
    let results = Results {
        words: program.word_outputs().iter().map(|_| output(word)).collect(),
        conditions: program.condition_outputs().iter().map(|_| output(condition_dtype)).collect(),
    };
    if elements == 0 {
        return Ok(results);
    }
    let (operands, shape) = operands.broadcast(shape)?.joined(shape);
    let shape = &shape[..];
    device::require_units(client, KERNEL, launch::UNITS)?;
    // Four elements of a unit lie in one row, or in one stretch of memory where all operands do.
    let readings = operands.readings(shape);
    if elements.is_multiple_of(4) && readings.iter().any(|reading| reading.is_vector()) {
        launch_fours(client, program, shape, operands, readings, &results, condition_dtype);
    } else {
        launch_elements(client, program, shape, operands, &results, condition_dtype);
    }
    Ok(results)
}

impl Operands {
    /// With the strides with which they broadcast to `shape`.
    fn broadcast(self, shape: &[usize]) -> Result<Self, KernelError> {
        let all = |tensors: Vec<TensorHandle>| {
            tensors.into_iter().map(|tensor| broadcast(tensor, shape)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { words: all(self.words)?, conditions: all(self.conditions)?, scalars: self.scalars })
    }

    /// The same elements in the same order, in as few axes as their strides allow, and their shape: one axis at least, and
    /// none of one element beside others.
    fn joined(self, shape: &[usize]) -> (Self, Vec<usize>) {
        let tensors = || self.words.iter().chain(&self.conditions);
        // The size of each axis, and the last of `shape`'s that it is made of.
        let mut axes: Vec<(usize, usize)> = Vec::new();
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let follows =
                |before: usize| tensors().all(|tensor| tensor.strides()[before] == tensor.strides()[axis] * size);
            match axes.last_mut() {
                Some(last) if follows(last.1) => *last = (last.0 * size, axis),
                _ => axes.push((size, axis)),
            }
        }
        let sizes = if axes.is_empty() { vec![1] } else { axes.iter().map(|axis| axis.0).collect() };
        let all = |tensors: Vec<TensorHandle>| {
            tensors
                .into_iter()
                .map(|tensor| {
                    let strides = if axes.is_empty() {
                        vec![0]
                    } else {
                        axes.iter().map(|axis| tensor.strides()[axis.1]).collect()
                    };
                    TensorHandle::new(tensor.handle, Shape::from(sizes.clone()), Strides::from(strides), tensor.dtype)
                })
                .collect()
        };
        (Self { words: all(self.words), conditions: all(self.conditions), scalars: self.scalars }, sizes)
    }

    /// How a unit that computes four elements reads the words, then the conditions.
    fn readings(&self, shape: &[usize]) -> Vec<Reading> {
        self.words.iter().chain(&self.conditions).map(|operand| reading(shape, operand.strides())).collect()
    }
}

/// Whether elements lie in the order of `shape`, one after the other.
fn is_linear(shape: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    shape.iter().zip(strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || stride == expected;
        expected *= size;
        fits
    })
}

/// How four elements of a tensor with `strides` are read; the axes of `shape` are joined.
fn reading(shape: &[usize], strides: &[usize]) -> Reading {
    if is_linear(shape, strides) {
        return Reading::Linear;
    }
    let innermost = shape.len() - 1;
    let whole_fours = shape[innermost].is_multiple_of(4);
    let begins = || strides[..innermost].iter().all(|stride| stride.is_multiple_of(4));
    match strides[innermost] {
        0 if whole_fours => Reading::One,
        1 if whole_fours && begins() => Reading::Row,
        _ => Reading::Scattered,
    }
}

/// A unit an element.
fn launch_elements(
    client: &Client,
    program: &Arc<Program>,
    shape: &[usize],
    operands: Operands,
    results: &Results,
    condition_dtype: ElemType,
) {
    let elements = shape.iter().product::<usize>();
    let linear =
        operands.words.iter().chain(&operands.conditions).map(|operand| is_linear(shape, operand.strides())).collect();
    let (count, dim) = launch::grid(elements);
    // SAFETY: units beyond `elements` stop; offsets of operands come from strides checked against `shape`, and every
    // output holds `elements` elements.
    unsafe {
        kernel::elementwise::launch_unchecked(
            client,
            count,
            dim,
            sequence(operands.words),
            sequence(operands.conditions),
            scalars(operands.scalars),
            axes(shape),
            sequence(results.words.clone()),
            sequence(results.conditions.clone()),
            elements as u32,
            0,
            program.clone(),
            linear,
            condition_dtype,
        );
    }
}

/// A unit four elements in a row.
fn launch_fours(
    client: &Client,
    program: &Arc<Program>,
    shape: &[usize],
    operands: Operands,
    mut word_readings: Vec<Reading>,
    results: &Results,
    condition_dtype: ElemType,
) {
    let condition_readings = word_readings.split_off(operands.words.len());
    let (word_fours, words) = parted(operands.words, &word_readings);
    let (condition_fours, conditions) = parted(operands.conditions, &condition_readings);
    let fours = shape.iter().product::<usize>() / 4;
    let (count, dim) = launch::grid(fours);
    // SAFETY: as above, for four elements of a unit; what is read in vectors begins at a multiple of four elements, and
    // buffers begin at one of more bytes than a vector has.
    unsafe {
        kernel::elementwise_fours::launch_unchecked(
            client,
            count,
            dim,
            sequence(words),
            sequence(word_fours),
            sequence(conditions),
            sequence(condition_fours),
            scalars(operands.scalars),
            axes(shape),
            sequence(results.words.clone()),
            sequence(results.conditions.clone()),
            fours as u32,
            0,
            program.clone(),
            word_readings,
            condition_readings,
            condition_dtype,
        );
    }
}

/// Those that are read in vectors, and the others.
fn parted(operands: Vec<TensorHandle>, readings: &[Reading]) -> (Vec<TensorHandle>, Vec<TensorHandle>) {
    let (fours, singles): (Vec<_>, Vec<_>) =
        operands.into_iter().zip(readings).partition(|(_, reading)| reading.is_vector());
    let tensors = |parted: Vec<(TensorHandle, &Reading)>| parted.into_iter().map(|(tensor, _)| tensor).collect();
    (tensors(fours), tensors(singles))
}

fn sequence<T: LaunchArg<RuntimeArg = TensorArg>>(tensors: Vec<TensorHandle>) -> SequenceArg<T> {
    let mut arguments = SequenceArg::new();
    tensors.into_iter().for_each(|tensor| arguments.push(tensor.into_arg()));
    arguments
}

fn scalars(values: Vec<u32>) -> SequenceArg<u32> {
    let mut arguments = SequenceArg::new();
    values.into_iter().for_each(|value| arguments.push(value));
    arguments
}

fn axes(shape: &[usize]) -> SequenceArg<Axis> {
    let mut arguments = SequenceArg::new();
    shape.iter().for_each(|&size| arguments.push(AxisLaunch::of(size as u32)));
    arguments
}

/// `operand` with the strides with which it broadcasts to `shape`.
fn broadcast(operand: TensorHandle, shape: &[usize]) -> Result<TensorHandle, KernelError> {
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
    let dtype = operand.dtype;
    Ok(TensorHandle::new(operand.handle, Shape::from(shape.to_vec()), Strides::from(strides), dtype))
}

fn mismatch(operand: &[usize], shape: &[usize]) -> KernelError {
    KernelError::Shape {
        kernel: KERNEL,
        reason: format!("an operand of shape {operand:?} does not broadcast to {shape:?}"),
    }
}
