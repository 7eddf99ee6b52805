//! The device side: the program is known when the kernel is compiled, so it unrolls to straight code.

use super::program::{Binary, Comparison, Condition, Instruction, Logic, Program, Unary, Value};
use cubecl::prelude::*;
use std::sync::Arc;

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

    let mut float_results = Sequence::<f32>::new();
    let mut condition_results = Sequence::<bool>::new();
    let count = comptime!(program.instructions().len());
    #[unroll]
    for i in 0..count {
        let instruction = comptime!(program.instructions()[i]);
        match instruction {
            Instruction::Unary(function, x) => {
                let x = value(&float_inputs, scalars, &float_results, x);
                float_results.push(opaque(unary(x, function), zero));
            }
            Instruction::Binary(function, a, b) => {
                let a = value(&float_inputs, scalars, &float_results, a);
                let b = value(&float_inputs, scalars, &float_results, b);
                float_results.push(opaque(binary(a, b, function), zero));
            }
            Instruction::Select(mask, a, b) => {
                let mask = condition(&condition_inputs, &condition_results, mask);
                let a = value(&float_inputs, scalars, &float_results, a);
                let b = value(&float_inputs, scalars, &float_results, b);
                float_results.push(opaque(select(mask, a, b), zero));
            }
            Instruction::Indicator(mask) => {
                let mask = condition(&condition_inputs, &condition_results, mask);
                float_results.push(opaque(select(mask, 1.0f32, 0.0f32), zero));
            }
            Instruction::Compare(comparison, a, b) => {
                let a = value(&float_inputs, scalars, &float_results, a);
                let b = value(&float_inputs, scalars, &float_results, b);
                condition_results.push(compare(a, b, comparison));
            }
            Instruction::Logic(logic, a, b) => {
                let a = condition(&condition_inputs, &condition_results, a);
                let b = condition(&condition_inputs, &condition_results, b);
                match logic {
                    Logic::And => condition_results.push(a && b),
                    Logic::Or => condition_results.push(a || b),
                }
            }
            Instruction::Not(a) => {
                let a = condition(&condition_inputs, &condition_results, a);
                condition_results.push(!a);
            }
        }
    }

    #[unroll]
    for i in 0..float_outputs.len() {
        let index = comptime!(program.float_outputs()[i]);
        let output = float_outputs.index_mut(i);
        output[element as usize] = float_results[index];
    }
    #[unroll]
    for i in 0..condition_outputs.len() {
        let index = comptime!(program.condition_outputs()[i]);
        let output = condition_outputs.index_mut(i);
        output[element as usize] = select(condition_results[index], B::from_int(1), B::from_int(0));
    }
}

/// The same bits, in a form about which a compiler knows nothing: `zero` is 0.
#[cube]
fn opaque(x: f32, zero: u32) -> f32 {
    f32::reinterpret(u32::reinterpret(x) ^ zero)
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
