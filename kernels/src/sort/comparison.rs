//! How elements are compared.

use crate::KernelError;
use crate::dtype::{U32, supported};
use cubecl::ir::{ElemType, FloatKind, IntKind};
use cubecl::prelude::Client;

/// Which end comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The smallest.
    Ascending,
    /// The largest.
    Descending,
}

/// What the bits of an element mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Order {
    Float,
    Signed,
    Unsigned,
}

/// How elements are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub order: Order,
    /// Bits of the word that elements are compared by, or of each of the two.
    pub bits: u32,
    /// Whether elements have two words.
    pub wide: bool,
    pub descending: bool,
}

/// How elements of `dtype` are compared, and the type they are moved as: an integer of their size where there is one.
pub(super) fn form(
    client: &Client,
    kernel: &'static str,
    dtype: ElemType,
    direction: Direction,
) -> Result<(Form, ElemType), KernelError> {
    const REMEDY: &str = "sort f64, f32, f16, bf16 or an integer type that the device has";
    supported(client, kernel, dtype, REMEDY)?;
    let order = match dtype {
        ElemType::Float(_) => Order::Float,
        ElemType::Int(_) => Order::Signed,
        _ => Order::Unsigned,
    };
    let carrier = match dtype.size() {
        8 => ElemType::Int(IntKind::I64),
        4 => U32,
        _ => dtype,
    };
    supported(client, kernel, carrier, REMEDY)?;
    // Widened to f32, a bf16 has 16 low bits of zeros, an f16 13.
    let bits = match dtype {
        ElemType::Float(FloatKind::BF16) => 16,
        ElemType::Float(FloatKind::F16) => 19,
        _ => 8 * dtype.size().min(4) as u32,
    };
    let descending = direction == Direction::Descending;
    Ok((Form { order, bits, wide: dtype.size() == 8, descending }, carrier))
}
