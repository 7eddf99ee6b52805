//! `burn-deterministic verify`.

mod programs;
mod reference;

use crate::diff::write_page;
use crate::output::{note, print};
use crate::program::spelled;
use anyhow::{Context, Result, bail};
use burn_deterministic_recording::diff::{Comparison, Outcome, Step};
use clap::Args;
use programs::{Programs, Run, compared};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `burn-deterministic verify`.
///
/// The program calls `enable_op_determinism` or, on Burn's own kernels, `observe()`. It is run with its weights
/// recorded after each step. Where they differ, it is run again with operations recorded up to the step that differed,
/// until two runs differ there too, and the first operation that differs is shown. Where no step is recorded,
/// operations are compared instead. A line `digest: ..` that the program prints, in hexadecimal, is compared as well.
/// The program's stdin is empty.
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

    /// Run the program once instead, with `GpuToGpu`, and compare the result of every EVERY-th operation (1: of each)
    /// with that of its plain-Rust reference: whether the device computes rightly
    #[arg(long, value_name = "EVERY", num_args = 0..=1, default_missing_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(conflicts_with_all = ["runs", "more_runs", "record_dir", "html"])]
    against_reference: Option<u32>,

    /// The program and its arguments, after `--`
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs a program several times: status 0 where all runs agree, 1 where they do not, 2 where that could not be found
/// out.
pub fn run(options: &Options) -> Result<ExitCode> {
    if let Some(every) = options.against_reference {
        return reference::check(&options.command, every);
    }
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
            print("\n`--record-dir DIR` keeps the recordings\n")?;
            Ok(ExitCode::FAILURE)
        }
        (false, Some(folder)) => {
            print(format_args!("\nrecordings are in {}\n", folder.display()))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Whether all runs agree, and the comparison that says most.
fn verify(options: &Options, programs: &Programs) -> Result<(bool, Option<Comparison>)> {
    let count = options.runs;
    let mut runs: Vec<Run> = Vec::new();
    let mut comparisons: Vec<Comparison> = Vec::new();
    for number in 1..=count {
        let name = format!("run {number} of {count}");
        note(format_args!("{name}: {}", spelled(programs.command)));
        runs.push(programs.run(name, &format!("run-{number}"), "weights")?);
        if let [first, .., last] = &runs[..] {
            comparisons.push(compared(first, last)?);
        }
    }
    let digests: Vec<Option<&str>> = runs.iter().map(|run| run.digest.as_deref()).collect();
    let digests_agree = digests.windows(2).all(|pair| pair[0] == pair[1]);
    let differing = |comparison: &&Comparison| comparison.same() == Some(false);
    // The earliest difference. That of a run that is shorter comes after those in what both have.
    let earliest = comparisons
        .iter()
        .filter(differing)
        .min_by_key(|comparison| comparison.state.as_ref().map_or((1, Step::default()), |s| (0, Step::of(&s.place))));
    let agreeing = comparisons.iter().find(|comparison| comparison.same() == Some(true));
    match (earliest, agreeing) {
        (Some(comparison), _) => print(format_args!("\nDIFFERENT: {}\n", what_differs(comparison)))?,
        (None, None) => print("\nno step is recorded (no backward pass, no `step`): comparing all operations\n")?,
        (None, Some(comparison)) => {
            let steps = comparison.compared.steps;
            if digests_agree {
                let lost = comparisons.iter().map(|comparison| comparison.compared.lost).max().unwrap_or(0);
                let but = if lost == 0 { String::new() } else { format!(", but for digests that were lost ({lost})") };
                print(format_args!("\nSAME: {count} runs agree in the weights after each of {steps} steps{but}\n"))?;
                if let Some(digest) = digests[0] {
                    print(format_args!("digest: {digest}\n"))?;
                }
                return Ok((true, comparisons.pop()));
            }
            let lines: Vec<String> = { (1..).zip(&digests) }
                .map(|(number, digest)| format!("  run {number}   {}\n", digest.unwrap_or("none printed")))
                .collect();
            print(format_args!(
                "\nDIFFERENT: the weights after each of {steps} steps agree, and the digests printed do not\n{}",
                lines.concat()
            ))?;
        }
    }
    let found = earliest.cloned();
    search(options, programs, found, digests_agree)
}

/// Records operations, run by run, until one run differs from the first.
fn search(
    options: &Options,
    programs: &Programs,
    weights: Option<Comparison>,
    digests_agree: bool,
) -> Result<(bool, Option<Comparison>)> {
    // Where nothing differs so far, operations take the place of the steps that are not recorded.
    let count = if weights.is_none() && digests_agree { options.runs } else { options.more_runs };
    let mut last = weights.as_ref().and_then(reach);
    let mut first: Option<Run> = None;
    let mut agreeing = None;
    for number in 1..=count {
        let level = last.map_or_else(|| "operations".to_owned(), |step| format!("operations:0-{step}"));
        let name = format!("run {number} of at most {count}, with {level}");
        note(&name);
        let Some(reference) = &first else {
            first = Some(programs.run(name, "operations-1", &level)?);
            continue;
        };
        let comparison = compared(reference, &programs.run(name, "operations-2", &level)?)?;
        match comparison.same() {
            None => bail!(
                "`{}` records neither steps nor operations: it ran no tensor operation on a device that burn-deterministic \
                 covers (see `burn-deterministic info`)",
                spelled(programs.command)
            ),
            Some(true) => agreeing = Some(comparison),
            Some(false) => {
                // A step after those whose operations were recorded: once more, up to it.
                let unexplained = comparison.difference().is_some_and(|found| found.operation.is_none());
                let later = reach(&comparison).filter(|&later| last.is_some_and(|last| later > last));
                if let Some(later) = later.filter(|_| unexplained && number < count) {
                    (last, first) = (Some(later), None);
                    continue;
                }
                print(format_args!("\n{comparison}"))?;
                return Ok((false, Some(comparison)));
            }
        }
    }
    if weights.is_none() && digests_agree {
        let compared = agreeing.as_ref().map_or(0, |comparison| comparison.compared.operations);
        print(format_args!("\nSAME: {count} runs agree in all {compared} operations; no step is recorded\n"))?;
        return Ok((true, agreeing));
    }
    match &weights {
        Some(weights) => print(format_args!(
            "\n{weights}\nThe operation was not found: {count} more runs, with operations recorded, agree. Recording changes \
             the timing. Try again with a larger `--more-runs`.\n"
        ))?,
        None => print(format_args!(
            "\nAll operations agree in {count} more runs: what the digest is of changed outside of tensor operations, or is \
             not of the tensors alone.\n"
        ))?,
    }
    Ok((false, weights.or(agreeing)))
}

/// The greatest number of a step up to the first state that differs: the operations of these steps have the difference.
/// `None` where no state differs.
fn reach(comparison: &Comparison) -> Option<u64> {
    comparison.state.as_ref().map(|state| state.steps[1])
}

fn what_differs(comparison: &Comparison) -> String {
    let Some(state) = &comparison.state else {
        return match &comparison.outcome {
            Outcome::Length(length) if length.states[0] == length.states[1] => {
                "one run has more operations than the other after the last step".to_owned()
            }
            _ => "one run has more steps than the other".to_owned(),
        };
    };
    let [one, other] = state.operations;
    let step = Step::of(&state.place);
    // After another number of operations tensors without a name may have no counterpart.
    let weights = if state.tensors > 0 { "; the weights agree" } else { "" };
    match (step.number, &state.other_place) {
        (None, _) if state.differing == 0 && one != other => {
            format!("one run has {one} operations before the first step and the other {other}{weights}")
        }
        (Some(_), _) if state.differing == 0 && one != other => {
            format!("one run has {one} operations up to {step} and the other {other}{weights}")
        }
        (_, Some(other)) if state.differing == 0 => {
            format!("a step is {step} in one run and {} in the other{weights}", Step::of(other))
        }
        (Some(_), _) => format!("the weights differ after {step}, and agree before"),
        (None, _) => "the weights differ before the first step".to_owned(),
    }
}
