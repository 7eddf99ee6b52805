//! `burn-deterministic verify`.

use crate::diff::write_page;
use crate::program::{spelled, succeed};
use anyhow::{Context, Result, bail};
use burn_deterministic_recording::diff::{Cause, Comparison, Outcome, compare};
use clap::Args;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `burn-deterministic verify`.
///
/// The program calls `enable_op_determinism` or, on Burn's own kernels, `observe()`. It is run with its weights recorded after
/// each step. Where they differ, it is run again with operations recorded up to the step that differed, until two runs
/// differ there too, and the first operation that differs is shown.
#[derive(Args)]
pub struct Options {
    /// How many times to run the program
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..))]
    runs: u32,

    /// How many more times to run it to find the operation, at most
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..))]
    more_runs: u32,

    /// Keep the recordings in this folder
    #[arg(long, value_name = "DIR")]
    record_dir: Option<PathBuf>,

    /// Write a page with what was found
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// The program and its arguments, after `--`
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// A run of the program.
struct Run {
    recording: PathBuf,
    /// The last line `digest: ..` that it printed.
    digest: Option<String>,
}

/// Runs a program several times: status 0 where all runs agree, 1 where they do not.
pub fn run(options: &Options) -> Result<ExitCode> {
    let temporary = tempfile::tempdir().context("creating a folder for the recordings")?;
    let folder = options.record_dir.as_deref().unwrap_or(temporary.path());
    let programs = Programs { command: &options.command, folder: std::path::absolute(folder)? };
    let (same, comparison) = verify(options, &programs)?;
    if let (Some(page), Some(comparison)) = (&options.html, &comparison) {
        write_page(comparison, page)?;
    }
    match (same, &options.record_dir) {
        (true, _) => Ok(ExitCode::SUCCESS),
        (false, None) => {
            println!("\n`--record-dir DIR` keeps the recordings");
            Ok(ExitCode::FAILURE)
        }
        (false, Some(folder)) => {
            println!("\nrecordings are in {}", folder.display());
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Whether all runs agree, and the comparison that says most.
fn verify(options: &Options, programs: &Programs) -> Result<(bool, Option<Comparison>)> {
    let count = options.runs;
    let mut runs: Vec<Run> = Vec::new();
    let mut differing: Vec<Comparison> = Vec::new();
    let mut states = 0;
    let mut agreeing = None;
    for number in 1..=count {
        eprintln!("run {number} of {count}: {}", spelled(programs.command));
        runs.push(programs.run(&format!("run-{number}"), "weights")?);
        if number == 1 {
            continue;
        }
        let comparison = compare(&runs[0].recording, &runs[runs.len() - 1].recording)?;
        states = comparison.compared.states;
        match comparison.same() {
            Some(true) => agreeing = Some(comparison),
            None => {}
            Some(false) => differing.push(comparison),
        }
    }
    // The earliest step that differs; a run that is shorter has none.
    let differing = differing.into_iter().min_by_key(|comparison| last_step(comparison).unwrap_or(u64::MAX));
    let digests: Vec<Option<&str>> = runs.iter().map(|run| run.digest.as_deref()).collect();
    let digests_agree = digests.windows(2).all(|pair| pair[0] == pair[1]);
    println!();
    match (&differing, agreeing.is_some(), digests_agree) {
        (None, true, true) => {
            println!("SAME: {count} runs agree in the weights after each of {states} steps");
            if let Some(digest) = digests[0] {
                println!("digest: {digest}");
            }
            return Ok((true, agreeing));
        }
        (None, false, _) => {
            println!("no step is recorded (no backward pass, no `step`): comparing all operations");
        }
        (None, true, false) => {
            println!("DIFFERENT: the weights after each of {states} steps agree, and the digests printed do not");
            for (number, digest) in (1..).zip(&digests) {
                println!("  run {number}   {}", digest.unwrap_or("none printed"));
            }
        }
        (Some(comparison), ..) => {
            println!("DIFFERENT: {}", first_step(comparison));
        }
    }
    search(options, programs, differing, digests_agree)
}

/// Records operations, run by run, until one run differs from the first.
fn search(
    options: &Options,
    programs: &Programs,
    weights: Option<Comparison>,
    digests_agree: bool,
) -> Result<(bool, Option<Comparison>)> {
    let count = options.more_runs;
    let mut last = weights.as_ref().and_then(last_step);
    let mut first: Option<Run> = None;
    let mut agreeing = None;
    for number in 1..=count {
        let level = last.map_or_else(|| "operations".to_owned(), |step| format!("operations:0-{step}"));
        eprintln!("run {number} of at most {count}, with {level}");
        let Some(reference) = &first else {
            first = Some(programs.run("operations-1", &level)?);
            continue;
        };
        let other = programs.run("operations-2", &level)?;
        let comparison = compare(&reference.recording, &other.recording)?;
        match comparison.same() {
            None => bail!(
                "`{}` records neither steps nor operations: it ran no tensor operation on a device that burn-deterministic \
                 covers (see `burn-deterministic info`)",
                spelled(programs.command)
            ),
            Some(true) => agreeing = Some(comparison),
            Some(false) => {
                // A step after those whose operations were recorded: once more, up to it.
                let later = last_step(&comparison);
                let unexplained = comparison.difference().is_some_and(|found| found.cause == Cause::NotRecorded);
                if unexplained && later > last && number < count {
                    (last, first) = (later, None);
                    continue;
                }
                println!("\n{comparison}");
                return Ok((false, Some(comparison)));
            }
        }
    }
    if weights.is_none() && digests_agree {
        println!("\nSAME: {count} runs agree in all operations; no step is recorded");
        return Ok((true, agreeing));
    }
    match &weights {
        Some(weights) => println!(
            "\n{weights}\nThe operation was not found: {count} more runs, with operations recorded, agree. Recording changes \
             the timing. Try again with a larger `--more-runs`."
        ),
        None => println!(
            "\nAll operations agree in {count} more runs: what the digest is of changed outside of tensor operations, or is \
             not of the tensors alone."
        ),
    }
    Ok((false, weights.or(agreeing)))
}

/// The step at which weights differ first.
fn last_step(comparison: &Comparison) -> Option<u64> {
    comparison.state.as_ref().and_then(|state| state.place.step)
}

fn first_step(comparison: &Comparison) -> String {
    match (&comparison.outcome, last_step(comparison)) {
        (Outcome::Length(_), _) => "one run has more steps than the other".to_owned(),
        (_, Some(step)) => format!("the weights differ after step {step}, and agree before"),
        (_, None) => "the weights differ".to_owned(),
    }
}

/// The program, and where it records.
struct Programs<'a> {
    command: &'a [OsString],
    folder: PathBuf,
}

impl Programs<'_> {
    fn run(&self, name: &str, level: &str) -> Result<Run> {
        let recording = self.folder.join(name);
        // One of an earlier run would be taken for this run's.
        if recording.exists() {
            fs::remove_file(&recording).with_context(|| format!("removing {}", recording.display()))?;
        }
        let variables = [
            ("BURN_DETERMINISTIC_RECORD", recording.clone().into_os_string()),
            ("BURN_DETERMINISTIC_RECORD_LEVEL", level.into()),
        ];
        let stdout = succeed(self.command, &variables)?;
        self.check(&recording)?;
        Ok(Run { recording, digest: digest(&stdout) })
    }

    fn check(&self, recording: &Path) -> Result<()> {
        if recording.exists() {
            return Ok(());
        }
        bail!(
            "`{}` recorded nothing; near the start of its `main`, before the first tensor operation, call\n\n    \
             burn_deterministic::enable_op_determinism(burn_deterministic::Determinism::default())?;\n    \
             burn_deterministic::set_random_seed(812);\n\nor, to record a program on Burn's own kernels,\n\n    \
             burn_deterministic::observe()?;",
            spelled(self.command)
        )
    }
}

/// What follows `digest: ` on the last line that begins so.
fn digest(stdout: &str) -> Option<String> {
    let digest = stdout.lines().rev().find_map(|line| line.trim().strip_prefix("digest: "))?.trim();
    let is_hex = digest.len() >= 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| digest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn a_digest_is_hexadecimal_on_its_line() {
        let hex = "0123456789abcdef";
        assert_eq!(digest(&format!("loss: 0.3\ndigest: {hex}\r\nbye\n")).as_deref(), Some(hex));
        assert_eq!(digest(&format!("digest: {hex}\ndigest: {hex}{hex}\n")).as_deref(), Some(&*hex.repeat(2)));
        for other in ["", "digest: none", "the digest: 0123456789abcdef", "digest: 0123"] {
            assert_eq!(digest(other), None, "{other}");
        }
    }
}
