//! The same program in plain Rust, one instruction after the other on all elements of a row.

use crate::elementwise::reference::{Done, step};
use crate::elementwise::{Condition, Instruction, Program, RowReduction, Value};
use crate::reduce::reference;

/// The word outputs and the condition outputs of one row, of `length` elements each: what is one value a row is there as often.
/// Operands likewise. Half outputs follow the word outputs, as in [`elementwise::reference`](crate::elementwise::reference).
///
/// # Panics
///
/// When there is no element.
pub fn run(
    program: &Program,
    length: usize,
    inputs: &[Vec<u32>],
    conditions: &[Vec<bool>],
    scalars: &[u32],
) -> (Vec<Vec<u32>>, Vec<Vec<bool>>) {
    let mut words: Vec<Vec<u32>> = Vec::new();
    let mut flags: Vec<Vec<bool>> = Vec::new();
    for &instruction in program.instructions() {
        let word = |value: Value, element: usize| match value {
            Value::Input(index) => inputs[index][element],
            Value::Scalar(index) => scalars[index],
            Value::Result(index) => words[index][element],
        };
        let flag = |condition: Condition, element: usize| match condition {
            Condition::Input(index) => conditions[index][element],
            Condition::Result(index) => flags[index][element],
        };
        let (mut new_words, mut new_flags) = (Vec::new(), Vec::new());
        if let Instruction::Reduce(reduction, value) = instruction {
            let row: Vec<f32> = (0..length).map(|element| f32::from_bits(word(value, element))).collect();
            new_words = vec![reduced(reduction, &row).to_bits(); length];
        } else {
            for element in 0..length {
                match step(instruction, |value| word(value, element), |condition| flag(condition, element)) {
                    Done::Word(result) => new_words.push(result),
                    Done::Flag(result) => new_flags.push(result),
                }
            }
        }
        match instruction.is_word() {
            true => words.push(new_words),
            false => flags.push(new_flags),
        }
    }
    (
        program.word_outputs().iter().chain(program.half_outputs()).map(|index| words[*index].clone()).collect(),
        program.condition_outputs().iter().map(|index| flags[*index].clone()).collect(),
    )
}

fn reduced(reduction: RowReduction, row: &[f32]) -> f32 {
    match reduction {
        RowReduction::Sum => reference::sum(row),
        RowReduction::Prod => reference::prod(row),
        RowReduction::Mean => reference::mean(row),
        RowReduction::Max => reference::max(row).expect("a row has an element"),
        RowReduction::Min => reference::min(row).expect("a row has an element"),
    }
}
