//! Known-answer test of a device's arithmetic.
//!
//! [`ask`] has the device compute the questions of [`questions`], a few operations on a few numbers; [`judge`] compares
//! its answers with constants. What the kernels and their references rely on must be right:
//!
//! - `+`, `-`, `*` and `multiply_rounded` round to nearest, ties to even;
//! - no compiler contracts a `multiply_rounded` with the sum that follows;
//! - `fma` rounds once or twice, and the same way each time;
//! - negation, magnitudes and roundings to integers of normal numbers are exact; `round` takes ties to even;
//! - signed zeros have IEEE 754's signs, a constant -0 is one, and `<`, `<=`, `==`, `>` and `>=` with NaN are false;
//! - casts between f32 and the half types the device stores are exact where they can be.
//!
//! What Vulkan and WebGPU leave to the device is recorded in [`Arithmetic`], and no failure: the meaning of `fma`,
//! subnormal numbers, the last bits of `/` and `sqrt` (at most [`MAX_ULP`] from the nearest float), `!=` with NaN, and
//! the rounding of narrowing casts. [`require_exact`] leaves the device only the meaning of `fma` and `!=` with NaN:
//! what no kernel uses whose bits are to be equal on every device. It asks for minima, maxima, negations, magnitudes and
//! roundings of subnormal numbers and zeros too. [`ask_functions`] asks it for sums and for the
//! elementary functions too.
//!
//! Quotients and square roots that are off are no reason to refuse a device whose others kernels can
//! [correct](crate::quotient): [`quotients`] says which ones a kernel has on a device. It is asked once, before the first
//! launch of a kernel that divides.

mod functions;
mod kernel;
mod questions;
mod wrong;

use crate::append_only::AppendOnly;
use crate::arithmetic::MultiplyAdd;
use crate::device::{DeviceKey, device_key};
use crate::quotient::Quotients;
use core::fmt;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::server::ServerError;
pub use functions::FunctionAnswers;
pub use questions::MAX_ULP;
use questions::{Expected, Question};
pub use wrong::WrongAnswer;

/// What a device that passes the test makes of the operations whose result is left to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Arithmetic {
    /// How often a multiply-add rounds.
    pub multiply_add: MultiplyAdd,
    /// Subnormal f32 numbers, as operands and as results of `+`, `-`, `*` and `fma`, and in comparisons.
    pub subnormals: Subnormals,
    /// The rounding of `/` in kernels.
    pub division: Rounding,
    /// The rounding of `sqrt` in kernels.
    pub square_root: Rounding,
    /// Whether `a != b` is true where one is NaN, as IEEE 754 says; all other comparisons with NaN are false.
    pub nan_is_unequal: bool,
    /// Casts of f16; `None` where the device does not store it.
    pub f16: Option<Casts>,
    /// Casts of bf16; `None` where the device does not store it.
    pub bf16: Option<Casts>,
}

impl Arithmetic {
    /// Whether kernels must be told to [keep](crate::subnormals) subnormal numbers.
    pub fn takes_subnormals_for_zero(&self) -> bool {
        self.subnormals != Subnormals::Kept
    }
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
    /// The nearest, which kernels [find](crate::quotient) from what the device gives.
    Corrected,
}

/// A device's answers, in the order of the questions, each as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    f32: Vec<u32>,
    /// The same, with corrected quotients and square roots.
    corrected: Vec<u32>,
    f16: Option<Vec<u32>>,
    bf16: Option<Vec<u32>>,
}

/// Has the device compute the answers, and waits for them: two launches, and one for each half type that it stores. The
/// first answers decide which [`quotients`] kernels have on it.
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
    let (f32, corrected) = kernel::ask_f32(client, questions::F32, false)?;
    let answers = Answers {
        f32,
        corrected,
        f16: halves(FloatKind::F16, questions::F16)?,
        bf16: halves(FloatKind::BF16, questions::BF16)?,
    };
    QUOTIENTS.keep(device_key(client), needed(&answers));
    Ok(answers)
}

/// The answers of kernels that [keep](crate::subnormals) subnormal numbers: `answers`, where the device keeps them by itself, or
/// else those of two more launches.
///
/// # Errors
///
/// When the device fails.
pub fn ask_kept(client: &Client, answers: &Answers) -> Result<Answers, ServerError> {
    if !flushes(&answers.f32) {
        return Ok(answers.clone());
    }
    let (f32, _) = kernel::ask_f32(client, questions::F32, true)?;
    // Their quotients and roots are corrected ones.
    Ok(Answers { corrected: f32.clone(), f32, ..answers.clone() })
}

