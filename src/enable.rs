//! The one-time installation: [`enable_op_determinism`].

use crate::device;
use crate::environment::environment_under;
use crate::error::Error;
use crate::record;
use crate::route;
use crate::settings::{Determinism, Guarantee, Installation};
use burn_core::tensor::Device;

/// Makes every tensor operation of this process deterministic, on every CUDA, ROCm, Metal, Vulkan and WebGPU device.
///
/// Call it once, at the start of `main`, before the first tensor is made. Calling it again with the same settings is fine.
///
/// On Unix the process waits at its end for what has been submitted to the devices, for a minute at most: some drivers crash
/// if they compile a kernel then.
///
/// # Errors
///
/// - [`Error::NotCovered`] when `Device::default()` is not [covered](crate::covers), as with `BURN_DEVICE=flex` in the
///   environment,
/// - [`Error::TooLate`] when a tensor has already been made,
/// - [`Error::AlreadyEnabled`] when it is enabled with other settings,
/// - [`Error::Guarantee`] when `settings` asks for more than can be given,
/// - [`Error::Configuration`] when a Burn setting would send operations around the deterministic kernels,
/// - [`Error::Registry`] when Burn's registry does not take the route,
/// - [`Error::Observes`] after [`observe`](crate::observe()),
/// - [`Error::Record`] when a [recording](Determinism::record) cannot be written.
///
/// After an error nothing is enabled; of Burn's settings, the number of blocks it explores may have been fixed.
pub fn enable_op_determinism(settings: Determinism) -> Result<(), Error> {
    let installation = Installation::begin();
    match installation.enabled() {
        Some(enabled) if enabled == settings => return Ok(()),
        Some(enabled) => return Err(Error::AlreadyEnabled { enabled, requested: settings }),
        None => {}
    }
    if settings.guarantee > Guarantee::RunToRun {
        return Err(Error::Guarantee { requested: settings.guarantee });
    }
    device::check("enable_op_determinism", &Device::default())?;
    if installation.observes() {
        return Err(Error::Observes);
    }
    route::require_first()?;
    // Who runs the program decides, not who wrote it: `burn-deterministic verify` says where it reads.
    let recording = record::of_environment()?.or_else(|| settings.record.clone());
    let prepare = |(path, level)| record::prepare(path, level, true, environment_under(Some(&settings)));
    let recording = recording.map(prepare).transpose()?;
    route::install()?;
    if let Some(recording) = recording {
        record::begin(recording);
    }
    installation.finish(settings);
    Ok(())
}
