//! Commands side by side: what each prints goes to a file, and is shown when it has ended.

use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::workspace::spelled;

/// Commands that run one after another, to the end even past a failure.
pub struct Job {
    name: String,
    commands: Vec<Command>,
}

impl Job {
    /// A job; its name is that of its file.
    pub fn new(name: impl Into<String>, commands: Vec<Command>) -> Self {
        Self { name: name.into(), commands }
    }

    /// Runs it, with what its commands print in `file`, and says whether all succeeded.
    fn run(&mut self, file: &Path) -> Result<bool> {
        let log = File::create(file).with_context(|| format!("creating {}", file.display()))?;
        let copy = || log.try_clone().with_context(|| format!("opening {}", file.display()));
        let mut is_good = true;
        for command in &mut self.commands {
            command.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
            let status = command.status().with_context(|| format!("starting {}", spelled(command)))?;
            is_good &= status.success();
        }
        Ok(is_good)
    }
}

/// Runs jobs in their order, as many at a time as there are cores, with their files in `folder`. Says whether all succeeded,
/// and at the end which did not.
///
/// # Errors
///
/// A command cannot be started, or a file not be written; the other jobs run to their ends.
pub fn run(jobs: Vec<Job>, folder: &Path) -> Result<bool> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let at_once = thread::available_parallelism().map_or(2, NonZero::get).min(jobs.len());
    let queue = Mutex::new(jobs.into_iter());
    let ended = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(|| work(&queue, folder))).collect();
        let ended = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        ended.collect::<Vec<_>>()
    });
    let mut failed = Vec::new();
    for names in ended {
        failed.extend(names?);
    }
    for name in &failed {
        eprintln!("failed: {name}");
    }
    Ok(failed.is_empty())
}

/// Runs the jobs that are left, and returns the names of those that failed.
fn work(queue: &Mutex<impl Iterator<Item = Job>>, folder: &Path) -> Result<Vec<String>> {
    let mut failed = Vec::new();
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    while let Some(mut job) = next() {
        eprintln!("started: {}", job.name);
        let started = Instant::now();
        let file = folder.join(format!("{}.txt", job.name.replace([' ', ',', ':'], "-")));
        let is_good = job.run(&file).with_context(|| job.name.clone())?;
        let how = if is_good { "ended" } else { "FAILED" };
        let printed = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        // Under one lock, so that two jobs do not mix their lines.
        let mut out = io::stdout().lock();
        writeln!(out, "\n{}: {how} after {} s", job.name, started.elapsed().as_secs())
            .and_then(|()| out.write_all(&printed))
            .and_then(|()| out.flush())
            .context("passing output on")?;
        if !is_good {
            failed.push(job.name);
        }
    }
    Ok(failed)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_failure_stops_nothing_and_is_told() {
        let folder = std::env::temp_dir().join(format!("xtask-{}-jobs", std::process::id()));
        let commands = vec![shell("echo one; exit 3"), shell("echo two >&2")];
        let jobs = vec![Job::new("first, and bad", commands), Job::new("second", vec![shell("echo three")])];
        assert!(!run(jobs, &folder).expect("there is a shell"));
        let printed = |name: &str| fs::read_to_string(folder.join(name)).expect("the job ran");
        assert_eq!(printed("first--and-bad.txt"), "one\ntwo\n");
        assert_eq!(printed("second.txt"), "three\n");
        assert!(run(vec![Job::new("second", vec![shell("true")])], &folder).expect("there is a shell"));
        let missing = run(vec![Job::new("third", vec![Command::new("/no/such")])], &folder);
        assert!(format!("{:#}", missing.expect_err("it is not there")).contains("/no/such"));
        let _ = fs::remove_dir_all(&folder);
    }
}
