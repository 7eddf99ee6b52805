//! The device side: the program is known when the kernel is compiled, so it unrolls to straight code.

use super::program::{Binary, Comparison, Condition, Instruction, Logic, Program, Unary, Value};
use super::{integer, remainder, rounding};
use crate::arithmetic::opaque;
use crate::function::{exponential, trigonometric};
use crate::quotient::{Quotients, divide, sqrt};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use std::sync::Arc;

/// How a unit that computes a vector of neighbouring elements reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The operand is dense: a vector, at the unit's place.
    Linear,
    /// The elements are adjacent: a vector, at a place found through the strides.
    Row,
    /// All are one element, broadcast.
    Broadcast,
    /// Element by element.
    Strided,
}

impl Reading {
    /// Whether the operand is bound in vectors.
    pub fn is_vector(self) -> bool {
        matches!(self, Self::Linear | Self::Row)
    }

    /// Whether places are found through strides.
    pub fn has_strides(self) -> bool {
        self != Self::Linear
    }
}

/// One axis of a shape, and the inverse of its size, to divide by multiplication.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Axis {
    size: u32,
    multiplier: u32,
    shift: u32,
}

impl AxisLaunch {
    /// The arguments for an axis of `size` elements.
    pub fn of(size: u32) -> Self {
        // Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (1994), figure 4.1.
        let bits = 32 - (size.max(1) - 1).leading_zeros();
        let multiplier = ((1u64 << 32) * ((1u64 << bits) - u64::from(size)) / u64::from(size.max(1)) + 1) as u32;
        Self::new(size, multiplier, bits.saturating_sub(1))
    }
}

#[cube]
impl Axis {
    /// Quotient and remainder of `x` by the size, which is at least two.
    fn divided(&self, x: u32) -> (u32, u32) {
        let high = u32::mul_hi(self.multiplier, x);
        let quotient = (high + ((x - high) >> 1)) >> self.shift;
        (quotient, x - quotient * self.size)
    }
}

/// A word operand: how it is read, and whether it is of a half type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    pub reading: Reading,
    pub is_half: bool,
}

/// The inputs of a program, in its order, for units that compute `N` elements. Those that are [read](Form::words) in
/// vectors are in lists of their own, and so are those of a half type, `F`.
///
/// Buffers, with the strides of those that have any beside them: the host takes twice as long to bind a tensor.
#[derive(CubeType, CubeLaunch)]
pub struct Inputs<B: Int, F: Float, N: Size> {
    words: Sequence<Box<[u32]>>,
    word_vectors: Sequence<Box<[Vector<u32, N>]>>,
    halves: Sequence<Box<[F]>>,
    half_vectors: Sequence<Box<[Vector<F, N>]>>,
    conditions: Sequence<Box<[B]>>,
    condition_vectors: Sequence<Box<[Vector<B, N>]>>,
    pub(crate) scalars: Sequence<u32>,
    /// Of the operands that are not dense, words and then conditions: one for each axis.
    strides: Sequence<u32>,
    /// None where every operand is dense.
    axes: Sequence<Axis>,
    /// The last axis of the program's shape, whatever axes are joined, where the program has places in it; else none.
    row: Sequence<Axis>,
    /// For each of the program's windows its start, times the stride along its axis of the operand that lies in it.
    shifts: Sequence<u32>,
    /// For each axis of a window: all axes behind it as one, unless it is the last one, and itself.
    window_axes: Sequence<Axis>,
    /// 0, for the barrier of [`opaque`].
    pub(crate) zero: u32,
}

/// The outputs of a program, dense, in its order.
#[derive(CubeType, CubeLaunch)]
pub struct Outputs<B: Int, F: Float, N: Size> {
    pub(crate) words: Sequence<Box<[Vector<u32, N>]>>,
    pub(crate) halves: Sequence<Box<[Vector<F, N>]>>,
    pub(crate) conditions: Sequence<Box<[Vector<B, N>]>>,
}

