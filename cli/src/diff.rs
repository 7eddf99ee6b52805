//! `burn-deterministic diff`.

use anyhow::{Result, bail};
use clap::Args;
use std::process::ExitCode;

/// Options of `burn-deterministic diff`.
#[derive(Args)]
pub struct Options {}

pub fn run(_options: &Options) -> Result<ExitCode> {
    bail!("not written yet")
}
