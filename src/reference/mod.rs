//! [`Reference`]: a backend on the host whose results are what the order contracts say, under `GpuToGpu`.
//!
//! One file a trait of burn-backend, as in [`backend`](crate::backend). What a kernel of burn-deterministic-kernels
//! computes is its `reference`, in plain Rust; what Burn composes is composed here too, by the traits' default bodies;
//! movements, comparisons and integers are exact, and computed directly. Products are rounded before they are added.
//!
//! It is slow, and it is the arbiter where two devices disagree: [`Determinism::check_against_reference`] runs
//! operations on it too. A method that has no reference, or none for such operands, ends with [`NotChecked`]: nothing
//! is taken for right because nobody looked.
//!
//! [`Determinism::check_against_reference`]: crate::Determinism::check_against_reference

mod boolean;
mod float;
mod fourier;
mod host;
mod integer;
mod limits;
mod lines;
mod module;
mod moves;
mod places;
mod random;
mod runtime;
mod uncomputed;

pub(crate) use host::Host;
pub(crate) use limits::{NotChecked, not_checked};
pub(crate) use runtime::tensor_of;

/// The backend of the references. Its tensors are on the host, and belong to the device whose results they are to be
/// compared with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reference;
