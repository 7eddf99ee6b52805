//! The same values in plain Rust, for any range of elements: the specification, and the generator for host code.

use super::quantile::{CENTRE, FAR_TAIL, LOGARITHM, Polynomial, SQRT_2, TAIL};
use super::transform::{Rounding, Transform};
use super::{BLOCK_WORDS, Distribution, Source};
use crate::KernelError;
use crate::arithmetic::MultiplyAdd;
use cubecl::ir::ElemType;
use std::ops::Range;

/// The words of block `source.block + index` of the source.
pub fn block(source: Source, index: u64) -> [u32; BLOCK_WORDS] {
    let mut first = [0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    first[4..12].copy_from_slice(&source.key.0);
    let (counter, stream) = (source.block.wrapping_add(index), source.stream.0);
    (first[12], first[13]) = (counter as u32, (counter >> 32) as u32);
    (first[14], first[15]) = (stream as u32, (stream >> 32) as u32);
    let mut state = first;
    for _ in 0..4 {
        for [a, b, c, d] in [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]] {
            quarter_round(&mut state, a, b, c, d);
        }
        for [a, b, c, d] in [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]] {
            quarter_round(&mut state, a, b, c, d);
        }
    }
    std::array::from_fn(|i| state[i].wrapping_add(first[i]))
}

fn quarter_round(state: &mut [u32; BLOCK_WORDS], a: usize, b: usize, c: usize, d: usize) {
    for (left, right) in [(16, 12), (8, 7)] {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(left);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_left(right);
    }
}

/// Consecutive words of the source.
pub fn words(source: Source, range: Range<u64>) -> impl Iterator<Item = u32> {
    let per_block = BLOCK_WORDS as u64;
    let blocks = range.start / per_block..range.end.div_ceil(per_block);
    let skipped = range.start % per_block;
    let length = range.end.saturating_sub(range.start);
    blocks.flat_map(move |index| block(source, index)).skip(skipped as usize).take(length as usize)
}

/// The elements of a draw of a float type, exact in f32.
///
/// # Errors
///
/// Those of [`draw`](super::draw), and [`KernelError::Dtype`] when the dtype is no float type.
pub fn floats(
    source: Source,
    distribution: Distribution,
    dtype: ElemType,
    elements: Range<u64>,
    fma: MultiplyAdd,
) -> Result<Vec<f32>, KernelError> {
    let transform = Transform::new(distribution, dtype)?;
    let Some(rounding) = Rounding::of(dtype) else {
        return Err(KernelError::Dtype { kernel: distribution.name(), dtype, remedy: "call reference::integers" });
    };
    let value = |word: u32| match transform {
        Transform::Uniform(u) => {
            let unit = ((word >> 8) as i32 - u.bias) as f32 * u.scale;
            fma.apply(unit, u.span, u.origin).max(u.min).min(u.max)
        }
        Transform::Normal { mean, std } => fma.apply(standard_normal(word, fma), std, mean),
        Transform::Bernoulli { threshold } => f32::from(u64::from(word) < threshold),
        Transform::Bits | Transform::Integers { .. } => unreachable!("refused for float types by Transform::new"),
    };
    Ok(words(source, elements).map(|word| rounding.nearest(f64::from(value(word)))).collect())
}

/// The elements of a draw of an integer type.
///
/// # Errors
///
/// Those of [`draw`](super::draw), and [`KernelError::Dtype`] when the dtype is no integer type.
pub fn integers(
    source: Source,
    distribution: Distribution,
    dtype: ElemType,
    elements: Range<u64>,
) -> Result<Vec<i64>, KernelError> {
    let transform = Transform::new(distribution, dtype)?;
    if Rounding::of(dtype).is_some() {
        return Err(KernelError::Dtype { kernel: distribution.name(), dtype, remedy: "call reference::floats" });
    }
    let per_element = u64::from(transform.words());
    let words: Vec<u32> = words(source, elements.start * per_element..elements.end * per_element).collect();
    let value = |words: &[u32]| match transform {
        Transform::Bits => i64::from(words[0]),
        Transform::Bernoulli { threshold } => i64::from(u64::from(words[0]) < threshold),
        Transform::Integers { low, range, .. } => {
            // The integer part after each step is below `range`, and the bits shifted out never carry back.
            let floor = words.iter().fold(0u128, |t, &word| (u128::from(word) * u128::from(range) + t) >> 32);
            low.wrapping_add(floor as i64)
        }
        Transform::Uniform(_) | Transform::Normal { .. } => {
            unreachable!("refused for integer types by Transform::new")
        }
    };
    Ok(words.chunks_exact(per_element as usize).map(value).collect())
}

/// The quantile of the normal distribution at `(word + 1/2) / 2^32`.
pub fn standard_normal(word: u32, fma: MultiplyAdd) -> f32 {
    let negative = word < 1 << 31;
    // The smaller tail is p = (tail + 1/2) / 2^32.
    let tail = if negative { word } else { !word };

    // 4 p (1 - p) = mantissa / 2^30 / 2^exponent, mantissa in [2^30 sqrt(1/2), 2^30 sqrt(2)): integers only.
    let odd = 2 * tail + 1;
    let zeros = odd.leading_zeros();
    let product = ((u64::from(odd << zeros) * u64::from(!tail)) >> 32) as u32;
    let shift = u32::from(product < 1 << 31);
    let mantissa = (product << shift) >> 1;
    let halve = u32::from(mantissa >= SQRT_2);
    let exponent = (zeros + shift) as i32 - halve as i32;
    let f = ((mantissa >> halve) as i32 - (1 << 30)) as f32 * 2f32.powi(-30);

    // s = -log2(4 p (1 - p)).
    let s = fma.apply(f, horner(f, &LOGARITHM, fma), exponent as f32);
    let segment = [CENTRE, TAIL, FAR_TAIL].into_iter().find(|segment| s < segment.end).unwrap_or(FAR_TAIL);
    let q = horner(s - segment.centre, &segment.polynomial, fma);

    // x = 1 - 2 p.
    let x = fma.apply((0x7FFF_FFFF - tail) as i32 as f32, 2f32.powi(-31), 2f32.powi(-32));
    let z = x * q;
    if negative { -z } else { z }
}

/// A polynomial by Horner's rule, from the highest coefficient.
fn horner(x: f32, coefficients: &Polynomial, fma: MultiplyAdd) -> f32 {
    coefficients[..8].iter().rev().fold(coefficients[8], |sum, &c| fma.apply(sum, x, c))
}
