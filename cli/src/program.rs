//! Running the program that a command is about.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Stdio};

/// How a program ended, and what it printed.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
}

/// Runs a program with these arguments and variables to its end. Its stdout is passed on as it comes, and returned.
///
/// # Errors
///
/// When it cannot be started, or its stdout cannot be passed on.
pub fn run(command: &[OsString], variables: &[(&str, OsString)]) -> Result<Ended> {
    let spelled = spelled(command);
    let Some((program, arguments)) = command.split_first() else { bail!("no command is given after `--`") };
    let mut child = Command::new(program);
    child.args(arguments).envs(variables.iter().map(|(name, value)| (name, value))).stdout(Stdio::piped());
    let mut child = child.spawn().with_context(|| format!("starting `{spelled}`"))?;
    let mut source = child.stdout.take().context("its stdout is a pipe")?;
    let mut stdout = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).with_context(|| format!("reading what `{spelled}` prints")),
        };
        stdout.extend_from_slice(&buffer[..count]);
        let mut onward = io::stdout().lock();
        onward.write_all(&buffer[..count]).and_then(|()| onward.flush()).context("passing output on")?;
    }
    let status = child.wait().with_context(|| format!("waiting for `{spelled}`"))?;
    Ok(Ended { status, stdout: String::from_utf8_lossy(&stdout).into_owned() })
}

/// As [`run`], for a program that must succeed.
///
/// # Errors
///
/// As [`run`], and when it does not succeed.
pub fn succeed(command: &[OsString], variables: &[(&str, OsString)]) -> Result<String> {
    let ended = run(command, variables)?;
    if !ended.status.success() {
        bail!("`{}` failed: {}", spelled(command), ended.status);
    }
    Ok(ended.stdout)
}

/// A command as one would type it, nearly.
pub fn spelled(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
