//! Binds a program to its operands, and launches it.

use super::kernel::{self, Axis, AxisLaunch, Form, InputsLaunch, OutputsLaunch, Reading, Word};
use super::program::{Half, Program, Window};
use crate::buffer::{self, Unwritten, unwritten_each};
use crate::dtype::{F32, U32};
use crate::error::require_shapes;
use crate::known_answer;
use crate::quotient::Quotients;
use crate::view::{broadcast_strides, checked_elements, is_contiguous, is_in_vectors, join, require_reach};
use crate::{KernelError, device, grid, subnormals};
use cubecl::ir::IntKind;
use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::std::tensor::TensorHandle;
use cubecl::zspace::{Shape, Strides};
use std::sync::Arc;

pub(super) const KERNEL: &str = "elementwise";

/// A program on the operands it runs on.
#[derive(Debug)]
pub struct Call<'a> {
    /// The program.
    pub program: &'a Arc<Program>,
    /// The shape that it runs over.
    pub shape: &'a [usize],
    /// What it reads.
    pub operands: Operands,
    /// The storage type of bool tensors, read and written as 0 and 1.
    pub condition_dtype: ElemType,
}

/// The operands of one launch of a [`Program`].
#[derive(Debug)]
pub struct Operands {
    /// f32 and i32 tensors, and tensors of one half type, which are read as f32, by the index that [`Value::Input`](super::Value::Input) names.
    pub words: Vec<TensorHandle>,
    /// Bool tensors in their storage type, by the index that [`Condition::Input`](super::Condition::Input) names.
    pub conditions: Vec<TensorHandle>,
    /// The bits of scalars, by the index that [`Value::Scalar`](super::Value::Scalar) names.
    pub scalars: Vec<u32>,
}

/// The results of one launch of a [`Program`], in the order of its outputs.
#[derive(Debug, Default)]
pub struct Results {
    /// Words, called u32: the program knows which are floats, and which integers.
    pub words: Vec<TensorHandle>,
    /// Tensors of the program's half type.
    pub halves: Vec<TensorHandle>,
    /// Bool tensors in the storage type asked for.
    pub conditions: Vec<TensorHandle>,
}

/// For each word output, and each half output, the word operand, by its index, in whose memory it is written, if any.
#[derive(Debug)]
pub(crate) struct Reused {
    words: Vec<Option<usize>>,
    halves: Vec<Option<usize>>,
}

/// A program on the operands it runs on, and the memory for its results.
pub(crate) struct Bound {
    program: Arc<Program>,
    operands: Operands,
    /// Joined axes.
    shape: Vec<usize>,
    /// Elements along the last axis of the shape that is not joined.
    length: usize,
    /// For each window its start, times the stride along its axis of the operand that lies in it.
    shifts: Vec<u32>,
    /// Of the axes of windows, the elements behind an axis and those along it.
    window_axes: Vec<[usize; 2]>,
    elements: usize,
    condition_dtype: ElemType,
    /// The half type of operands and results, if there is one.
    half: Option<Half>,
    quotients: Quotients,
    results: Results,
    reused: Reused,
}

impl Bound {
    /// Programs without instructions on rows, whose results have their shapes, in memory of their own.
    ///
    /// # Panics
    ///
    /// When a program has such an instruction.
    pub(crate) fn each(client: &Client, calls: Vec<Call<'_>>) -> Result<Vec<Self>, KernelError> {
        let prepared =
            calls.into_iter().map(|call| Self::prepared(client, call, &[])).collect::<Result<Vec<_>, _>>()?;
        let (programs, results): (Vec<_>, Vec<_>) = prepared.into_iter().unzip();
        let mut tensors = unwritten_each(client, results.into_iter().flatten().collect()).into_iter();
        Ok(programs.into_iter().map(|program: Self| program.with_results(&mut tensors)).collect())
    }

    /// One of them.
    ///
    /// # Panics
    ///
    /// As [`each`](Self::each).
    pub(crate) fn new(client: &Client, call: Call<'_>) -> Result<Self, KernelError> {
        Self::donated(client, call, &[])
    }

