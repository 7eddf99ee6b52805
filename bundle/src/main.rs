//! `run`: tries burn-deterministic on a machine with an NVIDIA GPU that has neither Rust nor this repository.
//!
//! It lies in the folder that `cargo xtask bundle` makes, beside the programs it runs, and writes one report. A stage
//! that fails, or runs out of its time, does not stop those after it.

#[cfg(not(target_os = "linux"))]
compile_error!("the bundle is for Linux");

mod child;
mod golden;
mod libtest;
mod machine;
#[cfg(test)]
#[allow(dead_code, reason = "each package's tests read a part of what it reads")]
#[path = "../../xtask/src/markdown.rs"]
mod markdown;
mod parts;
mod perform;
mod programs;
mod report;
mod stage;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;

use machine::Machine;
use perform::Performer;
use programs::Folders;
use report::{Outcome, REPORT, Report, Row, Verdict, is_good};
use stage::Stage;

#[derive(Parser)]
#[command(name = "run", about = "Test and measure burn-deterministic on this machine, and write a report")]
struct Options {
    /// How long all stages may take together
    #[arg(long, default_value_t = 25.0, value_parser = minutes)]
    minutes: f64,

    /// Only these stages or groups, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,

    /// The folder for report.md, report.json, goldens.json and logs.txt; what earlier calls have left there of other
    /// stages stays
    #[arg(long, default_value = "report")]
    out: PathBuf,

    /// Keep the unpacked programs and their caches
    #[arg(long)]
    keep: bool,

    /// Print the stages with the time that each may take, and end
    #[arg(long)]
    list: bool,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "a number of minutes is wanted".to_owned())?;
    if (0.01..=10_000.0).contains(&minutes) { Ok(minutes) } else { Err("0.01 to 10000 minutes are wanted".to_owned()) }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the stages, and says whether all that could run has passed.
fn run(options: &Options) -> Result<bool> {
    let stages = match stage::chosen(&options.only) {
        Ok(stages) => stages,
        Err(error) => bail!(error),
    };
    let total = Duration::from_secs_f64(60.0 * options.minutes);
    if options.list {
        for (stage, budget) in stages.iter().zip(stage::budgets(total, &stages)) {
            println!("{} ({}): {} s", stage.name, stage.group, budget.as_secs());
        }
        return Ok(true);
    }
    let program = env::current_exe().context("finding this program's own path")?;
    let bundle = program.parent().context("this program lies in no folder")?.to_owned();
    let folders = Folders::new(bundle, options.out.clone())?;
    let deadline = Instant::now() + total;
    let machine = Machine::probe();

    let refusals: Vec<_> = stages.iter().map(|stage| Performer::refusal(&machine, stage)).collect();
    let names = stages.iter().map(|stage| stage.name).collect();
    let mut report = Report::open(folders.results(), folders.about(), machine.facts(), names)?;
    let mut outcomes = Vec::new();
    for (stage, _) in stages.iter().zip(&refusals).filter(|(_, refusal)| refusal.is_none()) {
        for program in stage.work.programs() {
            // Ahead of all budgets. What cannot be unpacked is the error of every stage that wants it.
            let _ = folders.program(*program);
        }
    }
    for (index, (&stage, refusal)) in stages.iter().zip(&refusals).enumerate() {
        report.write(folders.results())?;
        let possible = stages[index..].iter().zip(&refusals[index..]).filter(|(_, refusal)| refusal.is_none());
        let possible: Vec<Stage> = possible.map(|(stage, _)| *stage).collect();
        let row = match refusal {
            Some(reason) => not_possible(stage, reason),
            None => perform(
                stage,
                stage::budget(deadline.saturating_duration_since(Instant::now()), &possible),
                &machine,
                &folders,
            ),
        };
        println!("{}: {}: {}", row.name, row.result.outcome.name(), row.result.detail);
        outcomes.push(row.result.outcome);
        report.add(row);
        folders.gather_logs(stage.name)?;
    }
    report.write(folders.results())?;
    if !options.keep {
        perform::clean(&folders)?;
    }
    println!("{}", folders.results().join(REPORT).display());
    Ok(is_good(&outcomes))
}

fn not_possible(stage: Stage, reason: &str) -> Row {
    let result = Verdict { outcome: Outcome::NotPossible, detail: reason.to_owned(), section: String::new() };
    Row { name: stage.name.to_owned(), took: Duration::ZERO, budget: Duration::ZERO, result }
}

fn perform(stage: Stage, budget: Duration, machine: &Machine, folders: &Folders) -> Row {
    println!("{}: up to {} s", stage.name, budget.as_secs());
    let started = Instant::now();
    let result = Performer { machine, folders, stage, deadline: started + budget }.perform();
    Row { name: stage.name.to_owned(), took: started.elapsed(), budget, result }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_commands_of_the_documentation_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the repository");
        let commands = markdown::commands_of(root, "./run");
        assert!(!commands.is_empty(), "CONTRIBUTING.md starts it");
        for (file, words) in commands {
            let parsed = Options::try_parse_from(std::iter::once("run").chain(words.iter().map(String::as_str)));
            if let Err(error) = parsed {
                panic!("{}: `run {}`: {error}", file.display(), words.join(" "));
            }
        }
    }
}
