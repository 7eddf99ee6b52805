//! `burn-deterministic info`.

use crate::output::print;
use anyhow::{Result, bail};
use burn_deterministic::{Environment, Guarantee, device_environment, devices, environment, require_guarantee};
use clap::Args;
use std::process::ExitCode;

/// Options of `burn-deterministic info`.
#[derive(Args)]
pub struct Options {}

/// Runtimes that can be compiled in.
const RUNTIMES: [(&str, bool); 6] = [
    ("cuda", cfg!(feature = "cuda")),
    ("rocm", cfg!(feature = "rocm")),
    ("metal", cfg!(feature = "metal")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("webgpu", cfg!(feature = "webgpu")),
    ("wgpu", cfg!(feature = "wgpu")),
];

/// Lists the devices of all runtimes that are compiled in. Each is opened.
pub fn run(_options: &Options) -> Result<ExitCode> {
    let runtimes: Vec<&str> = RUNTIMES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
    if runtimes.is_empty() {
        bail!(
            "no runtime is compiled in, so no device can be seen; install the command with one, for example `cargo install \
             burn-deterministic-cli --features cuda-nvrtc` for NVIDIA (or vulkan, rocm, metal, webgpu, wgpu)"
        );
    }
    let devices = devices();
    if devices.is_empty() {
        bail!(
            "no device is found by the runtimes that are compiled in ({}); install a GPU's driver, or a software Vulkan driver (on Debian and Ubuntu: \
             apt install mesa-vulkan-drivers libvulkan1)",
            runtimes.join(", ")
        );
    }
    let mut texts = Vec::new();
    for device in &devices {
        let environment = device_environment(device);
        // A device that cannot be opened has no runtime, and its arithmetic says why.
        let guarantees = match environment.get("runtime") {
            Some(_) => guarantees(|guarantee| require_guarantee(device, guarantee).map_err(|error| error.to_string())),
            None => guarantees(|_| Err(environment.get("arithmetic").unwrap_or("unknown").to_owned())),
        };
        texts.push(described(&environment, &guarantees));
    }
    // After the devices: it would open the default one, where none has been opened.
    print(format_args!("{}\n\n{}", versions(&environment()), texts.join("\n")))?;
    Ok(ExitCode::SUCCESS)
}

/// Each guarantee, and why it cannot be given.
fn guarantees(requires: impl Fn(Guarantee) -> Result<(), String>) -> Vec<(&'static str, String)> {
    let said = |guarantee| requires(guarantee).map_or_else(|error| format!("no: {error}"), |()| "yes".to_owned());
    vec![("run to run", said(Guarantee::RunToRun)), ("GPU to GPU", said(Guarantee::GpuToGpu))]
}

/// `burn-deterministic 0.1.0, burn 0.22.1, ..`.
fn versions(environment: &Environment) -> String {
    let version = |name: &str| format!("{name} {}", environment.get(name).unwrap_or("unknown"));
    let crates = ["burn-deterministic", "burn", "cubecl"].map(version).join(", ");
    let entry = |name: &str| environment.get(name).unwrap_or("unknown").to_owned();
    format!(
        "{crates}; {} for {}, {}; features {}",
        entry("compiler"),
        entry("target"),
        entry("profile"),
        entry("features")
    )
}

/// A device as text: its name, then a line for each entry.
fn described(environment: &Environment, guarantees: &[(&str, String)]) -> String {
    let mut lines = vec![environment.get("device").unwrap_or("a device without a name").to_owned()];
    for name in ["runtime", "driver", "nvrtc", "types", "arithmetic"] {
        lines.extend(environment.get(name).map(|value| format!("  {name:<12}{value}")));
    }
    lines.extend(guarantees.iter().map(|(name, value)| format!("  {name:<12}{value}")));
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_device_are_aligned() {
        let environment =
            Environment::from_iter([("device", "llvmpipe"), ("runtime", "wgpu<wgsl>"), ("driver", "Mesa 22.3.6")]);
        let text = described(&environment, &[("run to run", "yes".to_owned())]);
        assert_eq!(text, "llvmpipe\n  runtime     wgpu<wgsl>\n  driver      Mesa 22.3.6\n  run to run  yes\n");
    }

    #[test]
    fn a_device_that_cannot_give_a_guarantee_says_why() {
        let given = guarantees(|guarantee| match guarantee {
            Guarantee::GpuToGpu => Err("`a / b` is another".to_owned()),
            _ => Ok(()),
        });
        assert_eq!(given, [("run to run", "yes".to_owned()), ("GPU to GPU", "no: `a / b` is another".to_owned())]);
    }
}
