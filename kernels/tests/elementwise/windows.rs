//! Operands that lie in a window of the program's shape.

use super::bits;
use super::halves::stored;
use crate::harness::*;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::elementwise::{
    Binary, Call, Condition, Extent, Half, Instruction, Operands, Program, Value, Window, reference, run,
};
use burn_deterministic_kernels::reduce::{self, Operation, reduce_program};
use cubecl::ir::{ElemType, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// A window along an axis: its start and its length.
type Part = (usize, usize);

/// `x`, word operand 0, and the sum of one operand more for each window, in zeros of its own, in their order: as gradients of slices are added.
fn slices(count: usize, axis_from_last: usize, half: Option<Half>) -> Program {
    let mut program = Program::default();
    let mut total = Value::Input(0);
    for i in 0..count {
        let zeros = program.word(Instruction::Fill(Value::Scalar(2 * count), Extent::Elements));
        let window = Window { axis: axis_from_last, start: 2 * i, length: 2 * i + 1 };
        let slice = program.assign(zeros, Value::Input(1 + i), window);
        total = program.word(Instruction::Binary(Binary::Add, total, slice));
        total = half.map_or(total, |half| program.rounded(total, half));
    }
    let Value::Result(total) = total else { unreachable!("a result") };
    match half {
        Some(half) => program.output_half(total, half),
        None => program.output_word(total),
    }
    program
}

fn scalars(parts: &[Part]) -> Vec<u32> {
    parts.iter().flat_map(|part| [part.0 as u32, part.1 as u32]).chain([0]).collect()
}

fn with_length(shape: &[usize], axis: usize, length: usize) -> Vec<usize> {
    let mut shape = shape.to_vec();
    shape[axis] = length;
    shape
}

/// The elements of the program's result, by the reference. `windows` are the dense elements of each.
fn want(program: &Program, shape: &[usize], axis: usize, x: &[f32], windows: &[(Part, Vec<f32>)]) -> Vec<f32> {
    let behind: usize = shape[axis + 1..].iter().product();
    let parts: Vec<_> = windows.iter().map(|(part, _)| *part).collect();
    let element = |i: usize| {
        let (outer, place, inner) = (i / behind / shape[axis], i / behind % shape[axis], i % behind);
        let at = |((start, length), values): &(Part, Vec<f32>)| {
            let within = (*start..start + length).contains(&place);
            within.then(|| values[(outer * length + place - start) * behind + inner])
        };
        let found: Vec<_> = windows.iter().map(at).collect();
        let inputs: Vec<_> = [x[i]].into_iter().chain(found.iter().map(|value| value.unwrap_or(f32::NAN))).collect();
        let within: Vec<_> = found.iter().map(Option::is_some).collect();
        f32::from_bits(reference::run_within(program, &bits(&inputs), &[], &scalars(&parts), &within).0[0])
    };
    (0..x.len()).map(element).collect()
}

/// Dense random elements of each window of `shape`, with edges of the type among them.
fn values(shape: &[usize], axis: usize, parts: &[Part]) -> Vec<(Part, Vec<f32>)> {
    let window = |(seed, &part): (usize, &Part)| {
        let mut values = random_values(seed as u64 + 2, with_length(shape, axis, part.1).iter().product());
        values.iter_mut().step_by(7).for_each(|value| *value = -0.0);
        values.iter_mut().skip(1).step_by(11).for_each(|value| *value = f32::INFINITY);
        (part, values)
    };
    parts.iter().enumerate().map(window).collect()
}

/// `x` of negative zeros and numbers.
fn elements(shape: &[usize]) -> Vec<f32> {
    let mut x = random_values(1, shape.iter().product());
    x.iter_mut().step_by(3).for_each(|value| *value = -0.0);
    x
}

/// Tensors with two elements behind the axis and more, or none as it is the last, in fours and not.
const SHAPES: [(&[usize], usize); 9] = [
    (&[3, 5, 8], 1),
    (&[3, 5, 8], 0),
    (&[3, 5, 8], 2),
    (&[3, 5, 7], 1),
    (&[6], 0),
    (&[2, 1, 4, 4], 2),
    (&[1, 4, 2, 2], 1),
    (&[2, 9, 2, 1], 1),
    (&[130, 7, 12], 1),
];

/// Windows at both ends, of one place, of several and of all, that overlap.
fn parts(along: usize) -> Vec<Part> {
    vec![(0, 1), (along - 1, 1), (0, along), (along / 2, along - along / 2), (1, along - 1), (0, 2)]
}

fn launched(client: &Client, program: Program, shape: &[usize], words: Vec<TensorHandle>, parts: &[Part]) -> Vec<f32> {
    let operands = Operands { words, conditions: vec![], scalars: scalars(parts) };
    let results = run(client, &Arc::new(program), shape, operands, U32).expect("the windows are the shape's");
    let [total] = results.words.try_into().expect("one word output");
    download(client, total)
}

#[test]
fn slices_equal_their_reference_along_every_axis() {
    let client = client();
    for (shape, axis) in SHAPES {
        let (x, parts) = (elements(shape), parts(shape[axis]));
        let windows = values(shape, axis, &parts);
        // Alone, and together.
        for windows in windows.chunks(1).chain([&windows[..]]) {
            let parts: Vec<_> = windows.iter().map(|(part, _)| *part).collect();
            let program = slices(windows.len(), shape.len() - 1 - axis, None);
            let want = want(&program, shape, axis, &x, windows);
            let tensor = |((_, length), values): &(Part, Vec<f32>)| {
                upload(&client, values, &with_length(shape, axis, *length), F32)
            };
            let words = [upload(&client, &x, shape, F32)].into_iter().chain(windows.iter().map(tensor)).collect();
            let got = launched(&client, program.clone(), shape, words, &parts);
            assert!(bits(&got) == bits(&want), "{shape:?}, axis {axis}, {parts:?}");
            let spread = |((_, length), values): &(Part, Vec<f32>)| {
                scattered(3, &client, values, &with_length(shape, axis, *length))
            };
            let words = [scattered(2, &client, &x, shape)].into_iter().chain(windows.iter().map(spread)).collect();
            assert!(
                bits(&launched(&client, program, shape, words, &parts)) == bits(&want),
                "{shape:?}, {parts:?}, spread"
            );
        }
    }
}

#[test]
fn slices_of_half_types_equal_their_reference() {
    let client = client();
    let (shape, axis) = (&[3usize, 5, 8], 1);
    for (half, host) in stored(&client) {
        let parts = parts(shape[axis]);
        let windows: Vec<_> =
            { values(shape, axis, &parts).into_iter() }.map(|(part, values)| (part, host.rounded(&values))).collect();
        let x = host.rounded(&elements(shape));
        let program = slices(parts.len(), 1, Some(half));
        let want = want(&program, shape, axis, &x, &windows);
        let tensor =
            |((_, length), values): &(Part, Vec<f32>)| host.upload(&client, values, &with_length(shape, axis, *length));
        let words = [host.upload(&client, &x, shape)].into_iter().chain(windows.iter().map(tensor)).collect();
        let operands = Operands { words, conditions: vec![], scalars: scalars(&parts) };
        let results = run(&client, &Arc::new(program), shape, operands, U32).expect("the windows are the shape's");
        let [total] = results.halves.try_into().expect("one half output");
        assert!(bits(&host.download(&client, total)) == bits(&want), "{half:?}");
    }
}

#[test]
fn a_number_is_assigned_to_a_window() {
    let client = client();
    for (shape, axis) in SHAPES {
        let x = elements(shape);
        for (start, length) in parts(shape[axis]) {
            let mut program = Program::default();
            let window = Window { axis: shape.len() - 1 - axis, start: 0, length: 1 };
            program.assign(Value::Input(0), Value::Scalar(2), window);
            program.output_word(0);
            let operands = Operands {
                words: vec![upload(&client, &x, shape, F32)],
                conditions: vec![],
                scalars: vec![start as u32, length as u32, 7f32.to_bits()],
            };
            let results = run(&client, &Arc::new(program), shape, operands, U32).expect("a window of the shape");
            let [got] = results.words.try_into().expect("one word output");
            let behind: usize = shape[axis + 1..].iter().product();
            let is_within = |i: usize| (start..start + length).contains(&(i / behind % shape[axis]));
            let want: Vec<_> = (0..x.len()).map(|i| if is_within(i) { 7.0 } else { x[i] }).collect();
            assert_bits(&download(&client, got), &want);
        }
    }
}

/// Windows along two axes, one of an operand of one element a line, beside a mask and an update at an index.
#[test]
fn windows_along_two_axes_and_other_operands_are_read_where_they_lie() {
    let client = client();
    let shape = [3usize, 5, 8];
    let x = elements(&shape);
    let mask: Vec<u32> = (0..5 * 8).map(|i| u32::from(i % 3 == 0)).collect();
    let at: Vec<i32> = (0..15).map(|i| i % 8).collect();
    for axes in [[0, 1], [1, 0], [2, 1], [1, 2], [2, 0]] {
        let parts: [Part; 2] = [(1, 2), (2, 1)];
        let operands =
            [0, 1].map(|i| random_values(i as u64 + 5, with_length(&shape, axes[i], parts[i].1).iter().product()));
        // The second has one element along the last axis, if that is not its own.
        let expanded = axes[1] != 2;
        let mut program = Program::default();
        let mut value = program.word(Instruction::Select(Condition::Input(0), Value::Scalar(4), Value::Input(0)));
        for (i, axis) in axes.into_iter().enumerate() {
            let window = Window { axis: 2 - axis, start: 2 * i, length: 2 * i + 1 };
            value = program.assign(value, Value::Input(1 + i), window);
        }
        value = program.scatter_add(value, 3, Value::Scalar(6), Value::Scalar(5), None);
        let Value::Result(result) = value else { unreachable!("a result") };
        program.output_word(result);
        let tensor = |i: usize| {
            let shape = with_length(&shape, axes[i], parts[i].1);
            if i == 0 || !expanded {
                return upload(&client, &operands[i], &shape, F32);
            }
            let columns = with_length(&shape, 2, 1);
            let firsts: Vec<f32> = operands[i].chunks(shape[2]).map(|line| line[0]).collect();
            let strides = vec![columns[1], 1, 0];
            TensorHandle::new(upload(&client, &firsts, &columns, F32).handle, shape, strides, F32)
        };
        let indices = upload(&client, &at, &[3, 5, 1], ElemType::Int(IntKind::I32));
        let words = vec![upload(&client, &x, &shape, F32), tensor(0), tensor(1), indices];
        let negative_zero = (-0f32).to_bits();
        let scalars = vec![1, 2, 2, 1, 9f32.to_bits(), negative_zero, 0.5f32.to_bits()];
        let conditions = vec![upload(&client, &mask, &[5, 8], U32)];
        let operands_of_launch = Operands { words, conditions, scalars };
        let results = run(&client, &Arc::new(program), &shape, operands_of_launch, U32).expect("windows of the shape");
        let [got] = results.words.try_into().expect("one word output");
        let want = |i: usize| {
            let places = [i / 40, i / 8 % 5, i % 8];
            let mut value = if mask[i % 40] == 1 { 9.0 } else { x[i] };
            for (n, axis) in axes.into_iter().enumerate() {
                let (start, length) = parts[n];
                if (start..start + length).contains(&places[axis]) {
                    let mut within = places;
                    within[axis] -= start;
                    if n == 1 && expanded {
                        within[2] = 0;
                    }
                    let of = with_length(&shape, axis, length);
                    value = operands[n][(within[0] * of[1] + within[1]) * of[2] + within[2]];
                }
            }
            let negative_zero = value.to_bits() == (-0f32).to_bits();
            match at[i / 8] as usize == places[2] {
                true if negative_zero => 0.5,
                true => value + 0.5,
                false => value,
            }
        };
        assert_bits(&download(&client, got), &(0..120).map(want).collect::<Vec<_>>());
    }
}

#[test]
#[should_panic(expected = "outside of its window")]
fn an_operand_is_read_in_its_window_alone() {
    let mut program = Program::default();
    let window = Window { axis: 1, start: 0, length: 1 };
    let assigned = program.assign(Value::Input(0), Value::Input(1), window);
    program.word(Instruction::Binary(Binary::Add, assigned, Value::Input(1)));
}

#[test]
fn what_is_put_together_may_be_reduced() {
    let client = client();
    let (shape, axis) = (&[4usize, 6, 8], 1);
    let (x, parts) = (elements(shape), vec![(1, 2), (5, 1)]);
    let windows: Vec<_> = { values(shape, axis, &parts).into_iter() }
        .map(|(part, values)| (part, values.into_iter().map(|x| if x.is_finite() { x } else { 1.0 }).collect()))
        .collect();
    let mut program = slices(parts.len(), 1, None);
    let elements = upload(&client, &want(&program, shape, axis, &x, &windows), shape, F32);
    program.reduce(program.word_outputs()[0]);
    for axes in [&[2usize][..], &[0], &[0, 1, 2]] {
        let tensor =
            |((_, length), values): &(Part, Vec<f32>)| upload(&client, values, &with_length(shape, axis, *length), F32);
        let words = [upload(&client, &x, shape, F32)].into_iter().chain(windows.iter().map(tensor)).collect();
        let operands = Operands { words, conditions: vec![], scalars: scalars(&parts) };
        let input = Call { program: &Arc::new(program.clone()), shape, operands, condition_dtype: U32 };
        let (_, got) = reduce_program(&client, Operation::Sum, input, axes, None).expect("a sum");
        let want = reduce::reduce(&client, Operation::Sum, elements.clone(), axes, None).expect("a sum");
        assert_bits(&download(&client, got), &download(&client, want));
    }
}

#[test]
fn a_window_that_is_none_of_the_shape_is_an_error() {
    let client = client();
    let refused = |shape: &[usize], axis_from_last: usize, part: Part, operand: &[usize]| {
        let words = [shape, operand].map(|shape| upload(&client, &elements(shape), shape, F32)).into();
        let operands = Operands { words, conditions: vec![], scalars: scalars(&[part]) };
        let program = Arc::new(slices(1, axis_from_last, None));
        let error = run(&client, &program, shape, operands, U32).expect_err("it is none of the shape's");
        assert!(matches!(error, KernelError::Shape { .. }), "{error}");
        error.to_string()
    };
    let beyond = refused(&[2, 4, 3], 1, (3, 2), &[2, 2, 3]);
    assert!(beyond.contains("operand of shape [2, 2, 3] of 2 from 3 on along axis -2 of shape [2, 4, 3]"), "{beyond}");
    refused(&[2, 4, 3], 1, (0, 5), &[2, 5, 3]);
    refused(&[2, 4, 3], 1, (0, 3), &[4, 3]);
    refused(&[2, 4, 3], 3, (0, 4), &[2, 4, 3]);
    refused(&[2, 4, 3], 1, (0, 2), &[3, 2, 3]);
    refused(&[2, 4, 3], 1, (0, 3), &[2, 2, 3]);
    refused(&[2, 4, 3], 1, (u32::MAX as usize, 2), &[2, 2, 3]);
    refused(&[2, 4, 3], 1, (0, 0), &[2, 1, 3]);
    // Places along these are not found.
    refused(&[2, 1, 3], 1, (0, 1), &[2, 1, 3]);
    refused(&[2, 4, 1], 1, (1, 2), &[2, 2, 1]);
}
