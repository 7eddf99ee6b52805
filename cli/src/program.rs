//! Running the program that a command is about.

use crate::output::print_bytes;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};

/// A program that runs. It is ended where nobody waits for its end any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing to a program that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program with these arguments and variables to its end, which must be a success. Its stdin is empty. Its stdout is
/// passed on as it comes, and returned.
///
/// # Errors
///
/// When it cannot be started, its stdout cannot be passed on, or it fails.
pub fn run(command: &[OsString], variables: &[(&str, OsString)]) -> Result<String> {
    let spelled = spelled(command);
    let Some((program, arguments)) = command.split_first() else { bail!("no command is given after `--`") };
    let mut child = Command::new(program);
    child.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    // The first run would take all of a stdin, and the others none.
    child.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = Running(child.spawn().with_context(|| format!("starting `{spelled}`"))?);
    let mut source = child.0.stdout.take().context("its stdout is a pipe")?;
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
        print_bytes(&buffer[..count])?;
    }
    let status = child.0.wait().with_context(|| format!("waiting for `{spelled}`"))?;
    if !status.success() {
        bail!("`{spelled}` failed: {status}");
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// A command as one would type it, nearly.
pub fn spelled(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
