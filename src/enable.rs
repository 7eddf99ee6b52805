//! The one-time installation: [`enable_op_determinism`].

use crate::check;
use crate::device;
use crate::environment::environment_under;
use crate::error::Error;
use crate::record;
use crate::route;
use crate::settings::{Determinism, Guarantee, Installation};
use burn_core::tensor::Device;
use std::env;

/// Makes every tensor operation of this process deterministic, on every CUDA, ROCm, Metal, Vulkan and WebGPU device.
///
/// Call it once, at the start of `main`, before the first tensor is made. Calling it again with the same settings is
/// fine.
///
/// The environment variable `BURN_DETERMINISTIC_GUARANTEE` (`run-to-run` or `gpu-to-gpu`) comes before
/// [`Determinism::guarantee`], `BURN_DETERMINISTIC_REFERENCE` (a number) before
/// [`Determinism::check_against_reference`].
///
/// On Unix the process waits at its end for what has been submitted to the devices, for a minute at most: some drivers
/// crash if they compile a kernel then.
///
/// # Errors
///
/// - [`Error::NotCovered`] when `Device::default()` is not [covered](crate::covers), as with `BURN_DEVICE=flex` in the
///   environment,
/// - [`Error::TooLate`] when a tensor has already been made,
/// - [`Error::AlreadyEnabled`] when it is enabled with other settings,
/// - [`Error::Configuration`] when a Burn setting would send operations around the deterministic kernels,
/// - [`Error::Variable`] when `BURN_DETERMINISTIC_GUARANTEE` is neither of its values, or
///   `BURN_DETERMINISTIC_REFERENCE` no number,
/// - [`Error::ReferenceNeedsGpuToGpu`] when operations are to be checked under another guarantee,
/// - [`Error::Registry`] when Burn's registry does not take the route,
/// - [`Error::Observes`] after [`observe`](crate::observe()),
/// - [`Error::Record`] when a [recording](Determinism::record) cannot be written.
///
/// After an error nothing is enabled; of Burn's settings, the number of blocks it explores may have been fixed.
pub fn enable_op_determinism(settings: Determinism) -> Result<(), Error> {
    // Who runs the program decides, not who wrote it.
    let settings = match guarantee_of_environment()? {
        Some(guarantee) => settings.guarantee(guarantee),
        None => settings,
    };
    let settings = match check::of_environment()? {
        Some(every) => settings.check_against_reference(every),
        None => settings,
    };
    if settings.reference > 0 && settings.guarantee != Guarantee::GpuToGpu {
        return Err(Error::ReferenceNeedsGpuToGpu);
    }
    let installation = Installation::begin();
    match installation.enabled() {
        Some(enabled) if enabled == settings => return Ok(()),
        Some(enabled) => return Err(Error::AlreadyEnabled { enabled, requested: settings }),
        None => {}
    }
    device::check("enable_op_determinism", &Device::default())?;
    if installation.observes() {
        return Err(Error::Observes);
    }
    route::require_first()?;
    // `burn-deterministic verify` says where it reads.
    let recording = record::of_environment()?.or_else(|| settings.record.clone());
    let prepare = |(path, level)| record::prepare(path, level, true, environment_under(Some(&settings)));
    let recording = recording.map(prepare).transpose()?;
    route::install()?;
    if settings.reference > 0 {
        check::report_at_exit();
    }
    if let Some(recording) = recording {
        record::begin(recording);
    }
    installation.finish(settings);
    Ok(())
}

/// What `BURN_DETERMINISTIC_GUARANTEE` asks for.
fn guarantee_of_environment() -> Result<Option<Guarantee>, Error> {
    const NAME: &str = "BURN_DETERMINISTIC_GUARANTEE";
    let Some(value) = env::var_os(NAME).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.to_str() {
        Some("run-to-run") => Ok(Some(Guarantee::RunToRun)),
        Some("gpu-to-gpu") => Ok(Some(Guarantee::GpuToGpu)),
        _ => {
            let value = value.to_string_lossy().into_owned();
            Err(Error::Variable { name: NAME, value, expected: "`run-to-run` or `gpu-to-gpu`" })
        }
    }
}
