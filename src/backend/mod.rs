//! [`Deterministic`]: a Burn backend that sends every order-sensitive operation of another one to a fixed-order kernel.
//!
//! One file a trait of burn-backend. A method is one of four things, and [`catalogue`](crate::catalogue) says which:
//!
//! - a fixed-order kernel of burn-deterministic-kernels,
//! - composed: the trait's default body, or one of ours in its place, which calls other methods of this backend,
//! - forwarded to the inner backend, or answered without a computation, with the reason that is safe,
//! - refused.

mod activation;
pub(crate) mod adapters;
mod attention;
mod boolean;
mod distributed;
mod float;
mod forward;
mod integer;
pub(crate) mod ir;
mod module;
mod quantized;
mod reads;
mod refused;
mod runtime;
#[cfg(all(test, any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
mod tests;
mod transaction;
mod transfer;
mod views;

pub(crate) use adapters::dependents::Places;
pub(crate) use adapters::fourier;
pub(crate) use adapters::indices::{OutOfRange, check_indices, note_dependents, out_of_range, out_of_range_before};
pub(crate) use reads::copy_at_once;
pub(crate) use transfer::copy_by_host;

use core::marker::PhantomData;

/// The deterministic form of backend `B`.
///
/// Implemented for `burn_cubecl::CubeBackend`, which is Burn's backend for CUDA, ROCm, Metal, Vulkan and WebGPU.
/// A program that uses Burn's `Tensor` never names this type: it calls
/// [`enable_op_determinism`](crate::enable_op_determinism). Below the tensor API it is used like any other backend:
/// `Autodiff<Deterministic<CubeBackend>>`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deterministic<B>(PhantomData<B>);
