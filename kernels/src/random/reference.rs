//! The same values in plain Rust, for any range of elements: the specification, and the generator for host code.

use super::box_muller::{COSINE, LOGARITHM, ROOT, ROOT_ESTIMATE, SINE, TO_NEAREST_POWER};
use super::distribution::Distribution;
use super::source::{BLOCK_WORDS, Source};
use super::transform::{Rounding, Transform};
use crate::KernelError;
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
) -> Result<Vec<f32>, KernelError> {
    let transform = Transform::new(distribution, dtype)?;
    let Some(rounding) = Rounding::of(dtype) else {
        return Err(KernelError::Dtype { kernel: distribution.name(), dtype, remedy: "call reference::integers" });
    };
    let of_words = |value: &dyn Fn(u32) -> f32| words(source, elements.clone()).map(value).collect::<Vec<_>>();
    let values = match transform {
        Transform::Uniform(u) => of_words(&|word| {
            let unit = ((word >> 8) as i32 - u.bias) as f32 * u.scale;
            (unit * u.span + u.origin).max(u.min).min(u.max)
        }),
        Transform::Normal { mean, std } => {
            let pairs = elements.start / 2..elements.end.div_ceil(2);
            let words: Vec<u32> = words(source, 2 * pairs.start..2 * pairs.end).collect();
            let standard = words.chunks_exact(2).flat_map(|pair| standard_normals(pair[0], pair[1]));
            let asked = standard.skip((elements.start % 2) as usize).take((elements.end - elements.start) as usize);
            asked.map(|z| z * std + mean).collect()
        }
        Transform::Bernoulli { threshold } => of_words(&|word| f32::from(u64::from(word) < threshold)),
        Transform::Bits | Transform::Integers { .. } => unreachable!("refused for float types by Transform::new"),
    };
    Ok(values.into_iter().map(|value| rounding.nearest(f64::from(value))).collect())
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

/// Two independent numbers of the standard normal distribution.
///
/// With `u = (a mod 2^30 + 1/2) / 2^30`, they are `sqrt(-2 ln u)` times the cosine and the sine of an angle that is
/// uniform between -pi/4 and pi/4, by `b`; the two highest bits of `a` turn it into each of the four quarters.
pub fn standard_normals(a: u32, b: u32) -> [f32; 2] {
    // u = odd / 2^31 = (1 + f) / 2^exponent, 1 + f in [sqrt(1/2), sqrt(2)). Of 2^32 (1 + f) the 2^32 is shifted out.
    let twice_odd = (a << 2) | 2;
    let bits = ((twice_odd >> 1) as i32 as f32).to_bits();
    let exponent = 127 + 31 - ((bits + TO_NEAREST_POWER) >> 23);
    let f = (twice_odd << exponent) as i32 as f32 * 2f32.powi(-32);
    // s = -log2(u).
    let s = f * horner(f, &LOGARITHM) + exponent as f32;

    // sqrt(s), as s times the reciprocal root, and one step of Newton's method.
    let estimate = f32::from_bits(ROOT_ESTIMATE - (s.to_bits() >> 1));
    let reciprocal = estimate * horner(s * estimate * estimate, &ROOT);
    let root = s * reciprocal;
    let rest = -root * root + s;
    let radius = rest * (reciprocal * 0.5) + root;

    let x = (b | 1) as i32 as f32 * 2f32.powi(-31);
    let square = x * x;
    let across = radius * horner(square, &COSINE);
    let along = radius * x * horner(square, &SINE);

    let across = if a >> 31 == 1 { -across } else { across };
    if a >> 30 & 1 == 1 { [along, across] } else { [across, along] }
}

/// A polynomial by Horner's rule, from the highest coefficient.
fn horner(x: f32, coefficients: &[f32]) -> f32 {
    let sum = coefficients.iter().rev().copied().reduce(|sum, c| sum * x + c);
    sum.expect("a polynomial has coefficients")
}