    /// The same, with results in the memory of the word operands with the indices `donated`, as many as
    /// [can be](Reused::of). Its inputs are to be the first arguments of a launch.
    ///
    /// # Panics
    ///
    /// As [`each`](Self::each).
    pub(super) fn donated(client: &Client, call: Call<'_>, donated: &[usize]) -> Result<Self, KernelError> {
        let (program, results) = Self::prepared(client, call, donated)?;
        Ok(program.with_results(&mut unwritten_each(client, results).into_iter()))
    }

    fn prepared<'a>(
        client: &Client,
        call: Call<'a>,
        donated: &[usize],
    ) -> Result<(Self, Vec<Unwritten<'a>>), KernelError> {
        let Call { program, shape, operands, .. } = &call;
        assert!(!program.has_rows(), "a program with instructions on rows is one of `rows`");
        let rows_have_places = !program.has_places() || shape.last().is_some_and(|&length| length != 1);
        require_shapes(KERNEL, rows_have_places, || format!("places in rows of one element, of shape {shape:?}"))?;
        checked_elements(KERNEL, shape)?;
        let reused = Reused::of(program, shape, operands, donated, |_, _| true);
        Self::without_results(client, call, reused)
    }

    /// A program whose operands are found right, and the results that it is to be given: words first, then halves, then conditions, all
    /// of the program's shape. Where some memory is `reused`, its inputs are to be the first arguments of a launch.
    pub(crate) fn without_results<'a>(
        client: &Client,
        call: Call<'a>,
        reused: Reused,
    ) -> Result<(Self, Vec<Unwritten<'a>>), KernelError> {
        let Call { program, shape, operands, condition_dtype } = call;
        let elements = checked_elements(KERNEL, shape)?;
        let length = shape.last().copied().unwrap_or(1);
        let half = half_type(client, program, &operands)?;
        require_types(&operands, condition_dtype)?;
        require_reach(KERNEL, operands.words.iter().chain(&operands.conditions))?;
        let shifts = shifts(program, shape, &operands)?;
        let window_axes = program.window_axes().into_iter().map(|axis| behind_and_along(shape, axis)).collect();
        let [words, halves] = reused.memory(&operands);
        let conditions = vec![None; program.condition_outputs().len()];
        let lists = [(words, U32), (halves, half.map_or(F32, Half::dtype)), (conditions, condition_dtype)];
        let unwritten =
            |(list, dtype): (Vec<_>, ElemType)| list.into_iter().map(move |memory| Unwritten { shape, dtype, memory });
        let results = lists.into_iter().flat_map(unwritten).collect();
        let is_dense =
            operands.all().all(|operand| &operand.shape()[..] == shape && is_contiguous(shape, operand.strides()));
        let (operands, shape) = match is_dense {
            true => (operands.flat(elements), vec![elements]),
            false => operands.broadcast(program, shape)?.joined(shape),
        };
        let quotients = if program.divides() { known_answer::quotients(client) } else { Quotients::Device };
        let program = program.clone();
        let bound = Self {
            program,
            operands,
            shape,
            length,
            shifts,
            window_axes,
            elements,
            condition_dtype,
            half,
            quotients,
            results: Results::default(),
            reused,
        };
        Ok((bound, results))
    }

    /// The program that writes its results to the next of `tensors`.
    pub(crate) fn with_results(self, tensors: &mut impl Iterator<Item = TensorHandle>) -> Self {
        let program = &self.program;
        let counts = [program.word_outputs().len(), program.half_outputs().len(), program.condition_outputs().len()];
        let [words, halves, conditions] = counts.map(|count| tensors.take(count).collect());
        Self { results: Results { words, halves, conditions }, ..self }
    }

    /// The memory for the results.
    pub(crate) fn into_results(self) -> Results {
        self.results
    }

    /// The half type of operands and results, or f32 where there is none.
    pub(crate) fn half_or_f32(&self) -> ElemType {
        self.half().unwrap_or(F32)
    }

    /// The elements of the program's shape.
    pub(super) fn elements(&self) -> usize {
        self.elements
    }

    /// The vectors of `width` elements, of which the elements are a multiple.
    pub(super) fn vectors(&self, width: usize) -> usize {
        self.elements / width
    }

    /// The tensors that a launch binds.
    pub(crate) fn bindings(&self) -> usize {
        let Results { words, halves, conditions } = &self.results;
        self.operands.all().count() + words.len() + halves.len() + conditions.len()
    }

    /// The storage type of bool tensors, if there are any.
    pub(crate) fn used_condition_dtype(&self) -> Option<ElemType> {
        let has_some = !self.operands.conditions.is_empty() || !self.results.conditions.is_empty();
        has_some.then_some(self.condition_dtype)
    }

    /// The half type of operands and results, if there is one.
    pub(super) fn half(&self) -> Option<ElemType> {
        self.half.map(Half::dtype)
    }

    /// The storage type of bool tensors.
    pub(crate) fn condition_dtype(&self) -> ElemType {
        self.condition_dtype
    }

    /// Launches the program.
    pub(super) fn run(&self, client: &Client) -> Result<(), KernelError> {
        if self.elements == 0 {
            return Ok(());
        }
        device::require_units(client, KERNEL, grid::UNITS)?;
        let width = if subnormals::is_kept(client) { 1 } else { self.width() };
        let vectors = self.vectors(width);
        let (count, dim) = grid::grid(vectors);
        let (inputs, outputs, form) = self.arguments(width);
        // SAFETY: units beyond `vectors` stop; offsets of operands come from strides checked against the shape, and every
        // output holds as many elements; one in an operand's memory is of a dense operand, of which a unit reads the vector that it
        // overwrites, before that, and no other unit does; what is read in vectors begins at a multiple of their width, and
        // buffers begin at one of more bytes than a vector has.
        unsafe {
            kernel::elementwise::launch_unchecked(
                client,
                count,
                dim,
                width,
                inputs,
                outputs,
                vectors as u32,
                form,
                [self.condition_dtype, self.half_or_f32()],
            );
        }
        Ok(())
    }

    /// Neighbouring elements that a unit computes.
    pub(super) fn width(&self) -> usize {
        let readings = self.readings(4);
        let in_vectors = readings.is_empty() || readings.iter().any(|reading| reading.is_vector());
        // A vector lies in a window, or outside of it.
        let in_windows = self.window_axes.iter().all(|[behind, _]| behind.is_multiple_of(4));
        if in_vectors && in_windows && self.elements.is_multiple_of(4) { 4 } else { 1 }
    }

    /// How a unit that computes `width` elements reads the words, then the conditions.
    fn readings(&self, width: usize) -> Vec<Reading> {
        self.operands.all().map(|operand| reading(&self.shape, operand.strides(), width)).collect()
    }

    /// The arguments of a kernel whose units compute `width` elements at a time, of which the elements are a multiple.
    pub(crate) fn arguments<B: Int, F: Float, N: Size>(
        &self,
        width: usize,
    ) -> (InputsLaunch<B, F, N>, OutputsLaunch<B, F, N>, Form) {
        let Self { operands, results, .. } = self;
        let mut readings = self.readings(width);
        let with_strides = operands.all().zip(&readings).filter(|(_, reading)| reading.has_strides());
        let mut strides = SequenceArg::new();
        with_strides.for_each(|(operand, _)| operand.strides().iter().for_each(|&stride| strides.push(stride as u32)));
        let axes =
            if readings.iter().any(|reading| reading.has_strides()) { axes(&self.shape) } else { SequenceArg::new() };
        let conditions = readings.split_off(operands.words.len());
        let is_half = |operand: &TensorHandle| Half::of(operand.dtype).is_some();
        let words: Vec<_> = { operands.words.iter().zip(readings) }
            .map(|(operand, reading)| Word { reading, is_half: is_half(operand) })
            .collect();
        let words_in = |in_vectors: bool, is_half: bool| {
            let list = operands
                .words
                .iter()
                .zip(&words)
                .filter(move |(_, word)| word.reading.is_vector() == in_vectors && word.is_half == is_half);
            list.map(|(operand, _)| operand)
        };
        let inputs = InputsLaunch::new(
            sequence(words_in(false, false)),
            sequence(words_in(true, false)),
            sequence(words_in(false, true)),
            sequence(words_in(true, true)),
            sequence(chosen(&operands.conditions, &conditions, false)),
            sequence(chosen(&operands.conditions, &conditions, true)),
            scalars(&operands.scalars),
            strides,
            axes,
            if self.program.has_places() { self::axes(&[self.length]) } else { SequenceArg::new() },
            scalars(&self.shifts),
            self.window_axes(),
            0,
        );
        let list = |word: &Word| (word.is_half, word.reading.is_vector());
        // In the order of the inputs' lists, and of the operands in them.
        let buffer = |index: usize| {
            let is_before = |(other, word): &(usize, &Word)| (list(word), *other) < (list(&words[index]), index);
            words.iter().enumerate().filter(is_before).count()
        };
        let outputs = OutputsLaunch::new(
            sequence_reusing(&results.words, &self.reused.words, buffer),
            sequence_reusing(&results.halves, &self.reused.halves, buffer),
            sequence(&results.conditions),
        );
        let form = Form { program: self.program.clone(), words, conditions, quotients: self.quotients };
        (inputs, outputs, form)
    }

    /// For each axis of a window all axes behind it as one, unless it is the last, and itself.
    fn window_axes(&self) -> SequenceArg<Axis> {
        let axes = self.program.window_axes().into_iter().zip(&self.window_axes);
        let sizes: Vec<_> = axes.flat_map(|(axis, sizes)| sizes[usize::from(axis == 0)..].to_vec()).collect();
        self::axes(&sizes)
    }
}

