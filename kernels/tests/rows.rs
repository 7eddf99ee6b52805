//! Programs that reduce rows against their reference.

mod donated;
mod indexed;

use crate::elementwise::halves::stored;
use crate::harness::*;
use burn_deterministic_kernels::KernelError;
use burn_deterministic_kernels::elementwise::{
    Binary, Comparison, Condition, Extent, Half, Instruction, Logic, Operands, Program, RowReduction, Unary, Value,
};
use burn_deterministic_kernels::reduce::{max, mean, min, prod, sum};
use burn_deterministic_kernels::rows::{RowProgram, reference};
use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// A reduction in a kernel of its own.
type Reduction = fn(&Client, TensorHandle, &[usize]) -> Result<TensorHandle, KernelError>;

/// A program, which of its word operands and of its bool operands have one value a row, and its scalars.
struct Case {
    name: &'static str,
    program: Program,
    row_words: Vec<bool>,
    row_conditions: Vec<bool>,
    scalars: Vec<f32>,
}

fn index(value: Value) -> usize {
    let Value::Result(index) = value else { panic!("{value:?} is no result") };
    index
}

fn binary(program: &mut Program, function: Binary, a: Value, b: Value) -> Value {
    program.word(Instruction::Binary(function, a, b))
}

fn reduce(program: &mut Program, reduction: RowReduction, value: Value) -> Value {
    program.word(Instruction::Reduce(reduction, value))
}

fn softmax() -> Case {
    let mut program = Program::default();
    let largest = reduce(&mut program, RowReduction::Max, Value::Input(0));
    let shifted = binary(&mut program, Binary::Subtract, Value::Input(0), largest);
    let exponential = program.word(Instruction::Unary(Unary::Exponential, shifted));
    let total = reduce(&mut program, RowReduction::Sum, exponential);
    let quotient = binary(&mut program, Binary::Divide, exponential, total);
    program.output_word(index(quotient));
    Case { name: "softmax", program, row_words: vec![false], row_conditions: vec![], scalars: vec![] }
}

/// Scores of attention, masked, and their logarithms; the mask is written again.
fn masked_log_softmax() -> Case {
    let mut program = Program::default();
    let scaled = binary(&mut program, Binary::Multiply, Value::Input(0), Value::Scalar(0));
    let masked = program.word(Instruction::Select(Condition::Input(0), Value::Scalar(1), scaled));
    let largest = reduce(&mut program, RowReduction::Max, masked);
    let shifted = binary(&mut program, Binary::Subtract, masked, largest);
    let exponential = program.word(Instruction::Unary(Unary::Exponential, shifted));
    let total = reduce(&mut program, RowReduction::Sum, exponential);
    let logarithm = program.word(Instruction::Unary(Unary::Logarithm, total));
    let result = binary(&mut program, Binary::Subtract, shifted, logarithm);
    let kept = program.word(Instruction::Select(Condition::Input(0), Value::Scalar(1), result));
    let negated = program.condition(Instruction::Not(Condition::Input(0)));
    let Condition::Result(negated) = negated else { unreachable!("a result") };
    program.output_word(index(kept));
    program.output_word(index(logarithm));
    program.output_condition(negated);
    let scalars = vec![0.125, f32::NEG_INFINITY];
    Case { name: "masked log softmax", program, row_words: vec![false], row_conditions: vec![false], scalars }
}

/// Layer norm with a scale for each column and a shift for each row, its mean and its deviation, and which elements are above
/// the mean where the row's flag is set.
fn layer_norm() -> Case {
    let mut program = Program::default();
    let mean = reduce(&mut program, RowReduction::Mean, Value::Input(0));
    let centred = binary(&mut program, Binary::Subtract, Value::Input(0), mean);
    let above = program.condition(Instruction::Compare(Comparison::Greater, Value::Input(0), mean));
    let square = binary(&mut program, Binary::Multiply, centred, centred);
    let variance = reduce(&mut program, RowReduction::Mean, square);
    let raised = binary(&mut program, Binary::Add, variance, Value::Scalar(0));
    let deviation = program.word(Instruction::Unary(Unary::SquareRoot, raised));
    let is_large = program.condition(Instruction::Compare(Comparison::Greater, deviation, Value::Scalar(1)));
    let normal = binary(&mut program, Binary::Divide, centred, deviation);
    let scaled = binary(&mut program, Binary::Multiply, normal, Value::Input(1));
    let shifted = binary(&mut program, Binary::Add, scaled, Value::Input(2));
    let chosen = program.condition(Instruction::Logic(Logic::And, above, Condition::Input(0)));
    [shifted, mean, deviation, centred].into_iter().for_each(|value| program.output_word(index(value)));
    for condition in [chosen, is_large] {
        let Condition::Result(index) = condition else { unreachable!("a result") };
        program.output_condition(index);
    }
    let row_words = vec![false, false, true];
    Case { name: "layer norm", program, row_words, row_conditions: vec![true], scalars: vec![1e-5, 1.0] }
}

