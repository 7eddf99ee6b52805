//! Running the program that a command is about.

use crate::output::print_bytes;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::NamedTempFile;

/// How long what a program prints waits to be passed on, at most.
const INTERVAL: Duration = Duration::from_millis(20);

/// A program that runs. It is ended where nobody waits for its end any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing to a program that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program with these arguments and variables to its end, which must be a success. Its stdin is empty. What it has
/// printed by then is passed on as it comes, and returned; processes that it leaves are not waited for.
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
    // A file has an end, where a pipe has none as long as a process that the program has left holds it.
    let file = NamedTempFile::new().context("creating a file for what the program prints")?;
    let mut source = file.reopen().context("opening the file of what the program prints")?;
    child.stdin(Stdio::null()).stdout(file.into_file());
    let mut child = Running(child.spawn().with_context(|| format!("starting `{spelled}`"))?);
    let mut stdout = Vec::new();
    let status = loop {
        let status = child.0.try_wait().with_context(|| format!("waiting for `{spelled}`"))?;
        let begin = stdout.len();
        source.read_to_end(&mut stdout).with_context(|| format!("reading what `{spelled}` prints"))?;
        print_bytes(&stdout[begin..])?;
        match status {
            Some(status) => break status,
            None => thread::sleep(INTERVAL),
        }
    };
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
