//! The report: one Markdown file, written anew after every stage, and its rows in a file that a later call reads.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The report's file, and that of its rows.
pub const REPORT: &str = "report.md";
const ROWS: &str = "report.json";

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Serialize, Deserialize)]
pub struct Verdict {
    pub outcome: Outcome,
    /// One line.
    pub detail: String,
    /// More Markdown, in a section of its own; it may be empty.
    pub section: String,
}

/// A row of the table.
#[derive(Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    pub took: Duration,
    pub budget: Duration,
    pub result: Verdict,
}

/// All that is known so far.
#[derive(Serialize, Deserialize)]
pub struct Report {
    pub about: String,
    pub machine: Vec<String>,
    pub rows: Vec<Row>,
    /// The stages that are still to run.
    #[serde(skip)]
    pub pending: Vec<&'static str>,
}

impl Report {
    /// A report with the rows that earlier calls have left in `folder`.
    ///
    /// # Errors
    ///
    /// They are of another bundle or machine.
    pub fn open(folder: &Path, about: String, machine: Vec<String>, pending: Vec<&'static str>) -> Result<Self> {
        let mut report = Self { about, machine, rows: Vec::new(), pending };
        let path = folder.join(ROWS);
        if path.exists() {
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            let earlier: Self =
                serde_json::from_str(&text).with_context(|| format!("{} holds no rows of a report", path.display()))?;
            ensure!(
                earlier.about == report.about && earlier.machine == report.machine,
                "{} is the report of another bundle or machine: name another folder by `--out`",
                folder.display()
            );
            report.rows = earlier.rows;
        }
        Ok(report)
    }

    /// Adds the row of a stage that has ended, in place of one that an earlier call has left.
    pub fn add(&mut self, row: Row) {
        self.pending.retain(|name| *name != row.name);
        self.rows.retain(|earlier| earlier.name != row.name);
        self.rows.push(row);
    }

    /// Writes both files.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let rows = serde_json::to_string_pretty(self).context("spelling a report")?;
        for (name, text) in [(REPORT, self.markdown()), (ROWS, rows)] {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
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
        let has_row = |name: &&str| self.rows.iter().any(|row| row.name == *name);
        for name in self.pending.iter().filter(|name| !has_row(name)) {
            let _ = writeln!(text, "| {name} | not yet run | | | |");
        }
        text += "\nWhat each stage printed is in `logs.txt`.\n";
        for row in self.rows.iter().filter(|row| !row.result.section.is_empty()) {
            let _ = write!(text, "\n## {}\n\n{}\n", row.name, row.result.section.trim_end());
        }
        text
    }
}

/// Whether all that could run has passed, and something could.
pub fn is_good(outcomes: &[Outcome]) -> bool {
    let has = |outcome| outcomes.contains(&outcome);
    has(Outcome::Passed) && !has(Outcome::Failed) && !has(Outcome::OutOfTime)
}

const BENCHMARK_HEADER: &str = "| work | Burn | here | ratio | target | |";

/// The rows that the benchmark printed as it measured.
pub fn benchmark_rows(log: &str) -> Vec<&str> {
    // The whole table follows where it came to its end.
    let rows = log.split(BENCHMARK_HEADER).next().unwrap_or_default();
    rows.lines().filter(|line| line.starts_with("| ")).collect()
}

/// A table of the benchmark's rows, and the geometric mean of the operations' ratios.
pub fn benchmark_table(rows: &[String]) -> String {
    let mut table = format!("{BENCHMARK_HEADER}\n|---|---|---|---|---|---|\n{}\n", rows.join("\n"));
    let ratios: Vec<f64> = { rows.iter() }
        .filter(|row| !row.starts_with("| data loader") && !row.starts_with("| digits_convnet"))
        .filter_map(|row| row.split(" | ").nth(3)?.trim().parse().ok())
        .collect();
    if !ratios.is_empty() {
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let below = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        let _ = writeln!(
            table,
            "\nOperations: {}; geometric mean of the ratios {mean:.2}; below 1.0: {below}.",
            ratios.len()
        );
    }
    table
}

/// The head of [`plan_rows`].
pub const PLANS_HEADER: &str = "| case | shape | time | TFLOP/s | TB/s |\n|---|---|---|---|---|\n";

