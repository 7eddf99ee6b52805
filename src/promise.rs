//! Custom operations that the program vouches for.
//!
//! A backend extension (`burn_core::backend::backend_extension`, or a `burn_ir::CustomOpIr` registered by hand) runs
//! code of its own on Burn's plain backend. Nobody but its author knows its order, so the route refuses it by name,
//! unless the program has promised that it is deterministic. Those of burn-signal and burn-linalg are known, and need no
//! promise.

use crate::error::Error;
use crate::settings::is_op_determinism_enabled;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A custom operation that the program has promised to be deterministic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The operation's id on Burn's stream.
    pub operation: String,
    /// Why it is deterministic, as the program says.
    pub reason: String,
    /// How many times it was run so far on the strength of that.
    pub uses: u64,
}

static PROMISES: Mutex<BTreeMap<String, Promise>> = Mutex::new(BTreeMap::new());

/// The promise that devices of other processes, which burn-remote reaches, are deterministic.
pub(crate) const REMOTE: &str = "burn_remote";

/// Promises that the custom operation with the id `operation` computes the same bits whenever it gets the same
/// operands, for a `reason` that [`promises`] repeats.
///
/// Call it before [`enable_op_determinism`](crate::enable_op_determinism). The operation then runs as its author wrote
/// it: its own kernels, and Burn's plain ones for the backend methods it calls, in which a sum may be ordered by
/// measurement. [`Determinism::rerun`](crate::Determinism::rerun) puts the promise to the test.
///
/// The id is the one in the operation's `CustomOpIr`, which a refusal names: for `#[backend_extension]` the `id` of its
/// `#[fusion(..)]` attribute, or else the name of the method.
///
/// Two other things can be promised so, by what the error about them names:
///
/// - kernels that an extension launches outside Burn's operations, by the path of the kernel or of a module of kernels
///   (`my_extension::kernels`);
/// - all remote devices, by `burn_remote`: the server must serve [`Deterministic`](crate::Deterministic), or enable determinism.
///
/// An unknown name is not an error: its `uses` in [`promises`] stay 0. An operation that draws from Burn's plain
/// generator hides what `Device::seed` sets: seed with [`set_random_seed`](crate::set_random_seed) beside it.
///
/// # Errors
///
/// [`Error::PromisedTooLate`] when determinism is enabled already.
pub fn promise_deterministic(operation: impl Into<String>, reason: impl Into<String>) -> Result<(), Error> {
    let (operation, reason) = (operation.into(), reason.into());
    if is_op_determinism_enabled() {
        return Err(Error::PromisedTooLate { operation });
    }
    let mut promises = PROMISES.lock().unwrap_or_else(PoisonError::into_inner);
    promises.insert(operation.clone(), Promise { operation, reason, uses: 0 });
    Ok(())
}

/// What this program has promised, by the operations' ids in ascending order.
pub fn promises() -> Vec<Promise> {
    PROMISES.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
}

/// Whether the custom operation of this id, or a [remote](REMOTE) device, may run, and if so counts it.
pub(crate) fn keeps(name: &str) -> bool {
    keeps_one(|promised| promised == name)
}

/// Whether the kernel of this path may run, by itself or with a module it is in, and if so counts it.
pub(crate) fn keeps_kernel(path: &str) -> bool {
    keeps_one(|promised| {
        let rest = path.strip_prefix(promised);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::") || rest.starts_with('<'))
    })
}

fn keeps_one(is_promised: impl Fn(&str) -> bool) -> bool {
    let mut promises = PROMISES.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = promises.values_mut().find(|promise| is_promised(&promise.operation));
    kept.map(|promise| promise.uses += 1).is_some()
}