/// Two sums of one phase, a product and a minimum of them, and an end in what is one value a row.
fn several_reductions() -> Case {
    let mut program = Program::default();
    let product = binary(&mut program, Binary::Multiply, Value::Input(0), Value::Input(1));
    let first = reduce(&mut program, RowReduction::Sum, product);
    let second = reduce(&mut program, RowReduction::Sum, Value::Input(1));
    let least = reduce(&mut program, RowReduction::Min, product);
    let difference = binary(&mut program, Binary::Subtract, first, second);
    let halved = binary(&mut program, Binary::Multiply, product, difference);
    let close = program.word(Instruction::Unary(Unary::HyperbolicTangent, halved));
    let ones = program.word(Instruction::Fill(Value::Scalar(0), Extent::Elements));
    let twos = program.word(Instruction::Fill(Value::Scalar(1), Extent::Rows));
    let count = reduce(&mut program, RowReduction::Sum, ones);
    let all = reduce(&mut program, RowReduction::Prod, close);
    let end = binary(&mut program, Binary::Add, all, least);
    [close, difference, end, ones, twos, count].into_iter().for_each(|value| program.output_word(index(value)));
    let row_words = vec![false, false];
    Case { name: "several", program, row_words, row_conditions: vec![], scalars: vec![1.0, 2.0] }
}

fn cases() -> Vec<Case> {
    vec![softmax(), masked_log_softmax(), layer_norm(), several_reductions()]
}

/// The operands of `case` on `[rows, length]`: every second one not dense.
fn check(client: &Client, case: &Case, rows: usize, length: usize) {
    let what = format!("{} of {rows} x {length}", case.name);
    let shape = [rows, length];
    let program = RowProgram::new(Arc::new(case.program.clone()), case.row_words.clone(), case.row_conditions.clone());
    assert!(program.fits(client, length), "{what}");
    let mut words = Vec::new();
    let mut inputs: Vec<Vec<f32>> = Vec::new();
    for (i, is_row) in case.row_words.iter().enumerate() {
        let columns = if *is_row { 1 } else { length };
        let mut values = random_values(i as u64 + 1, rows * columns);
        if i == 0 && length > 4 {
            (values[1], values[2], values[length - 1]) = (-0.0, f32::NEG_INFINITY, 1e-40);
        }
        // The second operand is one row for all.
        let broadcast = i == 1 && !is_row;
        if broadcast {
            values.truncate(length);
            words.push(upload(client, &values, &[1, length], F32));
            values = values.repeat(rows);
        } else if i % 2 == 0 && rows > 1 {
            words.push(scattered(2, client, &values, &[rows, columns]));
        } else {
            words.push(upload(client, &values, &[rows, columns], F32));
        }
        inputs.push((0..rows * length).map(|at| values[if *is_row { at / length } else { at }]).collect());
    }
    let mut conditions = Vec::new();
    let mut masks: Vec<Vec<bool>> = Vec::new();
    for is_row in &case.row_conditions {
        let columns = if *is_row { 1 } else { length };
        let values: Vec<u32> = (0..rows * columns).map(|at| u32::from(at % 3 == 1)).collect();
        conditions.push(upload(client, &values, &[rows, columns], U32));
        masks.push((0..rows * length).map(|at| values[if *is_row { at / length } else { at }] == 1).collect());
    }
    let scalars: Vec<u32> = case.scalars.iter().map(|scalar| scalar.to_bits()).collect();
    let operands = Operands { words, conditions, scalars: scalars.clone() };
    let results = program.run(client, &shape, operands, U32, &[]).expect("it fits");

    let (mut want_words, mut want_flags) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let of_row = row * length..(row + 1) * length;
        let inputs: Vec<Vec<u32>> =
            inputs.iter().map(|input| input[of_row.clone()].iter().map(|x| x.to_bits()).collect()).collect();
        let masks: Vec<Vec<bool>> = masks.iter().map(|mask| mask[of_row.clone()].to_vec()).collect();
        let (words, flags) = reference::run(&case.program, length, &inputs, &masks, &scalars);
        want_words.push(words);
        want_flags.push(flags);
    }
    let columns = |tensor: &TensorHandle| tensor.shape()[1];
    for (i, tensor) in results.words.into_iter().enumerate() {
        let columns = columns(&tensor);
        let want = want_words.iter().flat_map(|words| words[i][..columns].iter().map(|bits| f32::from_bits(*bits)));
        let want: Vec<f32> = want.collect();
        let got: Vec<f32> = download(client, tensor);
        let same = |(got, want): (&f32, &f32)| got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
        assert!(got.iter().zip(&want).all(same), "word {i} of {what}: got {got:?}, want {want:?}");
    }
    for (i, tensor) in results.conditions.into_iter().enumerate() {
        let columns = columns(&tensor);
        let want: Vec<u32> =
            want_flags.iter().flat_map(|flags| flags[i][..columns].iter().map(|flag| u32::from(*flag))).collect();
        assert_eq!(download::<u32>(client, tensor), want, "condition {i} of {what}");
    }
}

