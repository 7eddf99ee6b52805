//! Fused element-wise programs against their reference.

pub mod donated;
mod each;
pub mod halves;
mod integers;
mod remainder;
mod windows;

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::device::Machine;
use burn_deterministic_kernels::elementwise::{
    Binary, Call, Comparison, Condition, Instruction, IntBinary, Logic, Operands, Program, Unary, Value, reference, run,
};
use burn_deterministic_kernels::reduce::plan::{Kind, Plan, Problem, plan};
use burn_deterministic_kernels::reduce::{self, Operation, reduce, reduce_program};
use cubecl::ir::{ElemType, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Adam's update of both moments and the step, as Burn spells it: the chains that compilers like to contract.
fn adam() -> Program {
    let (gradient, m, v) = (Value::Input(0), Value::Input(1), Value::Input(2));
    let mut program = Program::default();
    let multiply = |program: &mut Program, a, b| program.word(Instruction::Binary(Binary::Multiply, a, b));
    let add = |program: &mut Program, a, b| program.word(Instruction::Binary(Binary::Add, a, b));
    let kept = multiply(&mut program, m, Value::Scalar(0));
    let new = multiply(&mut program, gradient, Value::Scalar(1));
    let m = add(&mut program, kept, new);
    let kept = multiply(&mut program, v, Value::Scalar(2));
    let square = multiply(&mut program, gradient, gradient);
    let new = multiply(&mut program, square, Value::Scalar(3));
    let v = add(&mut program, kept, new);
    let root = program.word(Instruction::Unary(Unary::SquareRoot, v));
    let divisor = add(&mut program, root, Value::Scalar(4));
    let step = program.word(Instruction::Binary(Binary::Divide, m, divisor));
    for result in [m, v, step] {
        let Value::Result(index) = result else { unreachable!("results of instructions") };
        program.output_word(index);
    }
    program
}

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|x| x.to_bits()).collect()
}

/// The reference's outputs for an element of floats.
fn want_floats(program: &Program, inputs: &[f32], conditions: &[bool], scalars: &[f32]) -> (Vec<f32>, Vec<bool>) {
    let (words, conditions) = reference::run(program, &bits(inputs), conditions, &bits(scalars));
    (words.into_iter().map(f32::from_bits).collect(), conditions)
}

fn run_floats(
    client: &Client,
    program: &Program,
    shape: &[usize],
    floats: Vec<TensorHandle>,
    scalars: &[f32],
) -> Vec<Vec<f32>> {
    let operands = Operands { words: floats, conditions: vec![], scalars: bits(scalars) };
    let results = run(client, &Arc::new(program.clone()), shape, operands, U32).expect("operands fit");
    results.words.into_iter().map(|tensor| download(client, tensor)).collect()
}

#[test]
fn adam_has_the_bits_of_its_instructions() {
    let client = client();
    if !divides_like_the_host(&client) {
        return skip("the device's quotients and roots are not correctly rounded");
    }
    let scalars = [0.9, 0.1, 0.999, 0.001, 1e-5];
    for elements in [1, 255, 256, 257, 70_001] {
        let inputs = [random_values(1, elements), random_values(2, elements), random_values(3, elements)];
        let inputs = [inputs[0].clone(), inputs[1].clone(), inputs[2].iter().map(|x| x.abs()).collect()];
        let tensors = inputs.iter().map(|values| upload(&client, values, &[elements], F32)).collect();
        let got = run_floats(&client, &adam(), &[elements], tensors, &scalars);
        let want: Vec<Vec<f32>> = (0..elements)
            .map(|i| want_floats(&adam(), &[inputs[0][i], inputs[1][i], inputs[2][i]], &[], &scalars).0)
            .collect();
        for (output, got) in got.iter().enumerate() {
            assert_bits(got, &want.iter().map(|row| row[output]).collect::<Vec<_>>());
        }
    }
}