impl<B: Int, F: Float, N: Size> InputsLaunch<B, F, N> {
    /// Of no program.
    pub fn none() -> Self {
        let (words, word_vectors) = (SequenceArg::new(), SequenceArg::new());
        let (halves, half_vectors) = (SequenceArg::new(), SequenceArg::new());
        let (conditions, condition_vectors) = (SequenceArg::new(), SequenceArg::new());
        let (scalars, strides, axes) = (SequenceArg::new(), SequenceArg::new(), SequenceArg::new());
        let (row, shifts, window_axes) = (SequenceArg::new(), SequenceArg::new(), SequenceArg::new());
        Self::new(
            words,
            word_vectors,
            halves,
            half_vectors,
            conditions,
            condition_vectors,
            scalars,
            strides,
            axes,
            row,
            shifts,
            window_axes,
            0,
        )
    }
}

impl<B: Int, F: Float, N: Size> OutputsLaunch<B, F, N> {
    /// Of no program.
    pub fn none() -> Self {
        Self::new(SequenceArg::new(), SequenceArg::new(), SequenceArg::new())
    }
}

/// A program, how it reads its operands, and which quotients it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    pub program: Arc<Program>,
    pub words: Vec<Word>,
    pub conditions: Vec<Reading>,
    pub quotients: Quotients,
}

/// One unit computes a vector of neighbouring elements.
#[cube(launch_unchecked)]
pub fn elementwise<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    outputs: &mut Outputs<B, F, N>,
    vectors: u32,
    #[comptime] form: Form,
    #[define(B, F)] _dtypes: [ElemType; 2],
) {
    let at = ABSOLUTE_POS as u32;
    if at >= vectors {
        terminate!();
    }
    compute::<B, F, N>(inputs, outputs, at, form);
    keep_subnormals();
}

/// Computes the vector `at` of elements, and writes the outputs. Returns the word that is reduced, if any.
#[cube]
pub fn compute<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    outputs: &mut Outputs<B, F, N>,
    at: u32,
    #[comptime] form: Form,
) -> Vector<u32, N> {
    let program = comptime!(form.program.clone());
    let word_operands = comptime!(form.words.clone());
    let condition_readings = comptime!(form.conditions.clone());
    let width = N::value();
    let within = within::<B, F, N>(inputs, at * comptime!(width as u32), comptime!(program.clone()));
    let mut words = Sequence::<Vector<u32, N>>::new();
    #[unroll]
    for i in 0..comptime!(word_operands.len()) {
        let window = comptime!(program.window_of(i));
        match window {
            Some(window) => {
                let mut elements = Vector::<u32, N>::new(0u32);
                if within[window] {
                    elements = word::<B, F, N>(inputs, at, inputs.shifts[window], i, comptime!(form.clone()));
                }
                words.push(elements);
            }
            None => words.push(word::<B, F, N>(inputs, at, 0u32, i, comptime!(form.clone()))),
        }
    }
    let mut conditions = Sequence::<Vector<B, N>>::new();
    #[unroll]
    for i in 0..comptime!(condition_readings.len()) {
        conditions.push(mask::<B, F, N>(inputs, at, i, comptime!(form.clone())));
    }
    // Scalars are read once for all lanes.
    let mut scalars = Sequence::<u32>::new();
    #[unroll]
    for i in 0..inputs.scalars.len() {
        scalars.push(inputs.scalars[i]);
    }

    let mut word_results = Sequence::<Vector<u32, N>>::new();
    #[unroll]
    for _ in 0..comptime!(program.word_outputs().len()) {
        word_results.push(Vector::<u32, N>::empty());
    }
    let mut half_results = Sequence::<Vector<F, N>>::new();
    #[unroll]
    for _ in 0..comptime!(program.half_outputs().len()) {
        half_results.push(Vector::<F, N>::empty());
    }
    let mut condition_results = Sequence::<Vector<B, N>>::new();
    #[unroll]
    for _ in 0..comptime!(program.condition_outputs().len()) {
        condition_results.push(Vector::<B, N>::empty());
    }
    let mut reduced = Vector::<u32, N>::empty();
    #[unroll]
    for lane in 0..width {
        let mut lane_words = Sequence::<u32>::new();
        #[unroll]
        for i in 0..comptime!(word_operands.len()) {
            lane_words.push(words[i].extract(lane));
        }
        let mut lane_conditions = Sequence::<bool>::new();
        #[unroll]
        for i in 0..comptime!(condition_readings.len()) {
            lane_conditions.push(conditions[i].extract(lane) != B::from_int(0));
        }
        let results = evaluate(
            &lane_words,
            &lane_conditions,
            &scalars,
            &Evaluated::nothing(),
            place_of(
                &inputs.row,
                at * comptime!(width as u32) + comptime!(lane as u32),
                comptime!(program.has_places()),
            ),
            &within,
            inputs.zero,
            comptime!(program.clone()),
            Part::All,
            comptime!(form.quotients),
        );
        #[unroll]
        for i in 0..comptime!(program.word_outputs().len()) {
            let index = comptime!(program.word_outputs()[i]);
            let result = word_results.index_mut(i);
            result.insert(lane, results.words[index]);
        }
        #[unroll]
        for i in 0..comptime!(program.half_outputs().len()) {
            let index = comptime!(program.half_outputs()[i]);
            let result = half_results.index_mut(i);
            result.insert(lane, F::cast_from(f32::reinterpret(results.words[index])));
        }
        #[unroll]
        for i in 0..comptime!(program.condition_outputs().len()) {
            let index = comptime!(program.condition_outputs()[i]);
            let result = condition_results.index_mut(i);
            result.insert(lane, select(results.conditions[index], B::from_int(1), B::from_int(0)));
        }
        #[unroll]
        for _ in 0..comptime!(usize::from(program.reduced().is_some())) {
            let index = comptime!(program.reduced().unwrap_or(0));
            reduced.insert(lane, results.words[index]);
        }
    }
    #[unroll]
    for i in 0..comptime!(program.word_outputs().len()) {
        let output = outputs.words.index_mut(i);
        output[at as usize] = word_results[i];
    }
    #[unroll]
    for i in 0..comptime!(program.half_outputs().len()) {
        let output = outputs.halves.index_mut(i);
        output[at as usize] = half_results[i];
    }
    #[unroll]
    for i in 0..comptime!(program.condition_outputs().len()) {
        let output = outputs.conditions.index_mut(i);
        output[at as usize] = condition_results[i];
    }
    reduced
}

