//! Random tensors: ChaCha8 addressed by logical element index, a counter-based generator (D. J. Bernstein, "ChaCha, a
//! variant of Salsa20", 2008).
//!
//! # Contract
//!
//! A [`Source`] names one sequence of 32-bit words, the output of ChaCha with 8 rounds, a 256-bit key, a 64-bit block
//! counter and a 64-bit stream number: word for word `rand_chacha::ChaCha8Rng` after `from_seed(key)`,
//! `set_stream(stream)`, `set_word_pos(16 * block)`. Element `i` of the row-major shape takes the words at fixed
//! positions, which do not depend on the other elements:
//!
//! ```text
//! one word    w = word[i]                                bits, uniform, bernoulli
//! a pair      a = word[2j], b = word[2j+1], j = i div 2  normal: elements 2j and 2j+1 are made of both
//! one word    x = word[i]                                integers, of at most 2^16
//! two words   x = word[2i] + 2^32 word[2i+1]             integers, of at most 2^32
//! four words  x = sum of 2^(32k) word[4i+k], k = 0..4    integers, of more
//! ```
//!
//! and turns them into a value. Every operation is one rounding unless it says exact, and `f32(n)` converts an integer
//! below `2^31`, to nearest.
//!
//! ```text
//! bits       u32: w
//! uniform    u = (f32(w >> 8) - bias) * scale          exact; bias 0 and scale 2^-24
//!            v = u * span + origin                     span = f32(high - low), origin = f32(low)
//!            clamp v to [min, max], round to the dtype
//! normal     z = the number of the pair, in the order of `reference::standard_normals`
//!            v = z * std + mean, round to the dtype
//! bernoulli  1 if w < round(p * 2^32), else 0
//! integers   low + floor(x * (high - low) / 2^(32 words)), exact
//! ```
//!
//! * **Uniform**: `min` and `max` are the smallest value of the dtype that is not below `low` and the largest that is
//!   below `high`. They are values of the dtype, so no rounding that follows can leave `[low, high)`. The draw has 24
//!   bits. Where `high - low` overflows f32, `u` runs over `[-1, 1)` (bias `2^23`, scale `2^-23`), `span` is half the
//!   length and `origin` the middle. `low == high` gives that value, rounded to the dtype.
//! * **Normal**: the transform of G. E. P. Box and M. E. Muller ("A note on the generation of random normal deviates",
//!   1958). 30 bits of `a` make the radius `sqrt(-2 ln u)`, `b` makes the angle within a quarter of the circle, and the
//!   two highest bits of `a` choose the quarter. The logarithm, the root, the cosine and the sine are polynomials,
//!   spelled out: there is no division, square root or transcendental function of the device in it. `z` is symmetric:
//!   complementing `b`, or the highest bit of `a`, changes the sign of one of the two numbers and no other bit. `z` is
//!   never 0, and `|z| <= 6.5555415`, which is `sqrt(62 ln 2)`. Its relative error is below 5e-7 everywhere, tails
//!   included (measured 2.6e-7; the test compares with float64). `std == 0` gives `mean`.
//! * **Bernoulli**: `p = 0` is never true and `p = 1` always; `p` is rounded to a multiple of `2^-32`.
//! * **Integers**: the multiplication of D. Lemire ("Fast random integer generation in an interval", 2019), without the
//!   rejection, which would move the words of later elements. The probability of a value differs from `1 / (high -
//!   low)` by a relative `(high - low) / 2^(32 words)` at most, and not at all where `high - low` is a power of two.
//!   With one word that is `2^-16`, for `2^16` values; a test of counts would take 10^13 draws to see it. The words,
//!   and so the values, depend on the range and not on the dtype.
//! * f16 and bf16 are computed in f32 and rounded once.
//!
//! Results are equal on every device that rounds `+`, `-` and `*` to nearest; floats that would be subnormal are
//! outside the contract.
//!
//! # Cost
//!
//! One unit computes one block of 16 words and writes its 16, 8 or 4 elements: 24 integer operations a word, some 35
//! operations more for a normal number, and no memory is read. The key, the stream, the block and the distribution's
//! parameters are arguments of the launch, so a kernel is compiled once for each distribution, dtype, number of words
//! and width of a store (4 elements, or 1 where 4 does not divide their number).

mod box_muller;
mod distribution;
mod kernel;
pub mod reference;
mod source;
mod transform;

pub use distribution::Distribution;
pub use source::{BLOCK_WORDS, Key, Source, Stream};

use crate::KernelError;
use crate::buffer::unwritten;
use crate::device::require_units;
use crate::grid::cubes;
use crate::view::checked_elements;
use cubecl::ir::features::TypeUsage;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use transform::Transform;

/// Units in a cube: few, so that a mask for dropout still reaches more than a few processors.
const UNITS: u32 = 64;

/// Draws a tensor.
///
/// # Errors
///
/// [`KernelError::Dtype`] when the distribution has no such dtype or the device cannot store it,
/// [`KernelError::Argument`] when a parameter is out of its range, [`KernelError::Shape`] past `u32::MAX` elements.
pub fn draw(
    client: &Client,
    shape: &[usize],
    dtype: ElemType,
    source: Source,
    distribution: Distribution,
) -> Result<TensorHandle, KernelError> {
    let kernel = distribution.name();
    let transform = Transform::new(distribution, dtype)?;
    let elements = checked_elements(kernel, shape)? as u32;
    if !client.properties().type_usage(dtype).contains(TypeUsage::Buffer) {
        let remedy = "this device cannot store it: draw a type it has, and cast";
        return Err(KernelError::Dtype { kernel, dtype, remedy });
    }
    require_units(client, kernel, UNITS)?;
    let out = unwritten(client, shape.to_vec(), dtype);
    if elements == 0 {
        return Ok(out);
    }
    let blocks = elements.div_ceil(BLOCK_WORDS as u32 / transform.words());
    let width = if elements.is_multiple_of(4) { 4 } else { 1 };
    // SAFETY: the kernel compares every index it writes with the number of vectors in the output, and reads nothing.
    unsafe {
        kernel::draw::launch_unchecked(
            client,
            cubes(blocks.div_ceil(UNITS) as usize),
            CubeDim::new_1d(UNITS),
            width,
            out.clone().into_arg().into_buffer_arg(),
            elements / width as u32,
            kernel::origin(source),
            kernel::parameters(transform),
            transform.kind(),
            transform.words() as usize,
            dtype,
        );
    }
    Ok(out)
}
