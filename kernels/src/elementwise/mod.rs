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
//! neighbouring elements where an operand can be read in vectors, else one. Axes that one stride walks in every operand
//! are joined; an element's place on those left is found by multiplication with inverses (T. Granlund and P. L.
//! Montgomery, "Division by Invariant Integers using Multiplication", 1994), since drivers divide lane by lane.

mod kernel;
mod program;
pub mod reference;

pub use program::{Binary, Comparison, Condition, Instruction, IntBinary, Logic, Program, Unary, Value};

use crate::buffer::unwritten;
use crate::view::{broadcast_strides, is_dense_in_vectors, join};
use crate::{KernelError, device, grid};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use cubecl::zspace::{Shape, Strides};
use kernel::{Axis, AxisLaunch, Reading};
pub(crate) use kernel::{Form, Inputs, InputsLaunch, Outputs, OutputsLaunch, compute, compute_four};
use std::sync::Arc;

const KERNEL: &str = "elementwise";

/// The operands of one launch of a [`Program`].
#[derive(Debug)]
pub struct Operands {
    /// f32 and i32 tensors, by the index that [`Value::Input`] names.
    pub words: Vec<TensorHandle>,
    /// Bool tensors in their storage type, by the index that [`Condition::Input`] names.
    pub conditions: Vec<TensorHandle>,
    /// The bits of scalars, by the index that [`Value::Scalar`] names.
    pub scalars: Vec<u32>,
}

/// The results of one launch of a [`Program`], in the order of its outputs.
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
/// [`KernelError::Device`] when the device has no cubes of [`grid::UNITS`] units.
pub fn run(
    client: &Client,
    program: &Arc<Program>,
    shape: &[usize],
    operands: Operands,
    condition_dtype: ElemType,
) -> Result<Results, KernelError> {
    let bound = Bound::new(client, program, shape, operands, condition_dtype)?;
    if bound.elements > 0 {
        device::require_units(client, KERNEL, grid::UNITS)?;
        bound.launch(client);
    }
    Ok(bound.results)
}

/// A program on the operands it runs on, and the memory for its results.
pub(crate) struct Bound {
    program: Arc<Program>,
    operands: Operands,
    /// Joined axes.
    shape: Vec<usize>,
    elements: usize,
    condition_dtype: ElemType,
    results: Results,
}

impl Bound {
    pub(crate) fn new(
        client: &Client,
        program: &Arc<Program>,
        shape: &[usize],
        operands: Operands,
        condition_dtype: ElemType,
    ) -> Result<Self, KernelError> {
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
        let (operands, shape) = operands.broadcast(shape)?.joined(shape);
        Ok(Self { program: program.clone(), operands, shape, elements, condition_dtype, results })
    }

    pub(crate) fn into_results(self) -> Results {
        self.results
    }

    /// The storage type of bool tensors.
    pub(crate) fn condition_dtype(&self) -> ElemType {
        self.condition_dtype
    }

    fn launch(&self, client: &Client) {
        let (words, conditions) = self.readings();
        // The four elements of a unit are in one row, or all operands are dense.
        let fours = words.iter().chain(&conditions).any(|reading| reading.is_vector());
        if self.elements.is_multiple_of(4) && fours {
            let fours = self.elements / 4;
            let (count, dim) = grid::grid(fours);
            let (inputs, outputs, form) = self.in_fours();
            // SAFETY: units beyond `fours` stop; offsets of operands come from strides checked against the shape, and
            // every output holds as many elements; what is read in vectors begins at a multiple of four elements, and
            // buffers begin at one of more bytes than a vector has.
            unsafe {
                kernel::elementwise_fours::launch_unchecked(
                    client,
                    count,
                    dim,
                    inputs,
                    outputs,
                    fours as u32,
                    form,
                    self.condition_dtype,
                );
            }
        } else {
            let (count, dim) = grid::grid(self.elements);
            let (inputs, outputs, form) = self.in_singles();
            // SAFETY: as above, for one element of a unit.
            unsafe {
                kernel::elementwise::launch_unchecked(
                    client,
                    count,
                    dim,
                    inputs,
                    outputs,
                    self.elements as u32,
                    form,
                    self.condition_dtype,
                );
            }
        }
    }

    /// How a unit that computes four elements reads the words, and the conditions.
    fn readings(&self) -> (Vec<Reading>, Vec<Reading>) {
        let all = |operands: &[TensorHandle]| {
            operands.iter().map(|operand| reading(&self.shape, operand.strides())).collect::<Vec<_>>()
        };
        (all(&self.operands.words), all(&self.operands.conditions))
    }

