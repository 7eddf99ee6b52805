//! `burn-deterministic diff`.

use crate::output::{print, write};
use anyhow::Result;
use burn_deterministic_recording::diff::{Cause, Comparison, compare};
use burn_deterministic_recording::report::html;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `burn-deterministic diff`.
///
/// A recording is what a program writes with `BURN_DETERMINISTIC_RECORD=FILE` in its environment.
#[derive(Args)]
pub struct Options {
    /// The first recording
    first: PathBuf,

    /// The second recording
    second: PathBuf,

    /// Write a page with a picture of steps and operations, which needs no other file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Compares two recordings: status 0 where nothing differs as far as both go, 1 where something does, 2 where nothing
/// could be compared.
pub fn run(options: &Options) -> Result<ExitCode> {
    let comparison = compare(&options.first, &options.second)?;
    print(&comparison)?;
    if comparison.difference().is_some_and(|difference| difference.cause == Cause::NotRecorded) {
        print("\n`burn-deterministic verify` runs a program with its operations recorded where its weights differ\n")?;
    }
    if let Some(path) = &options.html {
        write_page(&comparison, path)?;
    }
    Ok(status(&comparison))
}

/// Writes the page of a comparison, and the folders above it.
pub fn write_page(comparison: &Comparison, path: &Path) -> Result<()> {
    write(path, &html(comparison))?;
    print(format_args!("\npage    {}\n", path.display()))
}

fn status(comparison: &Comparison) -> ExitCode {
    match comparison.same() {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => ExitCode::from(2),
    }
}
