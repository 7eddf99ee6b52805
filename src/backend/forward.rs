//! The macros for methods that are a call: of the inner backend, or of one adapter.

use super::refused::{poison, refuse};
use crate::context::in_method;
use crate::error::Error;
use burn_backend::{DType, Shape};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;

/// Methods that run on the inner backend unchanged, after the [reason](crate::catalogue::reason) that is safe.
macro_rules! forward {
    ($reason:ident: $(fn $method:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)?;)+) => {$(
        fn $method($($argument: $type),*) $(-> $output)? {
            const _: &str = crate::catalogue::reason::$reason;
            crate::context::in_method(|| burn_cubecl::CubeBackend::$method($($argument),*))
        }
    )+};
}

/// Methods that are one kernel, after the [adapter](super::adapters) that runs it. What an adapter of several kernels is
/// to run stands behind the method.
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

/// Elementary functions of a tensor, forwarded in every dtype in which the device's compiler has them.
macro_rules! elementary {
    ($reason:ident: $(
        fn $method:ident($tensor:ident: $type:ty $(, $argument:ident: $argument_type:ty)*) -> $output:ty;
    )+) => {$(
        fn $method($tensor: $type $(, $argument: $argument_type)*) -> $output {
            const _: &str = crate::catalogue::reason::$reason;
            let shape = $tensor.shape();
            crate::backend::forward::elementary_function(stringify!($method), $tensor, shape, |tensor| {
                burn_cubecl::CubeBackend::$method(tensor $(, $argument)*)
            })
        }
    )+};
}

/// Runs `plain`, an elementary function of `tensor` whose result has `shape`, where the device computes it.
pub(super) fn elementary_function(
    method: &'static str,
    tensor: CubeTensor,
    shape: Shape,
    plain: impl FnOnce(CubeTensor) -> CubeTensor,
) -> CubeTensor {
    if tensor.dtype != DType::F64 || !matches!(tensor.device, CubeDevice::Wgpu(_)) {
        return in_method(|| plain(tensor));
    }
    let reason = "SPIR-V has its elementary functions in 16 and 32 bits, and drivers compute something else in 64";
    let remedy = "cast the tensor to f32";
    let (operand, device) = (tensor.clone(), tensor.device.clone());
    let poisoned = |error: &Error| poison(error, &device, shape, DType::F64);
    refuse(method, &[&operand], (reason, remedy), || plain(tensor), poisoned)
}

pub(super) use {adapted, elementary, forward};
