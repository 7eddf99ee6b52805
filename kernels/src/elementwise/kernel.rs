//! The device side: the program is known when the kernel is compiled, so it unrolls to straight code.

use super::program::{Binary, Comparison, Condition, Instruction, Logic, Program, Unary, Value};
use crate::arithmetic::opaque;
use cubecl::prelude::*;
use std::sync::Arc;

/// How a unit that computes four elements in a row reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// All of the operand lies in the order of the shape: a vector.
    Linear,
    /// The four lie side by side: a vector.
    Row,
    /// The four are one element.
    One,
    /// Element by element.
    Scattered,
}

impl Reading {
    /// Whether the operand is bound in vectors of four.
    pub fn is_vector(self) -> bool {
        matches!(self, Self::Linear | Self::Row)
    }
}

/// One unit computes four elements of a row; float and condition operands are bound by how they are
/// [read](Reading::is_vector), in order.
#[cube(launch_unchecked)]
pub fn elementwise_fours<B: Int>(
    floats: &Sequence<OwnedTensor<f32>>,
    float_fours: &Sequence<OwnedTensor<Vector<f32, Const<4>>>>,
    conditions: &Sequence<OwnedTensor<B>>,
    condition_fours: &Sequence<OwnedTensor<Vector<B, Const<4>>>>,
    scalars: &Sequence<f32>,
    dimensions: &Sequence<u32>,
    float_outputs: &mut Sequence<OwnedTensor<Vector<f32, Const<4>>>>,
    condition_outputs: &mut Sequence<OwnedTensor<Vector<B, Const<4>>>>,
    fours: u32,
    zero: u32,
    #[comptime] program: Arc<Program>,
    #[comptime] float_readings: Vec<Reading>,
    #[comptime] condition_readings: Vec<Reading>,
    #[define(B)] _condition_dtype: ElemType,
) {
    let four = ABSOLUTE_POS as u32;
    if four >= fours {
        terminate!();
    }
    let mut float_inputs = Sequence::<Vector<f32, Const<4>>>::new();
    #[unroll]
    for i in 0..comptime!(float_readings.len()) {
        let reading = comptime!(float_readings[i]);
        let at = comptime!(place_among(&float_readings, i));
        float_inputs.push(read_four::<f32>(floats, float_fours, dimensions, four, at, reading));
    }
    let mut condition_inputs = Sequence::<Vector<B, Const<4>>>::new();
    #[unroll]
    for i in 0..comptime!(condition_readings.len()) {
        let reading = comptime!(condition_readings[i]);
        let at = comptime!(place_among(&condition_readings, i));
        condition_inputs.push(read_four::<B>(conditions, condition_fours, dimensions, four, at, reading));
    }
    // Scalars are read once for all lanes.
    let mut once = Sequence::<f32>::new();
    #[unroll]
    for i in 0..scalars.len() {
        once.push(scalars[i]);
    }

    let mut float_results = Sequence::<Vector<f32, Const<4>>>::new();
    #[unroll]
    for _ in 0..float_outputs.len() {
        float_results.push(Vector::<f32, Const<4>>::empty());
    }
    let mut condition_results = Sequence::<Vector<B, Const<4>>>::new();
    #[unroll]
    for _ in 0..condition_outputs.len() {
        condition_results.push(Vector::<B, Const<4>>::empty());
    }
    #[unroll]
    for lane in 0..4usize {
        let mut lane_floats = Sequence::<f32>::new();
        #[unroll]
        for i in 0..comptime!(float_readings.len()) {
            lane_floats.push(float_inputs[i].extract(lane));
        }
        let mut lane_conditions = Sequence::<bool>::new();
        #[unroll]
        for i in 0..comptime!(condition_readings.len()) {
            lane_conditions.push(condition_inputs[i].extract(lane) != B::from_int(0));
        }
        let results = evaluate(&lane_floats, &lane_conditions, &once, zero, comptime!(program.clone()));
        #[unroll]
        for i in 0..float_outputs.len() {
            let index = comptime!(program.float_outputs()[i]);
            let result = float_results.index_mut(i);
            result.insert(lane, results.floats[index]);
        }
        #[unroll]
        for i in 0..condition_outputs.len() {
            let index = comptime!(program.condition_outputs()[i]);
            let result = condition_results.index_mut(i);
            result.insert(lane, select(results.conditions[index], B::from_int(1), B::from_int(0)));
        }
    }
    #[unroll]
    for i in 0..float_outputs.len() {
        let output = float_outputs.index_mut(i);
        output[four as usize] = float_results[i];
    }
    #[unroll]
    for i in 0..condition_outputs.len() {
        let output = condition_outputs.index_mut(i);
        output[four as usize] = condition_results[i];
    }
}

