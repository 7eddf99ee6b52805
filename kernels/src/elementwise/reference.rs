//! The same program in plain Rust, one instruction after the other.
//!
//! The functions of the host's library stand for exponential, logarithm and hyperbolic tangent, which every device
//! computes in its own way: programs with them have no reference bits.

use super::{Binary, Comparison, Condition, Instruction, Logic, Program, Unary, Value};

/// The float outputs and the condition outputs for one element.
pub fn run(program: &Program, inputs: &[f32], conditions: &[bool], scalars: &[f32]) -> (Vec<f32>, Vec<bool>) {
    let mut floats: Vec<f32> = Vec::new();
    let mut flags: Vec<bool> = Vec::new();
    for instruction in program.instructions() {
        let value = |value: Value| match value {
            Value::Input(index) => inputs[index],
            Value::Scalar(index) => scalars[index],
            Value::Result(index) => floats[index],
        };
        let flag = |condition: Condition| match condition {
            Condition::Input(index) => conditions[index],
            Condition::Result(index) => flags[index],
        };
        match *instruction {
            Instruction::Unary(function, x) => floats.push(unary(function, value(x))),
            Instruction::Binary(function, a, b) => floats.push(binary(function, value(a), value(b))),
            Instruction::Select(mask, a, b) => floats.push(if flag(mask) { value(a) } else { value(b) }),
            Instruction::Indicator(mask) => floats.push(if flag(mask) { 1.0 } else { 0.0 }),
            Instruction::Compare(comparison, a, b) => flags.push(compare(comparison, value(a), value(b))),
            Instruction::Logic(Logic::And, a, b) => flags.push(flag(a) && flag(b)),
            Instruction::Logic(Logic::Or, a, b) => flags.push(flag(a) || flag(b)),
            Instruction::Not(a) => flags.push(!flag(a)),
        }
    }
    (
        program.float_outputs().iter().map(|index| floats[*index]).collect(),
        program.condition_outputs().iter().map(|index| flags[*index]).collect(),
    )
}

fn unary(function: Unary, x: f32) -> f32 {
    match function {
        Unary::Copy => x,
        Unary::Negate => -x,
        Unary::Absolute => x.abs(),
        Unary::Reciprocal => 1.0 / x,
        Unary::SquareRoot => x.sqrt(),
        Unary::Exponential => x.exp(),
        Unary::Logarithm => x.ln(),
        Unary::HyperbolicTangent => x.tanh(),
    }
}

fn binary(function: Binary, a: f32, b: f32) -> f32 {
    match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
    }
}

fn compare(comparison: Comparison, a: f32, b: f32) -> bool {
    match comparison {
        Comparison::Equal => a == b,
        Comparison::Greater => a > b,
        Comparison::GreaterEqual => a >= b,
        Comparison::Less => a < b,
        Comparison::LessEqual => a <= b,
    }
}
