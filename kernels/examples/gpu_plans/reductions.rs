//! Reductions and searches of extremes.

use crate::case::{Case, F32, FLOATS, I32, tensor};
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::elementwise::{Binary, Call, Instruction, Operands, Program, Value};
use burn_deterministic_kernels::reduce::extreme::{Extreme, search};
use burn_deterministic_kernels::reduce::{
    Operation, Reduced, ReductionCall, reduce, reduce_program, reduce_program_each,
};
use cubecl::ir::ElemType;
use cubecl::prelude::Client;
use std::sync::Arc;

/// What is reduced over what, so that each way to share blocks among units is taken.
const REDUCTIONS: [(&str, [usize; 2], &[usize]); 6] = [
    ("rows", [4096, 4096], &[1]),
    ("short rows", [1 << 18, 64], &[1]),
    ("rows of four blocks", [1024, 1 << 14], &[1]),
    ("columns", [4096, 4096], &[0]),
    ("many columns", [64, 1 << 18], &[0]),
    ("all", [4096, 4096], &[0, 1]),
];

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (label, shape, axes) in REDUCTIONS {
        cases.extend(FLOATS.map(|dtype| reduced(label, Operation::Sum, shape, axes, dtype)));
    }
    for operation in [Operation::Mean, Operation::Prod, Operation::Max, Operation::MaxAbs] {
        cases.push(reduced("rows", operation, [4096; 2], &[1], F32));
    }
    cases.push(reduced("rows", Operation::Any, [4096; 2], &[1], I32));
    for (label, shape, axes) in REDUCTIONS {
        cases.push(computed(label, shape, axes));
    }
    cases.extend([norms(), means()]);
    for (label, shape, axes) in REDUCTIONS.into_iter().filter(|reduction| reduction.2.len() == 1) {
        let found = move |client: &Client, values| {
            search(client, Extreme::Max, tensor(client, &shape, F32), axes[0], I32, values, None)
        };
        cases.push(searched("argmax", label, shape).runs(move |client| found(client, false)));
        cases.push(
            searched("max with indices", label, shape)
                .elements(outputs(shape, axes))
                .runs(move |client| found(client, true)),
        );
    }
    cases
}

fn outputs(shape: [usize; 2], axes: &[usize]) -> usize {
    (0..2).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).product()
}

fn base(what: &str, label: &str, shape: [usize; 2], dtype: ElemType) -> Case {
    let elements = shape.iter().product();
    Case::new("reduce", format!("{what} of {label}"), dtype, format!("{shape:?}")).flops(elements).elements(elements)
}

fn reduced(label: &str, operation: Operation, shape: [usize; 2], axes: &'static [usize], dtype: ElemType) -> Case {
    let what = format!("{operation:?}").to_lowercase();
    let case = base(&what, label, shape, dtype).elements(outputs(shape, axes));
    case.runs(move |client| reduce(client, operation, tensor(client, &shape, dtype), axes, None))
}

fn searched(what: &str, label: &str, shape: [usize; 2]) -> Case {
    base(what, label, shape, F32).indices(shape.iter().product::<usize>() / 4096)
}

/// The sums of squares of eight tensors.
fn norms() -> Case {
    let case = base("norms", "parameters side by side", [8 * 256, 256], F32);
    case.runs(|client| squares(client, &[256, 256], &[0, 1], false))
}

/// The sums of squares of channels of eight tensors, and their means.
fn means() -> Case {
    let case = base("sums and means", "channels side by side", [8 * 16 * 64, 64], F32);
    case.runs(|client| squares(client, &[16, 64, 64], &[0, 2], true))
}

fn squares(client: &Client, shape: &[usize], axes: &[usize], mean: bool) -> Result<Vec<Reduced>, KernelError> {
    let mut program = Program::default();
    program.word(Instruction::Binary(Binary::Multiply, Value::Input(0), Value::Input(0)));
    program.reduce(0);
    let program = Arc::new(program);
    let call = |_| {
        let operands = Operands { words: vec![tensor(client, shape, F32)], conditions: vec![], scalars: vec![] };
        let input = Call { program: &program, shape, operands, condition_dtype: I32 };
        ReductionCall { operation: Operation::Sum, input, axes, mean }
    };
    reduce_program_each(client, (0..8).map(call).collect())
}

/// The sum of products of two tensors, which are not written.
fn computed(label: &str, shape: [usize; 2], axes: &'static [usize]) -> Case {
    let elements: usize = shape.iter().product();
    let case = base("fused product and sum", label, shape, F32).flops(2 * elements);
    case.elements(elements + outputs(shape, axes)).runs(move |client| {
        let mut program = Program::default();
        program.word(Instruction::Binary(Binary::Multiply, Value::Input(0), Value::Input(1)));
        program.reduce(0);
        let words = vec![tensor(client, &shape, F32), tensor(client, &shape, F32)];
        let operands = Operands { words, conditions: vec![], scalars: vec![] };
        let input = Call { program: &Arc::new(program), shape: &shape, operands, condition_dtype: I32 };
        reduce_program(client, Operation::Sum, input, axes, None)
    })
}
