//! `cargo xtask test`.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::device::{self, Device, Wanted};
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

/// Checks the formatting, which takes a second, then runs every test, all in one profile and one feature set; then Clippy,
/// and a check of each package by itself, which compile the dependencies anew.
pub fn run(options: &Options) -> Result<ExitCode> {
    lint::check_format()?;
    let device = device::find(options.wanted)?;
    let skips = Skips::new()?;
    let mut tests = command(options, &device);
    device.environment.apply(&mut tests);
    skips.apply(&mut tests, options.strict);
    let mut is_good = workspace::succeeds(&mut tests)?;
    skips.print()?;
    if options.filter.is_none() {
        // To the end even past a failure, which hides nothing of the others.
        is_good &= lint::clippy()?;
        is_good &= lint::packages()?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn command(options: &Options, device: &Device) -> Command {
    let mut command = device.cargo("test");
    // To the end even past a failure: the first broken binary hides nothing of the others.
    command.args(["--release", "--workspace", "--no-fail-fast"]);
    if options.heavy {
        command.args(["--features", "heavy"]);
    }
    command.args(&options.filter);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::runtime::Runtime;

    #[test]
    fn everything_runs_with_the_same_features() {
        let device = Device::new(Runtime::Wgpu, Environment::default());
        let all = "test --features wgpu,autotune --release --workspace --no-fail-fast";
        let spelled = |options: &Options| workspace::arguments(&command(options, &device));
        let options = Options { filter: None, wanted: Wanted::default(), heavy: false, strict: false };
        assert_eq!(spelled(&options), all);
        let options = Options { filter: Some("matmul".to_owned()), heavy: true, strict: true, ..options };
        assert_eq!(spelled(&options), format!("{all} --features heavy matmul"));
    }
}
