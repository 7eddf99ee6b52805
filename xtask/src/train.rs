//! `cargo xtask train`: the same training in separate processes, and whether the weights agree.

use std::env::consts::EXE_SUFFIX;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use burn_deterministic_recording::diff::compare;
use clap::Args;

use crate::device::{self, Wanted};
use crate::workspace;

/// Options of `cargo xtask train`.
#[derive(Args)]
pub struct Options {
    /// The example to train
    #[arg(default_value = "digits_convnet")]
    example: String,

    #[command(flatten)]
    wanted: Wanted,

    /// How many times to train
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..))]
    runs: u32,

    /// Train with plain Burn, whose weights may differ: a difference is shown and is no failure
    #[arg(long)]
    plain: bool,

    /// More arguments for the example, after `--`
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Builds the example once, trains with it in processes of their own, one after another, and compares the digests.
pub fn run(options: &Options) -> Result<ExitCode> {
    let example = &options.example;
    let device = device::find(options.wanted)?;
    let mut build = device.cargo("build");
    build.args(["--release", "--example", example]);
    workspace::succeed(&mut build)?;

    let program = workspace::target()?.join("release/examples").join(format!("{example}{EXE_SUFFIX}"));
    let (out, arguments) = outputs(&options.arguments, example);
    let mut digests = Vec::new();
    let mut recordings = Vec::new();
    let schedules = device.schedules();
    let runs = options.runs.max(schedules.len() as u32);
    for (run, (schedule, environment)) in (1..=runs).zip(schedules.iter().cycle()) {
        let schedule = schedule.as_ref().map_or_else(String::new, |name| format!(", blocks and threads {name}"));
        eprintln!("\nrun {run} of {runs}, a process of its own{schedule}");
        let mut training = Command::new(&program);
        let (out, recording) = (out.join(format!("run-{run}")), out.join(format!("run-{run}.recording")));
        training.current_dir(workspace::root()).args(options.plain.then_some("--plain")).args(&arguments);
        training.arg("--out").arg(&out);
        if !options.plain {
            // Plain Burn would run without its fusion.
            training.env("BURN_DETERMINISTIC_RECORD", &recording);
        }
        environment.apply(&mut training);
        let output =
            run_through(&mut training, &mut io::stdout()).with_context(|| format!("run {run} of {example}"))?;
        let digest = digest(&output).with_context(|| format!("run {run} of {example} printed no line `digest: ..`"))?;
        digests.push(digest.to_owned());
        recordings.push(workspace::root().join(recording));
    }
    let status = report(&digests, options.plain);
    if let Some(other) = digests.iter().position(|digest| *digest != digests[0]) {
        if !options.plain {
            println!("\n{}", compare(&recordings[0], &recordings[other])?);
        }
        let plain = if options.plain { " --plain" } else { "" };
        println!("the first operation that differs: burn-deterministic verify -- {}{plain} ..", program.display());
    }
    Ok(status)
}

/// The folder for what the runs leave, and the arguments without it.
fn outputs(arguments: &[String], example: &str) -> (PathBuf, Vec<String>) {
    let mut others = arguments.to_vec();
    let out = others.iter().position(|argument| argument == "--out").filter(|at| at + 1 < others.len());
    let out = out.map(|at| others.drain(at..at + 2).nth(1).expect("the value of --out"));
    (out.map_or_else(|| Path::new("target/results").join(example), PathBuf::from), others)
}

/// Says what the digests are and whether they agree.
fn report(digests: &[String], plain: bool) -> ExitCode {
    println!();
    for (run, digest) in (1..).zip(digests) {
        println!("run {run}: {digest}");
    }
    if all_equal(digests) {
        println!("weights agree: bit-identical");
        return ExitCode::SUCCESS;
    }
    println!("weights DIFFER");
    if plain { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn all_equal(digests: &[String]) -> bool {
    digests.windows(2).all(|pair| pair[0] == pair[1])
}

/// Runs a command to its successful end, passing its stdout on as it comes, and returns it.
fn run_through(command: &mut Command, onward: &mut impl Write) -> Result<String> {
    let spelled = workspace::spelled(command);
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("starting {spelled}"))?;
    let mut source = child.stdout.take().context("its stdout is a pipe")?;
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = source.read(&mut buffer).with_context(|| format!("reading from {spelled}"))?;
        if count == 0 {
            break;
        }
        output.extend_from_slice(&buffer[..count]);
        onward.write_all(&buffer[..count]).and_then(|()| onward.flush()).context("passing output on")?;
    }
    let status = child.wait().with_context(|| format!("waiting for {spelled}"))?;
    ensure!(status.success(), "{spelled} failed: {status}");
    String::from_utf8(output).with_context(|| format!("{spelled} wrote something else than text"))
}

/// The digest of the weights in the example's output: 64 hexadecimal digits on the last line `digest: ..`.
fn digest(output: &str) -> Option<&str> {
    let digest = output.lines().rev().find_map(|line| line.strip_prefix("digest: "))?.trim_end();
    (digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_read_from_its_line() {
        let hex = "0123456789abcdef".repeat(4);
        assert_eq!(digest(&format!("accuracy 0.98\ndigest: {hex}\n")), Some(hex.as_str()));
        assert_eq!(digest(&format!("digest: {hex}\r\nbye\n")), Some(hex.as_str()));
    }

    #[test]
    fn anything_else_is_no_digest() {
        let hex = "0123456789abcdef".repeat(4);
        assert_eq!(digest(""), None);
        assert_eq!(digest(&format!("the digest: {hex}\n")), None);
        assert_eq!(digest(&format!("digest: {}\n", &hex[1..])), None);
        assert_eq!(digest(&format!("digest: {}g\n", &hex[1..])), None);
    }

    #[test]
    fn each_run_has_a_folder() {
        let split = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            let (out, others) = outputs(&arguments, "digits");
            (out.display().to_string(), others.join(" "))
        };
        assert_eq!(split(&["--steps", "3"]), ("target/results/digits".to_owned(), "--steps 3".to_owned()));
        assert_eq!(split(&["--out", "a", "--steps", "3"]), ("a".to_owned(), "--steps 3".to_owned()));
        assert_eq!(split(&["--out"]), ("target/results/digits".to_owned(), "--out".to_owned()));
    }

    #[test]
    fn one_differing_run_is_a_difference() {
        let digests = |letters: [&str; 3]| letters.map(String::from);
        assert!(all_equal(&digests(["a", "a", "a"])));
        assert!(!all_equal(&digests(["a", "a", "b"])));
        assert!(!all_equal(&digests(["a", "b", "a"])));
    }

    #[cfg(unix)]
    #[test]
    fn output_is_passed_on_and_returned_unless_the_run_fails() {
        let mut onward = Vec::new();
        assert_eq!(run_through(Command::new("echo").arg("digest"), &mut onward).expect("echo"), "digest\n");
        assert_eq!(onward, b"digest\n");
        assert!(run_through(&mut Command::new("false"), &mut onward).is_err());
    }
}
