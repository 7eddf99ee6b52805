//! Kernels launched outside every block of Burn's stream.
//!
//! Three kinds are expected: those of [`Deterministic`](crate::Deterministic), used below the tensor API or behind a
//! server; copies that Burn makes for a read or a transfer between devices; and promised ones. Any other comes from code
//! that nobody but its author knows: an extension that resolves tensors, launches kernels of its own and registers the
//! results, or calls Burn's plain backend.

use crate::context;
use crate::error::Error;
use crate::promise;
use crate::violation::violated;

/// Crates and modules whose kernels may run outside a block: this crate's, and copies of elements as they are.
const EXPECTED: [&str; 2] = ["burn_deterministic", "cubecl_std::tensor::contiguous"];

/// Looks at a kernel that was launched in no block.
///
/// # Panics
///
/// When it is a violation, unless the settings let violations pass.
pub(super) fn check(kernel: &'static str) {
    let expected = context::with(|context| context.in_method)
        || EXPECTED.iter().any(|prefix| kernel.starts_with(prefix))
        || promise::keeps_kernel(kernel);
    if !expected {
        violated(&Error::OutsideBlock { kernel });
    }
}
