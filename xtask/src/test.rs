//! `cargo xtask test`.

use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::{device, lint, workspace};

/// Options of `cargo xtask test`.
#[derive(Args)]
pub struct Options {
    /// Only the tests whose name contains this
    filter: Option<String>,

    /// Also the tests that take long
    #[arg(long)]
    heavy: bool,
}

/// Checks the formatting, which takes a second, then runs every test, all in one profile and one feature set.
pub fn run(options: &Options) -> Result<ExitCode> {
    lint::check_format()?;
    let environment = device::find()?;
    let mut tests = command(options);
    environment.apply(&mut tests);
    workspace::exit_code_of(&mut tests)
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

    fn spelled(options: &Options) -> String {
        let arguments: Vec<_> = command(options).get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        arguments.join(" ")
    }

    #[test]
    fn everything_runs_with_the_same_features() {
        let all = "test --release --workspace --no-fail-fast --features wgpu,autotune";
        assert_eq!(spelled(&Options { filter: None, heavy: false }), all);
        let options = Options { filter: Some("matmul".to_owned()), heavy: true };
        assert_eq!(spelled(&options), format!("{all} --features heavy matmul"));
    }
}