/// Where operand `i` stands among those that are bound as it is.
fn place_among(readings: &[Reading], i: usize) -> usize {
    readings[..i].iter().filter(|reading| reading.is_vector() == readings[i].is_vector()).count()
}

/// The elements of an operand for the four results from `four * 4` on.
#[cube]
fn read_four<T: Numeric>(
    singles: &Sequence<OwnedTensor<T>>,
    fours: &Sequence<OwnedTensor<Vector<T, Const<4>>>>,
    dimensions: &Sequence<u32>,
    four: u32,
    #[comptime] at: usize,
    #[comptime] reading: Reading,
) -> Vector<T, Const<4>> {
    match reading {
        Reading::Linear => fours[at][four as usize],
        Reading::Row => {
            let offset = offset::<Vector<T, Const<4>>>(&fours[at], dimensions, four * 4, false);
            fours[at][offset / 4]
        }
        Reading::One => {
            let offset = offset::<T>(&singles[at], dimensions, four * 4, false);
            Vector::<T, Const<4>>::new(singles[at][offset])
        }
        Reading::Scattered => {
            let mut read = Vector::<T, Const<4>>::empty();
            #[unroll]
            for lane in 0..4u32 {
                let offset = offset::<T>(&singles[at], dimensions, four * 4 + lane, false);
                read.insert(comptime!(lane as usize), singles[at][offset]);
            }
            read
        }
    }
}

/// One unit computes one element.
#[cube(launch_unchecked)]
pub fn elementwise<B: Int>(
    floats: &Sequence<OwnedTensor<f32>>,
    conditions: &Sequence<OwnedTensor<B>>,
    scalars: &Sequence<f32>,
    dimensions: &Sequence<u32>,
    float_outputs: &mut Sequence<OwnedTensor<f32>>,
    condition_outputs: &mut Sequence<OwnedTensor<B>>,
    elements: u32,
    zero: u32,
    #[comptime] program: Arc<Program>,
    #[comptime] linear: Vec<bool>,
    #[define(B)] _condition_dtype: ElemType,
) {
    let element = ABSOLUTE_POS as u32;
    if element >= elements {
        terminate!();
    }

    let mut float_inputs = Sequence::<f32>::new();
    #[unroll]
    for i in 0..floats.len() {
        let is_linear = comptime!(linear[i]);
        let offset = offset::<f32>(&floats[i], dimensions, element, is_linear);
        float_inputs.push(floats[i][offset]);
    }
    let mut condition_inputs = Sequence::<bool>::new();
    #[unroll]
    for i in 0..conditions.len() {
        let is_linear = comptime!(linear[floats.len() + i]);
        let offset = offset::<B>(&conditions[i], dimensions, element, is_linear);
        condition_inputs.push(conditions[i][offset] != B::from_int(0));
    }

    let results = evaluate(&float_inputs, &condition_inputs, scalars, zero, comptime!(program.clone()));

    #[unroll]
    for i in 0..float_outputs.len() {
        let index = comptime!(program.float_outputs()[i]);
        let output = float_outputs.index_mut(i);
        output[element as usize] = results.floats[index];
    }
    #[unroll]
    for i in 0..condition_outputs.len() {
        let index = comptime!(program.condition_outputs()[i]);
        let output = condition_outputs.index_mut(i);
        output[element as usize] = select(results.conditions[index], B::from_int(1), B::from_int(0));
    }
}

