//! The order contract of products on tensor cores in plain Rust.

use super::plan::Stage;
use super::sums::Sums;
use crate::dtype::F32;
use crate::order::BLOCK;
use crate::order::reference::chain;
use cubecl::ir::{ElemType, FloatKind};

/// Row-major `[m, k] x [k, n] -> [m, n]` of numbers of `dtype`, f16, bf16 or f32, before the last rounding.
pub fn matmul(lhs: &[f32], rhs: &[f32], [m, k, n]: [usize; 3], dtype: ElemType, sums: Sums) -> Vec<f32> {
    let element = |i: usize, j: usize| dot((0..k).map(|p| (lhs[i * k + p], rhs[p * n + j])), dtype, sums);
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

/// The sum of products of numbers of `dtype`, before the last rounding.
pub fn dot(pairs: impl IntoIterator<Item = (f32, f32)>, dtype: ElemType, sums: Sums) -> f32 {
    let pairs: Vec<_> = pairs.into_iter().map(|(a, b)| (factor(a, dtype), factor(b, dtype))).collect();
    let block = |pairs: &[(f32, f32)]| {
        let mut padded = pairs.to_vec();
        padded.resize(pairs.len().next_multiple_of(Stage::depth_of(dtype.size() as u32) as usize), (0.0, 0.0));
        padded.chunks(sums.terms(dtype)).fold(0.0, |acc, pairs| sums.add(pairs, acc, dtype))
    };
    chain(pairs.chunks(BLOCK).map(block), |total, block| total + block).unwrap_or(0.0)
}

impl Sums {
    /// Products of numbers of `dtype`, f16 or bf16, and `sum`, in one addition: see [the contract](super).
    pub fn add(self, pairs: &[(f32, f32)], sum: f32, dtype: ElemType) -> f32 {
        let exact = |&(a, b): &(f32, f32)| f64::from(a) * f64::from(b);
        let all = pairs.iter().map(exact).sum::<f64>() + f64::from(sum);
        if !all.is_finite() {
            return all as f32;
        }
        let least = match dtype {
            ElemType::Float(FloatKind::F16) => -14,
            _ => LEAST_EXPONENT,
        };
        let products = pairs.iter().map(|pair| (exact(pair), exponent(pair.0, least) + exponent(pair.1, least)));
        let terms: Vec<(f64, i32)> = products
            .chain([(f64::from(sum), exponent(sum, LEAST_EXPONENT))])
            .filter(|&(term, _)| term != 0.0)
            .collect();
        let Some(largest) = terms.iter().map(|&(_, exponent)| exponent).max() else { return 0.0 };
        let largest = largest.max(-108 - self.fraction_bits());
        let place = power_of_two(largest - self.fraction_bits());
        // Quotients by a power of two, and sums of 17 integers below 2^28, are exact.
        toward_zero(terms.iter().fold(0.0, |sum, &(term, _)| sum + (term / place).trunc()) * place)
    }
}

/// A number as it is multiplied: f32 is rounded to TF32, ties away from zero.
fn factor(x: f32, dtype: ElemType) -> f32 {
    match dtype {
        F32 if x.is_finite() => f32::from_bits((x.to_bits() + 0x1000) & !0x1fff),
        _ => x,
    }
}

/// The least exponent of f32, TF32 and bf16.
const LEAST_EXPONENT: i32 = -126;

/// The exponent of a number of a type with this `least` one, which all subnormal numbers have.
fn exponent(x: f32, least: i32) -> i32 {
    ((x.to_bits() >> 23 & 0xff) as i32 - 127).max(least)
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A finite `x`, cut to an f32; infinite from 2^128 on.
fn toward_zero(x: f64) -> f32 {
    let nearest = x as f32;
    match f64::from(nearest).abs() > x.abs() && x.abs() < power_of_two(128) {
        true => f32::from_bits(nearest.to_bits() - 1),
        false => nearest,
    }
}

#[cfg(test)]
mod tests {
    use super::{ElemType, FloatKind, Sums, matmul, toward_zero};

    const F16: ElemType = ElemType::Float(FloatKind::F16);
    const BF16: ElemType = ElemType::Float(FloatKind::BF16);

    /// Each expected sum was worked out by hand from the contract.
    #[test]
    fn sums_are_cut() {
        let ulp = f32::EPSILON;
        for (sums, pairs, sum, want) in [
            // A product below the last place that is kept beside 1 is cut: 2^-25 of 24 bits, not of 25.
            (Sums::Ampere, vec![(2f32.powi(-12), 2f32.powi(-13)); 2], 1.0, 1.0),
            (Sums::Hopper, vec![(2f32.powi(-12), 2f32.powi(-13)); 4], 1.0, 1.0 + ulp),
            // Towards zero, not to even.
            (Sums::Hopper, vec![(2f32.powi(-12), 2f32.powi(-12)); 3], 1.0, 1.0 + ulp),
            (Sums::Hopper, vec![(2f32.powi(-12), 2f32.powi(-12)); 3], -1.0, -1.0 + 1.5 * ulp),
            // What cancels leaves what was kept.
            (Sums::Ampere, vec![(1.0, 1.0), (2f32.powi(-12), 2f32.powi(-12))], -1.0, 2f32.powi(-24)),
            (Sums::Ampere, vec![(1.0, 1.0), (2f32.powi(-12), 2f32.powi(-13))], -1.0, 0.0),
            (Sums::Hopper, vec![], -0.0, 0.0),
        ] {
            assert_eq!(sums.add(&pairs, sum, F16).to_bits(), f32::to_bits(want), "{sums:?} {pairs:?} + {sum}");
        }
        // A subnormal number of f16 has the exponent of the least normal one: 2^-24 * 2^15 counts as 2^1, and the last place
        // kept beside it is 2^-23; beside the same product of bf16, 2^-9, it is 2^-33.
        let small = vec![(2f32.powi(-24), 2f32.powi(15)), (2f32.powi(-12), 2f32.powi(-13))];
        assert_eq!(Sums::Ampere.add(&small, 0.0, F16), 2f32.powi(-9));
        assert_eq!(Sums::Ampere.add(&small, 0.0, BF16), 2f32.powi(-9) + 2f32.powi(-25));
    }

    /// Beside the least exponent of a sum, tiny numbers of bf16 are cut.
    #[test]
    fn tiny_sums_are_cut() {
        let tiny = [(2f32.powi(-23), 2f32.powi(-126)), (2f32.powi(-34), -2f32.powi(-126))];
        assert_eq!(Sums::Hopper.add(&tiny, 0.0, BF16), 2f32.powi(-149));
        let less = [(2f32.powi(-24), 2f32.powi(-126))];
        assert_eq!(Sums::Hopper.add(&less, 0.0, BF16).to_bits(), 0);
        assert_eq!(Sums::Hopper.add(&[(2f32.powi(-75), -2f32.powi(-80))], 0.0, BF16).to_bits(), (-0f32).to_bits());
        assert_eq!(matmul(&[2f32.powi(-75)], &[-2f32.powi(-80)], [1; 3], BF16, Sums::Hopper)[0].to_bits(), 0);
    }

    #[test]
    fn f32_is_cut() {
        for (x, want) in [
            (1.0 + 1.9 * f64::from(f32::EPSILON), 1.0 + f32::EPSILON),
            (-1.0 - 1.9 * f64::from(f32::EPSILON), -1.0 - f32::EPSILON),
            (f64::from(f32::MAX) * (1.0 + 1e-8), f32::MAX),
            (2f64.powi(128), f32::INFINITY),
            (1.9 * 2f64.powi(-149), f32::from_bits(1)),
            (0.9 * 2f64.powi(-149), 0.0),
        ] {
            assert_eq!(toward_zero(x).to_bits(), want.to_bits(), "{x:e}");
        }
    }
}
