//! The same program in plain Rust, one instruction after the other.

use super::program::{Binary, Comparison, Condition, Instruction, IntBinary, Logic, Program, Unary, Value};
use crate::function::reference as function;

/// The word outputs and the condition outputs for one element.
pub fn run(program: &Program, inputs: &[u32], conditions: &[bool], scalars: &[u32]) -> (Vec<u32>, Vec<bool>) {
    let mut words: Vec<u32> = Vec::new();
    let mut flags: Vec<bool> = Vec::new();
    for instruction in program.instructions() {
        let word = |value: Value| match value {
            Value::Input(index) => inputs[index],
            Value::Scalar(index) => scalars[index],
            Value::Result(index) => words[index],
        };
        let float = |value: Value| f32::from_bits(word(value));
        let int = |value: Value| word(value).cast_signed();
        let flag = |condition: Condition| match condition {
            Condition::Input(index) => conditions[index],
            Condition::Result(index) => flags[index],
        };
        match *instruction {
            Instruction::Unary(function, x) => words.push(unary(function, float(x)).to_bits()),
            Instruction::Binary(function, a, b) => words.push(binary(function, float(a), float(b)).to_bits()),
            Instruction::IntBinary(function, a, b) => words.push(int_binary(function, int(a), int(b)).cast_unsigned()),
            Instruction::ToFloat(x) => words.push((int(x) as f32).to_bits()),
            Instruction::ToInt(x) => words.push((float(x) as i32).cast_unsigned()),
            Instruction::Select(mask, a, b) => words.push(if flag(mask) { word(a) } else { word(b) }),
            Instruction::Indicator(mask) => words.push(f32::from(u8::from(flag(mask))).to_bits()),
            Instruction::IntIndicator(mask) => words.push(u32::from(flag(mask))),
            Instruction::Compare(comparison, a, b) => flags.push(compare(comparison, float(a), float(b))),
            Instruction::CompareInt(comparison, a, b) => flags.push(compare(comparison, int(a), int(b))),
            Instruction::Logic(Logic::And, a, b) => flags.push(flag(a) && flag(b)),
            Instruction::Logic(Logic::Or, a, b) => flags.push(flag(a) || flag(b)),
            Instruction::Logic(Logic::Xor, a, b) => flags.push(flag(a) != flag(b)),
            Instruction::Not(a) => flags.push(!flag(a)),
        }
    }
    (
        program.word_outputs().iter().map(|index| words[*index]).collect(),
        program.condition_outputs().iter().map(|index| flags[*index]).collect(),
    )
}

/// A function of an f32.
pub fn unary(function: Unary, x: f32) -> f32 {
    match function {
        Unary::Negate => -x,
        Unary::Absolute => x.abs(),
        Unary::Reciprocal => 1.0 / x,
        Unary::SquareRoot => x.sqrt(),
        Unary::Exponential => function::exponential::exp(x),
        Unary::Logarithm => function::exponential::log(x),
        Unary::LogarithmOfOnePlus => function::exponential::log1p(x),
        Unary::HyperbolicSine => function::exponential::sinh(x),
        Unary::HyperbolicCosine => function::exponential::cosh(x),
        Unary::HyperbolicTangent => function::exponential::tanh(x),
        Unary::HyperbolicArcSine => function::exponential::asinh(x),
        Unary::HyperbolicArcCosine => function::exponential::acosh(x),
        Unary::HyperbolicArcTangent => function::exponential::atanh(x),
        Unary::Sine => function::trigonometric::sin(x),
        Unary::Cosine => function::trigonometric::cos(x),
        Unary::Tangent => function::trigonometric::tan(x),
        Unary::ArcSine => function::trigonometric::asin(x),
        Unary::ArcCosine => function::trigonometric::acos(x),
        Unary::ArcTangent => function::trigonometric::atan(x),
        Unary::Erf => function::trigonometric::erf(x),
        Unary::Floor => x.floor(),
        Unary::Ceiling => x.ceil(),
        Unary::Round => x.round_ties_even(),
        Unary::Truncate => x.trunc(),
    }
}

/// A function of two f32.
pub fn binary(function: Binary, a: f32, b: f32) -> f32 {
    match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Power => function::exponential::powf(a, b),
        Binary::ArcTangent => function::trigonometric::atan2(a, b),
    }
}

fn int_binary(function: IntBinary, a: i32, b: i32) -> i32 {
    match function {
        IntBinary::Add => a.wrapping_add(b),
        IntBinary::Subtract => a.wrapping_sub(b),
        IntBinary::Multiply => a.wrapping_mul(b),
        IntBinary::And => a & b,
        IntBinary::Or => a | b,
        IntBinary::Xor => a ^ b,
    }
}

/// A comparison.
pub fn compare<T: PartialOrd>(comparison: Comparison, a: T, b: T) -> bool {
    match comparison {
        Comparison::Equal => a == b,
        Comparison::Greater => a > b,
        Comparison::GreaterEqual => a >= b,
        Comparison::Less => a < b,
        Comparison::LessEqual => a <= b,
    }
}
