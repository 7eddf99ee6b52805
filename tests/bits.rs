//! Values without chance, and comparison of bits.

use burn::prelude::*;
use burn_deterministic::Difference;

/// Number `index` of a fixed sequence without a pattern that a sum could hide.
fn scrambled(index: usize) -> u32 {
    let mut x = (index as u32).wrapping_mul(0x9e37_79b9).wrapping_add(0x7f4a_7c15);
    for multiplier in [0x85eb_ca6b, 0xc2b2_ae35] {
        x = (x ^ (x >> 15)).wrapping_mul(multiplier);
    }
    x ^ (x >> 16)
}

/// Values from -2 to 2 with 23 bits each: sums of them depend on their order.
pub fn floats<const D: usize>(shape: [usize; D]) -> TensorData {
    let values = (0..shape.iter().product()).map(|i| (scrambled(i) >> 9) as f32 / (1 << 21) as f32 - 2.0);
    TensorData::new(values.collect::<Vec<f32>>(), shape)
}

/// Indices below `bound`, with duplicates as they come.
pub fn indices<const D: usize>(shape: [usize; D], bound: usize) -> TensorData {
    let values = (0..shape.iter().product()).map(|i| (scrambled(i + 1_000_003) as usize % bound) as i32);
    TensorData::new(values.collect::<Vec<i32>>(), shape)
}

/// Requires equal shapes, dtypes and bits.
pub fn assert_same(what: &str, expected: &TensorData, got: &TensorData) {
    if let Some(difference) = Difference::between(expected, got) {
        panic!("{what}, expected first: {difference}");
    }
}
