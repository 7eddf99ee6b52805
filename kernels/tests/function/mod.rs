//! Elementary functions: equal bits on the device and in the reference, special values, and how exact they are;
//! `everywhere` has every argument.

mod everywhere;
mod goldens;

use crate::harness::*;
use burn_deterministic_kernels::elementwise::{Binary, Instruction, Operands, Program, Unary, Value, run};
use burn_deterministic_kernels::function::reference::{exponential, trigonometric};
use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// A function, its plain-Rust reference, f64's, and a bound of its error in ULP over all arguments.
struct Function {
    name: &'static str,
    unary: Unary,
    reference: fn(f32) -> f32,
    exact: fn(f64) -> f64,
    ulp: f64,
}

const fn function(
    name: &'static str,
    unary: Unary,
    reference: fn(f32) -> f32,
    exact: fn(f64) -> f64,
    ulp: f64,
) -> Function {
    Function { name, unary, reference, exact, ulp }
}

const FUNCTIONS: [Function; 16] = [
    function("exp", Unary::Exponential, exponential::exp, f64::exp, 0.9),
    function("log", Unary::Logarithm, exponential::log, f64::ln, 0.98),
    function("log1p", Unary::LogarithmOfOnePlus, exponential::log1p, f64::ln_1p, 0.995),
    function("sinh", Unary::HyperbolicSine, exponential::sinh, f64::sinh, 0.98),
    function("cosh", Unary::HyperbolicCosine, exponential::cosh, f64::cosh, 0.92),
    function("tanh", Unary::HyperbolicTangent, exponential::tanh, f64::tanh, 0.89),
    function("asinh", Unary::HyperbolicArcSine, exponential::asinh, f64::asinh, 0.84),
    function("acosh", Unary::HyperbolicArcCosine, exponential::acosh, f64::acosh, 0.85),
    function("atanh", Unary::HyperbolicArcTangent, exponential::atanh, f64::atanh, 0.82),
    function("sin", Unary::Sine, trigonometric::sin, f64::sin, 0.96),
    function("cos", Unary::Cosine, trigonometric::cos, f64::cos, 0.94),
    function("tan", Unary::Tangent, trigonometric::tan, f64::tan, 0.75),
    function("asin", Unary::ArcSine, trigonometric::asin, f64::asin, 0.76),
    function("acos", Unary::ArcCosine, trigonometric::acos, f64::acos, 0.77),
    function("atan", Unary::ArcTangent, trigonometric::atan, f64::atan, 0.8),
    function("erf", Unary::Erf, trigonometric::erf, erf, 0.84),
];

/// A function of two arguments, with the same.
type OfTwo = (Binary, fn(f32, f32) -> f32, fn(f64, f64) -> f64, f64);

const OF_TWO: [OfTwo; 2] =
    [(Binary::Power, exponential::powf, f64::powf, 1.0), (Binary::ArcTangent, trigonometric::atan2, f64::atan2, 1.0)];

/// The error function: its Taylor series near 0, and the continued fraction of its complement further out.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    let value = if a < 2.5 {
        // Every term has one sign: 2 / sqrt(pi) * exp(-x^2) * sum of 2^n x^(2n+1) / (2n+1)!!
        let (mut term, mut sum) = (a, a);
        for n in 1..200 {
            term *= 2.0 * a * a / f64::from(2 * n + 1);
            sum += term;
            if term < sum * 1e-18 {
                break;
            }
        }
        sum * (-a * a).exp() * core::f64::consts::FRAC_2_SQRT_PI
    } else if a < 7.0 {
        let fraction = (1..200).rev().fold(a, |rest, n| a + f64::from(n) / 2.0 / rest);
        1.0 - (-a * a).exp() / fraction * core::f64::consts::FRAC_2_SQRT_PI / 2.0
    } else {
        1.0
    };
    value.copysign(x)
}

