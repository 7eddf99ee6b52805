//! `cargo xtask lint`: checks that read the sources and compute nothing.

use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::workspace;

/// Checks the formatting, then runs Clippy on every target. Clippy compiles the dependencies anew, for which it is
/// no part of `cargo xtask test`.
pub fn run() -> Result<ExitCode> {
    check_format()?;
    let mut clippy = workspace::cargo("clippy");
    clippy.args(["--release", "--workspace", "--all-targets", "--features", workspace::FEATURES]);
    clippy.args(["--", "--deny", "warnings"]);
    workspace::exit_code_of(&mut clippy)
}

/// Checks the formatting. Rust's minimal installation has no formatter; that is said, and is no failure.
pub fn check_format() -> Result<()> {
    let mut version = workspace::cargo("fmt");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        eprintln!("note: formatting not checked, `rustup component add rustfmt` would");
        return Ok(());
    }
    let mut check = workspace::cargo("fmt");
    workspace::succeed(check.args(["--all", "--check"])).context("`cargo fmt` would change the sources")
}
