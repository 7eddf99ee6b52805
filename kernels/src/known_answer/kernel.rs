//! The kernels: a unit for each question. It computes every operation on its operands, and the host takes the answer that
//! is asked for; so a kernel has no branches, and compiles fast.

use super::questions::{F32_OPERATIONS, Operation, Question};
use crate::arithmetic::{Products, accumulate, multiply_rounded, product};
use crate::quotient::{Quotients, corrected_quotient, corrected_root, divide, sqrt};
use crate::subnormals::keep_subnormals_if;
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use cubecl::server::{Handle, ServerError};

/// Units of the one cube, at least as many as questions.
const UNITS: u32 = 128;

/// Columns of the answers: those of [`F32_OPERATIONS`], then the corrected quotient and the corrected root.
const COLUMNS: usize = F32_OPERATIONS.len() + 2;

/// `operands[units, 3]` to `answers[units, COLUMNS]`, in the order of [`F32_OPERATIONS`], without column 7; with subnormal
/// numbers where they are to be `kept`.
#[cube(launch_unchecked)]
fn answer_f32(operands: &[f32], answers: &mut [u32], #[comptime] kept: bool) {
    let unit = UNIT_POS_X as usize;
    let a = operands[unit * 3];
    let b = operands[unit * 3 + 1];
    let c = operands[unit * 3 + 2];
    let first = unit * comptime!(COLUMNS);
    answers[first] = u32::reinterpret(a + b);
    answers[first + 1] = u32::reinterpret(a - b);
    answers[first + 2] = u32::reinterpret(product(a, b));
    answers[first + 3] = u32::reinterpret(divide::<f32>(a, b, Quotients::Device));
    answers[first + 4] = u32::reinterpret(sqrt(a, Quotients::Device));
    answers[first + 5] = u32::reinterpret(accumulate::<f32>(a, b, c, Products::Native));
    answers[first + 6] = u32::reinterpret(multiply_rounded::<f32>(a, b));
    answers[first + 8] = u32::cast_from(a < b)
        + (u32::cast_from(a <= b) << 1u32)
        + (u32::cast_from(a == b) << 2u32)
        + (u32::cast_from(a != b) << 3u32)
        + (u32::cast_from(a > b) << 4u32)
        + (u32::cast_from(a >= b) << 5u32);
    answers[first + 9] = u32::reinterpret(f32::cast_from(i32::reinterpret(u32::reinterpret(a))));
    answers[first + 10] = u32::reinterpret(min(a, b));
    answers[first + 11] = u32::reinterpret(max(a, b));
    answers[first + 12] = u32::reinterpret(a.abs());
    answers[first + 13] = u32::reinterpret(-a);
    answers[first + 14] = u32::reinterpret(a.floor());
    answers[first + 15] = u32::reinterpret(a.ceil());
    answers[first + 16] = u32::reinterpret(a.trunc());
    answers[first + 17] = u32::reinterpret(a.round());
    answers[first + 18] = u32::reinterpret(corrected_quotient(a, b, 0i32));
    answers[first + 19] = u32::reinterpret(corrected_root(a, 0i32));
    keep_subnormals_if(kept);
}

/// Column 7 of the answers. A compiler contracts a product that only one sum uses: this kernel has no other use of it.
#[cube(launch_unchecked)]
fn answer_rounded_then_added(operands: &[f32], answers: &mut [u32], #[comptime] kept: bool) {
    let unit = UNIT_POS_X as usize;
    let rounded = multiply_rounded::<f32>(operands[unit * 3], operands[unit * 3 + 1]);
    answers[unit * comptime!(COLUMNS) + 7] = u32::reinterpret(rounded + operands[unit * 3 + 2]);
    keep_subnormals_if(kept);
}

/// `narrowed[unit]` from `wide[unit]`, and `widened[unit]` from `half[unit]`.
#[cube(launch_unchecked)]
fn answer_halves<H: Float>(
    wide: &[f32],
    half: &[H],
    narrowed: &mut [H],
    widened: &mut [f32],
    #[define(H)] _dtype: ElemType,
) {
    let unit = UNIT_POS_X as usize;
    narrowed[unit] = H::cast_from(wide[unit]);
    widened[unit] = f32::cast_from(half[unit]);
}

