//! Rows at one index each, against the reference and against kernels of their own.

use super::{binary, index, reduce};
use crate::elementwise::halves::stored;
use crate::harness::*;
use burn_deterministic_kernels::elementwise::{
    self, Binary, Call, Extent, Instruction, Operands, Program, RowReduction, Unary, Value,
};
use burn_deterministic_kernels::gather::gather;
use burn_deterministic_kernels::index_check::Flags;
use burn_deterministic_kernels::reduce::extreme::{Extreme, search};
use burn_deterministic_kernels::reduce::{Operation, reduce_program, sum};
use burn_deterministic_kernels::rows::{RowProgram, reference};
use burn_deterministic_kernels::scatter::{self, Addressing, Update};
use cubecl::ir::{ElemType, IntKind, UIntKind};
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const I32: ElemType = ElemType::Int(IntKind::I32);
const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// The operands: elements, an index and a number a row, and another index and number a row.
const ROW_WORDS: [bool; 5] = [false, true, true, true, true];

/// `x` at index `i`; zeros with `y` added there; the first of the largest and of the smallest elements and their places, alone and
/// of what is computed; `x` with `z` added at index `j` in the second phase; and what an exponential that is shifted by the largest
/// sums to.
fn program() -> Program {
    let mut program = Program::default();
    let [x, y, z] = [0, 2, 4].map(Value::Input);
    let (i, j) = (1, 3);
    let [zero, negative_zero] = [0, 1].map(Value::Scalar);
    let read = program.gather(x, i, zero);
    let zeros = program.word(Instruction::Fill(zero, Extent::Elements));
    let alone = program.scatter_add(zeros, i, y, negative_zero, None);
    let largest = reduce(&mut program, RowReduction::FirstMax, x);
    let largest_at = reduce(&mut program, RowReduction::ArgMax, x);
    let least_at = reduce(&mut program, RowReduction::ArgMin, x);
    let least = reduce(&mut program, RowReduction::FirstMin, x);
    let shifted = binary(&mut program, Binary::Subtract, x, largest);
    let exponential = program.word(Instruction::Unary(Unary::Exponential, shifted));
    let total = reduce(&mut program, RowReduction::Sum, exponential);
    let updated = program.scatter_add(x, j, z, negative_zero, None);
    let weighted = binary(&mut program, Binary::Multiply, alone, total);
    let last = reduce(&mut program, RowReduction::ArgMax, weighted);
    let outputs = [read, largest, largest_at, least, least_at, alone, updated, weighted, total, last];
    outputs.into_iter().for_each(|value| program.output_word(index(value)));
    program
}

/// Operands of `[rows, length]`. Ties at both ends, zeros of both signs and NaN with a payload among the elements; indices at
/// both ends of a row; -0 among the numbers.
fn operands(rows: usize, length: usize) -> (Vec<f32>, [Vec<i32>; 2], [Vec<f32>; 2]) {
    let mut x = random_values(1, rows * length);
    let [mut y, mut z] = [2, 3].map(|seed| random_values(seed, rows));
    for (row, x) in x.chunks_mut(length).enumerate() {
        match row % 6 {
            0 => x.iter_mut().for_each(|x| *x = x.round()),
            1 => x.iter_mut().enumerate().for_each(|(at, x)| *x = if at % 3 == 1 { 0.0 } else { -0.0 }),
            2 => x[length - 1] = f32::from_bits(0xffc0_1234),
            3 => (x[length / 2], x[length - 1]) = (f32::from_bits(0x7fc0_4321), f32::NAN),
            4 => (x[0], x[length - 1]) = (1e-40, f32::NEG_INFINITY),
            _ => {}
        }
    }
    (y[0], z[rows - 1]) = (-0.0, -0.0);
    let length = length as i32;
    let i = (0..rows as i32).map(|row| [0, length - 1, row % length, length / 2][row as usize % 4]).collect();
    let j = (0..rows as i32).map(|row| (7 * row) % length).collect();
    (x, [i, j], [y, z])
}

fn repeated(values: &[u32], length: usize) -> Vec<u32> {
    values.iter().flat_map(|&value| vec![value; length]).collect()
}

