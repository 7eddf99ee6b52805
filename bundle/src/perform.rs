//! What each stage does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::child::{self, End, Group};
use crate::golden;
use crate::libtest::Tests;
use crate::machine::{self, Machine, Runtime};
use crate::programs::Folders;
use crate::report::{Outcome, Verdict, benchmark_table};
use crate::stage::{Program, SANITIZED, SOURCE_TESTS, Stage, Work};

/// The exit status of compute-sanitizer where it has found something.
const FOUND: &str = "86";

/// From this budget on each operation is measured with the benchmark's own number of samples, and trainings are.
const AMPLE: Duration = Duration::from_secs(600);

/// A stage at work.
pub struct Performer<'a> {
    pub machine: &'a Machine,
    pub folders: &'a Folders,
    pub stage: Stage,
    /// The moment at which its budget runs out.
    pub deadline: Instant,
}

impl Performer<'_> {
    /// Why the stage cannot run on this machine.
    pub fn refusal(machine: &Machine, stage: &Stage) -> Option<String> {
        let sanitizer = || match stage.work {
            Work::Sanitizer { .. } => machine.sanitizer.clone().err(),
            _ => None,
        };
        machine.refusal(stage.runtime).or_else(sanitizer)
    }

    /// Runs the stage; an error of its own is a failure too.
    pub fn perform(&self) -> Verdict {
        self.work().unwrap_or_else(|error| failed(format!("{error:#}"), String::new()))
    }

    fn work(&self) -> Result<Verdict> {
        // The kernels' tests do not tell which device they take.
        let tells = matches!(self.stage.work, Work::Device | Work::Goldens | Work::Benchmarks);
        if !tells && self.driver()?.is_none() {
            return Ok(out_of_time("the device did not answer".to_owned(), String::new()));
        }
        match self.stage.work {
            Work::Device => self.device(),
            Work::Tests { program, filters } => self.tests(program, filters),
            Work::Goldens => self.goldens(),
            Work::UnderLoad { filters } => self.under_load(filters),
            Work::Sanitizer { tool } => self.sanitizer(tool),
            Work::Benchmarks => self.benchmarks(),
        }
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn log(&self) -> PathBuf {
        self.folders.log(self.stage.name)
    }

    /// The file in which tests list what they skip.
    fn skips(&self) -> PathBuf {
        self.folders.log(&format!("{}.skipped", self.stage.name))
    }

    /// A command that computes on the stage's runtime.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.machine.lead(&mut command, self.stage.runtime);
        command.current_dir(self.folders.work()).env("XDG_CACHE_HOME", self.folders.work().join("cache"));
        command.env("BURN_DETERMINISTIC_SKIPPED", self.skips());
        command.env("BURN_DETERMINISTIC_GOLDENS", self.folders.goldens());
        command
    }

    fn run(&self, command: &mut Command) -> Result<End> {
        child::run(self.stage.name, command, &self.log(), self.left())
    }

    /// One of the suite's programs or an example, with what it printed.
    fn suite_program(&self, name: &str, arguments: &[&str], log: &Path) -> Result<(End, String)> {
        let mut command = self.command(&self.folders.program(Program::Suite)?);
        command.args(["--exact", "program", "--nocapture", "--test-threads=1"]);
        command.env("BURN_DETERMINISTIC_PROGRAM", name).env("BURN_DETERMINISTIC_ARGUMENTS", arguments.join("\n"));
        let end = child::run(self.stage.name, &mut command, log, self.left())?;
        Ok((end, child::read(log)))
    }

    /// The runtime, the device and its driver, as goldens name them; nothing where time ran out.
    fn driver(&self) -> Result<Option<String>> {
        let log = self.folders.log(&format!("{}.driver", self.stage.name));
        let (end, text) = self.suite_program("driver", &[], &log)?;
        match (end, golden::reported(&text, "driver")) {
            (End::OutOfTime, _) => Ok(None),
            (_, Some(driver)) if end.is_success() && self.stage.runtime.has(driver) => Ok(Some(driver.to_owned())),
            (_, Some(driver)) if end.is_success() => {
                bail!("the programs compute on another device than {:?}'s: {driver}", self.stage.runtime)
            }
            _ => bail!("the device does not work: {}", last_line(&text)),
        }
    }

    fn device(&self) -> Result<Verdict> {
        let smi = match (self.stage.runtime, machine::program("nvidia-smi")) {
            (Runtime::Vulkan, _) => String::new(),
            (_, None) => "There is no nvidia-smi in PATH.\n".to_owned(),
            (_, Some(program)) => {
                self.run(&mut self.command(&program))?;
                format!("```text\n{}```\n", child::read(&self.log()))
            }
        };
        Ok(match self.driver()? {
            Some(driver) => Verdict { outcome: Outcome::Passed, detail: driver, section: smi },
            None => {
                Verdict { outcome: Outcome::OutOfTime, detail: "the device did not answer".to_owned(), section: smi }
            }
        })
    }

    fn tests(&self, program: Program, filters: &[&str]) -> Result<Verdict> {
        let mut command = self.command(&self.folders.program(program)?);
        command.args(filters);
        if program == Program::Kernels {
            command.args(["--skip", SOURCE_TESTS]);
        }
        let end = self.run(&mut command)?;
        let mut verdict = self.judge_tests(end);
        if program == Program::Kernels && filters.is_empty() {
            verdict.section += &format!("Left out, because they read this repository's sources: `{SOURCE_TESTS}`.\n");
        }
        Ok(verdict)
    }

    fn judge_tests(&self, end: End) -> Verdict {
        let text = child::read(&self.log());
        let tests = Tests::parse(&text);
        let skipped = child::read(&self.skips());
        let mut lines: Vec<_> = skipped.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        let detail = match lines.len() {
            0 => tests.summary(),
            count => format!("{}; {count} skipped, in whole or in part", tests.summary()),
        };
        let mut section: String = lines.iter().map(|line| format!("- skipped: {line}\n")).collect();
        let outcome = match end {
            End::Exited(status) if status.success() && tests.passed > 0 => Outcome::Passed,
            End::OutOfTime if tests.failed.is_empty() => Outcome::OutOfTime,
            _ => Outcome::Failed,
        };
        if outcome == Outcome::Failed {
            section += &format!("\n```text\n{}```\n", tail(&text, 60));
        }
        Verdict { outcome, detail: format!("{detail}{}", how(end)), section }
    }

    fn goldens(&self) -> Result<Verdict> {
        let goldens = golden::load(&self.folders.goldens())?;
        let trainings = golden::trainings(&goldens);
        let count = trainings.len();
        let Some(driver) = self.driver()? else {
            return Ok(out_of_time(format!("0 of {count} trainings"), String::new()));
        };
        let known = goldens.get(&driver);
        let (mut done, mut faults, mut matched) = (0, 0, 0);
        let mut section = format!("Driver: `{driver}`\n\n| training | digest | |\n|---|---|---|\n");
        for training in &trainings {
            let Some([one, other]) = self.trained_twice(training)? else {
                let detail = format!("{done} of {count} trainings, {faults} with a fault");
                return Ok(match faults {
                    0 => out_of_time(detail, section),
                    _ => failed(detail, section),
                });
            };
            done += 1;
            let expected = known.and_then(|known| known.get(training));
            let (shown, remark, is_fault) = match (one, other, expected) {
                (Ok(one), Ok(other), _) if one != other => {
                    (one, format!("**DIFFERS** from a second run's {other}"), true)
                }
                (Ok(one), Ok(_), Some(golden)) if one != *golden => (one, format!("**DIFFERS** from {golden}"), true),
                (Ok(one), Ok(_), expected) => {
                    golden::record(&self.folders.recorded(), &driver, training, &one)?;
                    matched += usize::from(expected.is_some());
                    (one, if expected.is_some() { "as recorded" } else { "new" }.to_owned(), false)
                }
                (Err(error), _, _) | (_, Err(error), _) => (String::new(), format!("**FAILED**: {error}"), true),
            };
            faults += usize::from(is_fault);
            section += &format!("| `{training}` | `{shown}` | {remark} |\n");
            println!("  {training}: {shown} {remark}");
        }
        let detail = format!(
            "{} of {count} trainings end twice in the same weights, {matched} as recorded before; digests in goldens.json",
            count - faults
        );
        Ok(match faults {
            0 => Verdict { outcome: Outcome::Passed, detail, section },
            _ => failed(detail, section),
        })
    }

    /// The digests of two runs, the second with threads that prepare samples; nothing where time ran out.
    fn trained_twice(&self, training: &str) -> Result<Option<[Result<String, String>; 2]>> {
        let mut words = training.split(' ');
        let name = words.next().unwrap_or_default();
        let arguments: Vec<_> = words.collect();
        let mut digests = Vec::new();
        for workers in ["0", "2"] {
            let out = self.folders.work().join("training");
            let out = out.to_str().context("the folder of the results has a name that is no text")?;
            let log = self.folders.log(&format!("{}.{name}.{workers}-workers", self.stage.name));
            let arguments = [&arguments[..], &["--workers", workers, "--out", out]].concat();
            let (end, text) = self.suite_program(name, &arguments, &log)?;
            digests.push(match (end, golden::reported(&text, "digest")) {
                (End::OutOfTime, _) => return Ok(None),
                (_, Some(digest)) if end.is_success() => Ok(digest.to_owned()),
                _ => Err(last_line(&text)),
            });
        }
        Ok(digests.try_into().ok())
    }

    fn under_load(&self, filters: &[&str]) -> Result<Verdict> {
        let kernels = self.folders.program(Program::Kernels)?;
        let suite = self.folders.program(Program::Suite)?;
        let mut load = self.command("sh".as_ref());
        load.args(["-c", "while :; do \"$0\" matmul:: reduce::; done"]).arg(&kernels);
        load.env("BURN_DETERMINISTIC_SKIPPED", "/dev/null");
        let load_log = self.folders.log(&format!("{}.load", self.stage.name));
        let load = Group::start(&mut load, &load_log)?;
        let end = self.run(self.command(&suite).args(filters))?;
        drop(load);
        let mut verdict = self.judge_tests(end);
        let worked = Tests::parse(&child::read(&load_log)).passed;
        verdict.detail += &format!("; beside them {worked} tests of the kernels");
        Ok(verdict)
    }

    fn sanitizer(&self, tool: &str) -> Result<Verdict> {
        let kernels = self.folders.program(Program::Kernels)?;
        let sanitizer = self.machine.sanitizer.as_deref().unwrap_or("compute-sanitizer".as_ref());
        let mut command = self.command(sanitizer);
        command.args(["--tool", tool, "--error-exitcode", FOUND]).arg(kernels);
        command.args(["--test-threads=1", "--exact"]).args(SANITIZED);
        let end = self.run(&mut command)?;
        let mut verdict = self.judge_tests(end);
        let text = child::read(&self.log());
        let summaries: Vec<_> = text.lines().filter(|line| line.contains("SUMMARY:")).collect();
        verdict.detail +=
            &format!("; {}", summaries.last().copied().unwrap_or("no summary").trim_start_matches('=').trim());
        let total = Tests::parse(&text).total;
        if verdict.outcome == Outcome::Passed && (total != SANITIZED.len() || summaries.is_empty()) {
            verdict.outcome = Outcome::Failed;
            verdict.detail +=
                &format!("; {total} of {} tests known, the tool has to end with a summary", SANITIZED.len());
        }
        Ok(verdict)
    }

    fn benchmarks(&self) -> Result<Verdict> {
        let comparison = self.folders.program(Program::Comparison)?;
        let mut command = self.command(&comparison);
        if self.left() < AMPLE {
            command.args(["--samples", "5", "--trainings", "1"]);
        }
        let end = self.run(&mut command)?;
        let text = child::read(&self.log());
        let table = benchmark_table(&text);
        let detail = format!("{} rows{}", table.lines().filter(|line| line.starts_with("| ")).count() - 1, how(end));
        Ok(match end {
            End::OutOfTime => out_of_time(detail, table),
            _ if end.is_success() => Verdict { outcome: Outcome::Passed, detail, section: table },
            _ => failed(detail, format!("{table}\n```text\n{}```\n", tail(&text, 20))),
        })
    }
}

