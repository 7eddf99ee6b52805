//! In what two operations differ.

use crate::record::Operation;

/// In what an operation of one recording differs from that of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contrast {
    /// It is the same, results included.
    Same,
    /// It is another operation: in what.
    Program(String),
    /// It has another parameter.
    Parameters,
    /// It failed in this recording alone.
    Failure(usize),
    /// It has other results: these.
    Results(Vec<usize>),
    /// It left other values in an operand.
    Operands,
}

/// Compares two operations but for the origins of their operands. What comes first here decides.
pub(super) fn contrast([one, other]: [&Operation; 2]) -> Contrast {
    if one.name != other.name {
        return Contrast::Program(format!("`{}` in the first, `{}` in the second", one.name, other.name));
    }
    let tensors = |operation: &Operation| -> Vec<String> {
        operation.inputs.iter().map(|input| described(&input.shape, &input.dtype)).collect()
    };
    if let Some(what) = differing("operand", &tensors(one), &tensors(other)) {
        return Contrast::Program(what);
    }
    if one.parameters != other.parameters {
        return Contrast::Parameters;
    }
    if one.error.is_some() != other.error.is_some() {
        return Contrast::Failure(usize::from(other.error.is_some()));
    }
    let results = |operation: &Operation| -> Vec<String> {
        operation.outputs.iter().map(|output| described(&output.shape, &output.dtype)).collect()
    };
    let (results, others) = (results(one), results(other));
    // The shape of data is data.
    let is_data = is_data(one) && results.len() == others.len();
    if let Some(what) = differing("result", &results, &others).filter(|_| !is_data) {
        return Contrast::Program(what);
    }
    let outputs: Vec<usize> =
        (0..one.outputs.len()).filter(|&output| agree([one, other], output) == Some(false)).collect();
    if outputs.is_empty() { Contrast::Same } else { Contrast::Results(outputs) }
}

/// Whether a result is the same; `None` where its digest is unknown. Both operations have it.
pub(super) fn agree([one, other]: [&Operation; 2], output: usize) -> Option<bool> {
    let failed = [one, other].map(|operation| operation.error.is_some());
    let [a, b] = [one, other].map(|operation| &operation.outputs[output]);
    if failed != [false; 2] || (&a.shape, &a.dtype) != (&b.shape, &b.dtype) {
        return Some(failed == [true; 2]);
    }
    Some(a.digest? == b.digest?)
}

/// The operands that were the same before a custom operation and differ after it.
pub(super) fn overwritten([one, other]: [&Operation; 2], operands: &[Option<bool>]) -> Vec<usize> {
    let differs = |operand: &usize| {
        let [a, b] = [one, other].map(|operation| operation.operands_after.get(*operand).copied().flatten());
        operands[*operand] == Some(true) && a.zip(b).is_some_and(|(a, b)| a != b)
    };
    (0..operands.len()).filter(differs).collect()
}

/// Whether an operation's result is made elsewhere: by the host, or by another thread.
pub(super) fn is_data(operation: &Operation) -> bool {
    [Operation::UPLOAD, Operation::RECEIVE].contains(&operation.name.as_str())
}

fn differing(what: &str, first: &[String], second: &[String]) -> Option<String> {
    if first.len() != second.len() {
        return Some(format!("{} {what}s in the first, {} in the second", first.len(), second.len()));
    }
    let index = first.iter().zip(second).position(|(one, other)| one != other)?;
    Some(format!("{what} {index} is {} in the first, {} in the second", first[index], second[index]))
}

pub(super) fn described(shape: &[u64], dtype: &str) -> String {
    format!("{shape:?} {dtype}")
}
