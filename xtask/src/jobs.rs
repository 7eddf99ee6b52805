//! Commands side by side: what each prints goes to a file, and is shown when it has ended. What failed is returned with the
//! lines that say why, to be told again at the end.

use std::fmt;
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

    /// Runs it, with what its commands print in `file`, and returns those that failed, with their status.
    fn run(&mut self, file: &Path) -> Result<Vec<String>> {
        let log = File::create(file).with_context(|| format!("creating {}", file.display()))?;
        let copy = || log.try_clone().with_context(|| format!("opening {}", file.display()));
        let mut failed = Vec::new();
        for command in &mut self.commands {
            command.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
            let status = command.status().with_context(|| format!("starting {}", spelled(command)))?;
            if !status.success() {
                failed.push(format!("{}: {status}", spelled(command)));
            }
        }
        Ok(failed)
    }
}

/// A job that failed.
#[derive(Debug)]
pub struct Failure {
    job: String,
    /// The commands that failed, with their status.
    commands: Vec<String>,
    /// What says why, of all that the job printed.
    excerpt: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "failed: {}", self.job)?;
        for command in &self.commands {
            writeln!(f, "  {command}")?;
        }
        write!(f, "{}", self.excerpt)
    }
}

/// Lines of a test, or of the end of a job that names no test, that [`excerpt`] keeps.
const LINES: usize = 40;

/// What the tests that failed printed, by their `---- name stdout ----`; without such the end of all that was printed.
fn excerpt(printed: &str) -> String {
    let mut kept = String::new();
    let mut left = 0;
    for line in printed.lines() {
        if line.starts_with("---- ") && line.ends_with(" ----") {
            left = LINES;
        } else if line == "failures:" || line.starts_with("test result: ") {
            left = 0;
        }
        if left > 0 {
            left -= 1;
            kept += &format!("{line}\n");
        }
    }
    if kept.is_empty() {
        let lines: Vec<_> = printed.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].iter().for_each(|line| kept += &format!("{line}\n"));
    }
    kept
}

/// Runs jobs in their order, as many at a time as there are cores, with their files in `folder`; returns those that failed.
///
/// # Errors
///
/// A command cannot be started, or a file not be written; the other jobs run to their ends.
pub fn run(jobs: Vec<Job>, folder: &Path) -> Result<Vec<Failure>> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let at_once = thread::available_parallelism().map_or(2, NonZero::get).min(jobs.len());
    let queue = Mutex::new(jobs.into_iter());
    let ended = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(|| work(&queue, folder))).collect();
        let ended = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        ended.collect::<Vec<_>>()
    });
    let mut failed = Vec::new();
    for failures in ended {
        failed.extend(failures?);
    }
    Ok(failed)
}

/// Runs the jobs that are left, and returns those that failed.
fn work(queue: &Mutex<impl Iterator<Item = Job>>, folder: &Path) -> Result<Vec<Failure>> {
    let mut failed = Vec::new();
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    while let Some(mut job) = next() {
        eprintln!("started: {}", job.name);
        let started = Instant::now();
        let file = folder.join(format!("{}.txt", job.name.replace([' ', ',', ':'], "-")));
        let commands = job.run(&file).with_context(|| job.name.clone())?;
        let how = if commands.is_empty() { "ended" } else { "FAILED" };
        let printed = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        // Under one lock, so that two jobs do not mix their lines.
        let mut out = io::stdout().lock();
        writeln!(out, "\n{}: {how} after {} s", job.name, started.elapsed().as_secs())
            .and_then(|()| out.write_all(&printed))
            .and_then(|()| out.flush())
            .context("passing output on")?;
        if !commands.is_empty() {
            let excerpt = excerpt(&String::from_utf8_lossy(&printed));
            failed.push(Failure { job: job.name, commands, excerpt });
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
        let failed = run(jobs, &folder).expect("there is a shell");
        assert_eq!(failed.iter().map(|failure| &*failure.job).collect::<Vec<_>>(), ["first, and bad"]);
        let printed = |name: &str| fs::read_to_string(folder.join(name)).expect("the job ran");
        assert_eq!(printed("first--and-bad.txt"), "one\ntwo\n");
        assert_eq!(printed("second.txt"), "three\n");
        assert!(run(vec![Job::new("second", vec![shell("true")])], &folder).expect("there is a shell").is_empty());
        let missing = run(vec![Job::new("third", vec![Command::new("/no/such")])], &folder);
        assert!(format!("{:#}", missing.expect_err("it is not there")).contains("/no/such"));
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn a_failure_is_told_with_its_command_and_the_tests_that_failed() {
        let folder = std::env::temp_dir().join(format!("xtask-{}-excerpts", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let script = "echo test a ... ok; echo; echo failures:; echo; echo ---- b stdout ----; echo off by one; echo; \
                      echo failures:; echo '    b'; echo; echo test result: FAILED.; exit 101";
        let queue = Mutex::new(vec![Job::new("tests", vec![shell(script)])].into_iter());
        let failed = work(&queue, &folder).expect("there is a shell");
        let told = failed[0].to_string();
        assert!(told.starts_with("failed: tests\n  sh -c "), "{told}");
        assert!(told.ends_with("exit status: 101\n---- b stdout ----\noff by one\n\n"), "{told}");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn of_a_job_that_names_no_test_the_end_is_told() {
        let printed: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let kept = excerpt(&printed);
        assert_eq!((kept.lines().count(), kept.lines().next()), (LINES, Some("line 60")));
    }
}
