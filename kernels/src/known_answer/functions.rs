//! Questions on sums and on the [elementary functions](crate::function), whose answers are those of the references.
//!
//! A function is a hundred operations that depend on each other, and a sum a chain of eight: a compiler that regroups,
//! contracts or approximates where one operation alone is right is found here.

use super::kernel::read;
use super::wrong::WrongAnswer;
use crate::function::reference::{exponential as e, trigonometric as t};
use crate::function::{exponential, trigonometric};
use crate::quotient::Quotients;
use crate::subnormals::keep_subnormals_if;
use cubecl::prelude::*;
use cubecl::server::ServerError;

/// A function of two numbers, and how it is spelled.
type Function = (&'static str, fn(f32, f32) -> f32);

/// The functions, in the order of the answers; those of one number leave out the second.
const FUNCTIONS: [Function; 18] = [
    ("exp(a)", |a, _| e::exp(a)),
    ("log(a)", |a, _| e::log(a)),
    ("log1p(a)", |a, _| e::log1p(a)),
    ("sinh(a)", |a, _| e::sinh(a)),
    ("cosh(a)", |a, _| e::cosh(a)),
    ("tanh(a)", |a, _| e::tanh(a)),
    ("asinh(a)", |a, _| e::asinh(a)),
    ("acosh(a)", |a, _| e::acosh(a)),
    ("atanh(a)", |a, _| e::atanh(a)),
    ("pow(a, b)", e::powf),
    ("sin(a)", |a, _| t::sin(a)),
    ("cos(a)", |a, _| t::cos(a)),
    ("tan(a)", |a, _| t::tan(a)),
    ("asin(a)", |a, _| t::asin(a)),
    ("acos(a)", |a, _| t::acos(a)),
    ("atan(a)", |a, _| t::atan(a)),
    ("atan2(a, b)", t::atan2),
    ("erf(a)", |a, _| t::erf(a)),
];

/// Arguments, and units of the one cube.
const ARGUMENTS: usize = 64;

/// Terms of a sum.
const TERMS: usize = 8;

/// Answers of a unit: the functions, and a sum.
const ANSWERS: usize = FUNCTIONS.len() + 1;

/// The arguments `a`, as bits.
const EDGES: [u32; ARGUMENTS] = [
    // Zeros, subnormal numbers, the smallest normal ones, the largest ones, infinities, a NaN.
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0100_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7e80_0000,
    0xfe80_0001,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x6b5f_e1c2,
    // One and its neighbours.
    0x3f80_0000,
    0x3f80_0001,
    0x3f7f_ffff,
    0x3f7f_0000,
    0x3f81_4321,
    0xbf80_0000,
    0xbf80_0001,
    0xbf7f_ffff,
    // Multiples of pi / 2, and a large argument that is near one.
    0x3fc9_0fdb,
    0x3fc9_0fda,
    0xbfc9_0fdc,
    0x4049_0fdb,
    0x4096_cbe4,
    0xc0c9_0fdb,
    0x73b0_4d8e,
    0x4b49_0fdb,
    // Where functions change their formulas, overflow and underflow.
    0x42b1_7217,
    0x42b1_7218,
    0xc2ae_ac4f,
    0xc2ae_ac50,
    0x42b2_d4fc,
    0x3f00_0000,
    0x3f20_0000,
    0x3980_0000,
    0x3f40_0000,
    0x3fb0_0000,
    0x3f0c_0000,
    0x3ec9_0fdb,
    0x407a_e148,
    0x4110_0000,
    0xbf00_0001,
    // Others.
    0x3e4c_cccd,
    0xbe99_999a,
    0x3f35_04f3,
    0x3fb3_3333,
    0x4020_0000,
    0xc02d_f854,
    0x4080_d70a,
    0x40e3_851f,
    0x4138_9374,
    0xc16e_b852,
    0x41a4_3958,
    0x4215_70a4,
    0x4287_2b02,
    0x43c1_8000,
    0x4610_2468,
    0x3a83_126f,
    0x38d1_b717,
];

/// What is summed, from place `i` on.
const SUMMED: [u32; TERMS + ARGUMENTS] = summed();

const fn summed() -> [u32; TERMS + ARGUMENTS] {
    let mut all = [0; TERMS + ARGUMENTS];
    let (mut word, mut i) = (0x1234_5678u32, 0);
    while i < all.len() {
        word = word.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
        // Both signs, magnitudes from 2^-8 to 2^8, and all bits of the mantissa.
        all[i] = (word & 0x807f_ffff) | ((119 + (word >> 23) % 16) << 23);
        i += 1;
    }
    all
}

/// The argument `b` beside argument `i` of [`EDGES`].
fn second(i: usize) -> u32 {
    EDGES[(i * 27 + 5) % ARGUMENTS]
}

/// Answer `which`, in the order of [`FUNCTIONS`], to the arguments `a` and `b`, or of the terms from `first` on.
#[cube]
fn answer_of(
    a: f32,
    b: f32,
    summed: &[f32],
    first: usize,
    #[comptime] which: usize,
    #[comptime] quotients: Quotients,
) -> f32 {
    match comptime!(which) {
        0 => exponential::exp(a),
        1 => exponential::log(a),
        2 => exponential::log1p(a),
        3 => exponential::sinh(a),
        4 => exponential::cosh(a),
        5 => exponential::tanh(a, quotients),
        6 => exponential::asinh(a, quotients),
        7 => exponential::acosh(a, quotients),
        8 => exponential::atanh(a, quotients),
        9 => exponential::powf(a, b),
        10 => trigonometric::sin(a),
        11 => trigonometric::cos(a),
        12 => trigonometric::tan(a, quotients),
        13 => trigonometric::asin(a, quotients),
        14 => trigonometric::acos(a, quotients),
        15 => trigonometric::atan(a, quotients),
        16 => trigonometric::atan2(a, b, quotients),
        17 => trigonometric::erf(a),
        _ => {
            let mut sum = summed[first];
            #[unroll]
            for i in 1..TERMS {
                sum += summed[first + i];
            }
            sum
        }
    }
}

/// Answers `from..to` of all units.
#[cube(launch_unchecked)]
fn answer(
    arguments: &[f32],
    summed: &[f32],
    answers: &mut [u32],
    #[comptime] from: usize,
    #[comptime] to: usize,
    #[comptime] quotients: Quotients,
    #[comptime] kept: bool,
) {
    let unit = UNIT_POS_X as usize;
    let a = arguments[unit * 2];
    let b = arguments[unit * 2 + 1];
    #[unroll]
    for which in from..to {
        let answer = answer_of(a, b, summed, unit, which, quotients);
        answers[unit * comptime!(ANSWERS) + which] = u32::reinterpret(answer);
    }
    keep_subnormals_if(kept);
}

/// A device's answers, in the order of the units, each as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionAnswers(Vec<u32>);

/// The answers of a device whose kernels have these quotients, and keep subnormal numbers where these are to be `kept`.
pub(super) fn ask(client: &Client, quotients: Quotients, kept: bool) -> Result<FunctionAnswers, ServerError> {
    let arguments: Vec<u32> = (0..ARGUMENTS).flat_map(|i| [EDGES[i], second(i)]).collect();
    let count = ARGUMENTS * ANSWERS;
    let answers = client.empty(count * 4);
    let buffer = |words: &[u32]| (client.create_from_slice(bytemuck::cast_slice(words)), words.len());
    let buffers = [buffer(&arguments), buffer(&SUMMED), (answers.clone(), count)];
    // A compiler takes more than twice as long for twice as many of the operations that keep subnormal numbers.
    let together = if kept { 1 } else { ANSWERS };
    for from in (0..ANSWERS).step_by(together) {
        // SAFETY: units 0 to 63 read two arguments and eight terms from their place on, write at most 19 answers each, and
        // the buffers hold those of 64 units.
        unsafe {
            let [arguments, summed, answers] =
                buffers.each_ref().map(|(buffer, length)| BufferArg::from_raw_parts(buffer.clone(), *length));
            answer::launch_unchecked(
                client,
                CubeCount::Static(1, 1, 1),
                CubeDim::new_1d(ARGUMENTS as u32),
                arguments,
                summed,
                answers,
                from,
                from + together,
                quotients,
                kept,
            );
        }
    }
    Ok(FunctionAnswers(read(client, answers)?))
}

/// The first wrong answer is the error.
pub(super) fn judge(answers: &FunctionAnswers) -> Result<(), WrongAnswer> {
    for (i, row) in answers.0.chunks(ANSWERS).enumerate() {
        let (a, b) = (EDGES[i], second(i));
        for ((test, function), &got) in FUNCTIONS.iter().zip(row) {
            let expected = function(f32::from_bits(a), f32::from_bits(b)).to_bits();
            let operands = || match test.contains('b') && test.contains(',') {
                true => format!("a = {a:#010x}, b = {b:#010x}"),
                false => format!("a = {a:#010x}"),
            };
            require(test, operands, expected, got)?;
        }
        let terms = &SUMMED[i..i + TERMS];
        let sum = terms.iter().map(|&bits| f32::from_bits(bits)).reduce(|sum, next| sum + next).unwrap_or_default();
        require(
            "a sum in ascending order",
            || terms.iter().map(|term| format!("{term:#010x}")).collect::<Vec<_>>().join(", "),
            sum.to_bits(),
            row[FUNCTIONS.len()],
        )?;
    }
    Ok(())
}

fn require(test: &'static str, operands: impl FnOnce() -> String, expected: u32, got: u32) -> Result<(), WrongAnswer> {
    match got == expected {
        true => Ok(()),
        false => Err(WrongAnswer {
            test,
            operands: operands(),
            expected: format!("{expected:#010x}"),
            got: format!("{got:#010x}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right() -> Vec<u32> {
        let row = |i: usize| {
            let (a, b) = (f32::from_bits(EDGES[i]), f32::from_bits(second(i)));
            let functions = FUNCTIONS.map(|(_, function)| function(a, b).to_bits());
            let sum = SUMMED[i..i + TERMS].iter().map(|&bits| f32::from_bits(bits)).reduce(|sum, next| sum + next);
            functions.into_iter().chain(sum.map(f32::to_bits))
        };
        (0..ARGUMENTS).flat_map(row).collect()
    }

    #[test]
    fn one_wrong_bit_is_found() {
        let right = right();
        assert_eq!(judge(&FunctionAnswers(right.clone())), Ok(()));
        for place in 0..right.len() {
            let mut answers = right.clone();
            answers[place] ^= 1;
            let wrong = judge(&FunctionAnswers(answers)).expect_err("a wrong bit");
            assert_eq!(wrong.got, format!("{:#010x}", right[place] ^ 1));
            let name = FUNCTIONS.get(place % ANSWERS).map_or("a sum in ascending order", |(name, _)| name);
            assert_eq!(wrong.test, name);
        }
    }

    /// Where a sum is regrouped, some of the questions say so.
    #[test]
    fn the_order_of_sums_matters() {
        let regrouped = |terms: &[f32]| (terms[0] + terms[2]) + (terms[1] + terms[3]);
        let in_order = |terms: &[f32]| ((terms[0] + terms[1]) + terms[2]) + terms[3];
        let terms: Vec<f32> = SUMMED.map(f32::from_bits).to_vec();
        assert!(terms.iter().all(|term| (2f32.powi(-8)..2f32.powi(8)).contains(&term.abs())));
        let different = terms.windows(4).filter(|terms| regrouped(terms) != in_order(terms)).count();
        assert!(different > ARGUMENTS / 4, "{different}");
    }
}
