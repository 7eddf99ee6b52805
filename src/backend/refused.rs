//! What becomes of an operation that may not run.
//!
//! On Burn's operation stream a refusal is a panic: Burn catches it, claims every tensor the operation was to write
//! and everything computed from them, and returns the text from the read. Elsewhere (under `Autodiff` directly, or
//! behind a remote server, where a panic would end the session) the refusal travels as a value: the outputs are
//! buffers written by a kernel that does not compile, with the refusal as its compile error, and CubeCL carries that
//! error to every read that depends on them.

use crate::context::{in_method, on_the_stream};
use crate::error::{self, Error, Refusal};
use crate::settings::{OnViolation, determinism};
use crate::violation::warn;
use burn_backend::{DType, Shape};
use burn_cubecl::{CubeDevice, tensor::CubeTensor};
use burn_std::{Metadata, Strides};
use cubecl::frontend::push_validation_error;
use cubecl::prelude::*;

/// Refuses an operation: an error, or in [`OnViolation::Warn`] a warning and the inner backend's result.
///
/// `plain` runs the operation on the inner backend; `poisoned` makes its outputs out of tensors that carry the error
/// (see [`poison`]).
pub(super) fn refused<T>(error: Error, plain: impl FnOnce() -> T, poisoned: impl FnOnce(&Error) -> T) -> T {
    match determinism().on_violation {
        OnViolation::Warn => {
            warn(&error);
            in_method(plain)
        }
        OnViolation::Error if on_the_stream() => panic!("{error}"),
        OnViolation::Error => poisoned(&error),
    }
}

/// Refuses an operation that has no kernel at all, for a `(reason, remedy)`.
pub(super) fn refuse<T>(
    operation: &'static str,
    operands: &[&CubeTensor],
    (reason, remedy): (&str, &str),
    plain: impl FnOnce() -> T,
    poisoned: impl FnOnce(&Error) -> T,
) -> T {
    let refusal = Refusal {
        operation: operation.into(),
        operands: describe(operands),
        device: operands.first().map_or_else(|| "unknown".to_owned(), |tensor| format!("{:?}", tensor.device)),
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    };
    refused(refusal.into(), plain, poisoned)
}

/// Shapes and dtypes, `[2, 3] f32, [3] i32`.
pub(super) fn describe(operands: &[&CubeTensor]) -> String {
    error::operands(operands.iter().map(|tensor| (&tensor.meta.shape()[..], tensor.dtype)))
}

/// A tensor that every read answers with `error`, and from which nothing can be computed.
pub(super) fn poison(error: &Error, device: &CubeDevice, shape: Shape, dtype: DType) -> CubeTensor {
    if let DType::QFloat(_) = dtype {
        // A quantized tensor has scales beside its values, and nothing reads it without them.
        panic!("{error}");
    }
    let client = device.client();
    // One element, which every position reads: a tensor refused for its size must not be allocated to say so.
    let bytes = size_of::<u64>();
    let handle = client.empty(bytes);
    // SAFETY: the kernel never runs: its expansion reports a validation error, which CubeCL returns from every read
    // of the buffer it was to write.
    unsafe {
        never_compiles::launch_unchecked(
            &client,
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(1),
            BufferArg::from_raw_parts(handle.clone(), bytes.div_ceil(4)),
            error.to_string(),
        );
    }
    let strides = vec![0; shape.num_dims()];
    CubeTensor::new(client, handle, Metadata::new(shape, Strides::from(strides)), device.clone(), dtype)
}

#[cube(launch_unchecked)]
fn never_compiles(output: &mut [u32], #[comptime] error: String) {
    push_validation_error(error);
    output[0] = 0u32;
}
