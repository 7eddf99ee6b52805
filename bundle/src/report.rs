//! The report: one Markdown file, written anew after every stage.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    OutOfTime,
    NotPossible,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::OutOfTime => "out of time",
            Self::NotPossible => "not possible",
        }
    }
}

/// What a stage has come to.
pub struct Verdict {
    pub outcome: Outcome,
    /// One line.
    pub detail: String,
    /// More Markdown, in a section of its own; it may be empty.
    pub section: String,
}

/// A row of the table.
pub struct Row {
    pub name: &'static str,
    pub took: Duration,
    pub budget: Duration,
    pub result: Verdict,
}

/// All that is known so far.
pub struct Report {
    pub about: String,
    pub machine: Vec<String>,
    pub rows: Vec<Row>,
    /// The stages that are still to run.
    pub pending: Vec<&'static str>,
}

impl Report {
    /// Whether all that could run has passed, and something could.
    pub fn is_good(&self) -> bool {
        let has = |outcome| self.rows.iter().any(|row| row.result.outcome == outcome);
        has(Outcome::Passed) && !has(Outcome::Failed) && !has(Outcome::OutOfTime)
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, self.markdown()).with_context(|| format!("writing {}", path.display()))
    }

    fn markdown(&self) -> String {
        let mut text = String::from("# burn-deterministic on this machine\n\n");
        for line in self.about.lines().chain(self.machine.iter().map(String::as_str)) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "- {line}");
        }
        text += "\n| stage | outcome | took | budget | |\n|---|---|---|---|---|\n";
        for Row { name, took, budget, result } in &self.rows {
            let detail = result.detail.replace('|', "\\|").replace('\n', " ");
            let (took, budget) = (took.as_secs_f64(), budget.as_secs());
            let _ = writeln!(text, "| {name} | {} | {took:.1} s | {budget} s | {detail} |", result.outcome.name());
        }
        for name in &self.pending {
            let _ = writeln!(text, "| {name} | not yet run | | | |");
        }
        text += "\nWhat each stage printed is in `logs`.\n";
        for row in self.rows.iter().filter(|row| !row.result.section.is_empty()) {
            let _ = write!(text, "\n## {}\n\n{}\n", row.name, row.result.section.trim_end());
        }
        text
    }
}

/// The table that the benchmark printed; where it did not come to its end, the rows so far.
pub fn benchmark_table(log: &str) -> String {
    const HEADER: &str = "| work | Burn | here | ratio | target | |";
    match log.rfind(HEADER) {
        Some(start) => log[start..].to_owned(),
        None => {
            let rows: Vec<_> = log.lines().filter(|line| line.starts_with("| ")).collect();
            format!("{HEADER}\n|---|---|---|---|---|---|\n{}\n", rows.join("\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, outcome: Outcome) -> Row {
        let result = Verdict { outcome, detail: "a | b".to_owned(), section: String::new() };
        Row { name, took: Duration::from_millis(1500), budget: Duration::from_secs(60), result }
    }

    fn report(outcomes: &[Outcome]) -> Report {
        let rows = outcomes.iter().map(|&outcome| row("kernels", outcome)).collect();
        Report { about: "commit: 12".to_owned(), machine: vec!["CUDA: found".to_owned()], rows, pending: vec!["bench"] }
    }

    #[test]
    fn it_is_good_if_all_that_could_run_has_passed() {
        use Outcome::*;
        assert!(report(&[Passed, NotPossible]).is_good());
        for others in [&[NotPossible][..], &[Passed, Failed], &[Passed, OutOfTime], &[]] {
            assert!(!report(others).is_good(), "{others:?}");
        }
    }

    #[test]
    fn every_stage_has_a_row() {
        let text = report(&[Outcome::OutOfTime]).markdown();
        assert!(text.contains("\n| kernels | out of time | 1.5 s | 60 s | a \\| b |\n| bench | not yet run | | | |\n"));
        assert!(text.contains("\n- commit: 12\n- CUDA: found\n"), "{text}");
    }

    #[test]
    fn rows_so_far_are_a_table_too() {
        let rows = "| a | 1ms | 2ms | 0.50 | | |\nwarming up\n| b | 1ms | 2ms | 0.50 | | |\n";
        let table = benchmark_table(rows);
        assert_eq!(table.lines().count(), 4);
        let whole = format!("{rows}cuda\n\n{table}\nThe geometric mean\n");
        assert_eq!(benchmark_table(&whole), format!("{table}\nThe geometric mean\n"));
    }
}