impl Reused {
    /// Results of `program` in the memory of the word operands with the indices `donated`: a result has that of the first one
    /// left that is of its type, dense, of `shape` and without a window, whose memory nothing else holds, and of which
    /// `may(word, operand)` says that the output which is this word of the program may be there. A unit reads the elements that
    /// it overwrites, before it does, and no other unit reads them.
    ///
    /// Results of at most 2^14 elements have memory of their own, which is reserved at once where they are small together.
    /// While the device's thread reserves an operand's memory it holds that too: then a result has memory of its own, and the
    /// same bits.
    pub(crate) fn of(
        program: &Program,
        shape: &[usize],
        operands: &Operands,
        donated: &[usize],
        may: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let is_large = shape.iter().product::<usize>().saturating_mul(size_of::<u32>()) > buffer::SHARED;
        let is_free = |index: &usize| {
            let operand = &operands.words[*index];
            let is_dense = &operand.shape()[..] == shape && is_contiguous(shape, operand.strides());
            is_large && is_dense && program.window_of(*index).is_none() && operand.can_mut()
        };
        let mut free: Vec<_> = donated.iter().copied().filter(is_free).collect();
        let is_twice = |at: usize| donated[..at].contains(&donated[at]);
        assert!(!(0..donated.len()).any(is_twice), "{donated:?} has an operand twice");
        let mut chosen = |outputs: &[usize], is_half: bool| {
            let mut of_output = |&word: &usize| {
                let fits =
                    |&index: &usize| Half::of(operands.words[index].dtype).is_some() == is_half && may(word, index);
                free.iter().position(fits).map(|place| free.remove(place))
            };
            outputs.iter().map(&mut of_output).collect()
        };
        Self { words: chosen(program.word_outputs(), false), halves: chosen(program.half_outputs(), true) }
    }

