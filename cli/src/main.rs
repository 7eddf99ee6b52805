//! `burn-deterministic`: whether a program gives the same bits in each run, and if not, which operation is the first
//! that does not.

mod diff;
#[cfg(test)]
mod documentation;
mod info;
#[cfg(test)]
#[allow(dead_code, reason = "each package's tests read a part of what it reads")]
#[path = "../../xtask/src/markdown.rs"]
mod markdown;
mod output;
mod program;
mod sweep;
mod verify;
mod weights;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Whether a program gives the same bits in each run, and which operation is the first that does not.
#[derive(Parser)]
#[command(name = "burn-deterministic", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program several times, and find the first operation whose result differs
    Verify(verify::Options),
    /// Compare two recordings: the first difference, its operands, and how it spreads
    Diff(diff::Options),
    /// Compare two files of weights, tensor by tensor
    Weights(weights::Options),
    /// Show devices, drivers, and which guarantee each can give
    Info(info::Options),
    /// Run a program with many seeds, and show how much its metrics vary
    Sweep(sweep::Options),
}

/// Exit status: 0 where nothing differs, 1 where something does, 2 where the command could not be carried out.
fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Verify(options) => verify::run(&options),
        Command::Diff(options) => diff::run(&options),
        Command::Weights(options) => weights::run(&options),
        Command::Info(options) => info::run(&options),
        Command::Sweep(options) => sweep::run(&options),
    };
    result.unwrap_or_else(|error| {
        if !output::is_closed_pipe(&error) {
            output::note(format_args!("error: {error:#}"));
        }
        ExitCode::from(2)
    })
}
