//! Running the program that a command is about.

use crate::output::print_bytes;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often a program that prints nothing is asked whether it has ended.
const INTERVAL: Duration = Duration::from_millis(20);

/// How long what is left in a pipe is read where a process that the program has left holds the pipe open.
const REST: Duration = Duration::from_secs(1);

/// A program that runs. It is ended where nobody waits for its end any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing to a program that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program with these arguments and variables to its end, which must be a success. Its stdin is empty. What it
/// prints until its end is passed on as it comes, and returned; processes that it leaves are not waited for.
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
    let chunks = chunks(child.0.stdout.take().context("its stdout is a pipe")?);
    let (mut stdout, mut ended) = (Vec::new(), None);
    loop {
        match chunks.recv_timeout(INTERVAL) {
            Ok(chunk) => {
                let chunk = chunk.with_context(|| format!("reading what `{spelled}` prints"))?;
                print_bytes(&chunk)?;
                stdout.extend(chunk);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if ended.is_none() && child.0.try_wait().with_context(|| format!("waiting for `{spelled}`"))?.is_some() {
            ended = Some(Instant::now());
        }
        if ended.is_some_and(|ended| ended.elapsed() >= REST) {
            break;
        }
    }
    let status = child.0.wait().with_context(|| format!("waiting for `{spelled}`"))?;
    if !status.success() {
        bail!("`{spelled}` failed: {status}");
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// What comes from a pipe until its end, read by a thread of its own: the end does not come as long as any process holds the
/// pipe.
fn chunks(mut pipe: impl Read + Send + 'static) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            let chunk = match pipe.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => Ok(buffer[..count].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = chunk.is_err();
            if sender.send(chunk).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

/// A command as one would type it, nearly.
pub fn spelled(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
