//! `cargo xtask test`.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::device::{self, Device, Wanted};
use crate::runtime::{HAS_EMULATOR, Runtime};
use crate::{inspect, lint, skips::Skips, workspace};

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

/// Tests of the suite that run on the emulator too, where the user has not chosen a device.
const EMULATED: [&str; 3] = ["batch_invariance::", "order::", "repeatability::run_to_run"];

/// Tests of the suite that run there under [`SCHEDULES`]: the short trainings of the examples, against their goldens.
const SHUFFLED: [&str; 1] = ["ends_in_the_same_weights"];

/// Orders of blocks and threads: ascending, and shuffled by two seeds.
const SCHEDULES: u32 = 3;

/// Tests of kernels that run there with every access to memory checked; all of them with `--heavy`.
const CHECKED: [&str; 5] = ["gather::", "index_check::", "matmul::strides", "reduce::edges", "scan::"];

/// Checks the formatting, which takes a second, then runs every test, all in one profile and one feature set; then Clippy,
/// and a check of each package by itself, which compile the dependencies anew.
///
/// Where the user has not chosen a device and a software driver is found, the kernels' tests and a part of the suite run on
/// the CUDA emulator too. All tests include that of `cargo xtask inspect`, whose compiler is fetched for it.
pub fn run(options: &Options) -> Result<ExitCode> {
    lint::check_format()?;
    let device = device::find(options.wanted)?;
    if options.filter.is_none() {
        inspect::prepare_tests();
    }
    let skips = Skips::new()?;
    let mut is_good = run_on(&device, vec![command(options, &device)], &skips, options)?;
    if options.filter.is_none() && options.wanted.is_any() && device.runtime() == Runtime::Wgpu && HAS_EMULATOR {
        let emulator = device::find(Wanted::device(Runtime::Emulator))?;
        is_good &= run_on(&emulator, emulated(&emulator, options.heavy), &skips, options)?;
        let shuffled = emulator.under(SCHEDULES);
        is_good &= run_on(&shuffled, vec![suite(&shuffled, &SHUFFLED)], &skips, options)?;
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

/// The kernels' tests, some of them again with memory checked, and [`EMULATED`] of the suite.
fn emulated(device: &Device, heavy: bool) -> Vec<Command> {
    let kernels = || {
        let mut kernels = tests(device);
        kernels.args(["--test", "kernels", "--"]);
        kernels
    };
    let mut checked = kernels();
    checked.env("CUDA_EMULATOR_CHECK", "1");
    if !heavy {
        checked.args(CHECKED);
    }
    vec![kernels(), checked, suite(device, &EMULATED)]
}

/// Tests of the suite.
fn suite(device: &Device, filters: &[&str]) -> Command {
    let mut suite = tests(device);
    suite.args(["--test", "suite", "--"]).args(filters);
    suite
}

fn tests(device: &Device) -> Command {
    let mut command = device.cargo("test");
    // To the end even past a failure: the first broken binary hides nothing of the others.
    command.args(["--release", "--no-fail-fast"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;

    #[test]
    fn everything_runs_with_the_same_features() {
        let device = Device::new(Runtime::Vulkan, Environment::default());
        let all = "test --workspace --features vulkan,autotune --release --no-fail-fast";
        let spelled = |options: &Options| workspace::arguments(&command(options, &device));
        let options = Options { filter: None, wanted: Wanted::device(Runtime::Vulkan), heavy: false, strict: false };
        assert_eq!(spelled(&options), all);
        let options = Options { filter: Some("matmul".to_owned()), heavy: true, strict: true, ..options };
        assert_eq!(spelled(&options), format!("{all} --features heavy matmul"));
    }
}