/// The place of an element in its row; 0 where the program has no places.
#[cube]
fn place_of(row: &Sequence<Axis>, element: u32, #[comptime] has_places: bool) -> u32 {
    if has_places {
        let (_, place) = row[0].divided(element);
        place
    } else {
        0u32.runtime()
    }
}

/// Whether an element, and those of its vector with it, lie in each window of a program.
#[cube]
fn within<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    element: u32,
    #[comptime] program: Arc<Program>,
) -> Sequence<bool> {
    let axes = comptime!(program.window_axes());
    let mut places = Sequence::<u32>::new();
    #[unroll]
    for i in 0..comptime!(axes.len()) {
        let before = comptime!(axes[..i].iter().map(|&axis| if axis == 0 { 1 } else { 2 }).sum::<usize>());
        if comptime!(axes[i] == 0) {
            let (_, place) = inputs.window_axes[before].divided(element);
            places.push(place);
        } else {
            let (outer, _) = inputs.window_axes[before].divided(element);
            let (_, place) = inputs.window_axes[comptime!(before + 1)].divided(outer);
            places.push(place);
        }
    }
    let mut within = Sequence::<bool>::new();
    #[unroll]
    for i in 0..comptime!(program.windows().len()) {
        let window = comptime!(program.windows()[i]);
        let axis = comptime!(axes.iter().position(|&axis| axis == window.axis).unwrap_or(0));
        // Below the start it wraps.
        let place = places[axis] - inputs.scalars[comptime!(window.start)];
        within.push(place < inputs.scalars[comptime!(window.length)]);
    }
    within
}

/// The vector `at` of elements of word operand `i`, `shift` elements before where its strides say.
#[cube]
pub(crate) fn word<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    at: u32,
    shift: u32,
    #[comptime] i: usize,
    #[comptime] form: Form,
) -> Vector<u32, N> {
    let words = comptime!(form.words.clone());
    let reading = comptime!(words[i].reading);
    let index = comptime!(index_among_words(&words, i));
    let nth = comptime!(strided(words[..i].iter().map(|word| word.reading)));
    let (strides, axes) = (&inputs.strides, &inputs.axes);
    if comptime!(words[i].is_half) {
        widened::<F, N>(read::<F, N>(
            &inputs.halves,
            &inputs.half_vectors,
            strides,
            axes,
            at,
            shift,
            index,
            nth,
            reading,
        ))
    } else {
        read::<u32, N>(&inputs.words, &inputs.word_vectors, strides, axes, at, shift, index, nth, reading)
    }
}