#[test]
fn rows_equal_their_reference() {
    let client = client();
    for case in cases() {
        for (rows, length) in
            [(4, 1), (1, 2), (3, 7), (70, 8), (5, 33), (2, 64), (3, 65), (2, 128), (9, 1000), (2, 1025)]
        {
            check(&client, &case, rows, length);
        }
    }
    for case in [softmax(), several_reductions()] {
        check(&client, &case, 2, 4096);
    }
}

/// Softmax of a half type, its rows' extremes and totals, and an f32 that is made of it and of one value a row, with its mean.
fn half_softmax(half: Half) -> Program {
    let mut program = Program::default();
    let largest = reduce(&mut program, RowReduction::Max, Value::Input(0));
    let difference = binary(&mut program, Binary::Subtract, Value::Input(0), largest);
    let shifted = program.rounded(difference, half);
    let exponential = program.word(Instruction::Unary(Unary::Exponential, shifted));
    let exponential = program.rounded(exponential, half);
    let sum = reduce(&mut program, RowReduction::Sum, exponential);
    let total = program.rounded(sum, half);
    let quotient = binary(&mut program, Binary::Divide, exponential, total);
    let quotient = program.rounded(quotient, half);
    let wide = binary(&mut program, Binary::Multiply, quotient, Value::Input(1));
    let mean = reduce(&mut program, RowReduction::Mean, wide);
    [wide, mean].into_iter().for_each(|value| program.output_word(index(value)));
    [quotient, exponential, largest, total].into_iter().for_each(|value| program.output_half(index(value), half));
    program
}

#[test]
fn rows_of_half_types_equal_their_reference_and_separate_kernels() {
    let client = client();
    for (half, host) in stored(&client) {
        let program = half_softmax(half);
        let of_rows = RowProgram::new(Arc::new(program.clone()), vec![false, true], vec![]);
        for (rows, length) in [(3, 2), (4, 7), (2, 64), (3, 65), (2, 1000), (1, 4096)] {
            let what = format!("{half:?} of {rows} x {length}");
            // 7 among numbers from -1 to 1, so that totals are rounded to few of their digits.
            let mut values = host.rounded(&random_values(1, rows * length));
            (values[0], values[1]) = (7.0, -0.0);
            let factors = random_values(2, rows);
            let input = host.upload(&client, &values, &[rows, length]);
            let words = vec![input.clone(), upload(&client, &factors, &[rows, 1], F32)];
            let operands = Operands { words, conditions: vec![], scalars: vec![] };
            let results = of_rows.run(&client, &[rows, length], operands, U32, &[]).expect("it fits");

            let mut want: Vec<Vec<f32>> = vec![vec![]; 6];
            for (row, factor) in values.chunks(length).zip(&factors) {
                let inputs = [row.iter().map(|x| x.to_bits()).collect(), vec![factor.to_bits(); length]];
                let (words, _) = reference::run(&program, length, &inputs, &[], &[]);
                for (output, (want, words)) in want.iter_mut().zip(words).enumerate() {
                    let columns = if matches!(output, 1 | 4 | 5) { 1 } else { length };
                    want.extend(words[..columns].iter().map(|bits| f32::from_bits(*bits)));
                }
            }
            let [wide, mean] = <[TensorHandle; 2]>::try_from(results.words).expect("two words");
            assert_eq!((&mean.shape()[..], &wide.shape()[..]), (&[rows, 1][..], &[rows, length][..]), "{what}");
            assert_bits(&download::<f32>(&client, wide), &want[0]);
            assert_bits(&download::<f32>(&client, mean), &want[1]);
            let [_, exponential, largest, total] = <[TensorHandle; 4]>::try_from(results.halves.clone()).expect("four");
            for (tensor, want) in results.halves.into_iter().zip(&want[2..]) {
                assert_eq!(tensor.dtype, host.dtype, "{what}");
                assert_bits(&host.download(&client, tensor), want);
            }
            let alone =
                |reduced: Result<TensorHandle, KernelError>| host.download(&client, reduced.expect("it reduces"));
            assert_bits(&host.download(&client, largest), &alone(max(&client, input, &[1])));
            assert_bits(&host.download(&client, total), &alone(sum(&client, exponential, &[1])));
        }
    }
}