/// The answers to questions on f32, and the corrected ones to those on quotients and roots; for others these are the same.
/// The kernels keep subnormal numbers where these are to be `kept`.
pub(super) fn ask_f32(
    client: &Client,
    questions: &[Question],
    kept: bool,
) -> Result<(Vec<u32>, Vec<u32>), ServerError> {
    let units = UNITS as usize;
    assert!(questions.len() <= units, "{} questions for {units} units", questions.len());
    let mut operands: Vec<u32> = questions.iter().flat_map(|question| question.operands).collect();
    operands.resize(units * 3, 0);
    let count = units * COLUMNS;
    let answers = client.empty(count * 4);
    let operands_on_device = client.create_from_slice(bytemuck::cast_slice(&operands));
    let (cubes, cube) = (CubeCount::Static(1, 1, 1), CubeDim::new_1d(UNITS));
    // SAFETY: units 0 to 127 read 3 operands and write 19 answers and 1 answer each, and the buffers hold those of 128 units.
    unsafe {
        let [from, to] = [(operands_on_device, operands.len()), (answers.clone(), count)];
        let arguments = || [&from, &to].map(|(buffer, length)| BufferArg::from_raw_parts(buffer.clone(), *length));
        let [operands, answers] = arguments();
        answer_f32::launch_unchecked(client, cubes.clone(), cube, operands, answers, kept);
        let [operands, answers] = arguments();
        answer_rounded_then_added::launch_unchecked(client, cubes, cube, operands, answers, kept);
    }
    let answers: Vec<u32> = read(client, answers)?;
    let place = |operation| F32_OPERATIONS.iter().position(|known| *known == operation).expect("an f32 operation");
    let corrected = |operation| match operation {
        Operation::Divide => F32_OPERATIONS.len(),
        Operation::SquareRoot => F32_OPERATIONS.len() + 1,
        _ => place(operation),
    };
    let rows = || questions.iter().zip(answers.chunks(COLUMNS));
    Ok((
        rows().map(|(question, row)| row[place(question.operation)]).collect(),
        rows().map(|(question, row)| row[corrected(question.operation)]).collect(),
    ))
}

/// The answers to questions on a half type that the device stores.
pub(super) fn ask_halves(client: &Client, dtype: ElemType, questions: &[Question]) -> Result<Vec<u32>, ServerError> {
    let units = UNITS as usize;
    assert!(questions.len() <= units, "{} questions for {units} units", questions.len());
    let mut wide: Vec<u32> = questions.iter().map(|question| question.operands[0]).collect();
    wide.resize(units, 0);
    let half: Vec<u16> = wide.iter().map(|&operand| operand as u16).collect();
    let (narrowed, widened) = (client.empty(units * 2), client.empty(units * 4));
    // SAFETY: units 0 to 127 read and write one element of each buffer, and the buffers hold 128.
    unsafe {
        answer_halves::launch_unchecked(
            client,
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(UNITS),
            BufferArg::from_raw_parts(client.create_from_slice(bytemuck::cast_slice(&wide)), units),
            BufferArg::from_raw_parts(client.create_from_slice(bytemuck::cast_slice(&half)), units),
            BufferArg::from_raw_parts(narrowed.clone(), units),
            BufferArg::from_raw_parts(widened.clone(), units),
            dtype,
        );
    }
    let (narrowed, widened): (Vec<u16>, Vec<u32>) = (read(client, narrowed)?, read(client, widened)?);
    let answer = |(unit, question): (usize, &Question)| match question.operation {
        Operation::Narrow => narrowed[unit].into(),
        _ => widened[unit],
    };
    Ok(questions.iter().enumerate().map(answer).collect())
}

pub(super) fn read<T: bytemuck::AnyBitPattern>(client: &Client, buffer: Handle) -> Result<Vec<T>, ServerError> {
    let bytes = client.read_one(buffer)?;
    Ok(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
}
