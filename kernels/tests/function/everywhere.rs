//! Each function of one argument over all 2^32 of them: the digest of its results, by the reference and on the device,
//! and its largest error. A GPU computes all in a second. The reference and software drivers do so with the feature `heavy`,
//! and without it 2^20 that are spread over all bits; so does the CUDA emulator always, which would take days.

use super::goldens::DIGESTS;
use super::{FUNCTIONS, Function, edges, ulp};
use crate::harness::*;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::digest::{self, reference};
use burn_deterministic_kernels::elementwise::{Instruction, IntBinary, Operands, Program, Unary, Value, run};
use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

/// A digest of 128 bits.
type Digest = [u32; 4];

const IS_HEAVY: bool = cfg!(feature = "heavy");

/// The arguments, by their bits: `lower | upper` for each of both.
struct Arguments {
    lower: Vec<u32>,
    upper: Vec<u32>,
    are_all: bool,
}

impl Arguments {
    fn new(are_all: bool) -> Self {
        match are_all {
            true => Self { lower: (0..1 << 24).collect(), upper: (0..1 << 8).map(|n| n << 24).collect(), are_all },
            false => Self { lower: sample().collect(), upper: vec![0], are_all },
        }
    }
}

/// The arguments that are computed without `heavy`.
fn sample() -> impl Iterator<Item = u32> {
    (0..1u32 << 20).map(|n| n.wrapping_mul(0x9e37_79b1))
}

fn find(name: &str) -> &'static Function {
    FUNCTIONS.iter().find(|function| function.name == name).expect("a function has this name")
}

/// Compares the digest of the digests that `results` gives for each upper part with the recorded one.
#[track_caller]
fn assert_golden(name: &str, arguments: &Arguments, results: impl FnMut(&u32) -> Digest) {
    let digests: Vec<u8> = arguments.upper.iter().flat_map(results).flat_map(u32::to_le_bytes).collect();
    let got: String = reference::digest(&digests).iter().map(|word| format!("{word:08x}")).collect();
    let (_, of_sample, of_all) = DIGESTS.iter().find(|row| row.0 == name).expect("goldens.rs has the function");
    let (which, want) = if arguments.are_all { ("all arguments", of_all) } else { ("a sample", of_sample) };
    assert_eq!(got, *want, "{name} of {which} has other bits than goldens.rs");
}

/// Every result by the reference.
fn computed_by_the_reference(Function { name, reference: function, .. }: &Function) {
    let arguments = Arguments::new(IS_HEAVY);
    let term = |(i, bits): (usize, u32)| reference::terms(i as u32, function(f32::from_bits(bits)).to_bits());
    assert_golden(name, &arguments, |upper| {
        let terms = arguments.lower.iter().map(|lower| lower | upper).enumerate().map(term);
        let sums = terms.fold([0u32; 4], |sums, terms| core::array::from_fn(|i| sums[i].wrapping_add(terms[i])));
        reference::finish(sums, arguments.lower.len() as u64 * 4)
    });
}

/// Every result on the device, which also sums the digest.
fn computed_on_the_device(Function { name, unary, .. }: &Function) {
    let client = client();
    let is_emulator = client.properties().identity.name.starts_with("CUDA emulator");
    let is_gpu = Machine::of(&client) == Machine::Gpu && !is_emulator;
    let arguments = Arguments::new(is_gpu || IS_HEAVY && !is_emulator);
    let lower = upload(&client, &arguments.lower, &[arguments.lower.len()], F32);
    assert_golden(name, &arguments, |&upper| digest_on_device(&client, *unary, lower.clone(), upper));
}

/// The digest of `unary` of the numbers with the bits `lower | upper`.
fn digest_on_device(client: &Client, unary: Unary, lower: TensorHandle, upper: u32) -> Digest {
    let mut program = Program::default();
    let argument = program.word(Instruction::IntBinary(IntBinary::Or, Value::Input(0), Value::Scalar(0)));
    program.word(Instruction::Unary(unary, argument));
    program.output_word(1);
    let shape = [lower.shape()[0]];
    let operands = Operands { words: vec![lower], conditions: vec![], scalars: vec![upper] };
    let results = run(client, &Arc::new(program), &shape, operands, ElemType::UInt(UIntKind::U32)).expect("a program");
    let partials = digest::launch(client, results.words, None).expect("one tensor");
    let bytes = client.read_one(partials.handle()).expect("the sums can be read");
    partials.digests(&bytes)[0]
}

/// The largest error is below the function's bound.
fn compared_with_f64(Function { name, reference, exact, ulp: bound, .. }: &Function) {
    let error = |bits: u32| {
        let x = f32::from_bits(bits);
        ulp(reference(x), exact(f64::from(x))).unwrap_or_default()
    };
    let (worst, at) = if IS_HEAVY { largest(0..=u32::MAX, error) } else { largest(sample().chain(edges()), error) };
    println!("{name}: {worst:.4} ULP of {at:#010x}");
    assert!(worst < *bound, "{name}: {worst} ULP of {at:#010x}");
}

/// The largest error, and where it is.
fn largest(arguments: impl Iterator<Item = u32>, error: impl Fn(u32) -> f64) -> (f64, u32) {
    arguments.fold((0.0, 0), |worst, bits| {
        let error = error(bits);
        if error > worst.0 { (error, bits) } else { worst }
    })
}

/// A test of each function in three modules.
macro_rules! tests {
    ($($name:ident)*) => {
        mod by_reference {
            $(#[test] fn $name() { super::computed_by_the_reference(super::find(stringify!($name))); })*
        }
        mod on_device {
            $(#[test] fn $name() { super::computed_on_the_device(super::find(stringify!($name))); })*
        }
        mod error {
            $(#[test] fn $name() { super::compared_with_f64(super::find(stringify!($name))); })*
        }
        #[test]
        fn every_function_has_its_tests_and_digests() {
            let names = FUNCTIONS.map(|function| function.name);
            assert_eq!([$(stringify!($name)),*], names);
            assert_eq!(DIGESTS.map(|row| row.0), names);
        }
    };
}

tests!(exp log log1p sinh cosh tanh asinh acosh atanh sin cos tan asin acos atan erf);
