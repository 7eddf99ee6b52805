//! `cargo xtask test`.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::{device, lint, skips::Skips, workspace};

/// Options of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Only the tests whose name contains this, and neither Clippy nor the packages by themselves
    filter: Option<String>,

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
    let environment = device::find()?;
    let skips = Skips::new()?;
    let mut tests = command(options);
    environment.apply(&mut tests);
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

fn command(options: &Options) -> Command {
    let mut command = workspace::cargo("test");
    // To the end even past a failure: the first broken binary hides nothing of the others.
    command.args(["--release", "--workspace", "--no-fail-fast", "--features", workspace::FEATURES]);
    if options.heavy {
        command.args(["--features", "heavy"]);
    }
    command.args(&options.filter);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_runs_with_the_same_features() {
        let all = "test --release --workspace --no-fail-fast --features wgpu,autotune";
        let spelled = |options: &Options| workspace::arguments(&command(options));
        assert_eq!(spelled(&Options { filter: None, heavy: false, strict: false }), all);
        let options = Options { filter: Some("matmul".to_owned()), heavy: true, strict: true };
        assert_eq!(spelled(&options), format!("{all} --features heavy matmul"));
    }
}
