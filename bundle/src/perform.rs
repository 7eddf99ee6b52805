//! What each stage does.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::child::{self, End, Group, Task};
use crate::golden;
use crate::libtest::{self, Tests};
use crate::machine::{self, Machine, Runtime};
use crate::parts;
use crate::programs::Folders;
use crate::report::{Outcome, PLANS_HEADER, Verdict, benchmark_rows, benchmark_table, plan_rows};
use crate::stage::{Program, SANITIZED, Stage, Work};

/// What a device says that has not the arithmetic of the others.
const REFUSED: &str = "cannot give `GpuToGpu`";

/// The exit status of compute-sanitizer where it has found something.
const FOUND: &str = "86";

/// From this time on each operation is measured with the benchmark's own number of samples; half of it is enough for a training
/// of each side.
const AMPLE: Duration = Duration::from_secs(600);

/// Most parts of a measurement: each has some hundred MiB of the device's memory.
const MOST_PARTS: usize = 16;

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
            Work::Tests { program, filters, left_out } => self.tests(program, filters, left_out),
            Work::Goldens => self.goldens(),
            Work::UnderLoad { filters } => self.under_load(filters),
            Work::Sanitizer { tool } => self.sanitizer(tool),
            Work::Benchmarks => self.benchmarks(),
            Work::Plans => self.plans(),
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

    /// Runs one program, with what it prints in the stage's log.
    fn run(&self, command: Command) -> Result<End> {
        self.run_in(command, self.log())
    }

    fn run_in(&self, command: Command, log: PathBuf) -> Result<End> {
        let ends = self.run_all(vec![Task { command, log }])?;
        Ok(ends[0])
    }

    /// Runs programs, as many at a time as there are cores.
    fn run_all(&self, tasks: Vec<Task>) -> Result<Vec<End>> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        child::run(self.stage.name, tasks, cores, self.left())
    }

    /// One of the suite's programs or an example.
    fn suite_program(&self, name: &str, arguments: &[&str]) -> Result<Command> {
        let mut command = self.command(&self.folders.program(Program::Suite)?);
        command.args(["--exact", "program", "--nocapture", "--test-threads=1"]);
        command.env("BURN_DETERMINISTIC_PROGRAM", name).env("BURN_DETERMINISTIC_ARGUMENTS", arguments.join("\n"));
        Ok(command)
    }

    /// The runtime, the device and its driver, as goldens name them; nothing where time ran out.
    fn driver(&self) -> Result<Option<String>> {
        let log = self.folders.log(&format!("{}.driver", self.stage.name));
        let end = self.run_in(self.suite_program("driver", &[])?, log.clone())?;
        let text = child::read(&log);
        match (end, golden::reported(&text, "driver")) {
            (End::OutOfTime, _) => Ok(None),
            (_, Some(driver)) if end.is_success() && self.stage.runtime.has(driver) => Ok(Some(driver.to_owned())),
            (_, Some(driver)) if end.is_success() => {
                bail!("the programs compute on another device than {:?}'s: {driver}", self.stage.runtime)
            }
            _ => bail!("the device does not work: {}{}", last_line(&text), how(end)),
        }
    }

    fn device(&self) -> Result<Verdict> {
        let smi = match (self.stage.runtime, machine::program("nvidia-smi")) {
            (Runtime::Vulkan, _) => String::new(),
            (_, None) => "There is no nvidia-smi in PATH.\n".to_owned(),
            (_, Some(program)) => {
                self.run(self.command(&program))?;
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

    fn tests(&self, program: Program, filters: &[&str], left_out: &[&str]) -> Result<Verdict> {
        let path = self.folders.program(program)?;
        let mut list = self.command(&path);
        list.args(filters).args(left_out.iter().flat_map(|name| ["--skip", name])).arg("--list");
        let list = list.output().with_context(|| format!("listing the tests of {}", program.name()))?;
        let list = String::from_utf8_lossy(&list.stdout);
        let names = libtest::listed(&list);
        let (tests, end, text) = self.run_tests(&names, || self.command(&path))?;
        let mut verdict = self.judge_tests(end, &tests, &text);
        if !left_out.is_empty() {
            verdict.section += &format!("Left out, being sources' or other stages': `{}`.\n", left_out.join("`, `"));
        }
        Ok(verdict)
    }

    /// Runs each test in a process of its own: a process compiles its kernels one by one. How they ended, and what they printed.
    fn run_tests(&self, names: &[&str], command: impl Fn() -> Command) -> Result<(Tests, End, String)> {
        let log_of = |name: &&str| self.folders.log(&format!("{}.{}", self.stage.name, name.replace("::", ".")));
        let task = |name| {
            let mut command = command();
            command.args(["--test-threads=1", "--exact", name]);
            Task { command, log: log_of(&name) }
        };
        let ends = self.run_all(names.iter().copied().map(task).collect())?;
        let text: String = names.iter().map(|name| child::read(&log_of(name))).collect();
        let tests = Tests { total: names.len(), ..Tests::parse(&text) };
        Ok((tests, worst(&ends), text))
    }

    /// The stage's log, and the tests in it.
    fn logged_tests(&self) -> (Tests, String) {
        let text = child::read(&self.log());
        (Tests::parse(&text), text)
    }

    fn judge_tests(&self, end: End, tests: &Tests, text: &str) -> Verdict {
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
            section += &format!("\n```text\n{}```\n", failures(text));
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
        let everywhere = goldens.get(golden::EVERY_DEVICE);
        let mut runs = self.trained(&trainings)?.into_iter();
        let (mut done, mut faults, mut matched) = (0, 0, 0);
        let mut section = format!("Driver: `{driver}`\n\n| training | digest | | `GpuToGpu` |\n|---|---|---|---|\n");
        for training in &trainings {
            let (Some(Some(one)), Some(Some(other)), Some(Some(portable))) = (runs.next(), runs.next(), runs.next())
            else {
                continue;
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
            let (portable, is_other) = match (portable, everywhere.and_then(|known| known.get(training))) {
                (Ok(digest), Some(golden)) if digest == *golden => ("that of every device".to_owned(), false),
                (Ok(digest), _) => (format!("**DIFFERS** from that of every device: {digest}"), true),
                (Err(error), _) if error == REFUSED => ("refused".to_owned(), false),
                (Err(error), _) => (format!("**FAILED**: {error}"), true),
            };
            faults += usize::from(is_fault || is_other);
            section += &format!("| `{training}` | `{shown}` | {remark} | {portable} |\n");
            println!("  {training}: {shown} {remark}; GpuToGpu: {portable}");
        }
        let detail = match count - done {
            0 => format!(
                "{} of {count} trainings end twice in the same weights, {matched} as recorded before; digests in \
                 goldens.json",
                count - faults
            ),
            _ => format!("{done} of {count} trainings, {faults} with a fault"),
        };
        Ok(match (faults, count - done) {
            (0, 0) => Verdict { outcome: Outcome::Passed, detail, section },
            (0, _) => out_of_time(detail, section),
            _ => failed(detail, section),
        })
    }

    /// The digests of three runs of each training, the second with threads that prepare samples, the third under
    /// `Guarantee::GpuToGpu`; nothing where time ran out.
    fn trained(&self, trainings: &[String]) -> Result<Vec<Option<Result<String, String>>>> {
        let mut tasks = Vec::new();
        const RUNS: [(&str, &str); 3] = [("0", "run-to-run"), ("2", "run-to-run"), ("2", "gpu-to-gpu")];
        for (training, (workers, guarantee)) in trainings.iter().flat_map(|training| RUNS.map(|run| (training, run))) {
            let mut words = training.split(' ');
            let name = words.next().unwrap_or_default();
            let out = self.folders.work().join(format!("{name}-{workers}-{guarantee}"));
            let out = out.to_str().context("the folder of the results has a name that is no text")?;
            let arguments: Vec<_> = words.chain(["--workers", workers, "--out", out]).collect();
            let log = self.folders.log(&format!("{}.{name}.{workers}-workers.{guarantee}", self.stage.name));
            let mut command = self.suite_program(name, &arguments)?;
            command.env("BURN_DETERMINISTIC_GUARANTEE", guarantee);
            tasks.push(Task { command, log });
        }
        let logs: Vec<_> = tasks.iter().map(|task| task.log.clone()).collect();
        let ends = self.run_all(tasks)?;
        let digest = |(end, log): (End, &PathBuf)| {
            let text = child::read(log);
            match (end, golden::reported(&text, "digest")) {
                (End::OutOfTime, _) => None,
                (_, Some(digest)) if end.is_success() => Some(Ok(digest.to_owned())),
                _ if text.contains(REFUSED) => Some(Err(REFUSED.to_owned())),
                _ => Some(Err(last_line(&text))),
            }
        };
        Ok(ends.into_iter().zip(&logs).map(digest).collect())
    }

    fn under_load(&self, filters: &[&str]) -> Result<Verdict> {
        let kernels = self.folders.program(Program::Kernels)?;
        let suite = self.folders.program(Program::Suite)?;
        let mut load = self.command("sh".as_ref());
        load.args(["-c", "while :; do \"$0\" matmul:: reduce::; done"]).arg(&kernels);
        load.env("BURN_DETERMINISTIC_SKIPPED", "/dev/null");
        let load_log = self.folders.log(&format!("{}.load", self.stage.name));
        let load = Group::start(&mut load, &load_log)?;
        let mut tests = self.command(&suite);
        tests.args(filters);
        let end = self.run(tests)?;
        drop(load);
        let (tests, text) = self.logged_tests();
        let mut verdict = self.judge_tests(end, &tests, &text);
        let worked = Tests::parse(&child::read(&load_log)).passed;
        verdict.detail += &format!("; beside them {worked} tests of the kernels");
        Ok(verdict)
    }

    fn sanitizer(&self, tool: &str) -> Result<Verdict> {
        let kernels = self.folders.program(Program::Kernels)?;
        let sanitizer = self.machine.sanitizer.as_deref().unwrap_or("compute-sanitizer".as_ref());
        let command = || {
            let mut command = self.command(sanitizer);
            command.args(["--tool", tool, "--error-exitcode", FOUND]).arg(&kernels);
            // Each buffer is an allocation of its own: the tool knows allocations.
            command.env("BURN_DETERMINISTIC_DEDICATED", "1");
            command
        };
        let (tests, end, text) = self.run_tests(&SANITIZED, command)?;
        let mut verdict = self.judge_tests(end, &tests, &text);
        let mut summaries: Vec<_> = text
            .lines()
            .filter(|line| line.contains("SUMMARY:"))
            .map(|line| line.trim_start_matches(['=', ' ']))
            .collect();
        let ended = summaries.len();
        summaries.sort_unstable();
        summaries.dedup();
        verdict.detail += &format!("; {}", summaries.join(", "));
        if verdict.outcome == Outcome::Passed && (tests.passed, ended) != (SANITIZED.len(), SANITIZED.len()) {
            verdict.outcome = Outcome::Failed;
            verdict.detail += &format!(
                "; of {} tests {} are known, and after {ended} the tool said what it had found",
                SANITIZED.len(),
                tests.passed
            );
        }
        Ok(verdict)
    }

    /// Runs a program in as many parts as there are cores, part I of N with `option I/N`: they compile side by
    /// side, and measure one after the other. What each printed, and how they ended.
    fn in_parts(&self, program: Program, option: &str, others: &[&str]) -> Result<(Vec<String>, Vec<End>)> {
        let path = self.folders.program(program)?;
        let count = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_PARTS);
        let task = |part| {
            let mut command = self.command(&path);
            command.args([option, &format!("{part}/{count}")]).args(others);
            Task { command, log: self.folders.log(&format!("{}.{part}", self.stage.name)) }
        };
        let tasks: Vec<_> = (0..count).map(task).collect();
        let logs: Vec<_> = tasks.iter().map(|task| task.log.clone()).collect();
        let ends = parts::run(self.stage.name, tasks, Instant::now() + self.left() * 2 / 3, self.deadline)?;
        Ok((logs.iter().map(|log| child::read(log)).collect(), ends))
    }

    fn benchmarks(&self) -> Result<Verdict> {
        let samples = if self.left() < AMPLE { "5" } else { "15" };
        let (texts, mut ends) =
            self.in_parts(Program::Comparison, "--part", &["--trainings", "0", "--samples", samples])?;
        let mut rows = in_turns(&texts.iter().map(|text| benchmark_rows(parts::after_ready(text))).collect::<Vec<_>>());
        // Plain Burn tunes for minutes before its first step.
        if self.left() > AMPLE / 2 {
            let mut trainings = self.command(&self.folders.program(Program::Comparison)?);
            trainings.args(["--trainings", "1", "digits_convnet"]);
            ends.push(self.run(trainings)?);
            rows.extend(benchmark_rows(&child::read(&self.log())).into_iter().map(str::to_owned));
        }
        let table = benchmark_table(&rows);
        let detail = format!("{} rows{}", rows.len(), how(worst(&ends)));
        Ok(self.judge_measurements(&ends, detail, table, &texts))
    }

    fn plans(&self) -> Result<Verdict> {
        let (texts, ends) = self.in_parts(Program::GpuPlans, "--measure", &[])?;
        let rows = in_turns(&texts.iter().map(|text| plan_rows(parts::after_ready(text))).collect::<Vec<_>>());
        let table = format!("{PLANS_HEADER}{}", rows.concat());
        let detail = format!("{} cases{}", rows.len(), how(worst(&ends)));
        Ok(self.judge_measurements(&ends, detail, table, &texts))
    }

    fn judge_measurements(&self, ends: &[End], detail: String, table: String, texts: &[String]) -> Verdict {
        match worst(ends) {
            End::OutOfTime => out_of_time(detail, table),
            end if end.is_success() => Verdict { outcome: Outcome::Passed, detail, section: table },
            _ => {
                let failed_texts = ends.iter().zip(texts).filter(|(end, _)| !end.is_success());
                let said: String = failed_texts.map(|(_, text)| tail(text, 20)).collect();
                failed(detail, format!("{table}\n```text\n{said}```\n"))
            }
        }
    }
}

/// The first of each, the second of each, and so on: the order of what was dealt out in turns.
fn in_turns<T: ToString>(parts: &[Vec<T>]) -> Vec<String> {
    let longest = parts.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|row| parts.iter().filter_map(move |part| part.get(row))).map(ToString::to_string).collect()
}

fn failed(detail: String, section: String) -> Verdict {
    Verdict { outcome: Outcome::Failed, detail, section }
}

fn out_of_time(detail: String, section: String) -> Verdict {
    Verdict { outcome: Outcome::OutOfTime, detail, section }
}

/// How several programs ended: as the first that ended by itself and badly, or as one that had no time, or well.
fn worst(ends: &[End]) -> End {
    let bad = |end: &&End| !end.is_success();
    let by_itself = |end: &&End| bad(end) && **end != End::OutOfTime;
    let worst = ends.iter().find(by_itself).or_else(|| ends.iter().find(bad)).or(ends.first());
    worst.copied().unwrap_or(End::OutOfTime)
}

/// How a program ended, where not well.
fn how(end: End) -> String {
    match end {
        End::Exited(status) if status.success() => String::new(),
        End::Exited(status) => format!("; {status}"),
        End::OutOfTime => "; stopped when its time ran out".to_owned(),
    }
}

/// What failed tests printed, or the end where none has.
fn failures(text: &str) -> String {
    let parts = text.split("\nfailures:\n").skip(1).map(|part| part.split("\ntest result: ").next().unwrap_or(part));
    let failures: String = parts.collect();
    match failures.is_empty() {
        true => tail(text, 60),
        false => tail(&failures, 200),
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
    fn what_failed_tests_printed_is_shown() {
        let text =
            "running 1 test\n\nfailures:\n\n---- a stdout ----\nno\n\nfailures:\n    a\n\ntest result: FAILED.\n";
        assert_eq!(failures(text), "\n---- a stdout ----\nno\n    a\n");
        assert_eq!(failures("killed\n"), "killed\n");
    }

    #[test]
    fn rows_that_were_dealt_out_come_back_in_their_order() {
        assert_eq!(in_turns(&[vec![0, 3, 6], vec![1, 4], vec![2, 5]]), ["0", "1", "2", "3", "4", "5", "6"]);
        assert!(in_turns::<u8>(&[]).is_empty());
    }

    #[test]
    fn a_tail_is_whole_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(tail("a", 2), "a\n");
    }
}
