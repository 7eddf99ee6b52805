//! Element-wise programs, and the questions that a device is asked.

use crate::case::{Case, F32, I32, indices, tensor};
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::elementwise::{
    Binary, Call, Comparison, Extent, Instruction, IntBinary, Operands, Program, Unary, Value, Window, of_integers,
    run, run_each,
};
use burn_deterministic_kernels::known_answer::{ask, ask_functions};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const ELEMENTS: usize = 1 << 24;

const UNARIES: [Unary; 14] = [
    Unary::Negate,
    Unary::Absolute,
    Unary::Reciprocal,
    Unary::SquareRoot,
    Unary::Exponential,
    Unary::Logarithm,
    Unary::HyperbolicTangent,
    Unary::Sine,
    Unary::Cosine,
    Unary::Erf,
    Unary::Floor,
    Unary::Ceiling,
    Unary::Round,
    Unary::Truncate,
];

pub fn cases() -> Vec<Case> {
    let square = 4096;
    let mut cases = vec![
        case("sum", ELEMENTS, 1, 3).runs(|client| {
            launch(
                client,
                binary(Binary::Add),
                vec![tensor(client, &[ELEMENTS], F32), tensor(client, &[ELEMENTS], F32)],
            )
        }),
        case("sum, transposed", ELEMENTS, 1, 3).runs(move |client| {
            let words = vec![tensor(client, &[square; 2], F32), crate::case::transposed(client, [square; 2], F32)];
            launch(client, binary(Binary::Add), words)
        }),
        case("sum, not in fours", ELEMENTS - 1, 1, 3).runs(|client| {
            let words = vec![tensor(client, &[ELEMENTS - 1], F32), tensor(client, &[ELEMENTS - 1], F32)];
            launch(client, binary(Binary::Add), words)
        }),
        case("chain of 8 products and sums", ELEMENTS, 8, 3).runs(|client| {
            launch(client, chain(), vec![tensor(client, &[ELEMENTS], F32), tensor(client, &[ELEMENTS], F32)])
        }),
        case("selected, of ints", ELEMENTS, 1, 3).runs(|client| {
            launch(client, selected(), vec![tensor(client, &[ELEMENTS], F32), tensor(client, &[ELEMENTS], I32)])
        }),
        case("a sum at an index of each row", 2048 * 32_000, 2, 2).indices(2048).runs(|client| {
            let words = vec![
                tensor(client, &[2048, 32_000], F32),
                indices(client, &[2048, 1], 32_000),
                tensor(client, &[2048, 1], F32),
            ];
            launch(client, at_indices(), words)
        }),
        case("slices of sequences, added", ELEMENTS, 16, 2).runs(|client| {
            let steps = tensor(client, &[512, 256, 128], F32);
            let words = [steps].into_iter().chain((0..16).map(|_| tensor(client, &[512, 1, 128], F32))).collect();
            let scalars = (0..16).chain([1, 0]).collect();
            let operands = Operands { words, conditions: vec![], scalars };
            run(client, &Arc::new(slices()), &[512, 256, 128], operands, I32).map(|_| ())
        }),
        // As an optimizer updates parameters.
        case("updates side by side", 8 << 16, 12, 6).runs(|client| {
            let operands = |_| Operands {
                words: [(); 3].map(|()| tensor(client, &[1 << 16], F32)).into(),
                conditions: vec![],
                scalars: [0.9f32, 0.1, 0.999, 0.001, 1e-5].map(f32::to_bits).into(),
            };
            let (program, shape) = (Arc::new(update()), [1 << 16]);
            let call = |operands| Call { program: &program, shape: &shape, operands, condition_dtype: I32 };
            run_each(client, (0..8).map(operands).map(call).collect()).map(|_| ())
        }),
        case("quotient of integers", ELEMENTS, 1, 3).runs(|client| {
            let [lhs, rhs] = [(); 2].map(|()| tensor(client, &[ELEMENTS], I32));
            of_integers(client, IntBinary::Divide, lhs, rhs, &[ELEMENTS])
        }),
        // What comes back is no answer where kernels are not run.
        Case::new("known_answer", "questions", F32, "a few")
            .runs(|client| -> Result<_, KernelError> { Ok(ask(client)) }),
        Case::new("known_answer", "functions", F32, "64 arguments")
            .runs(|client| -> Result<_, KernelError> { Ok(ask_functions(client, false)) }),
    ];
    for unary in UNARIES {
        let label = format!("{unary:?}").to_lowercase();
        cases.push(case(&label, ELEMENTS, 1, 2).runs(move |client| {
            let mut program = Program::default();
            program.word(Instruction::Unary(unary, Value::Input(0)));
            program.output_word(0);
            launch(client, program, vec![tensor(client, &[ELEMENTS], F32)])
        }));
    }
    cases
}

