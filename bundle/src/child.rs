//! A program in a process of its own, with a log and a budget of time.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How often a child is asked whether it has ended.
pub const POLL: Duration = Duration::from_millis(50);

/// How often a line says that a stage is at work.
const PROGRESS: Duration = Duration::from_secs(30);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(ExitStatus),
    /// Its budget ran out, and it was killed with all that it had started.
    OutOfTime,
}

impl End {
    pub fn is_success(self) -> bool {
        matches!(self, Self::Exited(status) if status.success())
    }
}

/// A running child with all that it starts, killed when dropped.
pub struct Group(Child);

impl Group {
    /// Starts `command`; what it and its children print is appended to `log`.
    pub fn start(command: &mut Command, log: &Path) -> Result<Self> {
        Self::start_with(command, Stdio::null(), log)
    }

    /// As [`start`](Self::start), with an input.
    pub fn start_with(command: &mut Command, input: Stdio, log: &Path) -> Result<Self> {
        let file = File::options().create(true).append(true).open(log);
        let file = file.with_context(|| format!("opening {}", log.display()))?;
        let second = file.try_clone().with_context(|| format!("opening {}", log.display()))?;
        let child = command.stdin(input).stdout(file).stderr(second).process_group(0).spawn();
        Ok(Self(child.with_context(|| format!("starting {}", command.get_program().display()))?))
    }
}

impl Group {
    /// How the child ended, if it has.
    pub fn end(&mut self) -> Result<Option<End>> {
        let status = self.0.try_wait().context("asking whether a program has ended")?;
        Ok(status.map(End::Exited))
    }

    /// Ends the line that the child waits for. One that has ended reads nothing.
    pub fn proceed(&mut self) {
        let _ = self.0.stdin.take().map(|mut input| input.write_all(b"\n"));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group outlives the child where that has left processes behind; where it has not, there is nobody to kill.
        // Without `-s` Debian's sh takes no `--`.
        let kill = format!("kill -s KILL -- -{}", self.0.id());
        let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

/// A program to run, and the file to which what it prints is appended.
pub struct Task {
    pub command: Command,
    pub log: PathBuf,
}

/// Runs programs in their order, `at_once` of them at a time, to their ends or for as long as `budget`, with a line of progress
/// for `name` now and then. Those for which there was no time are [`End::OutOfTime`] too.
///
/// # Errors
///
/// A program cannot be started, or its log not be written.
pub fn run(name: &str, tasks: Vec<Task>, at_once: usize, budget: Duration) -> Result<Vec<End>> {
    let started = Instant::now();
    let mut told = started;
    let total = tasks.len();
    let mut ends = vec![End::OutOfTime; total];
    let mut waiting = tasks.into_iter().enumerate();
    let mut running: Vec<(usize, Group)> = Vec::new();
    while !(running.is_empty() && waiting.len() == 0) && started.elapsed() < budget {
        while running.len() < at_once
            && let Some((index, mut task)) = waiting.next()
        {
            running.push((index, Group::start(&mut task.command, &task.log)?));
        }
        let mut left = Vec::new();
        for (index, mut group) in running {
            match group.end()? {
                Some(end) => ends[index] = end,
                None => left.push((index, group)),
            }
        }
        running = left;
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            let ended = total - running.len() - waiting.len();
            println!("  {name}: {} s of {} s, {ended} of {total} ended", started.elapsed().as_secs(), budget.as_secs());
        }
        if !running.is_empty() {
            thread::sleep(POLL);
        }
    }
    Ok(ends)
}

/// What a log holds so far, which may be something else than text.
pub fn read(log: &Path) -> String {
    fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;
    use std::process;

    fn log(name: &str) -> std::path::PathBuf {
        let path = env::temp_dir().join(format!("bundle-{}-{name}.txt", process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    fn shell(script: &str, log: &Path) -> Task {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Task { command, log: log.to_owned() }
    }

    #[test]
    fn both_outputs_are_in_the_log() {
        let log = log("both");
        let tasks = vec![shell("echo one; echo two >&2; exit 3", &log)];
        let ends = run("both", tasks, 1, Duration::from_secs(30)).expect("sh");
        let [End::Exited(status)] = ends[..] else { panic!("it takes no time") };
        assert_eq!(status.code(), Some(3));
        assert_eq!(read(&log), "one\ntwo\n");
    }

    #[test]
    fn children_of_a_child_end_with_the_budget() {
        let log = log("budget");
        let started = Instant::now();
        let tasks = vec![shell("sleep 100 & echo $!; wait", &log)];
        let ends = run("budget", tasks, 1, Duration::from_millis(500)).expect("sh");
        assert!(started.elapsed() < Duration::from_secs(50), "the children were waited for");
        assert_eq!(ends, [End::OutOfTime]);
        let grandchild = read(&log).trim().to_owned();
        assert!(!grandchild.is_empty());
        // A process that was killed takes a moment to end, and may wait for its parent, as a zombie.
        let state = || fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        let has_ended = || state().is_empty() || state().contains(") Z");
        while !has_ended() {
            assert!(started.elapsed() < Duration::from_secs(50), "{}", state());
            thread::sleep(POLL);
        }
    }

    #[test]
    fn several_run_at_once_and_end_in_their_places() {
        let [first, second, third] = ["first", "second", "third"].map(log);
        // The first waits for the second.
        let waits = format!("until grep -q two {}; do sleep 0.01; done", second.display());
        let tasks = vec![shell(&waits, &first), shell("echo two; exit 2", &second), shell("sleep 100", &third)];
        let ends = run("several", tasks, 2, Duration::from_secs(3)).expect("sh");
        let codes: Vec<_> = ends
            .iter()
            .map(|end| match end {
                End::Exited(status) => status.code(),
                End::OutOfTime => None,
            })
            .collect();
        assert_eq!(codes, [Some(0), Some(2), None]);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let task = Task { command: Command::new("/no/such"), log: log("none") };
        let error = run("none", vec![task], 1, Duration::from_secs(1));
        assert!(format!("{:#}", error.expect_err("it is not there")).contains("/no/such"));
    }
}
