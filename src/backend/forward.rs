//! The macros for methods that are a call: of the inner backend, or of one adapter.

use super::refused::{poison, refuse};
use crate::context::in_method;
use crate::error::Error;
use crate::settings::{Guarantee, determinism};
use burn_backend::TensorMetadata;
use burn_cubecl::kernel::untile;
use burn_cubecl::tensor::CubeTensor;
use burn_deterministic_kernels::copy;

/// Methods that run on the inner backend unchanged, after the [reason](crate::catalogue::reason) that is safe.
macro_rules! forward {
    ($reason:ident: $(fn $method:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)?;)+) => {$(
        fn $method($($argument: $type),*) $(-> $output)? {
            const _: &str = crate::catalogue::reason::$reason;
            crate::context::in_method(|| burn_cubecl::CubeBackend::$method($($argument),*))
        }
    )+};
}

/// [`forward!`](forward) of methods that may give a view of the operand's memory, as moves do: what CubeCL would misread is
/// copied. Behind a method may stand what makes [views](super::views) where Burn copies.
macro_rules! views {
    ($reason:ident: $(fn $method:ident($($argument:ident: $type:ty),* $(,)?) -> $output:ty $(= $view:ident)?;)+) => {$(
        fn $method($($argument: $type),*) -> $output {
            const _: &str = crate::catalogue::reason::$reason;
            crate::context::in_method(|| {
                crate::backend::forward::readable(views!(@ $method($($argument),*) $($view)?))
            })
        }
    )+};
    (@ $method:ident($($argument:ident),*)) => { burn_cubecl::CubeBackend::$method($($argument),*) };
    (@ $method:ident($($argument:ident),*) $view:ident) => {
        crate::backend::views::$view($($argument,)* burn_cubecl::CubeBackend::$method)
    };
}

/// The tensor, or a dense copy of it where CubeCL [misreads](copy::is_misread) it: its own copies are in Burn's reads and
/// in many of Burn's kernels. Strides of a quantized tensor count packed values, which Burn copies otherwise.
pub(super) fn readable(tensor: CubeTensor) -> CubeTensor {
    if tensor.qparams.is_some() || !copy::is_misread(tensor.meta.shape(), tensor.meta.strides()) {
        return tensor;
    }
    let CubeTensor { client, device, dtype, .. } = tensor.clone();
    let shape = tensor.shape();
    let copied = copy::dense(&client, untile(tensor).into());
    CubeTensor::new_contiguous(client, device, shape, copied.handle, dtype)
}

/// Methods that run on the inner backend under [`Guarantee::RunToRun`], after the [reason](crate::catalogue::reason)
/// that is safe, and are refused under [`Guarantee::GpuToGpu`], by the function below: their kernels' bits are the
/// device's.
macro_rules! run_to_run {
    ($reason:ident, $refusal:ident: $(
        fn $method:ident($tensor:ident: $type:ty $(, $argument:ident: $argument_type:ty)* $(,)?) -> $output:ty;
    )+) => {$(
        fn $method($tensor: $type $(, $argument: $argument_type)*) -> $output {
            const _: &str = crate::catalogue::reason::$reason;
            let plain = |$tensor: $type| burn_cubecl::CubeBackend::$method($tensor $(, $argument)*);
            crate::backend::forward::$refusal(stringify!($method), $tensor, plain)
        }
    )+};
}

const BITS_OF_THE_DEVICE: &str = "its kernel is Burn's, and its bits are the device's";

/// Runs `plain`, a kernel of Burn's with bits of the device's, or refuses it under [`Guarantee::GpuToGpu`].
pub(super) fn only_run_to_run(
    operation: &'static str,
    operand: CubeTensor,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    or_refused(operation, [operand], (BITS_OF_THE_DEVICE, "ask for `Guarantee::RunToRun`"), |[operand]| plain(operand))
}

/// The same of a cast from or to a type of integers.
pub(super) fn cast_run_to_run(
    operation: &'static str,
    operand: CubeTensor,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    let remedy = "cast to i32 in between, where the values fit, or ask for `Guarantee::RunToRun`";
    or_refused(operation, [operand], (BITS_OF_THE_DEVICE, remedy), |[operand]| plain(operand))
}

/// Runs `plain`, an operation on f64, or refuses it under [`Guarantee::GpuToGpu`]: no device is asked how it rounds f64.
pub(super) fn f64_run_to_run<const N: usize>(
    operation: &'static str,
    operands: [CubeTensor; N],
    plain: impl FnOnce([CubeTensor; N]) -> CubeTensor,
) -> CubeTensor {
    let why = ("no device is asked how it rounds f64", "cast to f32, or ask for `Guarantee::RunToRun`");
    or_refused(operation, operands, why, plain)
}

/// Nobody else holds the operands of what runs: Burn may compute in their memory.
fn or_refused<const N: usize>(
    operation: &'static str,
    operands: [CubeTensor; N],
    why: (&str, &str),
    plain: impl FnOnce([CubeTensor; N]) -> CubeTensor,
) -> CubeTensor {
    if determinism().guarantee == Guarantee::RunToRun {
        return in_method(|| plain(operands));
    }
    // Run in any case: a refused result has its shape and dtype.
    let result = in_method(|| plain(operands.clone()));
    let poisoned = |error: &Error| poison(error, &result.device, result.shape(), result.dtype);
    refuse(operation, &operands.each_ref(), why, || result.clone(), poisoned)
}

/// Methods that are one kernel, after the [adapter](super::adapters) that runs it. What an adapter of several kernels
/// is to run stands behind the method.
///
/// The adapter gets the method's name, the kernel, the method's arguments and the inner backend's method, for
/// [`OnViolation::Warn`](crate::OnViolation::Warn).
macro_rules! adapted {
    ($(
        adapters::$family:ident::$adapter:ident: $(
            fn $method:ident($($argument:ident: $type:ty),* $(,)?) -> $output:ty $(= $kernel:path)?;
        )+
    )+) => {$($(
        fn $method($($argument: $type),*) -> $output {
            crate::backend::adapters::$family::$adapter(
                stringify!($method),
                $($kernel,)?
                $($argument,)*
                burn_cubecl::CubeBackend::$method,
            )
        }
    )+)+};
}

pub(super) use {adapted, forward, run_to_run, views};
