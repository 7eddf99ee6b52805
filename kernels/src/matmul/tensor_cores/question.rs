//! Which sums a device has: what it computes is compared with the references.

use super::super::operands::NAME;
use super::launch::{has_fragments, multiply};
use super::reference;
use super::sums::Sums;
use crate::KernelError;
use crate::append_only::AppendOnly;
use crate::device::{DeviceKey, device_key};
use crate::dtype::F32;
use cubecl::ir::{ElemType, FloatKind};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use half::{bf16, f16};

const F16: ElemType = ElemType::Float(FloatKind::F16);
const BF16: ElemType = ElemType::Float(FloatKind::BF16);

/// How each device's tensor cores add products of each type.
static SUMS: AppendOnly<(DeviceKey, ElemType), Option<Sums>> = AppendOnly::new();

/// How the device's tensor cores add products of this type, f32 being multiplied as TF32; `None` if it has none, or none of these
/// [`Sums`].
///
/// Asks the device the first time, by four products of this module's kernel, one for each layout of the operands, and waits for it: the
/// order in which a fragment has its steps is the device's, and may depend on the layout.
///
/// # Errors
///
/// [`KernelError::Failed`] where the device does not answer. It is asked again the next time.
pub fn sums(client: &Client, dtype: ElemType) -> Result<Option<Sums>, KernelError> {
    let key = (device_key(client), dtype);
    match SUMS.get(&key) {
        Some(sums) => Ok(*sums),
        None if !has_fragments(client, dtype) => Ok(*SUMS.keep(key, None)),
        None => ask(client, dtype).map(|sums| *SUMS.keep(key, sums)),
    }
}

/// Takes a device that has not been asked for one with these sums: for programs that show which kernels a GPU gets, and have
/// none to ask.
#[doc(hidden)]
pub fn assume_sums(client: &Client, dtype: ElemType, sums: Sums) {
    SUMS.keep((device_key(client), dtype), Some(sums));
}

/// Rows, steps and columns: places beyond a fragment and a tile, and steps that are not in fours, eights or sixteens.
const SIZES: [usize; 3] = [20, 107, 68];

/// Rows from this one on have subnormal numbers alone.
const SUBNORMAL_ROWS: usize = 16;

/// The sums that four products on the device have every bit of.
fn ask(client: &Client, dtype: ElemType) -> Result<Option<Sums>, KernelError> {
    let sizes @ [m, k, n] = SIZES;
    let (a, b) = (lhs(sizes, dtype), numbers(2, k * n, dtype));
    let mut fitting: Vec<_> =
        Sums::ALL.into_iter().map(|sums| (sums, reference::matmul(&a, &b, sizes, dtype, sums))).collect();
    for [lhs_by_columns, rhs_by_columns] in [[false, false], [false, true], [true, false], [true, true]] {
        let lhs = operand(client, &a, [m, k], lhs_by_columns, dtype);
        let rhs = operand(client, &b, [k, n], rhs_by_columns, dtype);
        let output = multiply(client, lhs, rhs, F32, None)?;
        let bytes = client.read_one(output.handle).map_err(|error| KernelError::Failed {
            kernel: NAME,
            reason: format!("the device did not say how its tensor cores add products of {dtype}: {error}"),
            remedy: "free memory of the device, and install the whole CUDA toolkit: its `include` needs `mma.h` and `crt/mma.h`",
        })?;
        let got: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .take(m * n)
            .collect();
        // What is left has every bit of the products so far.
        fitting.retain(|(_, want)| want.iter().map(|want| want.to_bits()).eq(got.iter().copied()));
        if fitting.is_empty() {
            break;
        }
    }
    Ok(fitting.first().map(|&(sums, _)| sums))
}

/// A matrix, stored row by row or column by column.
fn operand(
    client: &Client,
    values: &[f32],
    [rows, columns]: [usize; 2],
    by_columns: bool,
    dtype: ElemType,
) -> TensorHandle {
    let (strides, stored) = match by_columns {
        false => ([columns, 1], values.to_vec()),
        true => ([1, rows], (0..values.len()).map(|at| values[at % rows * columns + at / rows]).collect()),
    };
    let bytes: Vec<u8> = stored.into_iter().flat_map(|value| encoded(value, dtype)).collect();
    TensorHandle::new(client.create_from_slice(&bytes), vec![rows, columns], strides.to_vec(), dtype)
}

