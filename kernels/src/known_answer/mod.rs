//! Known-answer test of a device's arithmetic.
//!
//! [`ask`] has the device compute the questions of [`questions`], a few operations on a few numbers; [`judge`] compares
//! its answers with constants. What the kernels and their references rely on must be right:
//!
//! - `+`, `-`, `*` and `multiply_rounded` round to nearest, ties to even;
//! - no compiler contracts a `multiply_rounded` with the sum that follows;
//! - `fma` rounds once or twice, and the same way each time;
//! - signed zeros have IEEE 754's signs, a constant -0 is one, and `<`, `<=`, `==`, `>` and `>=` with NaN are false;
//! - casts between f32 and the half types the device stores are exact where they can be.
//!
//! What Vulkan and WebGPU leave to the device is recorded in [`Arithmetic`], and no failure: the meaning of `fma`,
//! subnormal numbers, the last bits of `/` and `sqrt` (at most [`MAX_ULP`] from the nearest float), `!=` with NaN, and
//! the rounding of narrowing casts. [`require_exact`] leaves the device only the meaning of `fma` and `!=` with NaN:
//! what no kernel uses whose bits are to be equal on every device.

mod kernel;
mod questions;

use crate::arithmetic::MultiplyAdd;
use core::fmt;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::server::ServerError;
pub use questions::MAX_ULP;
use questions::{Expected, Question};

/// What a device that passes the test makes of the operations whose result is left to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Arithmetic {
    /// How often a multiply-add rounds.
    pub multiply_add: MultiplyAdd,
    /// Subnormal f32 numbers, as operands and as results of `+`, `-`, `*` and `fma`.
    pub subnormals: Subnormals,
    /// The rounding of `/`.
    pub division: Rounding,
    /// The rounding of `sqrt`.
    pub square_root: Rounding,
    /// Whether `a != b` is true where one is NaN, as IEEE 754 says; all other comparisons with NaN are false.
    pub nan_is_unequal: bool,
    /// Casts of f16; `None` where the device does not store it.
    pub f16: Option<Casts>,
    /// Casts of bf16; `None` where the device does not store it.
    pub bf16: Option<Casts>,
}

/// What a device makes of casts between f32 and a half type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Casts {
    /// The rounding of a cast from f32.
    pub narrowing: Rounding,
    /// Subnormal numbers of the half type.
    pub subnormals: Subnormals,
}

/// What becomes of subnormal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subnormals {
    /// They are computed with, as IEEE 754 says.
    Kept,
    /// They are taken for zero.
    Flushed,
    /// Some operations keep them, others take them for zero.
    Mixed,
}

/// Which float near the exact result an operation gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// The nearest, ties to even.
    NearestEven,
    /// Another one nearby.
    Approximate,
}

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

/// A device's answers, in the order of the questions, each as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    f32: Vec<u32>,
    f16: Option<Vec<u32>>,
    bf16: Option<Vec<u32>>,
}

/// Has the device compute the answers, and waits for them: two launches, and one for each half type that it stores.
///
/// # Errors
///
/// When the device fails.
pub fn ask(client: &Client) -> Result<Answers, ServerError> {
    let halves = |kind: FloatKind, questions: &[Question]| {
        let dtype = ElemType::Float(kind);
        let stored = client.properties().supports_type(dtype);
        stored.then(|| kernel::ask_halves(client, dtype, questions)).transpose()
    };
    Ok(Answers {
        f32: kernel::ask_f32(client, questions::F32)?,
        f16: halves(FloatKind::F16, questions::F16)?,
        bf16: halves(FloatKind::BF16, questions::BF16)?,
    })
}

/// Compares the answers with the right ones.
///
/// # Errors
///
/// The first wrong answer.
pub fn judge(answers: &Answers) -> Result<Arithmetic, WrongAnswer> {
    let full = judge_all(questions::F32, &answers.f32)?;
    let casts = |questions: &[Question], answers: &Option<Vec<u32>>| {
        answers.as_ref().map(|answers| judge_all(questions, answers).map(|record| record.casts())).transpose()
    };
    Ok(Arithmetic {
        multiply_add: full.multiply_add.expect("the table asks for a multiply-add"),
        subnormals: full.subnormals.expect("the table asks for subnormal numbers"),
        division: full.division,
        square_root: full.square_root,
        nan_is_unequal: full.nan_is_unequal,
        f16: casts(questions::F16, &answers.f16)?,
        bf16: casts(questions::BF16, &answers.bf16)?,
    })
}

