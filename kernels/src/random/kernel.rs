//! ChaCha8's blocks, and what a distribution makes of their words. Nothing is read but the launch's arguments.

use super::box_muller::{COSINE, LOGARITHM, ROOT, ROOT_ESTIMATE, SINE, TO_NEAREST_POWER};
use super::source::{BLOCK_WORDS, Source};
use super::transform::{Kind, Transform};
use crate::arithmetic::{horner, multiply_add, multiply_rounded};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// The first state of ChaCha but for its constants: twelve words.
#[derive(CubeLaunch, CubeType)]
pub struct Origin {
    /// The key, eight words.
    key: Sequence<u32>,
    block_low: u32,
    block_high: u32,
    stream_low: u32,
    stream_high: u32,
}

/// The launch argument of a source.
pub fn origin(source: Source) -> OriginLaunch {
    let mut key = SequenceArg::new();
    source.key.0.into_iter().for_each(|word| key.push(word));
    let (block, stream) = (source.block, source.stream.0);
    OriginLaunch::new(key, block as u32, (block >> 32) as u32, stream as u32, (stream >> 32) as u32)
}

/// The parameters of whichever distribution the kernel is compiled for; the others ignore theirs.
#[derive(CubeLaunch, CubeType)]
pub struct Parameters {
    /// Integers: `high - low`, low word. Bernoulli: the threshold, unless it is `2^32`.
    range_low: u32,
    /// Integers: `high - low`, high word. Bernoulli: 1 if the threshold is `2^32`.
    range_high: u32,
    /// Integers: `low`, low word.
    low_low: u32,
    /// Integers: `low`, high word.
    low_high: u32,
    /// Uniform.
    bias: i32,
    /// Uniform.
    scale: f32,
    /// Uniform: the span. Normal: the standard deviation.
    factor: f32,
    /// Uniform: the origin. Normal: the mean.
    offset: f32,
    /// Uniform.
    min: f32,
    /// Uniform.
    max: f32,
}