/// The vector `at` of elements of bool operand `i`, 0 or 1.
#[cube]
pub(crate) fn mask<B: Int, F: Float, N: Size>(
    inputs: &Inputs<B, F, N>,
    at: u32,
    #[comptime] i: usize,
    #[comptime] form: Form,
) -> Vector<B, N> {
    let readings = comptime!(form.conditions.clone());
    let index = comptime!(index_among(&readings, i));
    let before = comptime!(readings[..i].iter().copied());
    let nth = comptime!(strided(form.words.iter().map(|word| word.reading).chain(before)));
    let (singles, vectors) = (&inputs.conditions, &inputs.condition_vectors);
    read::<B, N>(singles, vectors, &inputs.strides, &inputs.axes, at, 0u32, index, nth, comptime!(readings[i]))
}

/// The index of operand `i` in its list, of vectors or of single elements.
fn index_among(readings: &[Reading], i: usize) -> usize {
    readings[..i].iter().filter(|reading| reading.is_vector() == readings[i].is_vector()).count()
}

/// The index of word operand `i` in its list, of vectors or of single elements, of words or of a half type.
fn index_among_words(operands: &[Word], i: usize) -> usize {
    let list = |operand: &Word| (operand.reading.is_vector(), operand.is_half);
    operands[..i].iter().filter(|operand| list(operand) == list(&operands[i])).count()
}

/// The bits of numbers of a half type as f32.
#[cube]
fn widened<F: Float, N: Size>(halves: Vector<F, N>) -> Vector<u32, N> {
    let width = N::value();
    let mut words = Vector::<u32, N>::empty();
    #[unroll]
    for lane in 0..width {
        words.insert(lane, u32::reinterpret(f32::cast_from(halves.extract(lane))));
    }
    words
}

/// How many of these operands have strides.
fn strided(readings: impl Iterator<Item = Reading>) -> usize {
    readings.filter(|reading| reading.has_strides()).count()
}

/// The elements of an operand, the `nth` of those with strides, for the vector `at` of results, `shift` elements before where the
/// strides say.
#[cube]
fn read<T: Numeric, N: Size>(
    singles: &Sequence<Box<[T]>>,
    vectors: &Sequence<Box<[Vector<T, N>]>>,
    strides: &Sequence<u32>,
    axes: &Sequence<Axis>,
    at: u32,
    shift: u32,
    #[comptime] index: usize,
    #[comptime] nth: usize,
    #[comptime] reading: Reading,
) -> Vector<T, N> {
    let width = N::value();
    let first = at * comptime!(width as u32);
    match reading {
        Reading::Linear => vectors[index][(at - shift / comptime!(width as u32)) as usize],
        Reading::Row => vectors[index][offset(strides, axes, first, shift, nth) / width],
        Reading::Broadcast => Vector::<T, N>::new(singles[index][offset(strides, axes, first, shift, nth)]),
        Reading::Strided => {
            let mut read = Vector::<T, N>::empty();
            #[unroll]
            for lane in 0..width {
                let offset = offset(strides, axes, first + comptime!(lane as u32), shift, nth);
                read.insert(lane, singles[index][offset]);
            }
            read
        }
    }
}

/// The results of a program's instructions.
#[derive(CubeType)]
pub(crate) struct Evaluated {
    pub(crate) words: Sequence<u32>,
    pub(crate) conditions: Sequence<bool>,
}

#[cube]
impl Evaluated {
    /// No results.
    pub(crate) fn nothing() -> Self {
        Evaluated { words: Sequence::new(), conditions: Sequence::new() }
    }
}

/// The instructions of a program that are computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    All,
    /// Those that this holds for.
    Of(Vec<bool>),
}

impl Part {
    fn has(&self, instruction: usize) -> bool {
        match self {
            Self::All => true,
            Self::Of(chosen) => chosen[instruction],
        }
    }
}

