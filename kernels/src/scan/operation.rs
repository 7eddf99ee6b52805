//! The operations of scans.

use crate::dtype::accumulator;
use crate::dtype::key::key_type;
use cubecl::ir::ElemType;

/// What is accumulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The sum so far.
    Sum,
    /// The product so far.
    Prod,
    /// The smallest element so far.
    Min,
    /// The largest element so far.
    Max,
}

impl Operation {
    /// The name errors carry.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sum => "scan::cumsum",
            Self::Prod => "scan::cumprod",
            Self::Min => "scan::cummin",
            Self::Max => "scan::cummax",
        }
    }

    /// The type results are kept in between blocks, and the type they are compared in.
    pub(super) fn types(self, dtype: ElemType) -> (ElemType, Option<ElemType>) {
        match self {
            Self::Min | Self::Max => (dtype, key_type(dtype)),
            Self::Sum | Self::Prod => (accumulator(dtype), Some(accumulator(dtype))),
        }
    }
}