/// The results of a program's instructions.
#[derive(CubeType)]
struct Evaluated {
    floats: Sequence<f32>,
    conditions: Sequence<bool>,
}

/// The instructions of `program` on one element.
#[cube]
fn evaluate(
    float_inputs: &Sequence<f32>,
    condition_inputs: &Sequence<bool>,
    scalars: &Sequence<f32>,
    zero: u32,
    #[comptime] program: Arc<Program>,
) -> Evaluated {
    let mut float_results = Sequence::<f32>::new();
    let mut condition_results = Sequence::<bool>::new();
    let count = comptime!(program.instructions().len());
    #[unroll]
    for i in 0..count {
        let instruction = comptime!(program.instructions()[i]);
        match instruction {
            Instruction::Unary(function, x) => {
                let x = value(float_inputs, scalars, &float_results, x);
                float_results.push(opaque(unary(x, function), zero));
            }
            Instruction::Binary(function, a, b) => {
                let a = value(float_inputs, scalars, &float_results, a);
                let b = value(float_inputs, scalars, &float_results, b);
                float_results.push(opaque(binary(a, b, function), zero));
            }
            Instruction::Select(mask, a, b) => {
                let mask = condition(condition_inputs, &condition_results, mask);
                let a = value(float_inputs, scalars, &float_results, a);
                let b = value(float_inputs, scalars, &float_results, b);
                float_results.push(opaque(select(mask, a, b), zero));
            }
            Instruction::Indicator(mask) => {
                let mask = condition(condition_inputs, &condition_results, mask);
                float_results.push(opaque(select(mask, 1.0f32, 0.0f32), zero));
            }
            Instruction::Compare(comparison, a, b) => {
                let a = value(float_inputs, scalars, &float_results, a);
                let b = value(float_inputs, scalars, &float_results, b);
                condition_results.push(compare(a, b, comparison));
            }
            Instruction::Logic(logic, a, b) => {
                let a = condition(condition_inputs, &condition_results, a);
                let b = condition(condition_inputs, &condition_results, b);
                match logic {
                    Logic::And => condition_results.push(a && b),
                    Logic::Or => condition_results.push(a || b),
                }
            }
            Instruction::Not(a) => {
                let a = condition(condition_inputs, &condition_results, a);
                condition_results.push(!a);
            }
        }
    }
    Evaluated { floats: float_results, conditions: condition_results }
}

/// Where element `element` of the program's shape lies in `tensor`.
#[cube]
fn offset<T: CubePrimitive>(
    tensor: &OwnedTensor<T>,
    dimensions: &Sequence<u32>,
    element: u32,
    #[comptime] is_linear: bool,
) -> usize {
    if is_linear {
        element as usize
    } else {
        let rank = comptime!(dimensions.len());
        let mut rest = element;
        let mut offset = 0;
        #[unroll]
        for i in 0..rank {
            let axis = comptime!(rank - 1 - i);
            let size = dimensions[axis];
            offset += (rest % size) as usize * tensor.stride(axis);
            rest /= size;
        }
        offset
    }
}

#[cube]
fn value(inputs: &Sequence<f32>, scalars: &Sequence<f32>, results: &Sequence<f32>, #[comptime] value: Value) -> f32 {
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
fn unary(x: f32, #[comptime] function: Unary) -> f32 {
    match function {
        Unary::Copy => x,
        Unary::Negate => -x,
        Unary::Absolute => x.abs(),
        Unary::Reciprocal => x.recip(),
        Unary::SquareRoot => x.sqrt(),
        Unary::Exponential => x.exp(),
        Unary::Logarithm => x.ln(),
        Unary::HyperbolicTangent => x.tanh(),
    }
}

#[cube]
fn binary(a: f32, b: f32, #[comptime] function: Binary) -> f32 {
    match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
    }
}

#[cube]
fn compare(a: f32, b: f32, #[comptime] comparison: Comparison) -> bool {
    match comparison {
        Comparison::Equal => a == b,
        Comparison::Greater => a > b,
        Comparison::GreaterEqual => a >= b,
        Comparison::Less => a < b,
        Comparison::LessEqual => a <= b,
    }
}
