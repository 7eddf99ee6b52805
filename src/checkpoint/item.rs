//! What a checkpoint is listed as.

use super::scalar::{Number, Scalars};
use burn_backend::TensorData;

/// Something in a checkpoint: a tensor, a flag, a number of an optimizer, a part of a value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Item {
    /// The kind of the part that it is in: `module`, `optimizer`, `scheduler` or `value`; `checkpoint` for what belongs to no
    /// part.
    pub kind: &'static str,
    /// The part's name; empty for what belongs to no part.
    pub part: String,
    /// Where in the part it is: `conv1.weight` in a module, `conv1.weight: moment_1.moment` in an optimizer, `losses[12]` in a
    /// value.
    pub path: String,
    /// What it is.
    pub content: Content,
}

/// What an [`Item`] is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// A tensor with its values.
    Tensor(TensorData),
    /// Anything else, as text. Two numbers have one text if and only if they have the same bits, but for a NaN's payload.
    Text(String),
}

/// Lists scalars, whose names follow `before`.
pub(super) fn each_scalar(before: &str, scalars: &Scalars, add: &mut impl FnMut(String, Content)) {
    for (field, number) in scalars {
        let text = match number {
            Number::Int(value) => value.to_string(),
            Number::UInt(value) => value.to_string(),
            Number::Float(bits) => format!("{:?}", f64::from_bits(*bits)),
            Number::Bool(value) => value.to_string(),
        };
        add(format!("{before}{field}"), Content::Text(text));
    }
}