    /// The arguments of a kernel whose units compute one element at a time.
    pub(crate) fn in_singles<B: Int>(&self) -> (InputsLaunch<B>, OutputsLaunch<B>, Form) {
        let Self { operands, results, .. } = self;
        let inputs = InputsLaunch::new(
            sequence(operands.words.clone()),
            sequence(vec![]),
            sequence(operands.conditions.clone()),
            sequence(vec![]),
            scalars(&operands.scalars),
            axes(&self.shape),
            0,
        );
        let outputs = OutputsLaunch::new(
            sequence(results.words.clone()),
            sequence(vec![]),
            sequence(results.conditions.clone()),
            sequence(vec![]),
        );
        let (words, conditions) = self.readings();
        (inputs, outputs, Form { program: self.program.clone(), words, conditions })
    }

    /// The arguments of a kernel whose units compute four elements at a time. Elements are a multiple of four.
    pub(crate) fn in_fours<B: Int>(&self) -> (InputsLaunch<B>, OutputsLaunch<B>, Form) {
        let Self { operands, results, .. } = self;
        let (words, conditions) = self.readings();
        let (word_fours, single_words) = parted(&operands.words, &words);
        let (condition_fours, single_conditions) = parted(&operands.conditions, &conditions);
        let inputs = InputsLaunch::new(
            sequence(single_words),
            sequence(word_fours),
            sequence(single_conditions),
            sequence(condition_fours),
            scalars(&operands.scalars),
            axes(&self.shape),
            0,
        );
        let outputs = OutputsLaunch::new(
            sequence(vec![]),
            sequence(results.words.clone()),
            sequence(vec![]),
            sequence(results.conditions.clone()),
        );
        (inputs, outputs, Form { program: self.program.clone(), words, conditions })
    }
}

impl Operands {
    /// The operands with the strides that broadcast them to `shape`.
    fn broadcast(self, shape: &[usize]) -> Result<Self, KernelError> {
        let all = |tensors: Vec<TensorHandle>| {
            tensors.into_iter().map(|tensor| broadcast(tensor, shape)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { words: all(self.words)?, conditions: all(self.conditions)?, scalars: self.scalars })
    }

    /// The operands over as few axes as their strides allow, and the sizes of these: at least one axis, and no axis of
    /// size 1 among several.
    fn joined(self, shape: &[usize]) -> (Self, Vec<usize>) {
        let strides: Vec<&[usize]> =
            self.words.iter().chain(&self.conditions).map(|tensor| &tensor.strides()[..]).collect();
        let axes = join(0..shape.len(), shape, &strides);
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
}

/// Whether `strides` are those of a dense tensor of `shape`.
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
    let dense = is_dense_in_vectors(4, strides[innermost], strides[..innermost].iter().copied());
    match strides[innermost] {
        0 if whole_fours => Reading::One,
        _ if whole_fours && dense => Reading::Row,
        _ => Reading::Scattered,
    }
}

/// The operands that are read in vectors, and the others.
fn parted(operands: &[TensorHandle], readings: &[Reading]) -> (Vec<TensorHandle>, Vec<TensorHandle>) {
    let those = |vector: bool| {
        let chosen = operands.iter().zip(readings).filter(|(_, reading)| reading.is_vector() == vector);
        chosen.map(|(operand, _)| operand.clone()).collect()
    };
    (those(true), those(false))
}

fn sequence<T: LaunchArg<RuntimeArg = TensorArg>>(tensors: Vec<TensorHandle>) -> SequenceArg<T> {
    let mut arguments = SequenceArg::new();
    tensors.into_iter().for_each(|tensor| arguments.push(tensor.into_arg()));
    arguments
}

fn scalars(values: &[u32]) -> SequenceArg<u32> {
    let mut arguments = SequenceArg::new();
    values.iter().for_each(|&value| arguments.push(value));
    arguments
}

fn axes(shape: &[usize]) -> SequenceArg<Axis> {
    let mut arguments = SequenceArg::new();
    shape.iter().for_each(|&size| arguments.push(AxisLaunch::of(size as u32)));
    arguments
}

/// `operand` with the strides with which it broadcasts to `shape`.
fn broadcast(operand: TensorHandle, shape: &[usize]) -> Result<TensorHandle, KernelError> {
    let Some(strides) = broadcast_strides(operand.shape(), operand.strides(), shape) else {
        return Err(mismatch(operand.shape(), shape));
    };
    let dtype = operand.dtype;
    Ok(TensorHandle::new(operand.handle, Shape::from(shape.to_vec()), Strides::from(strides), dtype))
}

fn mismatch(operand: &[usize], shape: &[usize]) -> KernelError {
    KernelError::Shape {
        kernel: KERNEL,
        reason: format!("an operand of shape {operand:?} does not broadcast to {shape:?}"),
    }
}
