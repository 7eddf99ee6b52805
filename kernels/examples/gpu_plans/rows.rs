//! Programs that reduce rows.

use crate::case::{BF16, Case, F32, I32, indices, tensor};
use burn_deterministic_kernels::elementwise::{
    Binary, Extent, Half, Instruction, Operands, Program, RowReduction, Unary, Value,
};
use burn_deterministic_kernels::index_check::Flags;
use burn_deterministic_kernels::rows::RowProgram;
use cubecl::ir::ElemType;
use std::sync::Arc;

/// Rows, and the elements of each: of scores of attention, of features, of long rows.
const SHAPES: [[usize; 2]; 3] = [[65_536, 32], [16_384, 1024], [2048, 4096]];

pub fn cases() -> Vec<Case> {
    let softmaxes = SHAPES.map(|shape| case("softmax", shape, F32, 5, softmax(None)));
    let half = case("softmax", SHAPES[1], BF16, 5, softmax(Some(Half::Bf16)));
    let norm = case("layer norm", [16_384, 1024], F32, 6, layer_norm());
    softmaxes.into_iter().chain([half, norm, cross_entropy(), cross_entropy_gradient()]).collect()
}

/// A program of so many operations an element, of one operand and one result of `dtype`.
fn case(label: &str, shape: [usize; 2], dtype: ElemType, operations: usize, program: Program) -> Case {
    let [rows, length] = shape;
    let elements = rows * length;
    let program = RowProgram::new(Arc::new(program), vec![false], vec![]);
    Case::new("rows", format!("{label} of {length}"), dtype, format!("[{rows}, {length}]"))
        .flops(operations * elements)
        .elements(2 * elements)
        .runs(move |client| {
            let operands = Operands {
                words: vec![tensor(client, &shape, dtype)],
                conditions: vec![],
                scalars: vec![1f32.to_bits()],
            };
            program.run(client, &shape, operands, I32, &[]).map(|_| ())
        })
}

/// Softmax; its results are rounded to `half`, if there is one.
fn softmax(half: Option<Half>) -> Program {
    let mut program = Program::default();
    let largest = program.word(Instruction::Reduce(RowReduction::Max, Value::Input(0)));
    let mut rounded = |instruction: Instruction| {
        let exact = program.word(instruction);
        half.map_or(exact, |half| program.rounded(exact, half))
    };
    let shifted = rounded(Instruction::Binary(Binary::Subtract, Value::Input(0), largest));
    let exponential = rounded(Instruction::Unary(Unary::Exponential, shifted));
    let total = rounded(Instruction::Reduce(RowReduction::Sum, exponential));
    let quotient = rounded(Instruction::Binary(Binary::Divide, exponential, total));
    let Value::Result(quotient) = quotient else { unreachable!("a result") };
    match half {
        Some(half) => program.output_half(quotient, half),
        None => program.output_word(quotient),
    }
    program
}

/// Rows and classes of a loss.
const CLASSES: [usize; 2] = [16_384, 1000];

/// The logarithm of each row's softmax and its element at the row's class, with the place of the largest element, which Burn's
/// gradient passes through.
fn cross_entropy() -> Case {
    let mut program = Program::default();
    let largest = program.word(Instruction::Reduce(RowReduction::FirstMax, Value::Input(0)));
    let place = program.word(Instruction::Reduce(RowReduction::ArgMax, Value::Input(0)));
    let shifted = program.word(Instruction::Binary(Binary::Subtract, Value::Input(0), largest));
    let exponential = program.word(Instruction::Unary(Unary::Exponential, shifted));
    let total = program.word(Instruction::Reduce(RowReduction::Sum, exponential));
    let logarithm = program.word(Instruction::Unary(Unary::Logarithm, total));
    let result = program.word(Instruction::Binary(Binary::Subtract, shifted, logarithm));
    let chosen = program.gather(result, 1, Value::Scalar(0));
    outputs(&mut program, [place, shifted, total, chosen]);
    at_classes("cross entropy", program, 7)
}

/// Its gradient: the row's number at its class, less as much of each element's share of the row.
fn cross_entropy_gradient() -> Case {
    let mut program = Program::default();
    let zeros = program.word(Instruction::Fill(Value::Scalar(0), Extent::Elements));
    let negative_zero = program.word(Instruction::Unary(Unary::Negate, Value::Scalar(0)));
    let at_class = program.scatter_add(zeros, 1, Value::Input(2), negative_zero, None);
    let total = program.word(Instruction::Reduce(RowReduction::Sum, at_class));
    let exponential = program.word(Instruction::Unary(Unary::Exponential, Value::Input(0)));
    let share = program.word(Instruction::Binary(Binary::Multiply, exponential, total));
    let result = program.word(Instruction::Binary(Binary::Subtract, at_class, share));
    outputs(&mut program, [result]);
    at_classes("cross entropy's gradient", program, 5)
}

fn outputs<const N: usize>(program: &mut Program, values: [Value; N]) {
    for value in values {
        let Value::Result(index) = value else { unreachable!("a result") };
        program.output_word(index);
    }
}

/// A program of elements, of a class for each row, and of a number for each row.
fn at_classes(label: &str, program: Program, operations: usize) -> Case {
    let [rows, length] = CLASSES;
    let elements = rows * length;
    let program = RowProgram::new(Arc::new(program), vec![false, true, true], vec![]);
    Case::new("rows", format!("{label} of {length}"), F32, format!("[{rows}, {length}]"))
        .flops(operations * elements)
        .elements(2 * elements + rows)
        .indices(rows)
        .runs(move |client| {
            let [elements, numbers] = [[rows, length], [rows, 1]].map(|shape| tensor(client, &shape, F32));
            let words = vec![elements, indices(client, &[rows, 1], length), numbers];
            let operands = Operands { words, conditions: vec![], scalars: vec![0] };
            let flags = Flags::new(client, 1);
            program.run(client, &CLASSES, operands, I32, &[flags.flag(0)]).map(|_| ())
        })
}

fn layer_norm() -> Program {
    let mut program = Program::default();
    let mean = program.word(Instruction::Reduce(RowReduction::Mean, Value::Input(0)));
    let centred = program.word(Instruction::Binary(Binary::Subtract, Value::Input(0), mean));
    let square = program.word(Instruction::Binary(Binary::Multiply, centred, centred));
    let variance = program.word(Instruction::Reduce(RowReduction::Mean, square));
    let raised = program.word(Instruction::Binary(Binary::Add, variance, Value::Scalar(0)));
    let deviation = program.word(Instruction::Unary(Unary::SquareRoot, raised));
    program.word(Instruction::Binary(Binary::Divide, centred, deviation));
    program.output_word(6);
    program
}
