//! `cargo xtask bench`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::{device, workspace};

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub struct Options {
    /// Only the benchmarks whose name contains this; `growth` times ours on ever more elements
    filter: Option<String>,

    /// More arguments for the benchmarks, after `--`
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Runs the benchmarks with the features that the tests have.
pub fn run(options: &Options) -> Result<ExitCode> {
    let environment = device::find()?;
    let mut benches = workspace::cargo("bench");
    benches.args(["--bench", "*", "--features", workspace::FEATURES]);
    benches.args(&options.filter);
    benches.arg("--").args(&options.arguments);
    environment.apply(&mut benches);
    workspace::exit_code_of(&mut benches)
}