/// Every reduction of rows of a half type, rounded, and which elements are above the mean.
fn half_reductions(half: Half) -> Program {
    use RowReduction::{Max, Mean, Min, Prod, Sum};
    let mut program = Program::default();
    for reduction in [Sum, Mean, Prod, Max, Min] {
        let exact = reduce(&mut program, reduction, Value::Input(0));
        let rounded = program.rounded(exact, half);
        program.output_half(index(rounded), half);
    }
    let above = Instruction::Compare(Comparison::Greater, Value::Input(0), Value::Result(3));
    let Condition::Result(above) = program.condition(above) else { unreachable!("a result") };
    program.output_condition(above);
    program
}

/// A sum beyond the largest f16, whose mean is finite; sums of subnormal numbers; zeros, infinities and NaN; and one element.
#[test]
fn reductions_of_rows_of_half_types_round_as_kernels_of_their_own_at_the_edges() {
    let client = client();
    let edges: [&[f32]; 9] = [
        &[60_000.0, 60_000.0, 1.0, -2.0],
        &[-60_000.0, -60_000.0, 0.5, 0.5],
        &[3e-7, 6e-8, -1.2e-7, 6e-8],
        &[1e-40, 9.2e-41, -1e-40, 1e-38],
        &[-0.0, -0.0, -0.0, -0.0],
        &[f32::INFINITY, 1.0, 2.0, 3.0],
        &[f32::INFINITY, f32::NEG_INFINITY, 2.0, 3.0],
        &[f32::NAN, 1.0, -2.0, 3.0],
        &[1.0, 0.000_976_562_5, 0.000_488_281_25, 257.0],
    ];
    for (half, host) in stored(&client) {
        let program = RowProgram::new(Arc::new(half_reductions(half)), vec![false], vec![]);
        for (rows, length) in [(9, 4), (36, 1)] {
            let values = host.rounded(&edges.concat());
            let input = host.upload(&client, &values, &[rows, length]);
            let operands = Operands { words: vec![input.clone()], conditions: vec![], scalars: vec![] };
            let results = program.run(&client, &[rows, length], operands, U32, &[]).expect("it fits");
            let mut got = results.halves.into_iter().map(|tensor| host.download(&client, tensor));
            let mut means = vec![];
            for (name, alone) in [("sum", sum as Reduction), ("mean", mean), ("prod", prod), ("max", max), ("min", min)]
            {
                let alone = host.download(&client, alone(&client, input.clone(), &[1]).expect("it reduces"));
                let got = got.next().expect("five reductions");
                let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                assert!(got.iter().zip(&alone).all(same), "{name} of {half:?}: in one kernel {got:?}, alone {alone:?}");
                if name == "mean" {
                    means = got;
                }
            }
            let above = values.iter().enumerate().map(|(at, x)| u32::from(*x > means[at / length]));
            let [flags] = <[TensorHandle; 1]>::try_from(results.conditions).expect("one condition");
            assert_eq!(download::<u32>(&client, flags), above.collect::<Vec<_>>(), "{half:?}");
        }
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let client = client();
    let Case { program, row_words, row_conditions, .. } = softmax();
    let program = RowProgram::new(Arc::new(program), row_words, row_conditions);
    assert!(program.fits(&client, 4096) && !program.fits(&client, 4097) && !program.fits(&client, 0));
    let operands = |shape: &[usize]| {
        let values = vec![0f32; shape.iter().product()];
        Operands { words: vec![upload(&client, &values, shape, F32)], conditions: vec![], scalars: vec![] }
    };
    let error = program.run(&client, &[1, 4097], operands(&[1, 4097]), U32, &[]).expect_err("it is too long");
    assert!(error.to_string().contains("rows of 4097 elements do not fit"), "{error}");
    let results = program.run(&client, &[0, 8], operands(&[0, 8]), U32, &[]).expect("nothing to compute");
    assert_eq!(results.words[0].shape()[..], [0, 8]);
    let program = RowProgram::new(Arc::new(layer_norm().program), vec![false, false, true], vec![true]);
    let words = [[2, 8], [1, 8], [2, 8]].map(|shape| upload(&client, &vec![0f32; shape[0] * shape[1]], &shape, F32));
    let conditions = vec![upload(&client, &[0u32; 2], &[2, 1], U32)];
    let operands = Operands { words: words.to_vec(), conditions, scalars: vec![0; 2] };
    let error =
        program.run(&client, &[2, 8], operands, U32, &[]).expect_err("an operand has more than one value a row");
    assert!(error.to_string().contains("[2, 8] has more than one value a row"), "{error}");
}
