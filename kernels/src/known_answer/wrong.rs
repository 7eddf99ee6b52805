//! What is said of an answer that is wrong.

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{test} of {operands} is {got}, want {expected}")]
pub struct WrongAnswer {
    /// The operation: `multiply_rounded(a, b) + c`.
    pub test: &'static str,
    /// Its operands, as bits.
    pub operands: String,
    /// The right answer as bits, or the right answers.
    pub expected: String,
    /// The device's answer as bits.
    pub got: String,
}
