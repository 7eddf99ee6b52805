//! `cargo xtask test`.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::device::{self, Device, Wanted};
use crate::runtime::{HAS_EMULATOR, Runtime};
use crate::{lint, skips::Skips, workspace};

/// Options of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Only the tests whose name contains this, and neither Clippy nor the packages by themselves
    filter: Option<String>,

    #[command(flatten)]
    wanted: Wanted,

    /// Also the tests that take long
    #[arg(long)]
    heavy: bool,

    /// A test that the device or the system cannot run fails
    #[arg(long)]
    strict: bool,
}

/// What of the suite runs on the emulator too, where the user has not chosen a device: the kernels' tests run all.
const EMULATED: [&str; 2] = ["order::", "repeatability::run_to_run"];

/// Checks the formatting, which takes a second, then runs every test, all in one profile and one feature set; then Clippy,
/// and a check of each package by itself, which compile the dependencies anew.
///
/// Where the user has not chosen a device and a software driver is found, a part of the tests runs on the CUDA emulator too.
pub fn run(options: &Options) -> Result<ExitCode> {
    lint::check_format()?;
    let device = device::find(options.wanted)?;
    let skips = Skips::new()?;
    let mut is_good = run_on(&device, vec![command(options, &device)], &skips, options)?;
    if options.filter.is_none() && options.wanted.is_any() && device.runtime() == Runtime::Wgpu && HAS_EMULATOR {
        let emulator = device::find(Wanted::device(Runtime::Emulator))?;
        is_good &= run_on(&emulator, emulated(&emulator), &skips, options)?;
    }
    skips.print()?;
    if options.filter.is_none() {
        // To the end even past a failure, which hides nothing of the others.
        is_good &= lint::clippy()?;
        is_good &= lint::packages()?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs commands under each schedule of a device, to the end even past a failure.
fn run_on(device: &Device, mut commands: Vec<Command>, skips: &Skips, options: &Options) -> Result<bool> {
    let mut is_good = true;
    for (schedule, environment) in device.schedules() {
        if let Some(name) = schedule {
            eprintln!("blocks and threads {name}");
        }
        for tests in &mut commands {
            environment.apply(tests);
            skips.apply(tests, options.strict);
            is_good &= workspace::succeeds(tests)?;
        }
    }
    Ok(is_good)
}

fn command(options: &Options, device: &Device) -> Command {
    let mut command = tests(device);
    if options.heavy {
        command.args(["--features", "heavy"]);
    }
    command.args(&options.filter);
    command
}

/// The kernels' tests, and [`EMULATED`] of the suite.
fn emulated(device: &Device) -> Vec<Command> {
    let (mut kernels, mut suite) = (tests(device), tests(device));
    kernels.args(["--test", "kernels"]);
    suite.args(["--test", "suite", "--"]).args(EMULATED);
    vec![kernels, suite]
}

fn tests(device: &Device) -> Command {
    let mut command = device.cargo("test");
    // To the end even past a failure: the first broken binary hides nothing of the others.
    command.args(["--release", "--workspace", "--no-fail-fast"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    #[test]
    fn everything_runs_with_the_same_features() {
        let device = Device::new(Runtime::Vulkan, Environment::default());
        let all = "test --features vulkan,autotune --release --workspace --no-fail-fast";
        let spelled = |options: &Options| workspace::arguments(&command(options, &device));
        let options = Options { filter: None, wanted: Wanted::device(Runtime::Vulkan), heavy: false, strict: false };
        assert_eq!(spelled(&options), all);
        let options = Options { filter: Some("matmul".to_owned()), heavy: true, strict: true, ..options };
        assert_eq!(spelled(&options), format!("{all} --features heavy matmul"));
    }
}
