//! A program in a process of its own, with a log and a budget of time.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How often a child is asked whether it has ended.
const POLL: Duration = Duration::from_millis(50);

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
        let file = File::options().create(true).append(true).open(log);
        let file = file.with_context(|| format!("opening {}", log.display()))?;
        let second = file.try_clone().with_context(|| format!("opening {}", log.display()))?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(second).process_group(0).spawn();
        Ok(Self(child.with_context(|| format!("starting {}", command.get_program().display()))?))
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

/// Runs `command` to its end or for as long as `budget`, with a line of progress for `name` now and then.
///
/// # Errors
///
/// The program cannot be started, or the log not be written.
pub fn run(name: &str, command: &mut Command, log: &Path, budget: Duration) -> Result<End> {
    let started = Instant::now();
    let mut group = Group::start(command, log)?;
    let mut told = started;
    loop {
        if let Some(status) = group.0.try_wait().context("asking whether a program has ended")? {
            return Ok(End::Exited(status));
        }
        if started.elapsed() >= budget {
            return Ok(End::OutOfTime);
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            let lines = read(log).lines().count();
            println!("  {name}: {} s of {} s, {lines} lines in its log", started.elapsed().as_secs(), budget.as_secs());
        }
        thread::sleep(POLL);
    }
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

    #[test]
    fn both_outputs_are_in_the_log() {
        let log = log("both");
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; exit 3"]);
        let End::Exited(status) = run("both", &mut command, &log, Duration::from_secs(30)).expect("sh") else {
            panic!("it takes no time")
        };
        assert_eq!(status.code(), Some(3));
        assert_eq!(read(&log), "one\ntwo\n");
    }

    #[test]
    fn children_of_a_child_end_with_the_budget() {
        let log = log("budget");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100 & echo $!; wait"]);
        let started = Instant::now();
        let end = run("budget", &mut command, &log, Duration::from_millis(500)).expect("sh");
        assert!(started.elapsed() < Duration::from_secs(50), "the children were waited for");
        assert_eq!(end, End::OutOfTime);
        let grandchild = read(&log).trim().to_owned();
        assert!(!grandchild.is_empty());
        // A process that was killed may wait for its parent, as a zombie.
        let state = fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z"), "{state}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run("none", &mut Command::new("/no/such"), &log("none"), Duration::from_secs(1));
        assert!(format!("{:#}", error.expect_err("it is not there")).contains("/no/such"));
    }
}
