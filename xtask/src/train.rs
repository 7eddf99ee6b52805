//! `cargo xtask train`: the same training in separate processes, and whether the weights agree.

use std::env::consts::EXE_SUFFIX;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
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
    let mut digests = Vec::new();
    let schedules = device.schedules();
    let runs = options.runs.max(schedules.len() as u32);
    for (run, (schedule, environment)) in (1..=runs).zip(schedules.iter().cycle()) {
        let schedule = schedule.as_ref().map_or_else(String::new, |name| format!(", blocks and threads {name}"));
        eprintln!("\nrun {run} of {runs}, a process of its own{schedule}");
        let mut training = Command::new(&program);
        training.current_dir(workspace::root()).args(options.plain.then_some("--plain")).args(&options.arguments);
        environment.apply(&mut training);
        let output =
            run_through(&mut training, &mut io::stdout()).with_context(|| format!("run {run} of {example}"))?;
        let digest = digest(&output).with_context(|| format!("run {run} of {example} printed no line `digest: ..`"))?;
        digests.push(digest.to_owned());
    }
    Ok(report(&digests, options.plain))
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
