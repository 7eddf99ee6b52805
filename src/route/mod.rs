//! How Burn's operation stream reaches [`Deterministic`](crate::Deterministic).
//!
//! Since Burn 0.22 every tensor of a CubeCL device records its operations on a stream, and fusion optimizations take
//! blocks of them and run them. This route removes Burn's own optimizations, registers one of its own that takes every
//! operation, and runs each on the deterministic backend. No tensor type, device type or model code changes.
//!
//! ```text
//! Tensor -> Burn's stream -> fuser (takes everything) -> Block -> bind -> Deterministic<CubeBackend>
//!                 \____________________ coverage observer ____________________/
//! ```

mod against_reference;
mod bind;
mod block;
mod configuration;
mod coverage;
mod custom;
mod direct;
mod elementwise;
mod execution_plans;
mod fuser;
mod groups;
mod handles;
mod in_place;
mod interpret;
mod merged;
mod moved;
mod pending;
mod products;
mod quantized;
mod reach;
mod reductions;
mod rerun;
mod schedule;
mod work;

use crate::backend::copy_at_once;
use crate::error::Error;
use crate::random::{plant, tensors_exist};
use block::Block;
use burn_cubecl::fusion::{BUILTIN_NAMES, FusedOperation, RegistryError, register, remove};

/// Requires that no operation has run.
///
/// # Errors
///
/// [`Error::TooLate`].
pub(crate) fn require_first() -> Result<(), Error> {
    if tensors_exist() { Err(Error::TooLate) } else { Ok(()) }
}

/// Installs the route, where no operation [has run](require_first).
///
/// # Errors
///
/// When a Burn setting would bypass the route. Nothing is installed then.
pub(crate) fn install() -> Result<(), Error> {
    take_all()?;
    coverage::install();
    plant();
    copy_at_once();
    Ok(())
}

/// Has every operation pass by the [recorder](crate::record), on Burn's own kernels.
///
/// # Errors
///
/// As [`install`].
pub(crate) fn observe() -> Result<(), Error> {
    take_all()?;
    coverage::observe();
    Ok(())
}

/// Has the fuser of this module take every operation, and no other.
fn take_all() -> Result<(), Error> {
    // Removing an unknown name changes nothing, and fails if the registry is closed.
    remove(Block::NAME).map_err(registry_error)?;
    configuration::install()?;
    for name in BUILTIN_NAMES {
        remove(name).map_err(registry_error)?;
    }
    register(fuser::RouteProvider).map_err(registry_error)
}

fn registry_error(error: RegistryError) -> Error {
    match error {
        RegistryError::ServiceRunning => Error::TooLate,
        RegistryError::DuplicateOptimization { name } => Error::Registry {
            reason: format!("an optimization named `{name}` is already registered"),
            remedy: "register no optimization of that name",
        },
    }
}