/// Rows of a table from what `gpu_plans` printed: name, shape, nanoseconds, float operations and bytes.
pub fn plan_rows(log: &str) -> Vec<String> {
    let row = |line: &str| {
        let fields: Vec<_> = line.split('\t').collect();
        let [name, shape, nanoseconds, flops, bytes] = fields[..] else { return None };
        let nanoseconds = nanoseconds.parse::<f64>().ok()?;
        let rate = |count: &str| Some(count.parse::<f64>().ok()? / nanoseconds / 1e3);
        let (flops, bytes) = (rate(flops)?, rate(bytes)?);
        Some(format!("| {name} | {shape} | {:.1} µs | {flops:.2} | {bytes:.3} |\n", nanoseconds / 1e3))
    };
    log.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, outcome: Outcome) -> Row {
        let result = Verdict { outcome, detail: "a | b".to_owned(), section: String::new() };
        Row { name: name.to_owned(), took: Duration::from_millis(1500), budget: Duration::from_secs(60), result }
    }

    fn report(outcomes: &[Outcome]) -> Report {
        let rows = outcomes.iter().map(|&outcome| row("kernels", outcome)).collect();
        Report { about: "commit: 12".to_owned(), machine: vec!["CUDA: found".to_owned()], rows, pending: vec!["bench"] }
    }

    #[test]
    fn it_is_good_if_all_that_could_run_has_passed() {
        use Outcome::*;
        assert!(is_good(&[Passed, NotPossible]));
        for others in [&[NotPossible][..], &[Passed, Failed], &[Passed, OutOfTime], &[]] {
            assert!(!is_good(others), "{others:?}");
        }
    }

    #[test]
    fn a_later_call_keeps_the_rows_of_other_stages() {
        let folder = std::env::temp_dir().join(format!("bundle-{}-report", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let open = |about: &str| Report::open(&folder, about.to_owned(), vec!["CUDA: found".to_owned()], vec!["bench"]);
        let mut first = open("commit: 12").expect("an empty folder");
        first.add(row("kernels", Outcome::Passed));
        first.add(row("bench", Outcome::OutOfTime));
        first.write(&folder).expect("a temporary folder");
        let mut second = open("commit: 12").expect("a report of this bundle");
        assert!(second.markdown().contains("| bench | out of time |"), "{}", second.markdown());
        second.add(row("bench", Outcome::Passed));
        let names: Vec<_> = second.rows.iter().map(|row| (row.name.as_str(), row.result.outcome)).collect();
        assert_eq!(names, [("kernels", Outcome::Passed), ("bench", Outcome::Passed)]);
        let error = open("commit: 34").err().expect("another bundle").to_string();
        assert!(error.contains("--out"), "{error}");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn every_stage_has_a_row() {
        let text = report(&[Outcome::OutOfTime]).markdown();
        assert!(text.contains("\n| kernels | out of time | 1.5 s | 60 s | a \\| b |\n| bench | not yet run | | | |\n"));
        assert!(text.contains("\n- commit: 12\n- CUDA: found\n"), "{text}");
    }

    #[test]
    fn rows_so_far_are_a_table_too() {
        let log = "| a | 1ms | 2ms | 0.50 | | |\nb..\n| b | 1ms | 2ms | 2.00 | ≥ 1 | met |\n| data loader | 1s | 1s | 1.00 | | |\n";
        let rows = benchmark_rows(log);
        assert_eq!(rows.len(), 3);
        let rows: Vec<_> = rows.into_iter().map(str::to_owned).collect();
        let table = benchmark_table(&rows);
        assert!(table.ends_with("\nOperations: 2; geometric mean of the ratios 1.00; below 1.0: 1.\n"), "{table}");
        assert_eq!(benchmark_rows(&format!("{log}cuda\n\n{table}")), rows);
    }

    #[test]
    fn times_become_rates() {
        let rows = plan_rows("ready\nmatmul/large f32\t[2, 3]\t2000\t4000000\t6000000\nan error\n");
        assert_eq!(rows, ["| matmul/large f32 | [2, 3] | 2.0 µs | 2.00 | 3.000 |\n"]);
    }
}
