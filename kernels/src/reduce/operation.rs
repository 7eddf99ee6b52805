//! What reductions compute, and in which types.

use crate::KernelError;
use crate::dtype::key::{KeyFor, key_type};
use crate::dtype::{U32, accumulator};
use cubecl::ir::ElemType;
use cubecl::prelude::Client;

/// What a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The sum.
    Sum,
    /// The product.
    Prod,
    /// The sum divided by the number of elements.
    Mean,
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
    /// The largest magnitude. That of the smallest signed integer wraps to itself.
    MaxAbs,
    /// Whether some element is not zero.
    Any,
    /// Whether no element is zero.
    All,
}

impl Operation {
    /// The name errors carry.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sum => "reduce::sum",
            Self::Prod => "reduce::prod",
            Self::Mean => "reduce::mean",
            Self::Max => "reduce::max",
            Self::Min => "reduce::min",
            Self::MaxAbs => "reduce::max_abs",
            Self::Any => "reduce::any",
            Self::All => "reduce::all",
        }
    }

    /// What the key of a float is made for, where floats are compared.
    pub(super) fn key(self) -> KeyFor {
        match self {
            Self::MaxAbs => KeyFor::Magnitude,
            Self::Min => KeyFor::Minimum,
            _ => KeyFor::Maximum,
        }
    }

    /// The type in which elements of `dtype` are reduced; `None` where the operation has no version for it.
    pub(super) fn accumulator(self, dtype: ElemType) -> Option<ElemType> {
        match self {
            Self::Max | Self::Min | Self::MaxAbs => key_type(dtype),
            Self::Any | Self::All if dtype.is_float() => None,
            Self::Any | Self::All => key_type(dtype).map(|_| U32),
            Self::Sum | Self::Prod | Self::Mean if dtype.is_float() => key_type(dtype).map(|_| accumulator(dtype)),
            Self::Sum | Self::Prod | Self::Mean => key_type(dtype),
        }
    }
}

/// The type in which elements of `dtype` are reduced, or a refusal.
pub(super) fn accumulator_of(client: &Client, operation: Operation, dtype: ElemType) -> Result<ElemType, KernelError> {
    let supported = |dtype| client.properties().supports_type(dtype);
    operation
        .accumulator(dtype)
        .filter(|&accumulator| supported(dtype) && supported(accumulator))
        .ok_or(KernelError::Dtype { kernel: operation.name(), dtype, remedy: "cast the tensor to another type" })
}