/// The instructions of `part` of `program` on the element at `place` in its row, and `within` its windows; the results of all
/// others are `given`.
#[cube]
pub(crate) fn evaluate(
    inputs: &Sequence<u32>,
    condition_inputs: &Sequence<bool>,
    scalars: &Sequence<u32>,
    given: &Evaluated,
    place: u32,
    within: &Sequence<bool>,
    zero: u32,
    #[comptime] program: Arc<Program>,
    #[comptime] part: Part,
    #[comptime] quotients: Quotients,
) -> Evaluated {
    let mut words = Sequence::<u32>::new();
    let mut conditions = Sequence::<bool>::new();
    let count = comptime!(program.instructions().len());
    #[unroll]
    for i in 0..count {
        let instruction = comptime!(program.instructions()[i]);
        let is_given = comptime!(!part.has(i));
        if is_given {
            if comptime!(instruction.is_word()) {
                let index = comptime!(words.len());
                words.push(given.words[index]);
            } else {
                let index = comptime!(conditions.len());
                conditions.push(given.conditions[index]);
            }
        } else {
            match instruction {
                Instruction::Unary(function, x) => {
                    let x = value(inputs, scalars, &words, x);
                    words.push(opaque_bits(unary(f32::reinterpret(x), function, quotients), zero));
                }
                Instruction::Binary(function, a, b) => {
                    let a = value(inputs, scalars, &words, a);
                    let b = value(inputs, scalars, &words, b);
                    let result = binary(f32::reinterpret(a), f32::reinterpret(b), function, quotients);
                    words.push(opaque_bits(result, zero));
                }
                Instruction::IntBinary(function, a, b) => {
                    let a = value(inputs, scalars, &words, a);
                    let b = value(inputs, scalars, &words, b);
                    words.push(integer::binary::<i32, u32>(a, b, function, 32u32));
                }
                Instruction::ToFloat(x) => {
                    let x = value(inputs, scalars, &words, x);
                    words.push(opaque_bits(f32::cast_from(i32::reinterpret(x)), zero));
                }
                Instruction::ToInt(x) => {
                    let x = value(inputs, scalars, &words, x);
                    words.push(to_int(x) ^ zero);
                }
                Instruction::Select(mask, a, b) => {
                    let mask = condition(condition_inputs, &conditions, mask);
                    let a = value(inputs, scalars, &words, a);
                    let b = value(inputs, scalars, &words, b);
                    words.push(select(mask, a, b) ^ zero);
                }
                Instruction::Indicator(mask) => {
                    let mask = condition(condition_inputs, &conditions, mask);
                    words.push(opaque_bits(select(mask, 1.0f32, 0.0f32), zero));
                }
                Instruction::IntIndicator(mask) => {
                    let mask = condition(condition_inputs, &conditions, mask);
                    words.push(select(mask, 1u32, 0u32));
                }
                Instruction::Compare(comparison, a, b) => {
                    let a = value(inputs, scalars, &words, a);
                    let b = value(inputs, scalars, &words, b);
                    conditions.push(compare::<f32>(f32::reinterpret(a), f32::reinterpret(b), comparison));
                }
                Instruction::CompareInt(comparison, a, b) => {
                    let a = value(inputs, scalars, &words, a);
                    let b = value(inputs, scalars, &words, b);
                    conditions.push(compare::<i32>(i32::reinterpret(a), i32::reinterpret(b), comparison));
                }
                Instruction::Logic(logic, a, b) => {
                    let a = condition(condition_inputs, &conditions, a);
                    let b = condition(condition_inputs, &conditions, b);
                    match logic {
                        Logic::And => conditions.push(a && b),
                        Logic::Or => conditions.push(a || b),
                        Logic::Xor => conditions.push((a || b) && !(a && b)),
                    }
                }
                Instruction::Not(a) => {
                    let a = condition(condition_inputs, &conditions, a);
                    conditions.push(!a);
                }
                Instruction::Fill(x, _) => words.push(value(inputs, scalars, &words, x)),
                Instruction::Place => words.push(place),
                Instruction::Within(window) => conditions.push(within[window]),
                Instruction::Reduce(..) => comptime!(unreachable!("`rows` gives what it has reduced")),
            }
        }
    }
    Evaluated { words, conditions }
}

