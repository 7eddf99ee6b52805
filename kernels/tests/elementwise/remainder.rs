//! The remainder of floats, which is exact.

use crate::harness::*;
use burn_deterministic_kernels::elementwise::{Binary, Instruction, Operands, Program, Value, reference, run};
use cubecl::prelude::*;
use std::sync::Arc;

/// Numbers at which a remainder is in doubt.
const EDGES: [f32; 21] = [
    0.0,
    1.0,
    2.0,
    3.0,
    0.5,
    0.1,
    5.5,
    7.0,
    1e10,
    1e-10,
    16_777_215.0,
    16_777_217.0,
    f32::MAX,
    f32::MIN_POSITIVE,
    // The smallest and the largest subnormal number.
    1e-45,
    1.175_494_2e-38,
    f32::EPSILON,
    1.000_000_1,
    3.0e38,
    f32::INFINITY,
    f32::NAN,
];

fn remainders(client: &Client, a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut program = Program::default();
    program.word(Instruction::Binary(Binary::Remainder, Value::Input(0), Value::Input(1)));
    program.output_word(0);
    let words = [a, b].map(|values| upload(client, values, &[values.len()], F32)).to_vec();
    let operands = Operands { words, conditions: vec![], scalars: vec![] };
    let results = run(client, &Arc::new(program), &[a.len()], operands, I32).expect("operands fit");
    download(client, results.words.into_iter().next().expect("one output"))
}

#[test]
fn a_remainder_is_exact() {
    let client = client();
    let edges: Vec<f32> = EDGES.iter().flat_map(|&x| [x, -x]).collect();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for &x in &edges {
        a.extend(edges.iter().map(|_| x));
        b.extend(&edges);
    }
    // Bits of any kind, and numbers of about one size.
    let any = |n: u32| f32::from_bits(n.wrapping_mul(0x9e37_79b1) ^ n >> 7);
    for n in 0..1 << 16 {
        a.push(any(2 * n));
        b.push(any(2 * n + 1));
    }
    a.extend(random_values(30, 1 << 14));
    b.extend(random_values(31, 1 << 14));
    let got = remainders(&client, &a, &b);
    let mut rounded = 0;
    for ((&a, &b), got) in a.iter().zip(&b).zip(got) {
        let want = reference::binary(Binary::Remainder, a, b);
        let agree = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
        assert!(agree, "{a:e} by {b:e}: got {got:e} ({:#010x}), want {want:e}", got.to_bits());
        rounded += u32::from((a - b * (a / b).floor()).to_bits() != want.to_bits());
    }
    // The hazard is real: a rounded quotient gives others.
    assert!(rounded > 10_000, "{rounded}");
}

/// What Python's `%` gives.
#[test]
fn the_rule() {
    let client = client();
    let cases = [
        (5.5, 2.0, 1.5),
        (-5.5, 2.0, 0.5),
        (5.5, -2.0, -0.5),
        (-5.5, -2.0, -1.5),
        (-4.0, 2.0, 0.0),
        (4.0, -2.0, -0.0),
        (0.0, -3.0, -0.0),
        (-0.0, 3.0, 0.0),
        (-1e-20, 1.0, 1.0),
        (1.0, f32::INFINITY, 1.0),
        (-1.0, f32::INFINITY, f32::INFINITY),
        (f32::MAX, 11.0, 9.0),
        (1.0, 0.0, f32::NAN),
        (f32::INFINITY, 2.0, f32::NAN),
        (f32::NAN, 2.0, f32::NAN),
        (2.0, f32::NAN, f32::NAN),
    ];
    let (a, b): (Vec<f32>, Vec<f32>) = cases.iter().map(|&(a, b, _)| (a, b)).unzip();
    for (got, (a, b, want)) in remainders(&client, &a, &b).into_iter().zip(cases) {
        assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{a} by {b}: {got}, want {want}");
    }
}
