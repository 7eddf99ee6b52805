//! `burn-deterministic verify`.

use anyhow::{Result, bail};
use clap::Args;
use std::process::ExitCode;

/// Options of `burn-deterministic verify`.
#[derive(Args)]
pub struct Options {}

pub fn run(_options: &Options) -> Result<ExitCode> {
    bail!("not written yet")
}
