//! Keys to sort, `[length]` with any stride, and sorted ones, which are dense.

use crate::dtype::U32;
use crate::view::vector_width;
use cubecl::prelude::*;
use cubecl::server::Handle;

/// One key for each of `length` positions: integers that came from a caller, or u32 words. One outside `0..rows` counts as `rows`.
pub(crate) struct Keys {
    pub(crate) handle: Handle,
    /// Elements from one position's key to the next.
    pub(crate) stride: u32,
    pub(crate) dtype: ElemType,
}

impl Keys {
    /// Dense u32 words.
    pub(crate) fn words(handle: Handle) -> Self {
        Self { handle, stride: 1, dtype: U32 }
    }

    /// Neighbouring keys that a unit reads at once, in chunks of `chunk`.
    pub(super) fn width(&self, length: usize, chunk: usize) -> usize {
        if chunk.is_multiple_of(4) { vector_width(self.dtype, length, self.stride as usize, []) } else { 1 }
    }

    pub(super) fn arg(&self, length: usize) -> BufferArg {
        // SAFETY: the handle holds a key for each position at this stride; kernels address no others.
        unsafe { BufferArg::from_raw_parts(self.handle.clone(), length) }
    }
}

/// `length` keys in ascending order.
pub(crate) struct Sorted {
    /// `[length]` u32: the keys, `rows` for those that were outside `0..rows`.
    pub(crate) keys: Handle,
    /// `[length]` u32: the position that each key had; ascending among equal keys.
    pub(crate) positions: Handle,
}
