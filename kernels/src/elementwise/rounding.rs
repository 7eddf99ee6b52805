//! The nearest number of a half type, as an f32, by operations whose result no device chooses.

use super::program::Half;
use crate::arithmetic::held;
use crate::function::constants::{INFINITY, MAGNITUDE, NAN, SIGN};
use cubecl::prelude::*;

/// `x` in the type `F`, of a half type the nearest number.
#[cube]
pub(crate) fn narrowed<F: Numeric>(x: f32) -> F {
    let to = elem_type_of::<F>();
    let half = comptime!(Half::of(to));
    match half {
        Some(Half::F16) => F::cast_from(to_f16(x)),
        Some(Half::Bf16) => F::cast_from(to_bf16(x)),
        None => F::cast_from(x),
    }
}

/// The nearest f16, ties to even; from 65520 on infinity.
#[cube]
pub(super) fn to_f16(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let magnitude = bits & MAGNITUDE;
    // Half of a last place, less one bit where the place is even: the carry rounds.
    let rounded = (magnitude + 0x0fffu32 + ((magnitude >> 13u32) & 1u32)) & 0xffff_e000u32;
    let normal = select(rounded > 0x477f_e000u32, INFINITY, rounded);
    // Below 2^-14 the numbers of f16 are the multiples of 2^-24, and so are the f32 from 1/2 to 1.
    let half = f32::new(0.5);
    let small = u32::reinterpret(held(f32::reinterpret(magnitude) + half) - half);
    let nearest = (bits & SIGN) | select(magnitude < 0x3880_0000u32, small, normal);
    f32::reinterpret(select(magnitude > INFINITY, NAN, nearest))
}

/// The nearest bf16, ties to even; beyond the largest infinity.
#[cube]
pub(super) fn to_bf16(x: f32) -> f32 {
    let bits = u32::reinterpret(x);
    let rounded = (bits + 0x7fffu32 + ((bits >> 16u32) & 1u32)) & 0xffff_0000u32;
    f32::reinterpret(select(bits & MAGNITUDE > INFINITY, NAN, rounded))
}
