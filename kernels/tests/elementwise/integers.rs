//! Functions of two integers of every type, at operands for which languages and devices have no answer, or each its own.

use crate::harness::*;
use crate::skip::skip;
use burn_deterministic_kernels::elementwise::{
    Instruction, IntBinary, Operands, Program, Value, of_integers, reference::int_binary, run,
};
use cubecl::ir::{ElemType, IntKind, UIntKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::sync::Arc;

const FUNCTIONS: [IntBinary; 11] = [
    IntBinary::Add,
    IntBinary::Subtract,
    IntBinary::Multiply,
    IntBinary::And,
    IntBinary::Or,
    IntBinary::Xor,
    IntBinary::Divide,
    IntBinary::Remainder,
    IntBinary::ShiftLeft,
    IntBinary::ShiftRight,
    IntBinary::Power,
];

/// From here on languages have no answer for some operands.
const UNDEFINED: usize = 6;

/// A type of integers.
#[derive(Clone, Copy)]
struct Integer {
    dtype: ElemType,
    is_signed: bool,
}

/// The narrowest, which are computed in 32 bits, and those that are computed as they are.
fn types() -> impl Iterator<Item = Integer> {
    let signed = [IntKind::I8, IntKind::I32, IntKind::I64].map(ElemType::Int);
    let unsigned = [UIntKind::U8, UIntKind::U32, UIntKind::U64].map(ElemType::UInt);
    let signed = signed.into_iter().map(|dtype| Integer { dtype, is_signed: true });
    signed.chain(unsigned.into_iter().map(|dtype| Integer { dtype, is_signed: false }))
}

impl Integer {
    fn bits(&self) -> u32 {
        8 * self.dtype.size() as u32
    }

    /// The integer of the lowest bits.
    fn wrapped(&self, value: i128) -> i128 {
        let unused = 128 - self.bits();
        if self.is_signed { value << unused >> unused } else { ((value as u128) << unused >> unused) as i128 }
    }

    /// Zero, the least and the largest, and what is near these and the width of the type.
    fn values(&self) -> Vec<i128> {
        let bits = i128::from(self.bits());
        let ends = [-(1 << (bits - 1)), (1 << (bits - 1)) - 1, (1 << bits) - 1];
        let small = [0, 1, 2, 3, 5, 7, 10, 100, bits - 1, bits, bits + 1, 2 * bits];
        let values = small.into_iter().chain(ends).flat_map(|x| [x, -x, x + 1, x - 1]).map(|x| self.wrapped(x));
        values.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    fn upload(&self, client: &Client, values: &[i128], shape: &[usize]) -> TensorHandle {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes().into_iter().take(self.dtype.size())).collect();
        TensorHandle::new_contiguous(shape.to_vec(), client.create_from_slice(&bytes), self.dtype)
    }

    fn download(&self, client: &Client, tensor: TensorHandle) -> Vec<i128> {
        let (size, elements) = (self.dtype.size(), tensor.shape().iter().product::<usize>());
        let bytes = client.read_one_unchecked_tensor(tensor.into_copy_descriptor());
        let value = |bytes: &[u8]| bytes.iter().rev().fold(0i128, |value, &byte| value << 8 | i128::from(byte));
        bytes[..elements * size].chunks(size).map(|bytes| self.wrapped(value(bytes))).collect()
    }

    fn want(&self, function: IntBinary, a: i128, b: i128) -> i128 {
        self.wrapped(int_binary(function, a, b, self.bits()))
    }
}

#[test]
fn every_type_has_one_answer_to_every_pair() {
    let client = client();
    for integer in types() {
        if !client.properties().supports_type(integer.dtype) {
            skip(format_args!("the device has no {}", integer.dtype));
            continue;
        }
        let values = integer.values();
        let n = values.len();
        let (rows, columns) = (integer.upload(&client, &values, &[n, 1]), integer.upload(&client, &values, &[n]));
        for &function in &FUNCTIONS[UNDEFINED..] {
            let results =
                of_integers(&client, function, rows.clone(), columns.clone(), &[n, n]).expect("they broadcast");
            for (i, got) in integer.download(&client, results).into_iter().enumerate() {
                let (a, b) = (values[i / n], values[i % n]);
                assert_eq!(got, integer.want(function, a, b), "{function:?} of {a} and {b}, {}", integer.dtype);
            }
        }
    }
}

#[test]
fn a_program_has_the_bits_of_the_kernel_of_one_function() {
    let client = client();
    let integer = Integer { dtype: I32, is_signed: true };
    let values = integer.values();
    let n = values.len();
    // A device may bind few outputs at once.
    for functions in FUNCTIONS.chunks(3) {
        let mut program = Program::default();
        for (index, function) in functions.iter().enumerate() {
            program.word(Instruction::IntBinary(*function, Value::Input(0), Value::Input(1)));
            program.output_word(index);
        }
        let words = vec![integer.upload(&client, &values, &[n, 1]), integer.upload(&client, &values, &[n])];
        let operands = Operands { words, conditions: vec![], scalars: vec![] };
        let results = run(&client, &Arc::new(program), &[n, n], operands, I32).expect("operands fit");
        assert_eq!(results.words.len(), functions.len());
        for (function, results) in functions.iter().zip(results.words) {
            for (i, got) in integer.download(&client, results).into_iter().enumerate() {
                let (a, b) = (values[i / n], values[i % n]);
                assert_eq!(got, integer.want(*function, a, b), "{function:?} of {a} and {b}");
            }
        }
    }
}

/// What the rules say, not what the reference computes.
#[test]
fn the_rules() {
    let [least, largest] = [i128::from(i32::MIN), i128::from(i32::MAX)];
    let signed = Integer { dtype: I32, is_signed: true };
    let unsigned = Integer { dtype: ElemType::UInt(UIntKind::U8), is_signed: false };
    for (function, a, b, want) in [
        (IntBinary::Divide, 7, 0, 0),
        (IntBinary::Divide, least, -1, least),
        (IntBinary::Divide, -7, 2, -3),
        (IntBinary::Remainder, 7, 0, 0),
        (IntBinary::Remainder, least, -1, 0),
        (IntBinary::Remainder, -7, 2, 1),
        (IntBinary::Remainder, 7, -2, -1),
        // A sum of the rest and the divisor twice, as Burn had it once, does not fit.
        (IntBinary::Remainder, -1, largest, largest - 1),
        (IntBinary::ShiftLeft, 1, 31, least),
        (IntBinary::ShiftLeft, 1, 32, 0),
        (IntBinary::ShiftLeft, 1, -1, 0),
        (IntBinary::ShiftRight, -8, 1, -4),
        (IntBinary::ShiftRight, -8, 32, -1),
        (IntBinary::ShiftRight, 8, -1, 0),
        (IntBinary::Power, 3, 5, 243),
        (IntBinary::Power, 2, 32, 0),
        (IntBinary::Power, 0, 0, 1),
        (IntBinary::Power, 0, -1, 0),
        (IntBinary::Power, -1, -3, -1),
        (IntBinary::Power, -1, -4, 1),
        (IntBinary::Power, 2, -1, 0),
    ] {
        assert_eq!(signed.want(function, a, b), want, "{function:?} of {a} and {b}");
    }
    assert_eq!(unsigned.want(IntBinary::ShiftRight, 200, 8), 0);
    assert_eq!(unsigned.want(IntBinary::Divide, 200, 255), 0);
}

#[test]
fn strides_and_refusals() {
    let client = client();
    let integer = Integer { dtype: I32, is_signed: true };
    let (rows, columns) = (5, 7);
    let a: Vec<i128> = (0..35).map(|i| i * 3 - 50).collect();
    let b: Vec<i128> = (0..7).map(|i| i - 3).collect();
    let stored: Vec<i128> = (0..35).map(|i| a[(i % rows) * columns + i / rows]).collect();
    let turned = TensorHandle::new(integer.upload(&client, &stored, &[35]).handle, [rows, columns], [1, rows], I32);
    let divisors = || integer.upload(&client, &b, &[columns]);
    let results =
        of_integers(&client, IntBinary::Divide, turned.clone(), divisors(), &[rows, columns]).expect("it fits");
    let want: Vec<i128> = (0..35).map(|i| integer.want(IntBinary::Divide, a[i], b[i % columns])).collect();
    assert_eq!(integer.download(&client, results), want);
    let empty = of_integers(&client, IntBinary::Divide, integer.upload(&client, &[], &[0, 7]), divisors(), &[0, 7]);
    assert_eq!(empty.expect("nothing to compute").shape().to_vec(), [0, 7]);

    let refused = |lhs: TensorHandle, rhs: TensorHandle| {
        of_integers(&client, IntBinary::Divide, lhs, rhs, &[rows, columns]).expect_err("refused").to_string()
    };
    let narrow = integer.upload(&client, &b[..3], &[3]);
    assert!(refused(turned.clone(), narrow).contains("an operand of shape [3] does not broadcast to [5, 7]"));
    assert!(refused(turned, upload(&client, &[1.0; 7], &[7], F32)).contains("want one element type"));
    let floats = || upload(&client, &[1.0; 7], &[7], F32);
    assert!(refused(floats(), floats()).contains("no fixed-order kernel"));
}