/// A program of so many operations an element, on so many tensors.
fn case(label: &str, elements: usize, operations: usize, tensors: usize) -> Case {
    let case = Case::new("elementwise", label, F32, format!("[{elements}]"));
    case.flops(operations * elements).elements(tensors * elements)
}

fn launch(client: &Client, program: Program, words: Vec<TensorHandle>) -> Result<(), KernelError> {
    let shape = words[0].shape().to_vec();
    let operands = Operands { words, conditions: vec![], scalars: vec![1f32.to_bits(), 0] };
    run(client, &Arc::new(program), &shape, operands, I32).map(|_| ())
}

fn binary(binary: Binary) -> Program {
    let mut program = Program::default();
    program.word(Instruction::Binary(binary, Value::Input(0), Value::Input(1)));
    program.output_word(0);
    program
}

fn chain() -> Program {
    let mut program = Program::default();
    let mut value = Value::Input(0);
    for _ in 0..4 {
        value = program.word(Instruction::Binary(Binary::Multiply, value, Value::Input(1)));
        value = program.word(Instruction::Binary(Binary::Add, value, Value::Scalar(0)));
    }
    program.output_word(7);
    program
}

/// Adam's moments and step.
fn update() -> Program {
    let mut program = Program::default();
    let mut value = |function, a, b| program.word(Instruction::Binary(function, a, b));
    let gradient = Value::Input(0);
    let kept = value(Binary::Multiply, Value::Input(1), Value::Scalar(0));
    let new = value(Binary::Multiply, gradient, Value::Scalar(1));
    let first = value(Binary::Add, kept, new);
    let kept = value(Binary::Multiply, Value::Input(2), Value::Scalar(2));
    let square = value(Binary::Multiply, gradient, gradient);
    let new = value(Binary::Multiply, square, Value::Scalar(3));
    let second = value(Binary::Add, kept, new);
    let root = program.word(Instruction::Unary(Unary::SquareRoot, second));
    let divisor = program.word(Instruction::Binary(Binary::Add, root, Value::Scalar(4)));
    let step = program.word(Instruction::Binary(Binary::Divide, first, divisor));
    for result in [first, second, step] {
        let Value::Result(index) = result else { unreachable!("an instruction has a result") };
        program.output_word(index);
    }
    program
}

/// The gradient of what a layer read of sequences step by step, as Burn adds it up: each step's in zeros.
fn slices() -> Program {
    let mut program = Program::default();
    let mut total = Value::Input(0);
    for step in 0..16 {
        let zeros = program.word(Instruction::Fill(Value::Scalar(17), Extent::Elements));
        let slice = program.assign(zeros, Value::Input(1 + step), Window { axis: 1, start: step, length: 16 });
        total = program.word(Instruction::Binary(Binary::Add, total, slice));
    }
    let Value::Result(total) = total else { unreachable!("a result") };
    program.output_word(total);
    program
}

/// The gradient of a loss of classes, as Burn computes it: a number at the class, and a multiple of each element.
fn at_indices() -> Program {
    let mut program = Program::default();
    let negative_zero = program.word(Instruction::Unary(Unary::Negate, Value::Scalar(1)));
    let multiple = program.word(Instruction::Binary(Binary::Multiply, Value::Input(0), Value::Scalar(0)));
    let updated = program.scatter_add(multiple, 1, Value::Input(2), negative_zero, None);
    let Value::Result(updated) = updated else { unreachable!("a result") };
    program.output_word(updated);
    program
}

fn selected() -> Program {
    let mut program = Program::default();
    let doubled = program.word(Instruction::IntBinary(IntBinary::Add, Value::Input(1), Value::Input(1)));
    let float = program.word(Instruction::ToFloat(doubled));
    let less = program.condition(Instruction::Compare(Comparison::Less, Value::Input(0), float));
    program.word(Instruction::Select(less, Value::Input(0), float));
    program.output_word(2);
    program
}