/// Patterns that drivers rewrite when they see them in one kernel.
#[test]
fn no_algebra_across_instructions() {
    let client = client();
    if !divides_like_the_host(&client) {
        return skip("the device's quotients and roots are not correctly rounded");
    }
    let mut program = Program::default();
    let (a, b, c) = (Value::Input(0), Value::Input(1), Value::Input(2));
    let binary = |program: &mut Program, op, a, b| program.word(Instruction::Binary(op, a, b));
    let mut outputs = Vec::new();
    // a * b + a * c, which is not a * (b + c)
    let ab = binary(&mut program, Binary::Multiply, a, b);
    let ac = binary(&mut program, Binary::Multiply, a, c);
    outputs.push(binary(&mut program, Binary::Add, ab, ac));
    // (a + b) - b, which is not a
    let sum = binary(&mut program, Binary::Add, a, b);
    outputs.push(binary(&mut program, Binary::Subtract, sum, b));
    // a * s * s, which is not a * s^2
    let scaled = binary(&mut program, Binary::Multiply, a, Value::Scalar(0));
    outputs.push(binary(&mut program, Binary::Multiply, scaled, Value::Scalar(0)));
    // 1 / (1 / a), which is not a
    let inverse = program.word(Instruction::Unary(Unary::Reciprocal, a));
    outputs.push(program.word(Instruction::Unary(Unary::Reciprocal, inverse)));
    // sqrt(|a|) * sqrt(|a|), which is not |a|
    let positive = program.word(Instruction::Unary(Unary::Absolute, a));
    let root = program.word(Instruction::Unary(Unary::SquareRoot, positive));
    outputs.push(binary(&mut program, Binary::Multiply, root, root));
    for output in outputs {
        let Value::Result(index) = output else { unreachable!("results of instructions") };
        program.output_word(index);
    }

    let elements = 10_000;
    let inputs = [random_values(4, elements), random_values(5, elements), random_values(6, elements)];
    let tensors = inputs.iter().map(|values| upload(&client, values, &[elements], F32)).collect();
    let got = run_floats(&client, &program, &[elements], tensors, &[1.1]);
    let want: Vec<Vec<f32>> = (0..elements)
        .map(|i| want_floats(&program, &[inputs[0][i], inputs[1][i], inputs[2][i]], &[], &[1.1]).0)
        .collect();
    for (output, got) in got.iter().enumerate() {
        assert_bits(got, &want.iter().map(|row| row[output]).collect::<Vec<_>>());
    }
    // The hazard is real: the rewritten forms have other bits on the same input.
    assert!((0..elements).any(|i| inputs[0][i] * (inputs[1][i] + inputs[2][i]) != want[i][0]));
    assert!((0..elements).any(|i| inputs[0][i] != want[i][1]));
    assert!((0..elements).any(|i| inputs[0][i].abs() != want[i][4]));
}

#[test]
fn broadcast_and_strided_operands() {
    let client = client();
    let mut program = Program::default();
    let difference = program.word(Instruction::Binary(Binary::Subtract, Value::Input(0), Value::Input(1)));
    let scaled = program.word(Instruction::Binary(Binary::Multiply, difference, Value::Input(2)));
    let Value::Result(index) = scaled else { unreachable!("a result") };
    program.output_word(index);

    let (rows, columns) = (37, 53);
    let a = random_values(7, rows * columns);
    let row = random_values(8, columns);
    let column = random_values(9, rows);
    let tensors = vec![
        upload(&client, &a, &[rows, columns], F32),
        upload(&client, &row, &[columns], F32),
        upload(&client, &column, &[rows, 1], F32),
    ];
    let got = run_floats(&client, &program, &[rows, columns], tensors, &[]);
    let want: Vec<f32> = (0..rows * columns).map(|i| (a[i] - row[i % columns]) * column[i / columns]).collect();
    assert_bits(&got[0], &want);

    // The same values, stored transposed.
    let transposed: Vec<f32> = (0..rows * columns).map(|i| a[(i % rows) * columns + i / rows]).collect();
    let handle = client.create_from_slice(bytemuck::cast_slice(&transposed));
    let strided = TensorHandle::new(handle, [rows, columns], [1, rows], F32);
    let tensors = vec![strided, upload(&client, &row, &[1, columns], F32), upload(&client, &column, &[rows, 1], F32)];
    assert_bits(&run_floats(&client, &program, &[rows, columns], tensors, &[])[0], &want);

    let tensors = vec![
        upload(&client, &a, &[rows, columns], F32),
        upload(&client, &row, &[columns], F32),
        upload(&client, &column, &[rows], F32),
    ];
    let operands = Operands { words: tensors, conditions: vec![], scalars: vec![] };
    let error =
        run(&client, &Arc::new(program), &[rows, columns], operands, U32).expect_err("37 does not broadcast to 53");
    assert_eq!(error.to_string(), "elementwise: an operand of shape [37] does not broadcast to [37, 53]");
}

