//! `burn-deterministic weights`.

mod comparison;
mod file;

use crate::output::print;
use anyhow::{Result, bail};
use clap::Args;
use comparison::Comparison;
use file::{Entry, Saved};
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `burn-deterministic weights`.
///
/// Each file is a checkpoint of burn-deterministic, a burnpack (`.bpk`) or a safetensors file, or a folder of checkpoints,
/// of which the newest is taken.
#[derive(Args)]
pub struct Options {
    /// The first file
    a: PathBuf,

    /// The second file
    b: PathBuf,

    /// The module to compare, where one file is a checkpoint of several modules and the other is not a checkpoint
    #[arg(long)]
    module: Option<String>,

    /// Name only what differs
    #[arg(long, short)]
    quiet: bool,
}

/// Compares two files, tensor by tensor: status 0 where all bits are equal, 1 where some differ.
pub fn run(options: &Options) -> Result<ExitCode> {
    let [a, b] = [file::read(&options.a)?, file::read(&options.b)?];
    print(format_args!("A: {}\nB: {}\n{}", a.description, b.description, environments(&a, &b)))?;
    let (a, b) = aligned(a, b, options.module.as_deref())?;
    let comparison = Comparison::of(a, b);
    print(comparison.text(options.quiet))?;
    Ok(if comparison.is_equal() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// In what the environments of the files differ, where both have one. That alone makes no difference in weights.
fn environments(a: &Saved, b: &Saved) -> String {
    let text = match (&a.environment, &b.environment) {
        (Some(a), Some(b)) => match &a.differences(b)[..] {
            [] => format!("equal, {}", a.digest()),
            differences => differences.iter().map(|difference| format!("\n  {difference}")).collect(),
        },
        (Some(_), None) => "known of A only".to_owned(),
        (None, Some(_)) => "known of B only".to_owned(),
        (None, None) => return String::new(),
    };
    format!("environment: {text}\n")
}

/// The entries to compare. Checkpoints are compared whole; a checkpoint and another file, module against file.
fn aligned(a: Saved, b: Saved, module: Option<&str>) -> Result<(Vec<Entry>, Vec<Entry>)> {
    if a.is_checkpoint == b.is_checkpoint {
        if let Some(module) = module {
            bail!("--module {module} is for a checkpoint and a file of another kind; leave it out");
        }
        return match a.kind == b.kind {
            true => Ok((a.entries, b.entries)),
            // Their metadata name the formats.
            false => Ok((tensors(a.entries), tensors(b.entries))),
        };
    }
    let alone = |saved: Saved| if saved.is_checkpoint { saved.module(module) } else { Ok(tensors(saved.entries)) };
    Ok((alone(a)?, alone(b)?))
}

fn tensors(entries: Vec<Entry>) -> Vec<Entry> {
    entries.into_iter().filter(|entry| entry.is_tensor()).collect()
}
