//! Programs side by side have the bits of each by itself.

use super::{U32, adam, bits, want_floats};
use crate::harness::*;
use burn_deterministic_kernels::elementwise::{
    self, Binary, Call, Comparison, Condition, Half, Instruction, Operands, Program, Unary, Value, Window, run,
    run_each,
};
use burn_deterministic_kernels::reduce::{
    self, Operation, Reduced, ReductionCall, reduce_program, reduce_program_each,
};
use cubecl::ir::{ElemType, FloatKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::f16;
use std::sync::Arc;

const U8: ElemType = ElemType::UInt(UIntKind::U8);
const F16: ElemType = ElemType::Float(FloatKind::F16);

/// A program, its shape, what it reads and the storage type of bool tensors.
struct Case {
    program: Arc<Program>,
    shape: Vec<usize>,
    words: Vec<TensorHandle>,
    conditions: Vec<TensorHandle>,
    scalars: Vec<u32>,
    condition_dtype: ElemType,
}

impl Case {
    fn floats(program: &Program, shape: &[usize], words: Vec<TensorHandle>, scalars: &[f32]) -> Self {
        let (program, shape) = (Arc::new(program.clone()), shape.to_vec());
        Self { program, shape, words, conditions: vec![], scalars: bits(scalars), condition_dtype: U32 }
    }

    fn call(&self) -> Call<'_> {
        let (words, conditions) = (self.words.clone(), self.conditions.clone());
        let operands = Operands { words, conditions, scalars: self.scalars.clone() };
        Call { program: &self.program, shape: &self.shape, operands, condition_dtype: self.condition_dtype }
    }
}

/// The elements of a tensor, as integers.
fn words(client: &Client, tensor: TensorHandle) -> Vec<u32> {
    match tensor.dtype.size() {
        1 => download::<u8>(client, tensor).into_iter().map(u32::from).collect(),
        2 => download::<u16>(client, tensor).into_iter().map(u32::from).collect(),
        _ => download(client, tensor),
    }
}

fn result(value: Value) -> usize {
    let Value::Result(index) = value else { unreachable!("an instruction has a result") };
    index
}

const SCALARS: [f32; 5] = [0.9, 0.1, 0.999, 0.001, 1e-5];

/// Parameters of many sizes, without elements, in vectors and not, more than a launch has.
const SIZES: [&[usize]; 14] = [
    &[1],
    &[2, 1],
    &[10],
    &[0],
    &[64],
    &[3, 5],
    &[255],
    &[1024],
    &[1025],
    &[128, 36],
    &[257, 4],
    &[70_001],
    &[2, 2],
    &[8],
];

fn moments(shape: &[usize], seed: u64) -> [Vec<f32>; 3] {
    let values = |seed| random_values(seed, shape.iter().product());
    [values(seed), values(seed + 1), values(seed + 2).into_iter().map(f32::abs).collect()]
}

#[test]
fn parameters_have_the_bits_of_their_instructions() {
    let client = client();
    if !divides_like_the_host(&client) {
        return crate::skip::skip("the device's quotients and roots are not correctly rounded");
    }
    let values: Vec<_> = (0..).zip(SIZES).map(|(seed, shape)| moments(shape, 10 * seed)).collect();
    let case = |(shape, values): (&[usize], &[Vec<f32>; 3])| {
        let words = values.iter().map(|values| upload(&client, values, shape, F32)).collect();
        Case::floats(&adam(), shape, words, &SCALARS)
    };
    let cases: Vec<_> = SIZES.into_iter().zip(&values).map(case).collect();
    let results = run_each(&client, cases.iter().map(Case::call).collect()).expect("operands fit");
    assert_eq!(results.len(), SIZES.len());
    for ((shape, values), results) in SIZES.into_iter().zip(&values).zip(results) {
        let elements: usize = shape.iter().product();
        let want: Vec<Vec<f32>> =
            (0..elements).map(|i| want_floats(&adam(), &[0, 1, 2].map(|n| values[n][i]), &[], &SCALARS).0).collect();
        assert_eq!(results.words.len(), 3);
        for (output, got) in results.words.into_iter().enumerate() {
            assert_eq!(&got.shape()[..], shape);
            assert_bits(&download(&client, got), &want.iter().map(|element| element[output]).collect::<Vec<_>>());
        }
    }
}

