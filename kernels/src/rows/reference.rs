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
            let row: Vec<u32> = (0..length).map(|element| word(value, element)).collect();
            new_words = vec![reduced(reduction, &row); length];
        } else if instruction == Instruction::Place {
            new_words = (0..length as u32).collect();
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

fn reduced(reduction: RowReduction, row: &[u32]) -> u32 {
    let floats: Vec<f32> = row.iter().map(|&bits| f32::from_bits(bits)).collect();
    let (max, min) = (|| reference::argmax(&floats), || reference::argmin(&floats));
    match reduction {
        RowReduction::Sum => reference::sum(&floats).to_bits(),
        RowReduction::Prod => reference::prod(&floats).to_bits(),
        RowReduction::Mean => reference::mean(&floats).to_bits(),
        RowReduction::Max => reference::max(&floats).expect("a row has an element").to_bits(),
        RowReduction::Min => reference::min(&floats).expect("a row has an element").to_bits(),
        RowReduction::FirstMax => row[max().expect("a row has an element")],
        RowReduction::FirstMin => row[min().expect("a row has an element")],
        RowReduction::ArgMax => max().expect("a row has an element") as u32,
        RowReduction::ArgMin => min().expect("a row has an element") as u32,
        RowReduction::Or => row.iter().fold(0, |or, word| or | word),
    }
}
