//! Programs that reduce rows.

use crate::case::{BF16, Case, F32, I32, tensor};
use burn_deterministic_kernels::elementwise::{
    Binary, Half, Instruction, Operands, Program, RowReduction, Unary, Value,
};
use burn_deterministic_kernels::rows::RowProgram;
use cubecl::ir::ElemType;
use std::sync::Arc;

/// Rows, and the elements of each: of scores of attention, of features, of long rows.
const SHAPES: [[usize; 2]; 3] = [[65_536, 32], [16_384, 1024], [2048, 4096]];

pub fn cases() -> Vec<Case> {
    let softmaxes = SHAPES.map(|shape| case("softmax", shape, F32, 5, softmax()));
    let half = case("softmax", SHAPES[1], BF16, 5, half_softmax(Half::Bf16));
    let norm = case("layer norm", [16_384, 1024], F32, 6, layer_norm());
    softmaxes.into_iter().chain([half, norm]).collect()
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
            program.run(client, &shape, operands, I32).map(|_| ())
        })
}

fn softmax() -> Program {
    let mut program = Program::default();
    let largest = program.word(Instruction::Reduce(RowReduction::Max, Value::Input(0)));
    let shifted = program.word(Instruction::Binary(Binary::Subtract, Value::Input(0), largest));
    let exponential = program.word(Instruction::Unary(Unary::Exponential, shifted));
    let total = program.word(Instruction::Reduce(RowReduction::Sum, exponential));
    program.word(Instruction::Binary(Binary::Divide, exponential, total));
    program.output_word(4);
    program
}

/// Softmax whose results are each rounded to a half type.
fn half_softmax(half: Half) -> Program {
    let mut program = Program::default();
    let largest = program.word(Instruction::Reduce(RowReduction::Max, Value::Input(0)));
    let difference = program.word(Instruction::Binary(Binary::Subtract, Value::Input(0), largest));
    let shifted = program.rounded(difference, half);
    let exponential = program.word(Instruction::Unary(Unary::Exponential, shifted));
    let exponential = program.rounded(exponential, half);
    let sum = program.word(Instruction::Reduce(RowReduction::Sum, exponential));
    let total = program.rounded(sum, half);
    let quotient = program.word(Instruction::Binary(Binary::Divide, exponential, total));
    program.rounded(quotient, half);
    program.output_half(8, half);
    program
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