/// Operands that are read in vectors, once a row, once a column and element by element, by units of four elements and of one.
#[test]
fn every_way_of_reading_gives_the_same_bits() {
    let client = client();
    let mut program = Program::default();
    let (a, row, column, turned) = (Value::Input(0), Value::Input(1), Value::Input(2), Value::Input(3));
    let product = program.word(Instruction::Binary(Binary::Multiply, a, row));
    let sum = program.word(Instruction::Binary(Binary::Add, product, column));
    let above = program.condition(Instruction::Compare(Comparison::Greater, sum, turned));
    let either = program.condition(Instruction::Logic(Logic::And, above, Condition::Input(0)));
    let both = program.condition(Instruction::Logic(Logic::Or, either, Condition::Input(1)));
    let kept = program.word(Instruction::Select(both, turned, sum));
    for output in [sum, kept] {
        let Value::Result(index) = output else { unreachable!("a result") };
        program.output_word(index);
    }
    let Condition::Result(index) = both else { unreachable!("a result") };
    program.output_condition(index);
    let program = Arc::new(program);

    for [rows, columns] in [[1, 4], [37, 52], [3, 4], [64, 1024], [8, 6], [7, 5], [5, 1]] {
        let elements = rows * columns;
        let [a, row] = [random_values(10, elements), random_values(11, columns)];
        let [column, turned] = [random_values(12, rows), random_values(13, elements)];
        let flags = |seed, count| random_values(seed, count).iter().map(|&x| u32::from(x > 0.0)).collect::<Vec<_>>();
        let (mask, row_mask) = (flags(14, elements), flags(15, columns));
        let stored: Vec<f32> = (0..elements).map(|i| turned[(i % rows) * columns + i / rows]).collect();
        let handle = client.create_from_slice(bytemuck::cast_slice(&stored));
        let operands = Operands {
            words: vec![
                upload(&client, &a, &[rows, columns], F32),
                upload(&client, &row, &[columns], F32),
                upload(&client, &column, &[rows, 1], F32),
                TensorHandle::new(handle, [rows, columns], [1, rows], F32),
            ],
            conditions: vec![
                upload(&client, &mask, &[rows, columns], U32),
                upload(&client, &row_mask, &[1, columns], U32),
            ],
            scalars: vec![],
        };
        let want: Vec<_> = (0..elements)
            .map(|i| {
                let floats = [a[i], row[i % columns], column[i / columns], turned[i]];
                want_floats(&program, &floats, &[mask[i] == 1, row_mask[i % columns] == 1], &[])
            })
            .collect();
        let results = run(&client, &program, &[rows, columns], operands, U32).expect("operands fit");
        for (output, got) in results.words.into_iter().enumerate() {
            let want: Vec<f32> = want.iter().map(|(floats, _)| floats[output]).collect();
            assert_bits(&download::<f32>(&client, got), &want);
        }
        let [got] = results.conditions.try_into().expect("one condition output");
        let want: Vec<u32> = want.iter().map(|(_, conditions)| u32::from(conditions[0])).collect();
        assert_eq!(download::<u32>(&client, got), want);
    }
}