/// Bits of arguments: zeros, ones, infinities, NaNs, the ends of every exponent and their neighbours, and between.
fn edges() -> Vec<u32> {
    let mut all: Vec<u32> = (0..=255u32)
        .flat_map(|exponent| {
            let first = exponent << 23;
            let within = [0, 1, 2, 0x7f_fffe, 0x7f_ffff, 0x40_0000, 0x35_04f3, 0x2a_aaab];
            within.map(|mantissa| first | mantissa)
        })
        .chain([0x42b1_7217, 0x42b1_7218, 0x42ae_ac4f, 0x42ae_ac50, 0x3f59_999a, 0x4110_0000, 0x42b2_d4fc])
        .flat_map(|bits: u32| [bits.wrapping_sub(1) & 0x7fff_ffff, bits, (bits + 1) & 0x7fff_ffff])
        .collect();
    all.extend(all.clone().into_iter().map(|bits| bits | 0x8000_0000));
    all
}

/// Edges, and arguments spread over all bits.
fn arguments() -> Vec<u32> {
    let spread = (0..1u32 << 17).map(|n| n.wrapping_mul(0x9e37_79b1));
    edges().into_iter().chain(spread).collect()
}

/// The results of one instruction on the device, as bits.
fn on_device(client: &Client, instruction: Instruction, arguments: &[&[u32]]) -> Vec<u32> {
    let mut program = Program::default();
    program.word(instruction);
    program.output_word(0);
    let shape = [arguments[0].len()];
    let words = arguments.iter().map(|bits| upload(client, bits, &shape, F32)).collect();
    let operands = Operands { words, conditions: vec![], scalars: vec![] };
    let results = run(client, &Arc::new(program), &shape, operands, ElemType::UInt(UIntKind::U32)).expect("a program");
    download(client, results.words.into_iter().next().expect("one output"))
}

fn assert_equal_bits(name: &str, arguments: &[u32], got: &[u32], reference: impl Fn(f32) -> f32) {
    for (&argument, &got) in arguments.iter().zip(got) {
        let want = reference(f32::from_bits(argument)).to_bits();
        assert_eq!(got, want, "{name} of {argument:#010x}: {got:#010x} on the device, {want:#010x} by the reference");
    }
}

#[test]
fn functions_have_the_bits_of_the_reference() {
    let client = client();
    let arguments = arguments();
    for Function { name, unary, reference, .. } in FUNCTIONS {
        let got = on_device(&client, Instruction::Unary(unary, Value::Input(0)), &[&arguments]);
        assert_equal_bits(name, &arguments, &got, reference);
    }
}

/// A compiler could join a sum in the program with one in a function.
#[test]
fn functions_behind_a_sum_have_the_bits_of_the_reference() {
    let (client, arguments) = (client(), arguments());
    for Function { name, unary, reference, .. } in FUNCTIONS {
        let mut program = Program::default();
        let sum = program.word(Instruction::Binary(Binary::Add, Value::Input(0), Value::Scalar(0)));
        let result = program.word(Instruction::Unary(unary, sum));
        program.word(Instruction::Binary(Binary::Add, result, Value::Scalar(0)));
        program.output_word(2);
        let words = vec![upload(&client, &arguments, &[arguments.len()], F32)];
        let operands = Operands { words, conditions: vec![], scalars: vec![1.0f32.to_bits()] };
        let bools = ElemType::UInt(UIntKind::U32);
        let results = run(&client, &Arc::new(program), &[arguments.len()], operands, bools).expect("a program");
        let got: Vec<f32> = download(&client, results.words.into_iter().next().expect("one output"));
        for (&argument, got) in arguments.iter().zip(got) {
            let want = reference(f32::from_bits(argument) + 1.0) + 1.0;
            let alike = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(alike, "{name}({argument:#010x} + 1) + 1 is {got:e}, want {want:e}");
        }
    }
}

/// Devices convert NaNs and large floats each in its own way.
#[test]
fn integers_of_floats_are_the_nearest_and_none_of_a_nan() {
    let arguments = arguments();
    let got = on_device(&client(), Instruction::ToInt(Value::Input(0)), &[&arguments]);
    for (&argument, &got) in arguments.iter().zip(&got) {
        assert_eq!(got.cast_signed(), f32::from_bits(argument) as i32, "of {argument:#010x}");
    }
}

