//! Parts of one measurement: programs that compile side by side, and measure one after the other.
//!
//! A program prints [`READY`] when it has compiled all it needs, waits for a line on standard input, and measures.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::child::{End, Group, POLL, Task, read};

/// The line of a program that has compiled.
const READY: &str = "ready";

/// One part of a measurement, at work.
struct Part {
    group: Group,
    log: std::path::PathBuf,
    end: Option<End>,
}

impl Part {
    fn is_ready(&self) -> bool {
        split_ready(&read(&self.log)).is_some()
    }
}

/// What a part printed when it measured; nothing where it did not come to that.
pub fn after_ready(text: &str) -> &str {
    split_ready(text).unwrap_or_default()
}

fn split_ready(text: &str) -> Option<&str> {
    let line = format!("{READY}\n");
    text.strip_prefix(&line).or_else(|| text.split_once(&format!("\n{line}")).map(|(_, rest)| rest))
}

/// Runs the parts of `name` until `deadline`: all at once until each has compiled, at most until `compiled`, then one at a time.
/// What has not compiled by then is stopped, since it would disturb the others: [`End::OutOfTime`].
pub fn run(name: &str, tasks: Vec<Task>, compiled: Instant, deadline: Instant) -> Result<Vec<End>> {
    let mut parts = Vec::new();
    for mut task in tasks {
        // An earlier stage's.
        let _ = fs::remove_file(&task.log);
        let group = Group::start_with(&mut task.command, Stdio::piped(), &task.log)?;
        parts.push(Some(Part { group, log: task.log, end: None }));
    }
    loop {
        let mut waiting = 0;
        for part in parts.iter_mut().flatten() {
            part.end = part.group.end()?;
            waiting += usize::from(part.end.is_none() && !part.is_ready());
        }
        if waiting == 0 {
            break;
        }
        if Instant::now() >= compiled {
            println!("  {name}: {waiting} of {} parts have not compiled", parts.len());
            break;
        }
        thread::sleep(4 * POLL);
    }
    // Dropped, a group is killed.
    for part in &mut parts {
        *part = part.take().filter(|part| part.end.is_some() || part.is_ready());
    }
    println!("  {name}: measuring");
    parts.into_iter().map(|part| part.map_or(Ok(End::OutOfTime), |part| finish(part, deadline))).collect()
}

/// Lets one part measure.
fn finish(mut part: Part, deadline: Instant) -> Result<End> {
    part.group.proceed();
    while part.end.is_none() && Instant::now() < deadline {
        thread::sleep(POLL.min(Duration::from_millis(10)));
        part.end = part.group.end()?;
    }
    Ok(part.end.unwrap_or(End::OutOfTime))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn task(number: usize, script: &str) -> Task {
        let log = std::env::temp_dir().join(format!("bundle-{}-part-{number}.txt", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Task { command, log }
    }

    #[test]
    fn one_at_a_time_measures() {
        let lock = std::env::temp_dir().join(format!("bundle-{}-lock", std::process::id()));
        let _ = fs::remove_dir(&lock);
        // A folder can be made once, so that two that measure at once fail.
        let script =
            format!("echo ready; read line; mkdir {0} || exit 3; sleep 0.1; rmdir {0}; echo done", lock.display());
        let tasks: Vec<_> = (0..3).map(|number| task(number, &script)).collect();
        let logs: Vec<_> = tasks.iter().map(|task| task.log.clone()).collect();
        let late = Instant::now() + Duration::from_secs(60);
        let ends = run("parts", tasks, late, late).expect("sh");
        assert!(ends.iter().all(|end| end.is_success()), "{ends:?}");
        for log in logs {
            assert_eq!(after_ready(&read(&log)), "done\n");
        }
    }

    #[test]
    fn what_does_not_compile_in_time_is_stopped() {
        let started = Instant::now();
        let tasks = vec![task(10, "sleep 100"), task(11, "echo ready; read line; echo done"), task(12, "exit 2")];
        let ends = run("parts", tasks, started + Duration::from_secs(2), started + Duration::from_secs(60));
        let ends = ends.expect("sh");
        assert_eq!(ends[0], End::OutOfTime);
        assert!(ends[1].is_success() && !ends[2].is_success() && ends[2] != End::OutOfTime, "{ends:?}");
        assert!(started.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn what_was_printed_before_does_not_count() {
        assert_eq!(split_ready("a\nready\nb\n"), Some("b\n"));
        assert_eq!(split_ready("ready\n"), Some(""));
        assert_eq!(split_ready("already\nb\n"), None);
    }
}