    /// The memory of the operands, of word outputs and of half outputs.
    fn memory(&self, operands: &Operands) -> [Vec<Option<Handle>>; 2] {
        let of = |operand: &Option<usize>| operand.map(|index| operands.words[index].handle.clone());
        [&self.words, &self.halves].map(|all| all.iter().map(of).collect())
    }
}

impl Operands {
    /// The tensors: words, then conditions.
    fn all(&self) -> impl Iterator<Item = &TensorHandle> {
        self.words.iter().chain(&self.conditions)
    }

    /// Dense operands over one axis of so many elements.
    fn flat(self, elements: usize) -> Self {
        let all = |tensors: Vec<TensorHandle>| {
            let flat = |tensor: TensorHandle| TensorHandle::new_contiguous(vec![elements], tensor.handle, tensor.dtype);
            tensors.into_iter().map(flat).collect()
        };
        Self { words: all(self.words), conditions: all(self.conditions), scalars: self.scalars }
    }

    /// The operands with the strides that broadcast them to `shape`, or to their windows in it.
    fn broadcast(self, program: &Program, shape: &[usize]) -> Result<Self, KernelError> {
        let word = |(index, tensor): (usize, TensorHandle)| match program.window_of(index) {
            Some(window) => {
                let axis = shape.len() - 1 - program.windows()[window].axis;
                let mut part = shape.to_vec();
                part[axis] = tensor.shape()[axis];
                broadcast(tensor, &part, shape)
            }
            None => broadcast(tensor, shape, shape),
        };
        let words = self.words.into_iter().enumerate().map(word).collect::<Result<Vec<_>, _>>()?;
        let conditions = { self.conditions.into_iter() }.map(|tensor| broadcast(tensor, shape, shape));
        Ok(Self { words, conditions: conditions.collect::<Result<Vec<_>, _>>()?, scalars: self.scalars })
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

/// The one half type of a program's outputs and of its operands, which the device stores.
fn half_type(client: &Client, program: &Program, operands: &Operands) -> Result<Option<Half>, KernelError> {
    let mut found = program.half();
    for half in operands.words.iter().filter_map(|operand| Half::of(operand.dtype)) {
        let first = *found.get_or_insert(half);
        if first != half {
            let reason =
                format!("operands or results of {} and of {}, want one half type", first.dtype(), half.dtype());
            return Err(KernelError::Shape { kernel: KERNEL, reason });
        }
    }
    match found.map(Half::dtype) {
        Some(dtype) if !client.properties().supports_type(dtype) => {
            Err(KernelError::Dtype { kernel: KERNEL, dtype, remedy: "cast to f32: the device does not store it" })
        }
        _ => Ok(found),
    }
}

/// Refuses words of other types than f32, i32, u32 and half types, and conditions of another type than `condition_dtype`: a
/// kernel reads them as these.
fn require_types(operands: &Operands, condition_dtype: ElemType) -> Result<(), KernelError> {
    let is_word = |dtype: ElemType| {
        dtype == F32 || dtype == U32 || dtype == ElemType::Int(IntKind::I32) || Half::of(dtype).is_some()
    };
    if let Some(word) = operands.words.iter().find(|word| !is_word(word.dtype)) {
        return Err(KernelError::Dtype {
            kernel: KERNEL,
            dtype: word.dtype,
            remedy: "cast to f32, or to i32 for integers",
        });
    }
    if let Some(condition) = operands.conditions.iter().find(|condition| condition.dtype != condition_dtype) {
        let reason = format!("conditions of {} and of {condition_dtype}, want one storage type", condition.dtype);
        return Err(KernelError::Shape { kernel: KERNEL, reason });
    }
    Ok(())
}

/// How `width` elements of a tensor with `strides` are read; the axes of `shape` are joined.
fn reading(shape: &[usize], strides: &[usize], width: usize) -> Reading {
    if is_contiguous(shape, strides) {
        return Reading::Linear;
    }
    let innermost = shape.len() - 1;
    let others = strides[..innermost].iter().copied();
    match (shape[innermost], strides[innermost]) {
        (length, 0) if length.is_multiple_of(width) => Reading::Broadcast,
        (length, stride) if is_in_vectors(width, length, stride, others) => Reading::Row,
        _ => Reading::Strided,
    }
}

/// The operands that are read in vectors, or the others.
fn chosen<'a>(
    operands: &'a [TensorHandle],
    readings: &[Reading],
    in_vectors: bool,
) -> impl Iterator<Item = &'a TensorHandle> {
    operands
        .iter()
        .zip(readings)
        .filter(move |(_, reading)| reading.is_vector() == in_vectors)
        .map(|(operand, _)| operand)
}