/// Pairs of edges, and of numbers that meet.
fn pairs() -> (Vec<u32>, Vec<u32>) {
    let special: Vec<u32> =
        [0u32, 1, 0x7f_ffff, 0x80_0000, 0x3f00_0000, 0x3f7f_ffff, 0x3f80_0000, 0x3f80_0001, 0x3fc0_0000]
            .into_iter()
            .chain([
                0x4000_0000,
                0x4040_0000,
                0x4b7f_ffff,
                0x4b80_0000,
                0x4b80_0001,
                0x7f7f_ffff,
                0x7f80_0000,
                0x7fc0_0000,
            ])
            .flat_map(|bits| [bits, bits | 0x8000_0000])
            .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let of_edges = special.iter().flat_map(|&a| special.iter().map(move |&b| (a, b)));
    let random: Vec<(u32, u32)> = (0..1 << 16)
        .map(|_| {
            let (a, b) = (rng.random::<u32>(), rng.random::<u32>());
            // Half of them near 1, where powers are neither 0 nor infinite.
            let near = |bits: u32| 0x3c00_0000 + bits % 0x0780_0000;
            if a & 1 == 0 { (a, b) } else { (near(a), near(b) | (b & 0x8000_0000)) }
        })
        .collect();
    of_edges.chain(random).unzip()
}

#[test]
fn functions_of_two_arguments_have_the_bits_of_the_reference() {
    let client = client();
    let (a, b) = pairs();
    for (binary, reference, ..) in OF_TWO {
        let got = on_device(&client, Instruction::Binary(binary, Value::Input(0), Value::Input(1)), &[&a, &b]);
        for ((&a, &b), &got) in a.iter().zip(&b).zip(&got) {
            let want = reference(f32::from_bits(a), f32::from_bits(b)).to_bits();
            assert_eq!(
                got, want,
                "{binary:?} of {a:#010x} and {b:#010x}: {got:#010x} on the device, want {want:#010x}"
            );
        }
    }
}

/// The distance of `got` from `exact` in units of the last place of `exact` as an f32, if that is a normal number.
fn ulp(got: f32, exact: f64) -> Option<f64> {
    let magnitude = exact.abs();
    if !(f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&magnitude) {
        return None;
    }
    let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
    Some((f64::from(got) - exact).abs() * f64::from(23 - exponent).exp2())
}

#[test]
fn functions_of_two_arguments_are_exact_to_a_last_place() {
    let (a, b) = pairs();
    for (binary, reference, exact, bound) in OF_TWO {
        let error = |(&a, &b): (&u32, &u32)| {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            ulp(reference(x, y), exact(f64::from(x), f64::from(y))).unwrap_or_default()
        };
        let worst = a.iter().zip(&b).map(error).fold(0.0, f64::max);
        println!("{binary:?}: {worst:.3} ULP");
        assert!(worst < bound, "{binary:?}: {worst} ULP");
    }
}

/// Where f64 has a NaN, an infinity or a zero, so has the reference; and a NaN is the canonical one.
#[test]
fn special_values_are_those_of_c99() {
    const NAN: u32 = 0x7fc0_0000;
    let check = |name: &str, got: f32, exact: f64, arguments: &[u32]| {
        let text = format!("{name} of {arguments:x?}: {got:e}, exact {exact:e}");
        if exact.is_nan() {
            assert_eq!(got.to_bits(), NAN, "{text}");
        } else if exact == 0.0 || exact.is_infinite() {
            assert_eq!(got.to_bits(), (exact as f32).to_bits(), "{text}");
        } else if exact.abs() < f64::from(f32::MIN_POSITIVE) / 2.0 {
            // A zero with the sign, or the argument itself.
            assert!(got.to_bits() << 1 == 0 || arguments.contains(&got.to_bits()), "{text}");
            assert_eq!(got.is_sign_negative(), exact.is_sign_negative(), "{text}");
        }
    };
    for Function { name, reference, exact, .. } in FUNCTIONS {
        for bits in edges() {
            let x = f32::from_bits(bits);
            check(name, reference(x), exact(f64::from(x)), &[bits]);
        }
    }
    let (a, b) = pairs();
    for (binary, reference, exact, _) in OF_TWO {
        for (&a, &b) in a.iter().zip(&b) {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            check(&format!("{binary:?}"), reference(x, y), exact(f64::from(x), f64::from(y)), &[a, b]);
        }
    }
}