/// Requires of answers that [`judge`] has passed that quotients, square roots, casts and subnormal numbers are IEEE
/// 754's too.
///
/// # Errors
///
/// The first answer that is not.
pub fn require_exact(answers: &Answers) -> Result<(), WrongAnswer> {
    let tables = [
        (questions::F32, Some(&answers.f32)),
        (questions::F16, answers.f16.as_ref()),
        (questions::BF16, answers.bf16.as_ref()),
    ];
    let answered = tables.into_iter().filter_map(|(questions, answers)| Some(questions.iter().zip(answers?)));
    for (question, &got) in answered.flatten() {
        if let Expected::Subnormal(bits) | Expected::Nearest { bits, .. } = question.expected
            && got != bits
        {
            return Err(question.wrong(&Expected::Bits(bits), got));
        }
    }
    Ok(())
}

/// What the answers of one table say of the operations that are left to the device.
struct Record {
    multiply_add: Option<MultiplyAdd>,
    subnormals: Option<Subnormals>,
    division: Rounding,
    square_root: Rounding,
    nan_is_unequal: bool,
    narrowing: Rounding,
}

impl Record {
    fn casts(&self) -> Casts {
        let subnormals = self.subnormals.expect("the table asks for subnormal numbers");
        Casts { narrowing: self.narrowing, subnormals }
    }
}

fn judge_all(questions: &[Question], answers: &[u32]) -> Result<Record, WrongAnswer> {
    assert_eq!(questions.len(), answers.len(), "one answer a question");
    let exact = Rounding::NearestEven;
    let mut record = Record {
        multiply_add: None,
        subnormals: None,
        division: exact,
        square_root: exact,
        nan_is_unequal: true,
        narrowing: exact,
    };
    for (question, &got) in questions.iter().zip(answers) {
        record.note(question, got)?;
    }
    Ok(record)
}

impl Record {
    fn note(&mut self, question: &Question, got: u32) -> Result<(), WrongAnswer> {
        let right = match question.expected {
            Expected::Bits(bits) => got == bits,
            Expected::MultiplyAdd { fused, unfused } => {
                let meaning = [(fused, MultiplyAdd::Fused), (unfused, MultiplyAdd::Unfused)]
                    .into_iter()
                    .find_map(|(bits, meaning)| (bits == got).then_some(meaning));
                // One meaning for all.
                meaning.is_some_and(|meaning| *self.multiply_add.get_or_insert(meaning) == meaning)
            }
            Expected::Subnormal(bits) => {
                let is_zero = got & !questions::sign(question.operation) == 0;
                let seen = if got == bits { Subnormals::Kept } else { Subnormals::Flushed };
                if *self.subnormals.get_or_insert(seen) != seen {
                    self.subnormals = Some(Subnormals::Mixed);
                }
                got == bits || is_zero
            }
            Expected::Nearest { bits, within } => {
                if got != bits {
                    *self.rounding(question) = Rounding::Approximate;
                }
                got.abs_diff(bits) <= within
            }
            Expected::Unordered => {
                self.nan_is_unequal &= got == questions::UNORDERED;
                got == questions::UNORDERED || got == 0
            }
        };
        match right {
            true => Ok(()),
            false => Err(question.wrong(&question.expected, got)),
        }
    }

    fn rounding(&mut self, question: &Question) -> &mut Rounding {
        match question.operation {
            questions::Operation::Divide => &mut self.division,
            questions::Operation::SquareRoot => &mut self.square_root,
            _ => &mut self.narrowing,
        }
    }
}

