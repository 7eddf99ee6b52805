//! `cargo xtask lint`: checks that read the sources and compute nothing.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::workspace;

/// What Clippy reads: a runtime that compiles everywhere.
const FEATURES: &str = "wgpu,autotune";

/// Checks the formatting, runs Clippy on every target, and checks each package by itself.
pub fn run() -> Result<ExitCode> {
    check_format()?;
    let mut is_good = true;
    for command in &mut commands() {
        is_good &= workspace::succeeds(command)?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Clippy on every target, warnings being errors, and a check of each package by itself. Rust's minimal installation has no
/// Clippy; that is said, and is no failure.
pub fn commands() -> Vec<Command> {
    let has_clippy = is_installed("clippy");
    if !has_clippy {
        eprintln!("note: Clippy not run, `rustup component add clippy` would install it");
    }
    has_clippy.then(clippy).into_iter().chain(packages()).collect()
}

fn clippy() -> Command {
    let mut clippy = workspace::cargo("clippy");
    clippy.args(["--release", "--workspace", "--all-targets", "--features", FEATURES]);
    clippy.args(["--", "--deny", "warnings"]);
    clippy
}

/// Packages whose dependencies have fewer features when they are built without the rest of the workspace.
const ALONE: [&[&str]; 1] = [&["--package", "burn-deterministic-kernels", "--features", "wgpu", "--all-targets"]];

/// A check that each package compiles by itself: in the workspace it has the features that the others ask for.
fn packages() -> impl Iterator<Item = Command> {
    ALONE.into_iter().map(|arguments| {
        let mut check = workspace::cargo("check");
        check.arg("--release").args(arguments);
        check
    })
}

/// Checks the formatting. Rust's minimal installation has no formatter; that is said, and is no failure.
pub fn check_format() -> Result<()> {
    if !is_installed("fmt") {
        eprintln!("note: formatting not checked, `rustup component add rustfmt` would install what does");
        return Ok(());
    }
    let mut check = workspace::cargo("fmt");
    workspace::succeed(check.args(["--all", "--check"])).context("`cargo fmt` would change the sources")
}

fn is_installed(subcommand: &str) -> bool {
    let mut version = workspace::cargo(subcommand);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clippy_reads_all_that_the_tests_compile() {
        let all = "clippy --release --workspace --all-targets --features wgpu,autotune -- --deny warnings";
        assert_eq!(workspace::arguments(&clippy()), all);
    }
}
