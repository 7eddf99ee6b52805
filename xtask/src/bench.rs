//! `cargo xtask bench`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::device::{self, Wanted};
use crate::workspace;

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub struct Options {
    /// Only the benchmarks whose name contains this; `growth` times ours on ever more elements, `examples` trains each example on both
    /// sides
    filter: Option<String>,

    #[command(flatten)]
    wanted: Wanted,

    /// More arguments for the benchmarks, after `--`
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Runs the benchmarks with the features that the tests have.
pub fn run(options: &Options) -> Result<ExitCode> {
    let device = device::find(options.wanted)?;
    let mut benches = device.cargo("bench");
    benches.args(["--bench", "*"]);
    benches.args(&options.filter);
    benches.arg("--").args(&options.arguments);
    let [(_, environment), ..] = &device.schedules()[..] else { unreachable!("there is one") };
    environment.apply(&mut benches);
    workspace::exit_code_of(&mut benches)
}