/// Has the device compute sums and the elementary functions of arguments that are edges, with the [`quotients`] that kernels
/// have on it, and waits for it: one launch, or one for each where the kernels are to [keep](crate::subnormals) subnormal
/// numbers.
///
/// # Errors
///
/// When the device fails.
pub fn ask_functions(client: &Client, kept: bool) -> Result<FunctionAnswers, ServerError> {
    functions::ask(client, quotients(client), kept)
}

/// Compares the answers with those of the references.
///
/// # Errors
///
/// The first wrong answer.
pub fn judge_functions(answers: &FunctionAnswers) -> Result<(), WrongAnswer> {
    functions::judge(answers)
}

/// What kernels have on each device.
static QUOTIENTS: AppendOnly<DeviceKey, Quotients> = AppendOnly::new();

/// Which quotients and square roots kernels have on a device: its own where they are exact, else corrected ones where
/// these are. Asks the device the first time, and waits for it.
///
/// Where it fails, it has corrected ones from then on.
pub fn quotients(client: &Client) -> Quotients {
    let known = || QUOTIENTS.get(&device_key(client)).copied();
    known().or_else(|| ask(client).ok().and_then(|_| known())).unwrap_or_else(|| {
        QUOTIENTS.keep(device_key(client), Quotients::Corrected);
        known().unwrap_or(Quotients::Corrected)
    })
}

/// Takes a device that has not been asked for one of these quotients: for programs that show which kernels a GPU gets,
/// and have none to ask.
pub fn assume_quotients(client: &Client, quotients: Quotients) {
    QUOTIENTS.keep(device_key(client), quotients);
}

/// Which quotients and roots a device that gave these answers needs.
fn needed(answers: &Answers) -> Quotients {
    match (inexact_quotient(&answers.f32), inexact_quotient(&answers.corrected)) {
        (Some(_), None) if !flushes(&answers.f32) => Quotients::Corrected,
        _ => Quotients::Device,
    }
}

/// Whether an answer takes a subnormal number for zero.
fn flushes(answers: &[u32]) -> bool {
    let subnormal = |question: &Question| matches!(question.expected, Expected::Subnormal(_));
    first_inexact(answers, subnormal).is_some()
}

/// The first answer on quotients and square roots that is not the nearest float.
fn inexact_quotient(answers: &[u32]) -> Option<(&'static Question, u32)> {
    first_inexact(answers, |question| question.operation.divides())
}

/// The first answer, to a chosen question on f32, that is not IEEE 754's.
fn first_inexact(answers: &[u32], chosen: fn(&Question) -> bool) -> Option<(&'static Question, u32)> {
    let answered = questions::F32.iter().zip(answers.iter().copied()).filter(|(question, _)| chosen(question));
    answered.into_iter().find(|(question, got)| question.exact().is_some_and(|bits| !questions::alike(bits, *got)))
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
    let corrected = needed(answers) == Quotients::Corrected;
    let rounding = |devices: Rounding| if corrected { Rounding::Corrected } else { devices };
    Ok(Arithmetic {
        multiply_add: full.multiply_add.expect("the table asks for a multiply-add"),
        subnormals: full.subnormals.expect("the table asks for subnormal numbers"),
        division: rounding(full.division),
        square_root: rounding(full.square_root),
        nan_is_unequal: full.nan_is_unequal,
        f16: casts(questions::F16, &answers.f16)?,
        bf16: casts(questions::BF16, &answers.bf16)?,
    })
}