#[test]
fn conditions_are_read_and_written() {
    let client = client();
    let mut program = Program::default();
    let negative = program.condition(Instruction::Compare(Comparison::LessEqual, Value::Input(0), Value::Scalar(0)));
    let either = program.condition(Instruction::Logic(Logic::Or, negative, Condition::Input(0)));
    let kept = program.word(Instruction::Select(either, Value::Scalar(0), Value::Input(0)));
    let ones = program.word(Instruction::Indicator(either));
    let not = program.condition(Instruction::Not(either));
    for output in [kept, ones] {
        let Value::Result(index) = output else { unreachable!("a result") };
        program.output_word(index);
    }
    let Condition::Result(index) = not else { unreachable!("a result") };
    program.output_condition(index);

    let values = [1.0, -1.0, 0.0, -0.0, f32::NAN, f32::INFINITY, 2.5, -3.5];
    let mask = [0u32, 0, 0, 0, 0, 0, 1, 1];
    let operands = Operands {
        words: vec![upload(&client, &values, &[8], F32)],
        conditions: vec![upload(&client, &mask, &[8], U32)],
        scalars: vec![0],
    };
    let results = run(&client, &Arc::new(program), &[8], operands, U32).expect("operands fit");
    let [kept, ones] = results.words.try_into().expect("two float outputs");
    let [not] = results.conditions.try_into().expect("one condition output");
    let kept: Vec<f32> = download(&client, kept);
    assert_eq!(kept[..4], [1.0, 0.0, 0.0, 0.0]);
    assert!(kept[4].is_nan());
    assert_eq!(kept[5..], [f32::INFINITY, 0.0, 0.0]);
    assert_eq!(download::<f32>(&client, ones), [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(download::<u32>(&client, not), [1, 0, 0, 0, 1, 1, 0, 0]);
}

/// Values at which integers wrap and casts saturate or round.
const WHOLE: [i32; 16] =
    [0, 1, -1, 2, -2, 3, 7, 100, -100, 16_777_217, -16_777_219, 65_536, i32::MAX, i32::MIN, i32::MAX - 1, i32::MIN + 1];

#[test]
fn integers_wrap_and_compare() {
    let client = client();
    let mut program = Program::default();
    let (a, b) = (Value::Input(0), Value::Input(1));
    let functions =
        [IntBinary::Add, IntBinary::Subtract, IntBinary::Multiply, IntBinary::And, IntBinary::Or, IntBinary::Xor];
    let mut words: Vec<Value> =
        functions.map(|function| program.word(Instruction::IntBinary(function, a, b))).into_iter().collect();
    // (a + s) > b, where compilers that take overflow for impossible would compare a with b - s.
    let sum = program.word(Instruction::IntBinary(IntBinary::Add, a, Value::Scalar(0)));
    let mut flags = vec![program.condition(Instruction::CompareInt(Comparison::Greater, sum, b))];
    let comparisons =
        [Comparison::Equal, Comparison::Greater, Comparison::GreaterEqual, Comparison::Less, Comparison::LessEqual];
    flags.extend(comparisons.map(|comparison| program.condition(Instruction::CompareInt(comparison, a, b))));
    flags.push(program.condition(Instruction::Logic(Logic::Xor, flags[0], flags[2])));
    words.push(program.word(Instruction::ToFloat(a)));
    words.push(program.word(Instruction::IntIndicator(flags[6])));
    words.push(program.word(Instruction::Select(flags[6], a, Value::Scalar(0))));

    // A device may bind few outputs at once.
    let mut programs = Vec::new();
    for words in words.chunks(3) {
        let mut part = program.clone();
        for word in words {
            let Value::Result(index) = word else { unreachable!("a result") };
            part.output_word(*index);
        }
        programs.push(part);
    }
    for flags in flags.chunks(3) {
        let mut part = program.clone();
        for flag in flags {
            let Condition::Result(index) = flag else { unreachable!("a result") };
            part.output_condition(*index);
        }
        programs.push(part);
    }

    // One less than a multiple of four, and a multiple.
    for (elements, program) in
        [255, 256].into_iter().flat_map(|elements| programs.iter().map(move |part| (elements, part)))
    {
        let a: Vec<i32> = (0..elements).map(|i| WHOLE[i / 16]).collect();
        let b: Vec<i32> = (0..elements).map(|i| WHOLE[i % 16]).collect();
        let operands = Operands {
            words: vec![upload(&client, &a, &[elements], I32), upload(&client, &b, &[elements], I32)],
            conditions: vec![],
            scalars: vec![7],
        };
        let results = run(&client, &Arc::new(program.clone()), &[elements], operands, U32).expect("operands fit");
        let inputs = |i: usize| [a[i].cast_unsigned(), b[i].cast_unsigned()];
        let want: Vec<_> = (0..elements).map(|i| reference::run(program, &inputs(i), &[], &[7])).collect();
        for (output, got) in results.words.into_iter().enumerate() {
            let want: Vec<u32> = want.iter().map(|(words, _)| words[output]).collect();
            assert_eq!(download::<u32>(&client, got), want, "word {:?}", program.word_outputs()[output]);
        }
        for (output, got) in results.conditions.into_iter().enumerate() {
            let want: Vec<u32> = want.iter().map(|(_, flags)| u32::from(flags[output])).collect();
            assert_eq!(download::<u32>(&client, got), want, "condition {:?}", program.condition_outputs()[output]);
        }
    }
}

#[test]
fn floats_are_rounded_to_integers() {
    let client = client();
    let mut program = Program::default();
    let x = Value::Input(0);
    for function in [Unary::Floor, Unary::Ceiling, Unary::Round, Unary::Truncate] {
        let rounded = program.word(Instruction::Unary(function, x));
        let whole = program.word(Instruction::ToInt(rounded));
        for output in [rounded, whole] {
            let Value::Result(index) = output else { unreachable!("a result") };
            program.output_word(index);
        }
    }
    let values: [f32; 12] = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 8_388_607.5, -8_388_609.0, 2.1e9, -2.1e9, 3.7];
    let tensor = upload(&client, &values, &[values.len()], F32);
    let operands = Operands { words: vec![tensor], conditions: vec![], scalars: vec![] };
    let results = run(&client, &Arc::new(program.clone()), &[values.len()], operands, U32).expect("operands fit");
    for (output, got) in results.words.into_iter().enumerate() {
        let want: Vec<u32> =
            values.iter().map(|x| reference::run(&program, &[x.to_bits()], &[], &[]).0[output]).collect();
        assert_eq!(download::<u32>(&client, got), want, "output {output}");
    }
}

/// Shapes whose axes join and do not join, with sizes by which a division is hard to get right.
#[test]
fn axes_are_told_apart_in_any_shape() {
    let client = client();
    let mut program = Program::default();
    let sum = program.word(Instruction::IntBinary(IntBinary::Add, Value::Input(0), Value::Input(1)));
    let Value::Result(index) = sum else { unreachable!("a result") };
    program.output_word(index);
    let program = Arc::new(program);
    let shapes =
        [[1, 1, 1, 1], [1, 1, 1, 7], [3, 1, 5, 7], [2, 3, 4, 8], [5, 641, 3, 12], [2, 2, 65_537, 2], [1, 9, 1, 1]];
    for shape in shapes {
        let elements: usize = shape.iter().product();
        let at = |i: usize| {
            [
                i / (shape[1] * shape[2] * shape[3]),
                i / (shape[2] * shape[3]) % shape[1],
                i / shape[3] % shape[2],
                i % shape[3],
            ]
        };
        let whole: Vec<i32> = (0..elements as i32).map(|i| i.wrapping_mul(0x3c6e_f35f)).collect();
        for kept in 0..16usize {
            // An operand that varies along the axes whose bits are set, against one that varies along all.
            let part = [0, 1, 2, 3].map(|axis| if kept >> axis & 1 == 1 { shape[axis] } else { 1 });
            let values: Vec<i32> =
                (0..part.iter().product::<usize>() as i32).map(|i| i.wrapping_mul(0x0019_660d)).collect();
            let operands = Operands {
                words: vec![upload(&client, &whole, &shape, I32), upload(&client, &values, &part, I32)],
                conditions: vec![],
                scalars: vec![],
            };
            let results = run(&client, &program, &shape, operands, U32).expect("operands fit");
            let [got] = results.words.try_into().expect("one output");
            let got: Vec<i32> = download(&client, got);
            let wrong = (0..elements).find(|&i| {
                let offset = at(i).into_iter().zip(part).fold(0, |offset, (at, size)| offset * size + at % size);
                got[i] != whole[i].wrapping_add(values[offset])
            });
            assert_eq!(wrong, None, "{shape:?} with {part:?}");
        }
    }
}

/// A reduction that computes its elements has the bits of one that reads them, whatever its plan; and what is written besides
/// has those of the program by itself.
#[test]
fn a_reduction_computes_what_it_reads() {
    let client = client();
    let (x, row, column) = (Value::Input(0), Value::Input(1), Value::Input(2));
    let mut program = Program::default();
    let product = program.word(Instruction::Binary(Binary::Multiply, x, row));
    let kept = program.condition(Instruction::Logic(Logic::And, Condition::Input(0), Condition::Input(0)));
    let masked = program.word(Instruction::Select(kept, product, column));
    // The last operation is a product, which a sum would like to contract.
    let last = program.word(Instruction::Binary(Binary::Multiply, masked, Value::Scalar(0)));
    let (Value::Result(product), Value::Result(last)) = (product, last) else { unreachable!("results") };
    let Condition::Result(kept) = kept else { unreachable!("a result") };

    let shapes: [[usize; 3]; 6] = [[1, 1, 1], [3, 5, 7], [4, 3, 68], [5, 130, 8], [1, 1, 8196], [66, 4, 1]];
    for shape in shapes {
        let elements: usize = shape.iter().product();
        let [x, row] = [random_values(20, elements), random_values(21, shape[2])];
        let column = random_values(22, shape[0] * shape[1]);
        let mask: Vec<u32> = random_values(23, elements).iter().map(|&x| u32::from(x > 0.0)).collect();
        let operands = || Operands {
            words: vec![
                upload(&client, &x, &shape, F32),
                upload(&client, &row, &[shape[2]], F32),
                upload(&client, &column, &[shape[0], shape[1], 1], F32),
            ],
            conditions: vec![upload(&client, &mask, &shape, U32)],
            scalars: bits(&[1.1]),
        };
        let want: Vec<f32> = (0..elements)
            .map(|i| if mask[i] == 1 { x[i] * row[i % shape[2]] } else { column[i / shape[2]] } * 1.1)
            .collect();
        for axes in [&[2][..], &[1], &[0], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2]] {
            let stored = upload(&client, &want, &shape, F32);
            let problem = Problem::new(&shape, &[shape[1] * shape[2], shape[2], 1], axes, Kind::ProgramReduction);
            let plans = Plan::candidates(&problem);
            assert!(
                plans.contains(&plan(&problem, Machine::Gpu)) && plans.contains(&plan(&problem, Machine::Software))
            );
            assert!(problem.kind == Kind::Reduction || plans.iter().any(|plan| plan.fuses));
            let planned =
                [Operation::Sum, Operation::Mean, Operation::Max, Operation::Prod].map(|operation| (operation, None));
            for (operation, plan) in
                planned.into_iter().chain(plans.into_iter().map(|plan| (Operation::Sum, Some(plan))))
            {
                let what = format!("{operation:?} of {shape:?} over {axes:?} on {plan:?}");
                let unfused = reduce(&client, operation, stored.clone(), axes, None).expect("it fits");
                let unfused: Vec<f32> = download(&client, unfused);
                let mut written = program.clone();
                written.reduce(last);
                if plan.is_none() {
                    written.output_word(product);
                    written.output_condition(kept);
                }
                let written = Arc::new(written);
                let input = Call { program: &written, shape: &shape, operands: operands(), condition_dtype: U32 };
                let (results, reduced) = reduce_program(&client, operation, input, axes, plan).expect("it fits");
                let reduced: Vec<f32> = download(&client, reduced);
                assert_eq!(bits(&reduced), bits(&unfused), "{what}");
                if axes.len() == 3 && operation == Operation::Sum {
                    assert_bits(&reduced, &[reduce::reference::sum(&want)]);
                }
                for words in results.words {
                    let products: Vec<f32> = (0..elements).map(|i| x[i] * row[i % shape[2]]).collect();
                    let words: Vec<f32> = download(&client, words);
                    assert_eq!(bits(&words), bits(&products), "{what}");
                }
                for conditions in results.conditions {
                    assert_eq!(download::<u32>(&client, conditions), mask, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_reduction_of_no_element_is_that_of_none() {
    let client = client();
    let mut program = Program::default();
    let Value::Result(index) = program.word(Instruction::Unary(Unary::Negate, Value::Input(0))) else {
        unreachable!("a result")
    };
    program.reduce(index);
    let program = Arc::new(program);
    for (operation, want) in [(Operation::Sum, 0.0), (Operation::Prod, 1.0)] {
        let operands =
            Operands { words: vec![upload::<f32>(&client, &[], &[3, 0], F32)], conditions: vec![], scalars: vec![] };
        let input = Call { program: &program, shape: &[3, 0], operands, condition_dtype: U32 };
        let (_, reduced) = reduce_program(&client, operation, input, &[1], None).expect("it is defined");
        assert_bits(&download(&client, reduced), &[want; 3]);
    }
    let operands =
        Operands { words: vec![upload::<f32>(&client, &[], &[3, 0], F32)], conditions: vec![], scalars: vec![] };
    let input = Call { program: &program, shape: &[3, 0], operands, condition_dtype: U32 };
    reduce_program(&client, Operation::Max, input, &[1], None).expect_err("nothing is largest");
}
