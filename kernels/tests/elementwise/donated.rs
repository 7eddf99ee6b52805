//! Results in the memory of operands.

use super::{U32, adam, bits, want_floats};
use crate::harness::*;
use burn_deterministic_kernels::elementwise::{
    Binary, Half, Instruction, Operands, Program, Results, Unary, Value, Window, run, run_donated,
};
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;
use std::sync::Arc;

const SCALARS: [f32; 5] = [0.9, 0.1, 0.999, 0.001, 1e-5];

fn donated(client: &Client, program: Program, shape: &[usize], operands: Operands, donated: &[usize]) -> Results {
    run_donated(client, &Arc::new(program), shape, operands, U32, donated).expect("operands fit")
}

fn floats(words: Vec<TensorHandle>, scalars: &[f32]) -> Operands {
    Operands { words, conditions: vec![], scalars: bits(scalars) }
}

/// Which tensors have the same memory.
pub fn memory(tensor: &TensorHandle) -> String {
    format!("{:?}", tensor.handle.memory.clone().binding().id())
}

/// Waits until the device's thread has done what it was asked for: while it reserves memory it holds that.
pub fn settled(client: &Client, tensors: Vec<TensorHandle>) -> Vec<TensorHandle> {
    tensors.iter().for_each(|tensor| drop(download::<u16>(client, tensor.clone())));
    tensors
}

fn moments(elements: usize) -> [Vec<f32>; 3] {
    [1, 2, 3].map(|seed| random_values(seed, elements).into_iter().map(f32::abs).collect())
}

/// The sum of two operands.
fn sum() -> Program {
    let mut program = Program::default();
    program.word(Instruction::Binary(Binary::Add, Value::Input(0), Value::Input(1)));
    program.output_word(0);
    program
}

#[test]
fn results_in_the_memory_of_operands_have_the_same_bits() {
    let client = client();
    if !divides_like_the_host(&client) {
        return crate::skip::skip("the device's quotients and roots are not correctly rounded");
    }
    // In vectors, and not.
    for elements in [1 << 16, 70_001] {
        let values = moments(elements);
        let words = settled(&client, values.iter().map(|values| upload(&client, values, &[elements], F32)).collect());
        let homes: Vec<_> = words.iter().map(memory).collect();
        let results = donated(&client, adam(), &[elements], floats(words, &SCALARS), &[2, 0]);
        let of: Vec<_> = results.words.iter().map(memory).collect();
        assert_eq!((&of[0], &of[1]), (&homes[2], &homes[0]), "in the order in which operands are donated");
        assert!(!homes.contains(&of[2]), "of an operand that is not donated");
        let got: Vec<_> = results.words.into_iter().map(|tensor| download::<f32>(&client, tensor)).collect();
        let want = |n: usize| {
            let of_element = |i: usize| want_floats(&adam(), &values.each_ref().map(|values| values[i]), &[], &SCALARS);
            (0..elements).map(|i| of_element(i).0[n]).collect::<Vec<_>>()
        };
        (0..3).for_each(|n| assert_bits(&got[n], &want(n)));
    }
}

#[test]
fn an_operand_that_something_holds_keeps_its_elements() {
    let client = client();
    let shape = [1 << 16];
    let [x, y, _] = moments(shape[0]);
    let words = settled(&client, [&x, &y].map(|values| upload(&client, values, &shape, F32)).into());
    let held = words[0].clone();
    let homes: Vec<_> = words.iter().map(memory).collect();
    let results = donated(&client, sum(), &shape, floats(words, &[]), &[0, 1]);
    assert_eq!(memory(&results.words[0]), homes[1]);
    assert_bits(&download::<f32>(&client, held), &x);
    let want: Vec<_> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
    assert_bits(&download::<f32>(&client, results.words[0].clone()), &want);
    // One tensor as two operands.
    let twice = settled(&client, vec![upload(&client, &x, &shape, F32)]).remove(0);
    let home = memory(&twice);
    let results = donated(&client, sum(), &shape, floats(vec![twice.clone(), twice], &[]), &[0, 1]);
    assert_ne!(memory(&results.words[0]), home);
}

