//! `cargo xtask`: the commands of the README.
//!
//! Each command that computes finds a device first (module `device`), installing a software driver where the
//! machine has none, and hands it to its child processes through environment variables.

mod apt;
mod bench;
mod bundle;
mod device;
#[cfg(test)]
mod documentation;
mod emulator;
mod environment;
mod inspect;
mod jobs;
mod lint;
mod llvm;
#[cfg(test)]
#[allow(dead_code, reason = "other packages' tests use the rest")]
mod markdown;
#[cfg(test)]
mod publishing;
mod record;
mod remedy;
mod runtime;
#[cfg(test)]
#[path = "../../kernels/tests/skip.rs"]
mod skip;
mod skips;
mod swiftshader;
mod system;
mod test;
mod train;
mod vulkan;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Train, test and measure burn-deterministic")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Train an example in separate processes and say whether the weights agree
    Train(train::Options),
    /// Check the formatting, run every test, and check by itself each package that needs neither CubeCL nor Burn
    Test(test::Options),
    /// Check the formatting, run Clippy, warnings being errors, and check by itself each package that needs no Burn
    Lint(lint::Options),
    /// Run the benchmarks
    Bench(bench::Options),
    /// Make a folder of programs that tests and measures on a GPU machine without Rust
    Bundle(bundle::Options),
    /// Add the digests of a bundle's report to those of the repository, and print the rows for the documentation
    Record(record::Options),
    /// Compile every CUDA kernel for real GPUs, which needs none, and report registers, spills, loads and bounds
    Inspect(inspect::Options),
    /// Print the device's environment variables, for `eval "$(cargo xtask driver)"`
    Driver(device::Options),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Task::Train(options) => train::run(&options),
        Task::Test(options) => test::run(&options),
        Task::Lint(options) => lint::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Bundle(options) => bundle::run(&options),
        Task::Record(options) => record::run(&options),
        Task::Inspect(options) => inspect::run(&options),
        Task::Driver(options) => device::run(&options),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