/// Requires of [answers](ask_kept) of kernels that keep subnormal numbers that casts, these numbers, and the quotients and square
/// roots of kernels are IEEE 754's too, besides what [`judge`] requires.
///
/// # Errors
///
/// The first answer that is not.
pub fn require_exact(answers: &Answers) -> Result<(), WrongAnswer> {
    judge(answers)?;
    let corrected = inexact_quotient(&answers.f32).is_some();
    let tables = [
        (questions::F32, Some(if corrected { &answers.corrected } else { &answers.f32 })),
        (questions::F16, answers.f16.as_ref()),
        (questions::BF16, answers.bf16.as_ref()),
    ];
    let answered = tables.into_iter().filter_map(|(questions, answers)| Some(questions.iter().zip(answers?)));
    for (question, &got) in answered.flatten() {
        if let Some(bits) = question.exact()
            && !questions::alike(bits, got)
        {
            let wrong = question.wrong(&Expected::Bits(bits), got);
            let test =
                if corrected && question.operation.divides() { question.operation.corrected() } else { wrong.test };
            return Err(WrongAnswer { test, ..wrong });
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
                let is_zero = match question.operation {
                    questions::Operation::Compare => got == questions::EQUAL,
                    _ => got & !questions::sign(question.operation) == 0,
                };
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
            Expected::Exact(_) => true,
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
    /// The answer of an exact device, where [`judge`] passes others.
    fn exact(&self) -> Option<u32> {
        match self.expected {
            Expected::Subnormal(bits) | Expected::Nearest { bits, .. } | Expected::Exact(bits) => Some(bits),
            Expected::Bits(_) | Expected::MultiplyAdd { .. } | Expected::Unordered => None,
        }
    }

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
            Self::Bits(bits) | Self::Exact(bits) => write!(f, "{bits:#010x}"),
            Self::MultiplyAdd { fused, unfused } => {
                write!(f, "{fused:#010x} (one rounding) or {unfused:#010x} (two), the same way each time")
            }
            Self::Subnormal(bits) => write!(f, "{bits:#010x}, or what zeros give"),
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
                Expected::Bits(bits) | Expected::Subnormal(bits) => bits,
                Expected::Nearest { bits, .. } | Expected::Exact(bits) => bits,
                Expected::Unordered => questions::UNORDERED,
                Expected::MultiplyAdd { fused, unfused } => match fma {
                    MultiplyAdd::Fused => fused,
                    MultiplyAdd::Unfused => unfused,
                },
            };
            questions.iter().map(answer).collect()
        };
        let f32 = all(questions::F32);
        Answers { corrected: f32.clone(), f32, f16: Some(all(questions::F16)), bf16: Some(all(questions::BF16)) }
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
            assert_eq!((require_exact(&right(fma)), needed(&right(fma))), (Ok(()), Quotients::Device));
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
            if let Expected::Exact(bits) = question.expected {
                // Any NaN is right where one is.
                let bit = if f32::from_bits(bits).is_nan() { 1 << 30 } else { 1 << 21 };
                wrong.f32[index] ^= bit;
                judge(&wrong).expect("left to the device");
                if question.operation.divides() {
                    require_exact(&wrong).expect("corrected");
                }
                wrong.corrected[index] ^= bit;
                let found = require_exact(&wrong).expect_err("a wrong answer, or one that is corrected to a wrong one");
                assert_eq!((found.test, found.operands), (question.operation.corrected(), question.spelled_operands()));
                continue;
            }
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
        assert_eq!((judged.division, judged.square_root), (Rounding::Corrected, Rounding::Corrected));
        assert_eq!((needed(&answers), require_exact(&answers)), (Quotients::Corrected, Ok(())));
        answers.corrected[divided] += 2;
        let judged = judge(&answers).expect("within the bound");
        assert_eq!((judged.division, judged.square_root), (Rounding::Approximate, Rounding::NearestEven));
        assert_eq!(needed(&answers), Quotients::Device);
        let wrong = require_exact(&answers).expect_err("not the nearest");
        assert_eq!((wrong.test, wrong.expected), ("a / b, corrected,", format!("{:#010x}", answers.f32[divided] - 2)));
        answers.f32[divided] += MAX_ULP;
        judge(&answers).expect_err("too far");

        let mut answers = right(MultiplyAdd::Fused);
        let subnormal = |question: &Question| matches!(question.expected, Expected::Subnormal(_));
        answers.f32[find(questions::F32, subnormal)] = 1 << 31;
        assert_eq!(judge(&answers).map(|judged| judged.subnormals), Ok(Subnormals::Mixed));
        for (index, question) in questions::F32.iter().enumerate().filter(|(_, question)| subnormal(question)) {
            answers.f32[index] = if question.operation == Operation::Compare { questions::EQUAL } else { 0 };
        }
        require_exact(&answers).expect_err("flushed");
        answers.f32[divided] += 2;
        assert_eq!(needed(&answers), Quotients::Device, "a device that flushes has its own");
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