/// Programs of every kind: broadcast and transposed operands, conditions of two storage types, windows, places, half types.
fn of_every_kind(client: &Client) -> Vec<Case> {
    let multiply = |a, b| Instruction::Binary(Binary::Multiply, a, b);
    let mut scaled = Program::default();
    let product = scaled.word(multiply(Value::Input(0), Value::Input(1)));
    scaled.output_word(result(product));
    let mut clipped = Program::default();
    let mask = clipped.condition(Instruction::Compare(Comparison::Greater, Value::Input(0), Value::Scalar(0)));
    let kept = clipped.word(Instruction::Select(mask, Value::Scalar(0), Value::Input(0)));
    let masked = clipped.word(Instruction::Select(Condition::Input(0), kept, Value::Scalar(1)));
    let Condition::Result(index) = mask else { unreachable!("an instruction has a result") };
    clipped.output_condition(index);
    clipped.output_word(result(masked));
    let mut assigned = Program::default();
    let part = assigned.assign(Value::Input(0), Value::Input(1), Window { axis: 1, start: 0, length: 1 });
    assigned.output_word(result(part));
    let mut placed = Program::default();
    let found = placed.scatter_add(Value::Input(0), 1, Value::Input(2), Value::Scalar(0), None);
    placed.output_word(result(found));
    let mut halves = Program::default();
    let sum = halves.word(Instruction::Binary(Binary::Add, Value::Input(0), Value::Input(1)));
    let rounded = halves.rounded(sum, Half::F16);
    halves.output_half(result(rounded), Half::F16);

    let floats = |seed, shape: &[usize]| upload(client, &random_values(seed, shape.iter().product()), shape, F32);
    let mut cases = Vec::new();
    for (seed, [rows, columns]) in (0u64..).zip([[3, 8], [5, 7], [64, 64], [1, 2], [17, 300]]) {
        let (shape, elements) = (vec![rows, columns], rows * columns);
        let words = vec![floats(seed, &shape), floats(seed + 9, &[1, columns])];
        cases.push(Case::floats(&scaled, &shape, words, &[]));
        let transposed = floats(seed + 20, &[columns, rows]);
        let transposed = TensorHandle::new(transposed.handle, shape.clone(), vec![1, rows], F32);
        cases.push(Case::floats(&scaled, &shape, vec![transposed, floats(seed, &[rows, 1])], &[]));
        let mask: Vec<u8> = (0..elements).map(|i| u8::from(i % 3 == 0)).collect();
        let wide: Vec<u32> = mask.iter().map(|&bit| bit.into()).collect();
        let of_words = Case::floats(&clipped, &shape, vec![floats(seed + 30, &shape)], &[0.25, -1.0]);
        cases.push(Case { conditions: vec![upload(client, &wide, &shape, U32)], ..of_words });
        if client.properties().supports_type(U8) {
            let of_words = Case::floats(&clipped, &shape, vec![floats(seed + 40, &shape)], &[0.25, -1.0]);
            let conditions = vec![upload(client, &mask, &shape, U8)];
            cases.push(Case { conditions, condition_dtype: U8, ..of_words });
        }
        let (shape, part) = ([2, rows + 1, columns], [2, 1, columns]);
        let words = vec![floats(seed + 50, &shape), floats(seed + 60, &part)];
        cases.push(Case { scalars: vec![rows as u32, 1], ..Case::floats(&assigned, &shape, words, &[]) });
        let index: Vec<i32> = (0..rows as i32).map(|row| row % columns as i32).collect();
        let index = upload(client, &index, &[rows, 1], I32);
        let words = vec![floats(seed + 70, &[rows, columns]), index, floats(seed + 80, &[rows, 1])];
        cases.push(Case::floats(&placed, &[rows, columns], words, &[-0.0]));
        if client.properties().supports_type(F16) {
            let of = |seed| {
                let values: Vec<f16> = random_values(seed, elements).into_iter().map(f16::from_f32).collect();
                upload(client, &values, &[rows, columns], F16)
            };
            cases.push(Case::floats(&halves, &[rows, columns], vec![of(seed), of(seed + 5)], &[]));
        }
    }
    cases
}

#[test]
fn programs_of_every_kind_have_the_bits_of_each_by_itself() {
    let client = client();
    let cases = of_every_kind(&client);
    let together = run_each(&client, cases.iter().map(Case::call).collect()).expect("operands fit");
    for (index, (case, got)) in cases.iter().zip(together).enumerate() {
        let Call { program, shape, operands, condition_dtype } = case.call();
        let want = run(&client, program, shape, operands, condition_dtype).expect("operands fit");
        let tensors = [(got.words, want.words), (got.halves, want.halves), (got.conditions, want.conditions)];
        assert!(tensors.iter().any(|(got, _)| !got.is_empty()));
        for (got, want) in tensors {
            assert_eq!(got.len(), want.len());
            for (got, want) in got.into_iter().zip(want) {
                assert_eq!((got.shape(), got.dtype), (want.shape(), want.dtype));
                assert_eq!(words(&client, got), words(&client, want), "program {index}");
            }
        }
    }
}

