//! Recording a program that runs on Burn's own kernels: [`observe`].

use crate::environment::environment_under;
use crate::error::Error;
use crate::record;
use crate::route;
use crate::settings::Installation;

/// Records the operations of a program that runs on Burn's own kernels: nothing is made deterministic.
///
/// Call it at the start of `main`, before the first tensor is made, and run the program under `burn-deterministic verify`, or
/// with a file in the environment variable `BURN_DETERMINISTIC_RECORD` ([`Determinism::record`](crate::Determinism::record)
/// says more). Where the variable is not set, and where determinism is enabled, it does nothing.
///
/// Each operation runs by itself, on the kernel that Burn has for it, autotuned where Burn tunes: Burn's fusion does not
/// take part. So a program is slower than without it, and its results may differ from those of fused kernels.
///
/// # Errors
///
/// - [`Error::TooLate`] when a tensor has already been made,
/// - [`Error::Configuration`] when a Burn setting would send operations around the recording,
/// - [`Error::Registry`] when Burn's registry does not take it,
/// - [`Error::Variable`] when `BURN_DETERMINISTIC_RECORD_LEVEL` is no level,
/// - [`Error::Record`] when the file cannot be written.
pub fn observe() -> Result<(), Error> {
    let installation = Installation::begin();
    if installation.enabled().is_some() || installation.observes() {
        return Ok(());
    }
    let Some((path, level)) = record::of_environment()? else { return Ok(()) };
    route::require_first()?;
    let recording = record::prepare(path, level, false, environment_under(None))?;
    route::observe()?;
    installation.observe();
    record::begin(recording);
    Ok(())
}