fn sequence<'a, T: LaunchArg<RuntimeArg = BufferArg>>(
    tensors: impl IntoIterator<Item = &'a TensorHandle>,
) -> SequenceArg<T> {
    let mut arguments = SequenceArg::new();
    for tensor in tensors {
        let length = tensor.shape().iter().product();
        // SAFETY: the handle covers every element that the tensor's shape and strides reach, by which the kernel addresses it.
        // The length is not used to check an access.
        arguments.push(unsafe { BufferArg::from_raw_parts(tensor.handle.clone(), length) });
    }
    arguments
}

/// The same, of tensors some of which are in the memory of operands, the first buffers of the launch, which `buffer` numbers.
fn sequence_reusing<T: LaunchArg<RuntimeArg = BufferArg>>(
    tensors: &[TensorHandle],
    reused: &[Option<usize>],
    buffer: impl Fn(usize) -> usize,
) -> SequenceArg<T> {
    let mut arguments = SequenceArg::new();
    for (output, tensor) in tensors.iter().enumerate() {
        let length = tensor.shape().iter().product();
        arguments.push(match reused[output] {
            Some(operand) => BufferArg::alias(buffer(operand), length),
            // SAFETY: the handle covers every element of the dense tensor. The length is not used to check an access.
            None => unsafe { BufferArg::from_raw_parts(tensor.handle.clone(), length) },
        });
    }
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

/// For each window of a program its start, times the stride along its axis of the operand that lies in it.
fn shifts(program: &Program, shape: &[usize], operands: &Operands) -> Result<Vec<u32>, KernelError> {
    let shift = |(window, operand): (&Window, Option<usize>)| {
        let [start, length] = [window.start, window.length].map(|scalar| operands.scalars[scalar] as usize);
        let operand = operand.map(|operand| &operands.words[operand]);
        let at = shape.len().checked_sub(window.axis + 1);
        let fits = at.is_some_and(|at| {
            let [behind, along] = behind_and_along(shape, window.axis);
            let is_found = along != 1 && (window.axis == 0 || behind != 1);
            let is_operands =
                operand.is_none_or(|operand| operand.shape().len() == shape.len() && operand.shape()[at] == length);
            length > 0 && start + length <= along && is_found && is_operands
        });
        require_shapes(KERNEL, fits, || {
            let operand = operand.map(|operand| format!(" of an operand of shape {:?}", &operand.shape()[..]));
            let (axis, operand) = (window.axis + 1, operand.unwrap_or_default());
            format!("a window{operand} of {length} from {start} on along axis -{axis} of shape {shape:?}")
        })?;
        // An axis of one element has no stride.
        let stride = at.zip(operand).map_or(0, |(at, operand)| if length == 1 { 0 } else { operand.strides()[at] });
        // The place of an element less the shift is right also where either has wrapped.
        Ok((start * stride) as u32)
    };
    program.windowed().map(shift).collect()
}

/// The elements behind an axis, counted from the last, and those along it.
fn behind_and_along(shape: &[usize], axis: usize) -> [usize; 2] {
    let at = shape.len().saturating_sub(axis + 1);
    [shape.iter().skip(at + 1).product(), shape.get(at).copied().unwrap_or(1)]
}

/// `operand` with the strides with which it broadcasts to `part` of a tensor of `shape`.
fn broadcast(operand: TensorHandle, part: &[usize], shape: &[usize]) -> Result<TensorHandle, KernelError> {
    let Some(strides) = broadcast_strides(operand.shape(), operand.strides(), part) else {
        return Err(mismatch(operand.shape(), part));
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