#[test]
fn one_that_does_not_fit_is_an_error() {
    let client = client();
    let fits = Case::floats(&adam(), &[4], vec![upload(&client, &[1f32; 4], &[4], F32); 3], &SCALARS);
    let other = Case::floats(&adam(), &[4], vec![upload(&client, &[1f32; 3], &[3], F32); 3], &SCALARS);
    run_each(&client, vec![fits.call(), other.call()]).expect_err("an operand does not broadcast");
    assert!(run_each(&client, vec![]).expect("nothing to do").is_empty());
}

/// The square of the first operand, which is written and reduced.
fn square() -> Program {
    let mut program = Program::default();
    let square = program.word(Instruction::Binary(Binary::Multiply, Value::Input(0), Value::Input(0)));
    let negative = program.word(Instruction::Unary(Unary::Negate, Value::Input(0)));
    program.output_word(result(negative));
    program.reduce(result(square));
    program
}

#[test]
fn norms_have_the_bits_of_their_sums() {
    let client = client();
    // Blocks of 4096 elements: one, two to four, more, and totals of more than 64 blocks.
    let shapes: [&[usize]; 14] = [
        &[1],
        &[2],
        &[63],
        &[64, 1],
        &[65],
        &[64, 64],
        &[4097],
        &[10],
        &[4, 4096],
        &[70_001],
        &[6, 7],
        &[300_000],
        &[3, 3, 3, 3],
        &[0],
    ];
    let values: Vec<_> = (0..).zip(shapes).map(|(seed, shape)| random_values(seed, shape.iter().product())).collect();
    let case = |(shape, values): (&[usize], &Vec<f32>)| {
        Case::floats(&square(), shape, vec![upload(&client, values, shape, F32)], &[])
    };
    let cases: Vec<_> = shapes.into_iter().zip(&values).map(case).collect();
    for operation in [Operation::Sum, Operation::Prod, Operation::Mean] {
        let axes: Vec<Vec<usize>> = shapes.iter().map(|shape| (0..shape.len()).collect()).collect();
        let call = |(case, axes)| ReductionCall { operation, input: Case::call(case), axes, mean: true };
        let calls = cases.iter().zip(axes.iter().map(Vec::as_slice)).map(call).collect();
        let results = reduce_program_each(&client, calls).expect("operands fit");
        let share = elementwise::shares_launches(&client) && operation == Operation::Sum;
        for ((shape, values), Reduced { results, reduced, mean }) in shapes.into_iter().zip(&values).zip(results) {
            let squares: Vec<f32> = values.iter().map(|x| x * x).collect();
            let want = match operation {
                Operation::Sum => reduce::reference::sum(&squares),
                Operation::Prod => reduce::reference::prod(&squares),
                _ => reduce::reference::mean(&squares),
            };
            let reduced_shape = vec![1; shape.len()];
            assert_eq!(&reduced.shape()[..], reduced_shape, "{shape:?}");
            let got: Vec<f32> = download(&client, reduced);
            if !want.is_nan() && (operation != Operation::Mean || divides_like_the_host(&client)) {
                assert_bits(&got, &[want]);
            }
            // Of no elements it is a NaN, which no shared launch gives.
            assert_eq!(mean.is_some(), share && !shape.contains(&0), "{operation:?} of {shape:?}");
            if let Some(mean) = mean.filter(|_| divides_like_the_host(&client)) {
                assert_eq!(&mean.shape()[..], reduced_shape, "{shape:?}");
                assert_bits(&download(&client, mean), &[reduce::reference::mean(&squares)]);
            }
            let [negative] = results.words.try_into().expect("one word output");
            assert_bits(&download(&client, negative), &values.iter().map(|x| -x).collect::<Vec<_>>());
        }
    }
}

