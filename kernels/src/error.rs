//! Why a kernel refuses to run.

use cubecl::ir::ElemType;

/// A refusal: no result was computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The kernel has no fixed-order version for this element type.
    #[error("{kernel}: no fixed-order kernel for {dtype}; {remedy}")]
    Dtype {
        /// The kernel family and operation, `reduce::sum`.
        kernel: &'static str,
        /// The element type asked for.
        dtype: ElemType,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The device offers less than the kernel needs.
    #[error("{kernel}: needs {needs} {what}, the device has {has}; use another device or driver")]
    Device {
        /// The kernel family and operation.
        kernel: &'static str,
        /// What is short: "units per cube", "bytes of shared memory".
        what: &'static str,
        /// How much the kernel needs.
        needs: usize,
        /// How much the device has.
        has: usize,
    },
    /// A shape the kernel cannot address, or operands whose shapes do not fit together.
    #[error("{kernel}: {reason}")]
    Shape {
        /// The kernel family and operation.
        kernel: &'static str,
        /// What does not fit, with the numbers.
        reason: String,
    },
    /// An axis is longer than the indices' type counts.
    #[error("{kernel}: indices as {dtype} count {counts} elements, and the axis has {length}")]
    Index {
        /// The kernel family and operation.
        kernel: &'static str,
        /// The indices' type.
        dtype: ElemType,
        /// How many elements it counts.
        counts: usize,
        /// How many the axis has.
        length: usize,
    },
    /// A parameter outside the values the operation is defined for.
    #[error("{kernel}: {reason}")]
    Argument {
        /// The kernel family and operation.
        kernel: &'static str,
        /// What is wrong with which parameter, with the numbers.
        reason: String,
    },
    /// The device failed where a kernel had to ask it something first.
    #[error("{kernel}: {reason}; {remedy}")]
    Failed {
        /// The kernel family and operation.
        kernel: &'static str,
        /// What was asked, and what the device's runtime says.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A plan that does not apply to the problem: one that a caller chose, or the family's own where none applies.
    #[error("{kernel}: {reason}")]
    Plan {
        /// The kernel family and operation.
        kernel: &'static str,
        /// The plan, the problem, and what the plan wants.
        reason: String,
    },
}

/// Refuses operands for `reason`, unless they `fit` together and into 32-bit indices.
pub(crate) fn require_shapes(
    kernel: &'static str,
    fit: bool,
    reason: impl FnOnce() -> String,
) -> Result<(), KernelError> {
    if fit { Ok(()) } else { Err(KernelError::Shape { kernel, reason: reason() }) }
}
