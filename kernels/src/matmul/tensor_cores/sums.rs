//! How tensor cores add.

use crate::dtype::F32;
use cubecl::ir::ElemType;

/// How the tensor cores of a device add, named after a generation that has these sums: see [the contract](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sums {
    /// Eight products of half types, or four of TF32, and the sum before, to 24 bits.
    Ampere,
    /// Sixteen products of half types, or four of TF32, and the sum before, to 25 bits.
    Hopper,
}

impl Sums {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ampere, Self::Hopper];

    /// Products of an addition, of factors of this type. Of TF32, CUDA's compiler makes a fragment's 8 steps two instructions of 4.
    pub fn terms(self, dtype: ElemType) -> usize {
        match self {
            _ if dtype == F32 => 4,
            Self::Ampere => 8,
            Self::Hopper => 16,
        }
    }

    /// Binary places behind the point that the terms keep.
    pub(super) fn fraction_bits(self) -> i32 {
        match self {
            Self::Ampere => 24,
            Self::Hopper => 25,
        }
    }
}