fn words(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Equal bits; of results that are computed, any NaN equals another.
fn assert_words(got: &[u32], want: &[u32], is_moved: bool, what: &str) {
    let is_nan = |bits: u32| !is_moved && f32::from_bits(bits).is_nan();
    let same = |(got, want): (&u32, &u32)| got == want || is_nan(*got) && is_nan(*want);
    assert_eq!(got.len(), want.len(), "{what}");
    let first = got.iter().zip(want).position(|pair| !same(pair));
    assert!(first.is_none(), "{what} at {first:?}: got {got:x?}, want {want:x?}");
}

#[test]
fn rows_at_an_index_equal_their_reference_and_separate_kernels() {
    let client = client();
    let program = program();
    let of_rows = RowProgram::new(Arc::new(program.clone()), ROW_WORDS.to_vec(), vec![]);
    for (rows, length) in [(7, 2), (8, 5), (70, 8), (9, 33), (6, 64), (7, 65), (12, 1000), (6, 4096)] {
        let what = |part: &str| format!("{part} of {rows} x {length}");
        let (x, [i, j], [y, z]) = operands(rows, length);
        let tensor = upload(&client, &x, &[rows, length], F32);
        let [i_tensor, j_tensor] = [&i, &j].map(|index| upload(&client, index, &[rows, 1], I32));
        let [y_tensor, z_tensor] = [&y, &z].map(|values| scattered(2, &client, values, &[rows, 1]));
        let inputs = [&tensor, &i_tensor, &y_tensor, &j_tensor, &z_tensor].map(TensorHandle::clone).to_vec();
        let scalars = vec![0, (-0f32).to_bits()];
        let flags = Flags::new(&client, 2);
        let operands = Operands { words: inputs, conditions: vec![], scalars: scalars.clone() };
        let results =
            of_rows.run(&client, &[rows, length], operands, U32, &[flags.flag(0), flags.flag(1)]).expect("it fits");
        assert_eq!(flags.read(&client).expect("the device tells"), [false, false], "{}", what("flags"));
        let got: Vec<Vec<u32>> = results.words.into_iter().map(|tensor| download(&client, tensor)).collect();

        let integers = |index: &[i32]| index.iter().map(|index| index.cast_unsigned()).collect::<Vec<_>>();
        let of_rows = [integers(&i), words(&y), integers(&j), words(&z)].map(|values| repeated(&values, length));
        let mut want = vec![vec![]; got.len()];
        for row in 0..rows {
            let of_row = row * length..(row + 1) * length;
            let inputs: Vec<Vec<u32>> =
                [&words(&x)].into_iter().chain(&of_rows).map(|input| input[of_row.clone()].to_vec()).collect();
            let (words, _) = reference::run(&program, length, &inputs, &[], &scalars);
            for (output, (want, words)) in want.iter_mut().zip(words).enumerate() {
                want.extend(&words[..if (5..8).contains(&output) { length } else { 1 }]);
            }
        }
        for (output, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_words(got, want, output < 5, &what(&format!("output {output}")));
        }

        let alone = |tensor: TensorHandle| download::<u32>(&client, tensor);
        let read = gather(&client, 1, tensor.clone(), i_tensor.clone(), None).expect("it reads");
        assert_words(&got[0], &alone(read), true, &what("gather"));
        for (end, element, place) in [(Extreme::Max, 1, 2), (Extreme::Min, 3, 4)] {
            let (elements, places) = search(&client, end, tensor.clone(), 1, I32, true, None).expect("it searches");
            assert_words(&got[element], &alone(elements), true, &what("extreme"));
            assert_words(&got[place], &alone(places), true, &what("place"));
        }
        let zeros = upload(&client, &vec![0f32; rows * length], &[rows, length], F32);
        for (output, tensor, indices, values) in [(5, zeros, i_tensor, y_tensor), (6, tensor, j_tensor, z_tensor)] {
            let operands = scatter::Operands { tensor, indices, values };
            let updated = scatter::update(&client, Addressing::Elements { dim: 1 }, operands, Update::Add, None)
                .expect("it adds");
            assert_words(&got[output], &alone(updated), false, &what("scatter"));
        }
    }
}

/// The values at one index a row by units that compute four elements, and one, and by those of a reduction.
#[test]
fn places_in_kernels_of_elements_equal_their_reference() {
    let client = client();
    let mut program = Program::default();
    let [x, y] = [0, 2].map(Value::Input);
    let updated = program.scatter_add(x, 1, y, Value::Scalar(0), None);
    let place = program.word(Instruction::Place);
    let product = binary(&mut program, Binary::Multiply, updated, x);
    [updated, place, product].into_iter().for_each(|value| program.output_word(index(value)));
    let mut reduced = program.clone();
    reduced.reduce(index(product));
    let (program, reduced) = (Arc::new(program), Arc::new(reduced));
    for (outer, rows, length) in [(1, 4, 64), (2, 3, 5), (1, 1, 2), (3, 5, 4), (1, 2, 5000), (2, 7, 1023)] {
        let what = |part: &str| format!("{part} of {outer} x {rows} x {length}");
        let all = outer * rows;
        let (x, [i, _], [y, _]) = operands(all, length);
        let shape = [outer, rows, length];
        let made = || Operands {
            words: vec![
                upload(&client, &x, &shape, F32),
                upload(&client, &i, &[outer, rows, 1], I32),
                scattered(2, &client, &y, &[outer, rows, 1]),
            ],
            conditions: vec![],
            scalars: vec![(-0f32).to_bits()],
        };
        let mut want = vec![vec![]; 3];
        for row in 0..all {
            let of_row = words(&x[row * length..(row + 1) * length]);
            let inputs = [of_row, vec![i[row].cast_unsigned(); length], vec![y[row].to_bits(); length]];
            let (words, _) = reference::run(&program, length, &inputs, &[], &[(-0f32).to_bits()]);
            want.iter_mut().zip(words).for_each(|(want, words)| want.extend(words));
        }
        let results = elementwise::run(&client, &program, &shape, made(), U32).expect("it runs");
        for (output, (tensor, want)) in results.words.into_iter().zip(&want).enumerate() {
            assert_words(&download(&client, tensor), want, output < 2, &what(&format!("output {output}")));
        }
        let products: Vec<f32> = want[2].iter().map(|&bits| f32::from_bits(bits)).collect();
        let products = upload(&client, &products, &shape, F32);
        for axes in [&[0, 1][..], &[2], &[0, 1, 2]] {
            let input = Call { program: &reduced, shape: &shape, operands: made(), condition_dtype: U32 };
            let (_, got) = reduce_program(&client, Operation::Sum, input, axes, None).expect("it sums");
            let alone = sum(&client, products.clone(), axes).expect("it sums");
            assert_words(&download(&client, got), &download::<u32>(&client, alone), false, &what("sum"));
        }
    }
    let operands = || Operands {
        words: vec![
            upload(&client, &[1f32; 3], &[3, 1], F32),
            upload(&client, &[0i32; 3], &[3, 1], I32),
            upload(&client, &[1f32; 3], &[3, 1], F32),
        ],
        conditions: vec![],
        scalars: vec![0],
    };
    let error = elementwise::run(&client, &program, &[3, 1], operands(), U32).expect_err("a row has one element");
    assert!(error.to_string().contains("rows of one element"), "{error}");
}

/// Half types: elements that are moved are themselves, and a sum is rounded once.
#[test]
fn rows_of_half_types_at_an_index_equal_separate_kernels() {
    let client = client();
    for (half, host) in stored(&client) {
        let mut program = Program::default();
        let (x, y) = (Value::Input(0), Value::Input(2));
        let read = program.gather(x, 1, Value::Scalar(0));
        let updated = program.scatter_add(x, 1, y, Value::Scalar(1), Some(half));
        let [largest, least] =
            [RowReduction::FirstMax, RowReduction::FirstMin].map(|reduction| reduce(&mut program, reduction, x));
        let [largest_at, least_at] =
            [RowReduction::ArgMax, RowReduction::ArgMin].map(|reduction| reduce(&mut program, reduction, x));
        [read, updated, largest, least].into_iter().for_each(|value| program.output_half(index(value), half));
        [largest_at, least_at].into_iter().for_each(|value| program.output_word(index(value)));
        let program = RowProgram::new(Arc::new(program), vec![false, true, true], vec![]);
        for (rows, length) in [(7, 5), (6, 64), (12, 1000)] {
            let what = |part: &str| format!("{part} of {half:?} {rows} x {length}");
            let (x, [i, _], [y, _]) = operands(rows, length);
            let (x, y) = (host.rounded(&x), host.rounded(&y));
            let tensor = host.upload(&client, &x, &[rows, length]);
            let indices = upload(&client, &i, &[rows, 1], I32);
            let values = host.upload(&client, &y, &[rows, 1]);
            let inputs = vec![tensor.clone(), indices.clone(), values.clone()];
            let operands = Operands { words: inputs, conditions: vec![], scalars: vec![0, (-0f32).to_bits()] };
            let flags = Flags::new(&client, 1);
            let results = program.run(&client, &[rows, length], operands, U32, &[flags.flag(0)]).expect("it fits");
            let halves = |tensor: TensorHandle| words(&host.download(&client, tensor));
            let got: Vec<_> = results.halves.into_iter().map(halves).collect();
            let places: Vec<Vec<u32>> = results.words.into_iter().map(|tensor| download(&client, tensor)).collect();
            let read = gather(&client, 1, tensor.clone(), indices.clone(), None).expect("it reads");
            assert_words(&got[0], &halves(read), false, &what("gather"));
            let operands = scatter::Operands { tensor: tensor.clone(), indices, values };
            let updated = scatter::update(&client, Addressing::Elements { dim: 1 }, operands, Update::Add, None)
                .expect("it adds");
            assert_words(&got[1], &halves(updated), false, &what("scatter"));
            for (end, at) in [(Extreme::Max, 0), (Extreme::Min, 1)] {
                let (elements, found) = search(&client, end, tensor.clone(), 1, I32, true, None).expect("it searches");
                assert_words(&got[2 + at], &halves(elements), false, &what("extreme"));
                assert_words(&places[at], &download::<u32>(&client, found), true, &what("place"));
            }
        }
    }
}

#[test]
fn an_index_outside_its_row_sets_its_flag_and_reads_and_updates_nothing() {
    let client = client();
    let (rows, length) = (3, 5);
    let program = RowProgram::new(Arc::new(program()), ROW_WORDS.to_vec(), vec![]);
    let x: Vec<f32> = (0..rows * length).map(|at| at as f32 + 1.0).collect();
    for (i, j, raised) in [
        ([0, 4, 2], [1, 2, 4], [false, false]),
        ([0, 5, 2], [1, 2, 4], [true, false]),
        ([0, 4, 2], [1, -1, 4], [false, true]),
        ([i32::MIN, 4, 2], [1, 2, i32::MAX], [true, true]),
    ] {
        let ones = || upload(&client, &[1f32; 3], &[rows, 1], F32);
        let words = vec![
            upload(&client, &x, &[rows, length], F32),
            upload(&client, &i, &[rows, 1], I32),
            ones(),
            upload(&client, &j, &[rows, 1], I32),
            ones(),
        ];
        let operands = Operands { words, conditions: vec![], scalars: vec![0, (-0f32).to_bits()] };
        let flags = Flags::new(&client, 4);
        let results =
            program.run(&client, &[rows, length], operands, U32, &[flags.flag(1), flags.flag(3)]).expect("it fits");
        let want = [false, raised[0], false, raised[1]];
        assert_eq!(flags.read(&client).expect("the device tells"), want, "{i:?} {j:?}");
        let place = |index: i32| usize::try_from(index).ok().filter(|&index| index < length);
        let [read, alone, updated] = [0, 5, 6].map(|output| download::<f32>(&client, results.words[output].clone()));
        for row in 0..rows {
            let of_row = row * length..(row + 1) * length;
            let x = &x[of_row.clone()];
            assert_bits(&read[row..=row], &[place(i[row]).map_or(0.0, |place| x[place])]);
            let added = |index: i32, before: &[f32]| {
                let mut after = before.to_vec();
                place(index).into_iter().for_each(|place| after[place] += 1.0);
                after
            };
            assert_bits(&alone[of_row.clone()], &added(i[row], &[0.0; 5]));
            assert_bits(&updated[of_row], &added(j[row], x));
        }
    }
}
