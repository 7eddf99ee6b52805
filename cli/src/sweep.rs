//! `burn-deterministic sweep`.

mod metrics;
mod page;
mod summary;

use crate::output::{is_closed_pipe, note, print, write};
use crate::program;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use summary::Summary;

/// Options of `burn-deterministic sweep`.
///
/// The program gets the seed in place of `{seed}` in its arguments; where none has that, as `--seed N` at their end. The
/// environment variable BURN_DETERMINISTIC_SEED has it as well. A metric is a line `name: number` or `name number` of its
/// stdout; the last one of a name counts. The program's stdin is empty. A seed with which it fails is left out.
#[derive(Args)]
pub struct Options {
    /// Seeds: `1..20` for 1 to 20, both included, or `3,8,12`
    #[arg(long)]
    seeds: String,

    /// Show this metric only; may be given several times
    #[arg(long, value_name = "NAME")]
    metric: Vec<String>,

    /// Write a page with a plot
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// The program and its arguments, after `--`
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs a program with each seed, and shows how its metrics vary: status 2 where it failed with one.
pub fn run(options: &Options) -> Result<ExitCode> {
    let seeds = seeds(&options.seeds)?;
    let mut failures = Vec::new();
    let mut values: BTreeMap<String, Vec<(u64, f64)>> = BTreeMap::new();
    for (number, &seed) in (1..).zip(&seeds) {
        let command = with_seed(&options.command, seed);
        note(format_args!("run {number} of {}: seed {seed}", seeds.len()));
        let stdout = match program::run(&command, &[("BURN_DETERMINISTIC_SEED", seed.to_string().into())]) {
            Ok(stdout) => stdout,
            Err(error) if is_closed_pipe(&error) => return Err(error),
            Err(error) => {
                note(format_args!("error: {error:#}"));
                failures.push(seed.to_string());
                continue;
            }
        };
        for (name, value) in metrics::read(&stdout) {
            values.entry(name).or_default().push((seed, value));
        }
    }
    ensure!(failures.len() < seeds.len(), "the program failed with every seed");
    if !options.metric.is_empty() {
        for name in &options.metric {
            let names: Vec<&str> = values.keys().map(String::as_str).collect();
            ensure!(
                values.contains_key(name),
                "the program printed no metric `{name}`; it printed {}",
                names.join(", ")
            );
        }
        values.retain(|name, _| options.metric.contains(name));
    }
    if values.is_empty() {
        bail!("the program printed no metric: no line `name: number` or `name number` on its stdout");
    }
    let summaries: Vec<Summary> = values.into_iter().map(|(name, values)| Summary::new(name, values)).collect();
    let texts: Vec<String> = summaries.iter().map(|summary| summary.text(seeds.len())).collect();
    print(format_args!("\n{}\n", texts.join("\n")))?;
    if let Some(path) = &options.html {
        let page = page::html(&summaries, &options.command, seeds.len());
        write(path, &page)?;
        print(format_args!("page    {}\n", path.display()))?;
    }
    ensure!(
        failures.is_empty(),
        "the program failed with seed {}, which the statistics leave out",
        failures.join(", ")
    );
    Ok(ExitCode::SUCCESS)
}

/// Seeds as the option spells them.
fn seeds(text: &str) -> Result<Vec<u64>> {
    let wrong = || format!("--seeds is `{text}`, want `1..20` (both included) or `3,8,12`");
    let seeds: Vec<u64> = match text.split_once("..") {
        Some((first, last)) => {
            let last = last.strip_prefix('=').unwrap_or(last);
            (first.trim().parse().with_context(wrong)?..=last.trim().parse().with_context(wrong)?).collect()
        }
        None => text.split(',').map(|seed| seed.trim().parse().with_context(wrong)).collect::<Result<_>>()?,
    };
    let distinct: std::collections::BTreeSet<u64> = seeds.iter().copied().collect();
    ensure!(seeds.len() >= 2 && distinct.len() == seeds.len(), "{}: at least two, each once", wrong());
    Ok(seeds)
}

/// The command for a seed.
fn with_seed(command: &[OsString], seed: u64) -> Vec<OsString> {
    let seed = seed.to_string();
    let mut found = false;
    let replaced = command.iter().map(|word| match word.to_str().filter(|word| word.contains("{seed}")) {
        Some(word) => {
            found = true;
            word.replace("{seed}", &seed).into()
        }
        None => word.clone(),
    });
    let mut replaced: Vec<OsString> = replaced.collect();
    if !found {
        replaced.extend(["--seed".into(), seed.into()]);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_with_its_end_or_a_list() {
        assert_eq!(seeds("1..4").expect("a range"), [1, 2, 3, 4]);
        assert_eq!(seeds("0..=1").expect("a range"), [0, 1]);
        assert_eq!(seeds("3, 8,12").expect("a list"), [3, 8, 12]);
        for wrong in ["", "5", "4..4", "4..1", "1..x", "1,1", "-1..3", "1.."] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_seed_replaces_its_place_or_comes_last() {
        let command = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(with_seed(&command(&["a", "--s={seed}", "{seed}"]), 7), command(&["a", "--s=7", "7"]));
        assert_eq!(with_seed(&command(&["a", "b"]), 7), command(&["a", "b", "--seed", "7"]));
    }
}
