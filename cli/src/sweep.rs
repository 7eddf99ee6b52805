//! `burn-deterministic sweep`.

use anyhow::{Result, bail};
use clap::Args;
use std::process::ExitCode;

/// Options of `burn-deterministic sweep`.
#[derive(Args)]
pub struct Options {}

pub fn run(_options: &Options) -> Result<ExitCode> {
    bail!("not written yet")
}
