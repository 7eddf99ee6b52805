//! Results of rows in the memory of operands.

use super::{Case, U32, binary, cases, index, reduce};
use crate::elementwise::donated::{memory, settled};
use crate::harness::*;
use burn_deterministic_kernels::elementwise::{Binary, Operands, Program, RowReduction, Value};
use burn_deterministic_kernels::rows::RowProgram;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const SHAPE: [usize; 2] = [40, 1000];

/// The bits of the results with operands donated, after it has been checked that they are those without; and the number of the operand
/// in whose memory each is.
fn homes(client: &Client, case: &Case, donated: &[usize]) -> Vec<Option<usize>> {
    let Case { name, program, row_words, row_conditions, scalars } = case;
    let of_rows = RowProgram::new(Arc::new(program.clone()), row_words.clone(), row_conditions.clone());
    let columns = |is_row: &bool| if *is_row { 1 } else { SHAPE[1] };
    let words = (1..).zip(row_words).map(|(seed, is_row)| {
        let columns = columns(is_row);
        upload(client, &random_values(seed, SHAPE[0] * columns), &[SHAPE[0], columns], F32)
    });
    let words = settled(client, words.collect());
    let conditions: Vec<_> = row_conditions.iter().map(columns).collect();
    let conditions: Vec<_> = { conditions.into_iter() }
        .map(|columns| {
            let values: Vec<u32> = (0..SHAPE[0] * columns).map(|at| u32::from(at % 3 == 1)).collect();
            upload(client, &values, &[SHAPE[0], columns], U32)
        })
        .collect();
    let scalars: Vec<_> = scalars.iter().map(|scalar| scalar.to_bits()).collect();
    let operands =
        |words: Vec<TensorHandle>| Operands { words, conditions: conditions.clone(), scalars: scalars.clone() };
    let results = of_rows.run(client, &SHAPE, operands(words.clone()), U32, &[]).expect("it fits");
    let bits = |tensor: TensorHandle| download::<u32>(client, tensor);
    let want: Vec<_> = results.words.into_iter().chain(results.conditions).map(bits).collect();
    let of: Vec<_> = words.iter().map(memory).collect();
    let results = of_rows.run_donated(client, &SHAPE, operands(words), U32, &[], donated).expect("it fits");
    let homes = results.words.iter().map(|result| of.iter().position(|home| *home == memory(result))).collect();
    let got: Vec<_> = results.words.into_iter().chain(results.conditions).map(bits).collect();
    assert!(got == want, "{name}");
    homes
}

#[test]
fn results_of_rows_in_the_memory_of_operands_have_the_same_bits() {
    let client = client();
    let all = cases();
    let of = |name: &str| all.iter().find(|case| case.name == name).expect("a case");
    assert_eq!(homes(&client, of("softmax"), &[0]), [Some(0)]);
    // What is one value a row is no home, and has none.
    let several = [Some(1), None, None, Some(0), None, None];
    assert_eq!(homes(&client, of("several"), &[1, 0]), several);
    for case in &all {
        let donated: Vec<_> = (0..case.row_words.len()).collect();
        let homes = homes(&client, case, &donated);
        assert!(homes.iter().flatten().all(|&home| !case.row_words[home]), "{}", case.name);
        assert!(homes.iter().any(Option::is_some), "{}", case.name);
    }
}

#[test]
fn an_operand_that_is_read_later_is_not_overwritten() {
    let mut program = Program::default();
    let [x, y] = [0, 1].map(Value::Input);
    let negated = binary(&mut program, Binary::Multiply, x, Value::Scalar(0));
    let total = reduce(&mut program, RowReduction::Sum, x);
    let sum = binary(&mut program, Binary::Add, y, total);
    [negated, sum].into_iter().for_each(|value| program.output_word(index(value)));
    let case = Case { name: "late", program, row_words: vec![false; 2], row_conditions: vec![], scalars: vec![-1.0] };
    let client = client();
    // The first result is written before a sum is known, and only behind that `y` is read.
    assert_eq!(homes(&client, &case, &[1, 0]), [Some(0), Some(1)]);
    assert_eq!(homes(&client, &case, &[1]), [None, Some(1)]);
    assert_eq!(homes(&client, &case, &[0]), [Some(0), None]);
}
