//! The numbers of optimizers and schedulers.

use burn_pack::Scalar;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub(super) type Scalars = BTreeMap<String, Number>;

/// Burn's scalar, with a float as its bits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Number {
    Int(i64),
    UInt(u64),
    Float(u64),
    Bool(bool),
}

impl From<Scalar> for Number {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Int(value) => Self::Int(value),
            Scalar::UInt(value) => Self::UInt(value),
            Scalar::Float(value) => Self::Float(value.to_bits()),
            Scalar::Bool(value) => Self::Bool(value),
        }
    }
}

impl From<Number> for Scalar {
    fn from(number: Number) -> Self {
        match number {
            Number::Int(value) => Self::Int(value),
            Number::UInt(value) => Self::UInt(value),
            Number::Float(bits) => Self::Float(f64::from_bits(bits)),
            Number::Bool(value) => Self::Bool(value),
        }
    }
}