#[test]
fn sums_of_axes_have_the_bits_of_each_by_itself() {
    let client = client();
    let shape = [5usize, 6, 70];
    let floats = |seed, shape: &[usize]| upload(&client, &random_values(seed, shape.iter().product()), shape, F32);
    let axes: [&[usize]; 7] = [&[0], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]];
    let operand = |seed: u64| match seed % 3 {
        0 => floats(seed, &shape),
        1 => floats(seed, &[6, 1]),
        _ => TensorHandle::new(floats(seed, &[70, 6, 5]).handle, shape.to_vec(), vec![1, 5, 30], F32),
    };
    let cases: Vec<_> = (0..21).map(|seed| Case::floats(&square(), &shape, vec![operand(seed)], &[])).collect();
    let call = |index: usize| {
        let operation = if index.is_multiple_of(2) { Operation::Sum } else { Operation::Prod };
        ReductionCall { operation, input: cases[index].call(), axes: axes[index % 7], mean: index.is_multiple_of(4) }
    };
    let results = reduce_program_each(&client, (0..21).map(call).collect()).expect("operands fit");
    let mut means = 0;
    for (index, Reduced { results: written, reduced, mean }) in results.into_iter().enumerate() {
        let ReductionCall { operation, input, axes, mean: is_wanted } = call(index);
        assert!(is_wanted || mean.is_none());
        if let Some(mean) = mean {
            means += 1;
            let (_, want) = reduce_program(&client, Operation::Mean, call(index).input, axes, None).expect("they fit");
            assert_bits(&download(&client, mean), &download(&client, want));
        }
        let (want, sum) = reduce_program(&client, operation, input, axes, None).expect("operands fit");
        assert_eq!(reduced.shape(), sum.shape());
        assert_bits(&download(&client, reduced), &download(&client, sum));
        for (got, want) in written.words.into_iter().zip(want.words) {
            assert_bits(&download(&client, got), &download(&client, want));
        }
    }
    assert_eq!(means, if elementwise::shares_launches(&client) { 6 } else { 0 });
}

#[test]
fn sums_and_means_of_several_blocks_are_beside_those_with_masks() {
    let client = client();
    if !divides_like_the_host(&client) {
        return crate::skip::skip("the device's quotients are not correctly rounded");
    }
    let [rows, length] = [4usize, 5000];
    let mut values = random_values(1, rows * length);
    values[length..2 * length].fill(-0.0);
    values[2 * length] = f32::INFINITY;
    if !takes_subnormals_for_zero(&client) {
        values[3 * length..].fill(1e-42);
    }
    let mask: Vec<bool> = (0..rows * length).map(|at| at % 3 != 1).collect();
    let mut masked = Program::default();
    let zero = Value::Scalar(0);
    let kept = masked.word(Instruction::Select(Condition::Input(0), Value::Input(0), zero));
    masked.reduce(result(kept));
    let shape = vec![rows, length];
    let words = || vec![upload(&client, &values, &shape, F32)];
    let with = |conditions: TensorHandle| {
        let condition_dtype = conditions.dtype;
        let (program, words) = (Arc::new(masked.clone()), words());
        Case { program, shape: shape.clone(), words, conditions: vec![conditions], scalars: vec![0], condition_dtype }
    };
    let wide: Vec<u32> = mask.iter().map(|&mask| u32::from(mask)).collect();
    let mut cases = vec![Case::floats(&square(), &shape, words(), &[]), with(upload(&client, &wide, &shape, U32))];
    if client.properties().supports_type(U8) {
        let narrow: Vec<u8> = mask.iter().map(|&mask| u8::from(mask)).collect();
        cases.push(with(upload(&client, &narrow, &shape, U8)));
    }
    cases.push(Case::floats(&square(), &shape, words(), &[]));
    let call = |case| ReductionCall { operation: Operation::Sum, input: Case::call(case), axes: &[1], mean: true };
    let results = reduce_program_each(&client, cases.iter().map(call).collect()).expect("operands fit");
    for (case, Reduced { reduced, mean, .. }) in cases.iter().zip(results) {
        let element = |at: usize| match case.conditions.is_empty() {
            true => values[at] * values[at],
            false if mask[at] => values[at],
            false => 0.0,
        };
        let row = |row: usize| (row * length..(row + 1) * length).map(element).collect::<Vec<_>>();
        let want = |of: fn(&[f32]) -> f32| (0..rows).map(|index| of(&row(index))).collect::<Vec<_>>();
        assert_bits(&download(&client, reduced), &want(reduce::reference::sum));
        assert_eq!(mean.is_some(), elementwise::shares_launches(&client));
        if let Some(mean) = mean {
            assert_eq!(&mean.shape()[..], [rows, 1]);
            assert_bits(&download(&client, mean), &want(reduce::reference::mean));
        }
    }
}
