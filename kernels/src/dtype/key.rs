//! Floats as integers that order alike, so that no driver's comparison of NaN, -0 or subnormals decides.

use super::U32;
use cubecl::ir::{FloatKind, IntKind, UIntKind};
use cubecl::prelude::*;

/// What the largest or smallest key of some floats tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyFor {
    /// The largest key is that of the maximum.
    Maximum,
    /// The smallest key is that of the minimum.
    Minimum,
    /// The largest key is that of the largest magnitude.
    Magnitude,
}

/// The type of the keys of floats, and in which integers are reduced: 32 bits at least.
pub fn key_type(dtype: ElemType) -> Option<ElemType> {
    match dtype {
        ElemType::Float(FloatKind::F32 | FloatKind::F16 | FloatKind::BF16) => Some(ElemType::Int(IntKind::I32)),
        ElemType::Float(FloatKind::F64) => Some(ElemType::Int(IntKind::I64)),
        ElemType::Int(IntKind::I64) | ElemType::UInt(UIntKind::U64) => Some(dtype),
        ElemType::Int(_) => Some(ElemType::Int(IntKind::I32)),
        ElemType::UInt(_) => Some(U32),
        _ => None,
    }
}

/// The bits of infinity, of f32 or f64.
#[cube]
fn infinity_bits<K: Numeric>() -> K {
    let elem = elem_type_of::<K>();
    match comptime!(elem.size()) {
        8usize => K::from_int(comptime!(0x7ff0_0000_0000_0000i64)),
        _ => K::from_int(comptime!(0x7f80_0000i64)),
    }
}

/// The bits of the quiet NaN that every NaN becomes, of f32 or f64.
#[cube]
fn nan_bits<K: Numeric>() -> K {
    let elem = elem_type_of::<K>();
    match comptime!(elem.size()) {
        8usize => K::from_int(comptime!(0x7ff8_0000_0000_0000i64)),
        _ => K::from_int(comptime!(0x7fc0_0000i64)),
    }
}

/// The bits of a float as a signed integer; f16 and bf16 are widened to f32 first, which is exact.
#[cube]
fn float_bits<I: Numeric, K: Numeric>(value: I) -> K {
    let elem = elem_type_of::<I>();
    match comptime!(elem.size()) {
        2usize => K::reinterpret(f32::cast_from(value)),
        _ => K::reinterpret(value),
    }
}

/// An integer that orders as the float does, with every NaN beyond everything: above for a maximum, below for a
/// minimum. -0 is below +0 or, where `zeros_tie`, equal to it.
#[cube]
pub fn float_key<I: Numeric, K: Numeric>(value: I, #[comptime] purpose: KeyFor, #[comptime] zeros_tie: bool) -> K {
    let bits = float_bits::<I, K>(value);
    let zero = K::from_int(0);
    let negative = bits < zero;
    // The magnitude of a negative float is its bits less the sign bit: no step here overflows.
    let magnitude = select(negative, bits - K::min_value(), bits);
    let nan = magnitude > infinity_bits::<K>();
    let below = comptime!(if zeros_tie { 0i64 } else { -1i64 });
    let signed = select(negative, K::from_int(below) - magnitude, magnitude);
    match comptime!(purpose) {
        KeyFor::Magnitude => select(nan, nan_bits::<K>(), magnitude),
        KeyFor::Minimum => select(nan, K::min_value(), signed),
        KeyFor::Maximum => select(nan, nan_bits::<K>(), signed),
    }
}

/// The float of a [`float_key`] that tells the zeros apart.
#[cube]
pub fn float_of_key<K: Numeric, O: Numeric>(key: K) -> O {
    let negative = key < K::from_int(0);
    let magnitude = select(negative, K::from_int(-1) - key, key);
    let bits = select(negative, magnitude + K::min_value(), magnitude);
    let bits = select(magnitude > infinity_bits::<K>(), nan_bits::<K>(), bits);
    let elem = elem_type_of::<O>();
    match comptime!(elem.size()) {
        2usize => O::cast_from(f32::reinterpret(bits)),
        _ => O::reinterpret(bits),
    }
}
