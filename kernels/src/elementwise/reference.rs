//! The same program in plain Rust, one instruction after the other.

use super::program::{Binary, Comparison, Condition, Instruction, IntBinary, Logic, Program, Unary, Value};
use crate::function::reference as function;
use half::{bf16, f16};

/// The result of an instruction.
pub(crate) enum Done {
    /// Of one that gives a word.
    Word(u32),
    /// Of one that gives a condition.
    Flag(bool),
}

/// The word outputs and the condition outputs for one element. `inputs` of a half type are the bits of their numbers as f32,
/// and half outputs follow the word outputs in the same form.
///
/// # Panics
///
/// When an instruction is about rows, or the program has windows.
pub fn run(program: &Program, inputs: &[u32], conditions: &[bool], scalars: &[u32]) -> (Vec<u32>, Vec<bool>) {
    run_within(program, inputs, conditions, scalars, &[])
}

/// The same for an element that is `within` each of the program's windows or not. Inputs whose window it is not in are not used.
///
/// # Panics
///
/// When an instruction is about rows.
pub fn run_within(
    program: &Program,
    inputs: &[u32],
    conditions: &[bool],
    scalars: &[u32],
    within: &[bool],
) -> (Vec<u32>, Vec<bool>) {
    let mut words: Vec<u32> = Vec::new();
    let mut flags: Vec<bool> = Vec::new();
    for &instruction in program.instructions() {
        let word = |value: Value| match value {
            Value::Input(index) => inputs[index],
            Value::Scalar(index) => scalars[index],
            Value::Result(index) => words[index],
        };
        let flag = |condition: Condition| match condition {
            Condition::Input(index) => conditions[index],
            Condition::Result(index) => flags[index],
        };
        if let Instruction::Within(window) = instruction {
            flags.push(within[window]);
            continue;
        }
        match step(instruction, word, flag) {
            Done::Word(result) => words.push(result),
            Done::Flag(result) => flags.push(result),
        }
    }
    (
        program.word_outputs().iter().chain(program.half_outputs()).map(|index| words[*index]).collect(),
        program.condition_outputs().iter().map(|index| flags[*index]).collect(),
    )
}

/// One instruction on one element.
///
/// # Panics
///
/// When it is about the element's place.
pub(crate) fn step(instruction: Instruction, word: impl Fn(Value) -> u32, flag: impl Fn(Condition) -> bool) -> Done {
    let float = |value: Value| f32::from_bits(word(value));
    let int = |value: Value| word(value).cast_signed();
    match instruction {
        Instruction::Unary(function, x) => Done::Word(unary(function, float(x)).to_bits()),
        Instruction::Binary(function, a, b) => Done::Word(binary(function, float(a), float(b)).to_bits()),
        Instruction::IntBinary(function, a, b) => {
            Done::Word(int_binary(function, int(a).into(), int(b).into(), i32::BITS) as u32)
        }
        Instruction::ToFloat(x) => Done::Word((int(x) as f32).to_bits()),
        Instruction::ToInt(x) => Done::Word((float(x) as i32).cast_unsigned()),
        Instruction::Select(mask, a, b) => Done::Word(if flag(mask) { word(a) } else { word(b) }),
        Instruction::Indicator(mask) => Done::Word(f32::from(u8::from(flag(mask))).to_bits()),
        Instruction::IntIndicator(mask) => Done::Word(u32::from(flag(mask))),
        Instruction::Compare(comparison, a, b) => Done::Flag(compare(comparison, float(a), float(b))),
        Instruction::CompareInt(comparison, a, b) => Done::Flag(compare(comparison, int(a), int(b))),
        Instruction::Logic(Logic::And, a, b) => Done::Flag(flag(a) && flag(b)),
        Instruction::Logic(Logic::Or, a, b) => Done::Flag(flag(a) || flag(b)),
        Instruction::Logic(Logic::Xor, a, b) => Done::Flag(flag(a) != flag(b)),
        Instruction::Not(a) => Done::Flag(!flag(a)),
        Instruction::Fill(x, _) => Done::Word(word(x)),
        // `run_within` and the reference of `rows` have them.
        Instruction::Reduce(..) | Instruction::Place | Instruction::Within(_) => {
            panic!("{instruction:?} is about a place")
        }
    }
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
        Unary::ToF16 => f16::from_f32(x).to_f32(),
        Unary::ToBf16 => bf16::from_f32(x).to_f32(),
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
        Binary::Remainder => remainder(a, b),
    }
}

/// What is left of a division that rounds down: Rust's `%` is exact.
fn remainder(a: f32, b: f32) -> f32 {
    let rest = a % b;
    if rest == 0.0 {
        return 0f32.copysign(b);
    }
    if rest.is_sign_negative() != b.is_sign_negative() { rest + b } else { rest }
}

/// A function of two integers of `bits` bits; the lowest so many of the result are the integer.
pub fn int_binary(function: IntBinary, a: i128, b: i128, bits: u32) -> i128 {
    let places = u32::try_from(b).unwrap_or(bits).min(bits);
    match function {
        IntBinary::Add => a + b,
        IntBinary::Subtract => a - b,
        IntBinary::Multiply => a.wrapping_mul(b),
        IntBinary::And => a & b,
        IntBinary::Or => a | b,
        IntBinary::Xor => a ^ b,
        IntBinary::Divide if b == 0 => 0,
        IntBinary::Divide => a / b,
        IntBinary::Remainder if b == 0 => 0,
        IntBinary::Remainder => {
            let rest = a % b;
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        }
        IntBinary::ShiftLeft => a << places,
        IntBinary::ShiftRight => a >> places,
        IntBinary::Power => power(a, b),
    }
}

/// Its lowest 64 bits.
fn power(a: i128, b: i128) -> i128 {
    if b >= 0 {
        let (mut product, mut factor, mut rest) = (1u64, a as u64, b);
        while rest > 0 {
            product = if rest & 1 == 1 { product.wrapping_mul(factor) } else { product };
            factor = factor.wrapping_mul(factor);
            rest >>= 1;
        }
        return product.into();
    }
    match a {
        1 => 1,
        -1 if b & 1 == 0 => 1,
        -1 => -1,
        _ => 0,
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
