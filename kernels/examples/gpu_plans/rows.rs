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
    let softmaxes = SHAPES.map(|shape| case("softmax", shape, F32, 5, softmax(None)));
    let half = case("softmax", SHAPES[1], BF16, 5, softmax(Some(Half::Bf16)));
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