impl Question {
    fn wrong(&self, expected: &Expected, got: u32) -> WrongAnswer {
        WrongAnswer {
            test: self.operation.spelled(),
            operands: self.spelled_operands(),
            expected: expected.to_string(),
            got: format!("{got:#010x}"),
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits(bits) => write!(f, "{bits:#010x}"),
            Self::MultiplyAdd { fused, unfused } => {
                write!(f, "{fused:#010x} (one rounding) or {unfused:#010x} (two), the same way each time")
            }
            Self::Subnormal(bits) => write!(f, "{bits:#010x} or a zero"),
            Self::Nearest { bits, within } => write!(f, "{bits:#010x}, or at most {within} ULP from it"),
            Self::Unordered => write!(f, "{:#010x} or 0", questions::UNORDERED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use questions::Operation;

    /// The answers of a device that computes as IEEE 754 says, with this meaning of `fma`.
    fn right(fma: MultiplyAdd) -> Answers {
        let all = |questions: &[Question]| -> Vec<u32> {
            let answer = |question: &Question| match question.expected {
                Expected::Bits(bits) | Expected::Subnormal(bits) | Expected::Nearest { bits, .. } => bits,
                Expected::Unordered => questions::UNORDERED,
                Expected::MultiplyAdd { fused, unfused } => match fma {
                    MultiplyAdd::Fused => fused,
                    MultiplyAdd::Unfused => unfused,
                },
            };
            questions.iter().map(answer).collect()
        };
        Answers { f32: all(questions::F32), f16: Some(all(questions::F16)), bf16: Some(all(questions::BF16)) }
    }

    fn find(questions: &[Question], wanted: impl Fn(&Question) -> bool) -> usize {
        questions.iter().position(wanted).expect("such a question")
    }

    #[test]
    fn right_answers_pass_and_are_recorded() {
        for fma in [MultiplyAdd::Fused, MultiplyAdd::Unfused] {
            let casts = Casts { narrowing: Rounding::NearestEven, subnormals: Subnormals::Kept };
            let expected = Arithmetic {
                multiply_add: fma,
                subnormals: Subnormals::Kept,
                division: Rounding::NearestEven,
                square_root: Rounding::NearestEven,
                nan_is_unequal: true,
                f16: Some(casts),
                bf16: Some(casts),
            };
            assert_eq!(judge(&right(fma)), Ok(expected));
            assert_eq!(require_exact(&right(fma)), Ok(()));
        }
        let without = Answers { f16: None, bf16: None, ..right(MultiplyAdd::Fused) };
        let judged = judge(&without).expect("right answers");
        assert_eq!((judged.f16, judged.bf16), (None, None));
    }

    /// A bit that is wrong anywhere is found, but where the device may choose.
    #[test]
    fn one_wrong_bit_is_found() {
        let answers = right(MultiplyAdd::Fused);
        for (index, question) in questions::F32.iter().enumerate() {
            let mut wrong = answers.clone();
            // 2^21 ULP of a float that is not zero; a zero becomes none.
            wrong.f32[index] ^= 1 << 21;
            let found = judge(&wrong).expect_err("a wrong answer");
            assert_eq!((found.test, found.operands), (question.operation.spelled(), question.spelled_operands()));
            assert_eq!(found.got, format!("{:#010x}", wrong.f32[index]));
            if matches!(question.expected, Expected::Bits(_)) {
                wrong.f32[index] = answers.f32[index] ^ 1;
                judge(&wrong).expect_err("a wrong last bit");
                wrong.f32[index] = answers.f32[index] ^ 1 << 31;
                judge(&wrong).expect_err("a wrong sign");
            }
        }
        for (index, question) in questions::F16.iter().enumerate() {
            let mut wrong = answers.clone();
            wrong.f16.as_mut().expect("f16")[index] ^= 1 << 9;
            assert_eq!(judge(&wrong).expect_err("a wrong answer").test, question.operation.spelled());
        }
    }

    #[test]
    fn what_the_device_may_choose_is_recorded() {
        let mut answers = right(MultiplyAdd::Fused);
        let divided = find(questions::F32, |question| question.operation == Operation::Divide);
        answers.f32[divided] += 2;
        let judged = judge(&answers).expect("within the bound");
        assert_eq!((judged.division, judged.square_root), (Rounding::Approximate, Rounding::NearestEven));
        let wrong = require_exact(&answers).expect_err("not the nearest");
        assert_eq!((wrong.test, wrong.expected), ("a / b", format!("{:#010x}", answers.f32[divided] - 2)));
        answers.f32[divided] += MAX_ULP;
        judge(&answers).expect_err("too far");

        let mut answers = right(MultiplyAdd::Fused);
        let subnormal = |question: &Question| matches!(question.expected, Expected::Subnormal(_));
        answers.f32[find(questions::F32, subnormal)] = 1 << 31;
        assert_eq!(judge(&answers).map(|judged| judged.subnormals), Ok(Subnormals::Mixed));
        for (index, _) in questions::F32.iter().enumerate().filter(|(_, question)| subnormal(question)) {
            answers.f32[index] = 0;
        }
        require_exact(&answers).expect_err("flushed");
        assert_eq!(judge(&answers).map(|judged| judged.subnormals), Ok(Subnormals::Flushed));
    }

    #[test]
    fn a_multiply_add_of_two_meanings_is_refused() {
        let mut answers = right(MultiplyAdd::Fused);
        let question = |question: &Question| matches!(question.expected, Expected::MultiplyAdd { .. });
        let first = find(questions::F32, question);
        answers.f32[first] = right(MultiplyAdd::Unfused).f32[first];
        assert_eq!(judge(&answers).expect_err("two meanings").test, Operation::MultiplyAdd.spelled());
    }
}