/// The launch argument of a transform.
pub fn parameters(transform: Transform) -> ParametersLaunch {
    let integers = |range: u64, low: u64| {
        let [range, low] = [range, low].map(|x| [x as u32, (x >> 32) as u32]);
        ParametersLaunch::new(range[0], range[1], low[0], low[1], 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    };
    match transform {
        Transform::Bits => integers(0, 0),
        Transform::Bernoulli { threshold } => integers(threshold, 0),
        Transform::Integers { low, range, .. } => integers(range, low as u64),
        Transform::Normal { mean, std } => ParametersLaunch::new(0, 0, 0, 0, 0, 0.0, std, mean, 0.0, 0.0),
        Transform::Uniform(u) => ParametersLaunch::new(0, 0, 0, 0, u.bias, u.scale, u.span, u.origin, u.min, u.max),
    }
}

/// One unit computes one block of [`BLOCK_WORDS`] words and writes the elements they make, 16, 8 or 4, in `output[vectors]`:
/// vectors of 4 elements, or of 1, side by side. The last block may have words for more.
#[cube(launch_unchecked)]
pub fn draw<O: Numeric, N: Size>(
    output: &mut [Vector<O, N>],
    vectors: u32,
    origin: Origin,
    parameters: Parameters,
    #[comptime] kind: Kind,
    #[comptime] words_per_element: usize,
    #[define(O)] dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    let width = N::value();
    let vectors_per_block = comptime!((BLOCK_WORDS / words_per_element / width) as u32);
    let is_wide = comptime!(dtype.size() == 8);
    // Compared without the product, which can pass 2^32.
    if unit > (vectors - 1) / vectors_per_block {
        terminate!();
    }
    let mut block = block(&origin, unit);
    if comptime!(kind == Kind::Normal) {
        standard_normals(&mut block);
    }
    let first = unit * vectors_per_block;

    #[unroll]
    for v in 0..vectors_per_block {
        if first + v < vectors {
            let mut values = Vector::<O, N>::empty();
            #[unroll]
            for lane in 0..width {
                let word = comptime!((v as usize * width + lane) * words_per_element);
                values.insert(lane, value::<O>(&block, word, &parameters, kind, words_per_element, is_wide));
            }
            output[(first + v) as usize] = values;
        }
    }
    keep_subnormals();
}

/// The element made of the words from `word` on.
#[cube]
fn value<O: Numeric>(
    block: &Array<u32>,
    #[comptime] word: usize,
    parameters: &Parameters,
    #[comptime] kind: Kind,
    #[comptime] words: usize,
    #[comptime] is_wide: bool,
) -> O {
    match comptime!(kind) {
        Kind::Bits => O::cast_from(block[word]),
        Kind::Bernoulli => {
            let one = block[word] < parameters.range_low || parameters.range_high != 0;
            select(one, O::from_int(1), O::from_int(0))
        }
        Kind::Uniform => {
            // Below 2^24, so that the conversion is exact and signed.
            let draw = i32::cast_from(block[word] >> 8) - parameters.bias;
            let unit = multiply_rounded::<f32>(f32::cast_from(draw), parameters.scale);
            let value = multiply_add::<f32>(unit, parameters.factor, parameters.offset);
            let value = select(value < parameters.min, parameters.min, value);
            O::cast_from(select(value > parameters.max, parameters.max, value))
        }
        Kind::Normal => {
            let z = f32::reinterpret(block[word]);
            O::cast_from(multiply_add::<f32>(z, parameters.factor, parameters.offset))
        }
        Kind::Integers => integer::<O>(block, word, parameters, words, is_wide),
    }
}

/// `low + floor(x * range / 2^(32 * words))`, `x` being the words as one little-endian integer.
///
/// The product is made one word of `x` at a time; what has been shifted out cannot carry back. The running value
/// `(high, low)` stays below `range`, so that `word * range + value` fits 96 bits. With one word the range is below `2^32`.
#[cube]
fn integer<O: Numeric>(
    block: &Array<u32>,
    #[comptime] word: usize,
    parameters: &Parameters,
    #[comptime] words: usize,
    #[comptime] is_wide: bool,
) -> O {
    let mut low = 0u32;
    let mut high = 0u32;
    if comptime!(words == 1) {
        low = u32::mul_hi(block[word], parameters.range_low);
    }
    #[unroll]
    for k in 0..comptime!(if words == 1 { 0 } else { words }) {
        let x = block[word + k];
        let product = x * parameters.range_low;
        let lowest = product + low;
        let carry = u32::cast_from(lowest < product);
        let middle = u32::mul_hi(x, parameters.range_low) + carry;
        let upper = x * parameters.range_high;
        let sum = middle + upper;
        let sum_carry = u32::cast_from(sum < middle);
        let total = sum + high;
        let total_carry = u32::cast_from(total < sum);
        low = total;
        high = u32::mul_hi(x, parameters.range_high) + sum_carry + total_carry;
    }
    let value_low = low + parameters.low_low;
    if comptime!(is_wide) {
        let value_high = high + parameters.low_high + u32::cast_from(value_low < low);
        // Joined unsigned: a signed conversion of the low word would extend its sign on WGSL.
        O::cast_from((u64::cast_from(value_high) << 32) | u64::cast_from(value_low))
    } else {
        O::cast_from(i32::reinterpret(value_low))
    }
}

/// Replaces each pair of words by the bits of the two normal numbers it makes.
#[cube]
fn standard_normals(block: &mut Array<u32>) {
    #[unroll]
    for pair in 0..comptime!(BLOCK_WORDS / 2) {
        let a = block[2 * pair];
        let b = block[2 * pair + 1];

        // u = odd / 2^31 = (1 + f) / 2^exponent.
        let twice_odd = (a << 2) | 2;
        let bits = u32::reinterpret(f32::cast_from(i32::reinterpret(twice_odd >> 1)));
        let exponent = comptime!(127 + 31u32) - ((bits + TO_NEAREST_POWER) >> 23);
        // 2^32 (1 + f), whose 2^32 has been shifted out.
        let fraction = f32::cast_from(i32::reinterpret(twice_odd << exponent));
        let f = multiply_rounded::<f32>(fraction, f32::new(comptime!(2f32.powi(-32))));
        let s = multiply_add::<f32>(f, horner(f, LOGARITHM), f32::cast_from(i32::reinterpret(exponent)));

        let estimate = f32::reinterpret(ROOT_ESTIMATE - (u32::reinterpret(s) >> 1));
        let w = multiply_rounded::<f32>(multiply_rounded::<f32>(s, estimate), estimate);
        let reciprocal = multiply_rounded::<f32>(estimate, horner(w, ROOT));
        let root = multiply_rounded::<f32>(s, reciprocal);
        let rest = multiply_add::<f32>(-root, root, s);
        let half = multiply_rounded::<f32>(reciprocal, f32::new(0.5f32));
        let radius = multiply_add::<f32>(rest, half, root);

        let x = multiply_rounded::<f32>(f32::cast_from(i32::reinterpret(b | 1)), f32::new(comptime!(2f32.powi(-31))));
        let square = multiply_rounded::<f32>(x, x);
        let across = multiply_rounded::<f32>(radius, horner(square, COSINE));
        let along = multiply_rounded::<f32>(multiply_rounded::<f32>(radius, x), horner(square, SINE));

        let across = u32::reinterpret(across) ^ (a & 0x8000_0000u32);
        let along = u32::reinterpret(along);
        let swap = a & 0x4000_0000u32 != 0;
        block[2 * pair] = select(swap, along, across);
        block[2 * pair + 1] = select(swap, across, along);
    }
}

/// The words of block `origin.block + unit`.
#[cube]
fn block(origin: &Origin, unit: u32) -> Array<u32> {
    let mut state = Array::<u32>::new(16usize);
    let block_low = origin.block_low + unit;
    let block_high = origin.block_high + u32::cast_from(block_low < unit);
    initial(&mut state, origin, block_low, block_high);
    for _ in 0..4u32 {
        quarter_round(&mut state, 0usize, 4usize, 8usize, 12usize);
        quarter_round(&mut state, 1usize, 5usize, 9usize, 13usize);
        quarter_round(&mut state, 2usize, 6usize, 10usize, 14usize);
        quarter_round(&mut state, 3usize, 7usize, 11usize, 15usize);
        quarter_round(&mut state, 0usize, 5usize, 10usize, 15usize);
        quarter_round(&mut state, 1usize, 6usize, 11usize, 12usize);
        quarter_round(&mut state, 2usize, 7usize, 8usize, 13usize);
        quarter_round(&mut state, 3usize, 4usize, 9usize, 14usize);
    }
    let mut first = Array::<u32>::new(16usize);
    initial(&mut first, origin, block_low, block_high);
    #[unroll]
    for i in 0..16usize {
        state[i] += first[i];
    }
    state
}

/// ChaCha's state before the rounds: "expand 32-byte k", the key, the counter, the stream.
#[cube]
fn initial(state: &mut Array<u32>, origin: &Origin, block_low: u32, block_high: u32) {
    state[0] = 0x6170_7865u32;
    state[1] = 0x3320_646Eu32;
    state[2] = 0x7962_2D32u32;
    state[3] = 0x6B20_6574u32;
    #[unroll]
    for word in 0..8usize {
        state[4 + word] = origin.key[word];
    }
    state[12] = block_low;
    state[13] = block_high;
    state[14] = origin.stream_low;
    state[15] = origin.stream_high;
}

/// ChaCha's quarter round on four words of the state.
#[cube]
fn quarter_round(
    state: &mut Array<u32>,
    #[comptime] a: usize,
    #[comptime] b: usize,
    #[comptime] c: usize,
    #[comptime] d: usize,
) {
    state[a] += state[b];
    state[d] = rotate(state[d] ^ state[a], 16u32);
    state[c] += state[d];
    state[b] = rotate(state[b] ^ state[c], 12u32);
    state[a] += state[b];
    state[d] = rotate(state[d] ^ state[a], 8u32);
    state[c] += state[d];
    state[b] = rotate(state[b] ^ state[c], 7u32);
}

/// Rotates left.
#[cube]
fn rotate(x: u32, #[comptime] by: u32) -> u32 {
    (x << by) | (x >> comptime!(32 - by))
}
