//! f16 and bf16, computed in f32 and rounded after every operation.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::elementwise::{
    Binary, Call, Comparison, Condition, Half, Instruction, Operands, Program, Unary, Value, reference, run,
};
use burn_deterministic_kernels::reduce::{self, Operation, reduce_program};
use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// The half types that the device stores, as the kernel and as the host know them; the others are listed as skipped.
pub fn stored(client: &Client) -> Vec<(Half, crate::harness::Half)> {
    let stored = |half: &crate::harness::Half| {
        let stored = client.properties().supports_type(half.dtype);
        if !stored {
            skip(format_args!("the device has no {}", half.dtype));
        }
        stored
    };
    { HALVES.into_iter().filter(stored) }.map(|half| (Half::of(half.dtype).expect("a half type"), half)).collect()
}

/// A number that is a half one, from its bits.
fn decode(half: Half, bits: u16) -> f32 {
    match half {
        Half::F16 => half::f16::from_bits(bits).to_f32(),
        Half::Bf16 => half::bf16::from_bits(bits).to_f32(),
    }
}

fn index(value: Value) -> usize {
    let Value::Result(index) = value else { unreachable!("a result") };
    index
}

/// The bits, but one NaN.
fn bits(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

#[track_caller]
fn assert_same(what: &str, got: &[f32], want: &[f32], operands: impl Fn(usize) -> String) {
    assert_eq!(got.len(), want.len(), "{what}");
    if let Some(i) = (0..got.len()).find(|&i| bits(got[i]) != bits(want[i])) {
        panic!("{what} of {}: got {:e} ({:#010x}), want {:e}", operands(i), got[i], got[i].to_bits(), want[i]);
    }
}

/// Every number of the type, what lies half way to its neighbours, and the f32 beside these.
#[test]
fn every_tie_and_its_neighbours_are_rounded_to_nearest_even() {
    let client = client();
    for (half, host) in stored(&client) {
        let mut values = Vec::new();
        for bits in 0..=u16::MAX {
            let [number, next] = [bits, bits.wrapping_add(1)].map(|bits| decode(half, bits));
            let tie = ((f64::from(number) + f64::from(next)) / 2.0) as f32;
            let around = |x: f32| [x.to_bits().wrapping_sub(1), x.to_bits(), x.to_bits().wrapping_add(1)];
            values.extend(around(number).into_iter().chain(around(tie)).map(f32::from_bits));
        }
        let mut program = Program::default();
        let rounded = program.rounded(Value::Input(0), half);
        program.output_word(index(rounded));
        program.output_half(index(rounded), half);
        let operands = Operands {
            words: vec![upload(&client, &values, &[values.len()], F32)],
            conditions: vec![],
            scalars: vec![],
        };
        let results = run(&client, &Arc::new(program), &[values.len()], operands, U32).expect("operands fit");
        let [word] = results.words.try_into().expect("one word output");
        let [written] = results.halves.try_into().expect("one half output");
        let want = host.rounded(&values);
        assert_same(&format!("{half:?}"), &download(&client, word), &want, |i| format!("{:e}", values[i]));
        assert_same(&format!("{half:?}, written"), &host.download(&client, written), &want, |i| {
            format!("{:e}", values[i])
        });
    }
}

/// The number of a half type that is nearest to `exact`, ties to even, by another way than f32.
fn nearest(half: Half, exact: f64) -> f32 {
    let (digits, smallest, largest) = match half {
        Half::F16 => (11, -14, 65504.0),
        Half::Bf16 => (8, -126, f64::from(f32::from_bits(0x7f7f_0000))),
    };
    if exact == 0.0 || !exact.is_finite() {
        return exact as f32;
    }
    // The exponent of an f64, which is normal.
    let exponent = ((exact.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let place = 2f64.powi(exponent.max(smallest) - (digits - 1));
    let rounded = (exact / place).round_ties_even() * place;
    if rounded.abs() > largest { f32::INFINITY.copysign(rounded as f32) } else { rounded as f32 }
}

/// The result is the nearest number to the exact one: that of f64, whose 53 digits are more than enough.
#[test]
fn arithmetic_gives_the_nearest_number() {
    let client = client();
    let divides = divides_like_the_host(&client);
    if !divides {
        skip("the device's quotients and roots are not correctly rounded");
    }
    type Exact = fn(f64, f64) -> f64;
    let mut functions: Vec<(Instruction, Exact)> =
        [(Binary::Add, (|a, b| a + b) as Exact), (Binary::Subtract, |a, b| a - b), (Binary::Multiply, |a, b| a * b)]
            .map(|(function, exact)| (Instruction::Binary(function, Value::Input(0), Value::Input(1)), exact))
            .to_vec();
    if divides {
        functions.push((Instruction::Binary(Binary::Divide, Value::Input(0), Value::Input(1)), |a, b| a / b));
        functions.push((Instruction::Unary(Unary::Reciprocal, Value::Input(0)), |a, _| 1.0 / a));
        functions.push((Instruction::Unary(Unary::SquareRoot, Value::Input(0)), |a, _| a.sqrt()));
    }
    for (half, host) in stored(&client) {
        // Every number against one of any kind, and against one of about its size, of which a sum is in doubt.
        let any = |n: u32| n.wrapping_mul(0x9e37_79b1);
        let numbers: Vec<f32> = (0..2 << 16).map(|n| decode(half, n as u16)).collect();
        let partner = |n: u32| match n >> 16 {
            0 => (any(n) >> 16) as u16,
            _ => (n as u16).wrapping_add((any(n) >> 20) as u16 & 0x7ff),
        };
        let partners: Vec<f32> = (0..2 << 16).map(|n| decode(half, partner(n))).collect();
        for (instruction, exact) in &functions {
            let mut program = Program::default();
            let result = program.word(*instruction);
            let rounded = program.rounded(result, half);
            program.output_half(index(rounded), half);
            let operands = Operands {
                words: [&numbers, &partners].map(|x| host.upload(&client, x, &[x.len()])).to_vec(),
                conditions: vec![],
                scalars: vec![],
            };
            let results = run(&client, &Arc::new(program), &[numbers.len()], operands, U32).expect("operands fit");
            let [got] = results.halves.try_into().expect("one output");
            let pairs = numbers.iter().zip(&partners);
            let want: Vec<f32> = pairs.map(|(&a, &b)| nearest(half, exact(a.into(), b.into()))).collect();
            let what = format!("{instruction:?} of {half:?}");
            assert_same(&what, &host.download(&client, got), &want, |i| format!("{:e}, {:e}", numbers[i], partners[i]));
        }
    }
}

/// `a * b + c`, each operation rounded, and whether it is above `d`, an f32.
fn chain(half: Half) -> Program {
    let mut program = Program::default();
    let [a, b, c, d] = [0, 1, 2, 3].map(Value::Input);
    let product = program.word(Instruction::Binary(Binary::Multiply, a, b));
    let product = program.rounded(product, half);
    let sum = program.word(Instruction::Binary(Binary::Add, product, c));
    let sum = program.rounded(sum, half);
    let above = program.condition(Instruction::Compare(Comparison::Greater, sum, d));
    let kept = program.word(Instruction::Select(above, sum, d));
    program.output_half(index(sum), half);
    program.output_word(index(kept));
    let Condition::Result(above) = above else { unreachable!("a result") };
    program.output_condition(above);
    program
}

/// Half operands that are read in vectors, broadcast and element by element, beside f32 ones.
#[test]
fn a_run_rounds_after_every_operation_however_operands_are_read() {
    let client = client();
    for (half, host) in stored(&client) {
        let program = chain(half);
        let mut once = 0;
        for [rows, columns] in [[1, 4], [37, 52], [3, 4], [64, 256], [7, 5], [5, 1], [0, 4]] {
            let elements = rows * columns;
            let [a, row, column, turned] =
                [(1, elements), (2, columns), (3, rows), (4, elements)].map(|(seed, len)| random_values(seed, len));
            let [a, row, column] = [a, row, column].map(|values| host.rounded(&values));
            let stored: Vec<f32> = (0..elements).map(|i| turned[(i % rows) * columns + i / rows]).collect();
            let turned_on_device = TensorHandle::new(
                client.create_from_slice(bytemuck::cast_slice(&stored)),
                [rows, columns],
                [1, rows],
                F32,
            );
            let halves_turned: Vec<f32> = (0..elements).map(|i| a[(i % rows) * columns + i / rows]).collect();
            let halves_turned = host.upload(&client, &halves_turned, &[elements]).handle;
            // The first operand in order, and stored transposed.
            let firsts = [
                host.upload(&client, &a, &[rows, columns]),
                TensorHandle::new(halves_turned, [rows, columns], [1, rows], half.dtype()),
            ];
            for first in firsts {
                let operands = Operands {
                    words: vec![
                        first,
                        host.upload(&client, &row, &[columns]),
                        host.upload(&client, &column, &[rows, 1]),
                        turned_on_device.clone(),
                    ],
                    conditions: vec![],
                    scalars: vec![],
                };
                let results =
                    run(&client, &Arc::new(program.clone()), &[rows, columns], operands, U32).expect("they fit");
                let want: Vec<(Vec<u32>, Vec<bool>)> = (0..elements)
                    .map(|i| [a[i], row[i % columns], column[i / columns], turned[i]].map(f32::to_bits))
                    .map(|inputs| reference::run(&program, &inputs, &[], &[]))
                    .collect();
                let [kept] = results.words.try_into().expect("one word output");
                let [sums] = results.halves.try_into().expect("one half output");
                let [above] = results.conditions.try_into().expect("one condition output");
                // The reference has the words first.
                let floats = |place: usize| want.iter().map(move |(words, _)| f32::from_bits(words[place]));
                assert_bits(&download(&client, kept), &floats(0).collect::<Vec<_>>());
                let sums = host.download(&client, sums);
                assert_bits(&sums, &floats(1).collect::<Vec<_>>());
                let flags: Vec<u32> = want.iter().map(|(_, flags)| u32::from(flags[0])).collect();
                assert_eq!(download::<u32>(&client, above), flags);
                once += (0..elements)
                    .filter(|&i| host.round(a[i] * row[i % columns] + column[i / columns]) != sums[i])
                    .count();
            }
        }
        // The hazard is real: one rounding at the end gives other numbers.
        assert!(once > 100, "{half:?}: {once}");
    }
}

#[test]
fn one_half_type_at_a_time() {
    let client = client();
    let [(half, first), (_, second)] = stored(&client)[..] else { return };
    let operands = Operands {
        words: vec![first.upload(&client, &[1.0; 4], &[4]), second.upload(&client, &[1.0; 4], &[4])],
        conditions: vec![],
        scalars: vec![],
    };
    let mut program = Program::default();
    let sum = program.word(Instruction::Binary(Binary::Add, Value::Input(0), Value::Input(1)));
    let rounded = program.rounded(sum, half);
    program.output_half(index(rounded), half);
    let error = run(&client, &Arc::new(program), &[4], operands, U32).expect_err("of two half types");
    assert!(error.to_string().contains("want one half type"), "{error}");
}

#[test]
fn a_reduction_of_widened_halves_has_its_own_bits() {
    let client = client();
    for (half, host) in stored(&client) {
        let values = host.rounded(&random_values(8, 3 * 1025));
        let mut program = Program::default();
        let squared = program.word(Instruction::Binary(Binary::Multiply, Value::Input(0), Value::Input(0)));
        let rounded = program.rounded(squared, half);
        program.output_half(index(rounded), half);
        program.reduce(index(rounded));
        let operands =
            Operands { words: vec![host.upload(&client, &values, &[3, 1025])], conditions: vec![], scalars: vec![] };
        let program = Arc::new(program);
        let input = Call { program: &program, shape: &[3, 1025], operands, condition_dtype: U32 };
        let (results, sums) = reduce_program(&client, Operation::Sum, input, &[1], None).expect("it fits");
        let squares: Vec<f32> = values.iter().map(|x| host.round(x * x)).collect();
        assert_bits(&host.download(&client, results.halves.into_iter().next().expect("an output")), &squares);
        let want: Vec<f32> = squares.chunks(1025).map(reduce::reference::sum).collect();
        assert_bits(&download(&client, sums), &want);
    }
}