/// The float with these bits, truncated to an i32; beyond i32 the nearest one, and 0 of a NaN, which devices convert
/// each in its own way.
#[cube]
fn to_int(bits: u32) -> u32 {
    let magnitude = bits & 0x7fff_ffffu32;
    let truncated = u32::reinterpret(i32::cast_from(f32::reinterpret(bits)));
    let beyond = select(bits == magnitude, 0x7fff_ffffu32, 0x8000_0000u32);
    // From 2^31 on, and from infinity on.
    select(magnitude < 0x4f00_0000u32, truncated, select(magnitude > 0x7f80_0000u32, 0u32, beyond))
}

/// The bits of `x`, behind the barrier of [`opaque`].
#[cube]
fn opaque_bits(x: f32, zero: u32) -> u32 {
    u32::reinterpret(opaque(x, zero))
}

/// The offset of element `element` of the program's shape in the `nth` operand with strides, less `shift`.
#[cube]
pub(super) fn offset(
    strides: &Sequence<u32>,
    axes: &Sequence<Axis>,
    element: u32,
    shift: u32,
    #[comptime] nth: usize,
) -> usize {
    let rank = comptime!(axes.len());
    let mut rest = element;
    let mut offset = 0u32;
    #[unroll]
    for i in 1..rank {
        let axis = comptime!(rank - i);
        let (next, place) = axes[axis].divided(rest);
        offset += place * strides[comptime!(nth * rank + axis)];
        rest = next;
    }
    (offset + rest * strides[comptime!(nth * rank)] - shift) as usize
}

#[cube]
fn value(inputs: &Sequence<u32>, scalars: &Sequence<u32>, results: &Sequence<u32>, #[comptime] value: Value) -> u32 {
    match value {
        Value::Input(index) => inputs[index],
        Value::Scalar(index) => scalars[index],
        Value::Result(index) => results[index],
    }
}

#[cube]
fn condition(inputs: &Sequence<bool>, results: &Sequence<bool>, #[comptime] condition: Condition) -> bool {
    match condition {
        Condition::Input(index) => inputs[index],
        Condition::Result(index) => results[index],
    }
}

#[cube]
fn unary(x: f32, #[comptime] function: Unary, #[comptime] quotients: Quotients) -> f32 {
    match function {
        Unary::Negate => -x,
        Unary::Absolute => x.abs(),
        Unary::Reciprocal => divide::<f32>(f32::new(1.0), x, quotients),
        Unary::SquareRoot => sqrt(x, quotients),
        Unary::Exponential => exponential::exp(x),
        Unary::Logarithm => exponential::log(x),
        Unary::LogarithmOfOnePlus => exponential::log1p(x),
        Unary::HyperbolicSine => exponential::sinh(x),
        Unary::HyperbolicCosine => exponential::cosh(x),
        Unary::HyperbolicTangent => exponential::tanh(x, quotients),
        Unary::HyperbolicArcSine => exponential::asinh(x, quotients),
        Unary::HyperbolicArcCosine => exponential::acosh(x, quotients),
        Unary::HyperbolicArcTangent => exponential::atanh(x, quotients),
        Unary::Sine => trigonometric::sin(x),
        Unary::Cosine => trigonometric::cos(x),
        Unary::Tangent => trigonometric::tan(x, quotients),
        Unary::ArcSine => trigonometric::asin(x, quotients),
        Unary::ArcCosine => trigonometric::acos(x, quotients),
        Unary::ArcTangent => trigonometric::atan(x, quotients),
        Unary::Erf => trigonometric::erf(x),
        Unary::Floor => x.floor(),
        Unary::Ceiling => x.ceil(),
        Unary::Round => x.round(),
        Unary::Truncate => x.trunc(),
        Unary::ToF16 => rounding::to_f16(x),
        Unary::ToBf16 => rounding::to_bf16(x),
    }
}

#[cube]
fn binary(a: f32, b: f32, #[comptime] function: Binary, #[comptime] quotients: Quotients) -> f32 {
    match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => divide::<f32>(a, b, quotients),
        Binary::Power => exponential::powf(a, b),
        Binary::ArcTangent => trigonometric::atan2(a, b, quotients),
        Binary::Remainder => remainder::remainder(a, b),
    }
}

#[cube]
fn compare<T: Numeric>(a: T, b: T, #[comptime] comparison: Comparison) -> bool {
    match comparison {
        Comparison::Equal => a == b,
        Comparison::Greater => a > b,
        Comparison::GreaterEqual => a >= b,
        Comparison::Less => a < b,
        Comparison::LessEqual => a <= b,
    }
}