/// The left factor: [numbers], and in the last rows subnormal ones alone.
fn lhs([m, k, _]: [usize; 3], dtype: ElemType) -> Vec<f32> {
    let mut values = numbers(1, m * k, dtype);
    let least = if dtype == F16 { 2f32.powi(-14) } else { f32::MIN_POSITIVE };
    for value in &mut values[SUBNORMAL_ROWS * k..] {
        // The digits of a number of another exponent.
        let digits = value.to_bits() & 0x7f_ffff | 0x3f80_0000;
        let fraction = (f32::from_bits(digits) - 1.0) * least;
        *value = if value.is_sign_negative() { -fraction } else { fraction };
    }
    values
}

/// Numbers of a type whose products and sums show where they are cut and rounded: of both signs, of 15 neighbouring exponents, one in
/// sixteen subnormal, and of f32 one in four halfway between two of TF32.
fn numbers(seed: u32, length: usize, dtype: ElemType) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        // Numerical Recipes' linear congruential generator; its upper bits.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let mut number = || {
        let (bits, fraction) = (next(), next());
        let (sign, exponent) = (bits >> 23 & 1, bits >> 12 & 15);
        let digits = match dtype {
            F16 => 10,
            BF16 => 7,
            _ => 23,
        };
        let is_halfway = dtype == F32 && bits & 3 == 0;
        let fraction = fraction & ((1 << digits) - 1);
        let fraction = if is_halfway { fraction & !0x1fff | 0x1000 } else { fraction };
        match exponent {
            0 if dtype == F16 => (1.0 - 2.0 * sign as f32) * fraction as f32 * 2f32.powi(-24),
            0 => f32::from_bits(sign << 31 | fraction << (23 - digits)),
            _ => f32::from_bits(sign << 31 | (119 + exponent) << 23 | fraction << (23 - digits)),
        }
    };
    (0..length).map(|_| number()).collect()
}

/// The bytes of a number in a type that holds it.
fn encoded(value: f32, dtype: ElemType) -> Vec<u8> {
    match dtype {
        F16 => f16::from_f32(value).to_le_bytes().to_vec(),
        BF16 => bf16::from_f32(value).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device with other subnormal numbers, or another rounding to TF32, answers otherwise in many places.
    #[test]
    fn the_questions_show_other_arithmetic() {
        for dtype in [F16, BF16, F32] {
            let (a, b) = (lhs(SIZES, dtype), numbers(2, SIZES[1] * SIZES[2], dtype));
            let least = if dtype == F16 { 2f32.powi(-14) } else { f32::MIN_POSITIVE };
            let of = |a: &[f32], b: &[f32], sums| reference::matmul(a, b, SIZES, dtype, sums);
            let flushed =
                |values: &[f32]| values.iter().map(|&x| if x.abs() < least { 0.0 } else { x }).collect::<Vec<_>>();
            // To nearest, ties to even.
            let even = |values: &[f32]| {
                let rounded = |x: &f32| f32::from_bits((x.to_bits() + 0xfff + (x.to_bits() >> 13 & 1)) & !0x1fff);
                values.iter().map(rounded).collect::<Vec<_>>()
            };
            let hopper = of(&a, &b, Sums::Hopper);
            let differing =
                |other: Vec<f32>| hopper.iter().zip(other).filter(|(x, y)| x.to_bits() != y.to_bits()).count();
            assert!(differing(of(&a, &b, Sums::Ampere)) > 500, "{dtype}");
            assert!(differing(of(&flushed(&a), &flushed(&b), Sums::Hopper)) > 100, "{dtype}");
            if dtype == F32 {
                assert!(differing(of(&even(&a), &even(&b), Sums::Hopper)) > 500, "{dtype}");
            }
        }
    }
}