fn failed(detail: String, section: String) -> Verdict {
    Verdict { outcome: Outcome::Failed, detail, section }
}

fn out_of_time(detail: String, section: String) -> Verdict {
    Verdict { outcome: Outcome::OutOfTime, detail, section }
}

/// How a program ended, where not well.
fn how(end: End) -> String {
    match end {
        End::Exited(status) if status.success() => String::new(),
        End::Exited(status) => format!("; {status}"),
        End::OutOfTime => "; stopped when its time ran out".to_owned(),
    }
}

fn tail(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].iter().map(|line| format!("{line}\n")).collect()
}

/// The last line that says something about an error, or the last.
fn last_line(text: &str) -> String {
    let lines = || text.lines().rev().filter(|line| !line.trim().is_empty());
    let found = lines().find(|line| line.to_lowercase().contains("error")).or_else(|| lines().next());
    found.unwrap_or("it printed nothing").to_owned()
}

/// Removes what stages have left beside the report: programs and caches.
pub fn clean(folders: &Folders) -> Result<()> {
    let work = folders.work();
    fs::remove_dir_all(&work).with_context(|| format!("removing {}", work.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_the_error_is_the_one_to_show() {
        assert_eq!(last_line("a\nError: no GPU\nbye\n\n"), "Error: no GPU");
        assert_eq!(last_line("a\nbye\n\n"), "bye");
        assert_eq!(last_line(""), "it printed nothing");
    }

    #[test]
    fn a_tail_is_whole_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(tail("a", 2), "a\n");
    }
}