#[test]
fn what_units_read_elsewhere_and_small_results_have_memory_of_their_own() {
    let client = client();
    let [rows, columns] = [512, 256];
    let [x, y, _] = moments(rows * columns);
    let of = |values: &[f32], shape: &[usize]| upload(&client, values, shape, F32);
    let swapped = |mut tensor: TensorHandle| {
        let (shape, strides) = (tensor.shape().to_vec(), tensor.strides().to_vec());
        tensor.metadata.shape = vec![shape[1], shape[0]].into();
        tensor.metadata.strides = vec![strides[1], strides[0]].into();
        tensor
    };
    for (shape, is_swapped) in [([columns, rows], true), ([1, columns], false), ([rows, 1], false)] {
        let other = of(&y[..shape[0] * shape[1]], &shape);
        let mut words = settled(&client, vec![of(&x, &[rows, columns]), other]);
        if is_swapped {
            words = vec![words[0].clone(), swapped(words.remove(1))];
        }
        let home = memory(&words[1]);
        let want = run(&client, &Arc::new(sum()), &[rows, columns], floats(words.clone(), &[]), U32).expect("they fit");
        let results = donated(&client, sum(), &[rows, columns], floats(words, &[]), &[1]);
        assert_ne!(memory(&results.words[0]), home);
        let [got, want] = [results, want].map(|mut all| download::<f32>(&client, all.words.remove(0)));
        assert_bits(&got, &want);
    }
    // What lies in a window is read at another place.
    let mut program = Program::default();
    let window = Window { axis: 1, start: 0, length: 1 };
    program.assign(Value::Input(1), Value::Input(0), window);
    program.output_word(0);
    let whole = [rows, columns];
    let words = settled(&client, vec![of(&y, &whole), of(&y, &whole)]);
    let homes: Vec<_> = words.iter().map(memory).collect();
    let scalars = vec![0, rows as u32];
    let results = donated(&client, program, &whole, Operands { words, conditions: vec![], scalars }, &[0, 1]);
    assert_eq!(memory(&results.words[0]), homes[1]);
    // Reserved at once with others.
    let words = settled(&client, vec![of(&y[..1 << 14], &[1 << 14]), of(&y[..1 << 14], &[1 << 14])]);
    let home = memory(&words[0]);
    assert_ne!(memory(&donated(&client, sum(), &[1 << 14], floats(words, &[]), &[0]).words[0]), home);
}

#[test]
fn half_types_have_the_memory_of_operands_of_their_type() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return crate::skip::skip("the device does not store f16");
    }
    let elements = 1 << 16;
    let [x, y, _] = moments(elements);
    let halves: Vec<_> = y.iter().map(|&y| f16::from_f32(y)).collect();
    let words =
        settled(&client, vec![upload(&client, &x, &[elements], F32), upload(&client, &halves, &[elements], dtype)]);
    let homes: Vec<_> = words.iter().map(memory).collect();
    let mut program = sum();
    let Value::Result(negated) = program.word(Instruction::Unary(Unary::Negate, Value::Input(1))) else {
        unreachable!("a result")
    };
    program.output_half(negated, Half::F16);
    let results = donated(&client, program, &[elements], floats(words, &[]), &[1, 0]);
    assert_eq!((memory(&results.words[0]), memory(&results.halves[0])), (homes[0].clone(), homes[1].clone()));
    let want: Vec<_> = x.iter().zip(&halves).map(|(x, y)| x + y.to_f32()).collect();
    assert_bits(&download::<f32>(&client, results.words[0].clone()), &want);
    let got = download::<u16>(&client, results.halves[0].clone());
    assert_eq!(got, halves.iter().map(|y| (-*y).to_bits()).collect::<Vec<_>>());
}

/// Operands of both types, in vectors and not: an output in an operand's memory is that buffer of all.
#[test]
fn each_output_is_the_buffer_of_its_operand() {
    let client = client();
    let dtype = ElemType::Float(FloatKind::F16);
    if !client.properties().supports_type(dtype) {
        return crate::skip::skip("the device does not store f16");
    }
    for columns in [64, 63] {
        let shape = [1024, columns];
        let values: Vec<f32> = (0..1024 * columns).map(|n| (n % 512) as f32).collect();
        let [row, halves] = [0, 1].map(|_| values[..columns].to_vec());
        let of_half = |values: &[f32]| values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
        let words = settled(
            &client,
            vec![
                upload(&client, &row, &[1, columns], F32),
                upload(&client, &of_half(&values), &shape, dtype),
                upload(&client, &of_half(&halves), &[1, columns], dtype),
                upload(&client, &values, &shape, F32),
            ],
        );
        let homes: Vec<_> = words.iter().map(memory).collect();
        let mut program = Program::default();
        let negated = [0, 1, 2, 3].map(|n| program.word(Instruction::Unary(Unary::Negate, Value::Input(n))));
        let mut sum = negated[0];
        for other in &negated[1..] {
            sum = program.word(Instruction::Binary(Binary::Add, sum, *other));
        }
        let (Value::Result(sum), Value::Result(half)) = (sum, negated[1]) else { unreachable!("results") };
        program.output_word(sum);
        program.output_half(half, Half::F16);
        let results = donated(&client, program, &shape, floats(words, &[]), &[3, 1]);
        assert_eq!((memory(&results.words[0]), memory(&results.halves[0])), (homes[3].clone(), homes[1].clone()));
        let want: Vec<_> = (0..1024 * columns).map(|n| -2.0 * values[n] - 2.0 * values[n % columns]).collect();
        assert_bits(&download::<f32>(&client, results.words[0].clone()), &want);
        let got = download::<u16>(&client, results.halves[0].clone());
        assert_eq!(got, of_half(&values).iter().map(|x| (-*x).to_bits()).collect::<Vec<_>>());
    }
}
