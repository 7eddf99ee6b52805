//! Tests that a device or a system cannot run: named and counted at the end, or failures.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace;

/// The file in which the tests of one run list what they skip, one `test: reason` a line.
pub struct Skips(PathBuf);

impl Skips {
    /// An empty list.
    pub fn new() -> Result<Self> {
        let path = workspace::target()?.join("skipped-tests.txt");
        fs::write(&path, "").with_context(|| format!("writing {}", path.display()))?;
        Ok(Self(path))
    }

    /// Has tests add to the list, or fail if `strict`. `kernels/tests/skip.rs` reads these variables.
    pub fn apply(&self, tests: &mut Command, strict: bool) {
        tests.env("BURN_DETERMINISTIC_SKIPPED", &self.0);
        if strict {
            tests.env("BURN_DETERMINISTIC_STRICT", "1");
        }
    }

    /// Adds tests that were not started, and why; they fail if `strict`. Says whether that is good.
    pub fn add(&self, tests: &str, reason: &str, strict: bool) -> Result<bool> {
        let line = format!("{tests}: {}\n", reason.replace('\n', " "));
        eprint!("not run: {line}");
        let list = OpenOptions::new().append(true).open(&self.0);
        let written = list.and_then(|mut list| list.write_all(line.as_bytes()));
        written.with_context(|| format!("writing {}", self.0.display()))?;
        Ok(!strict)
    }

    /// Prints what was skipped, and how much.
    pub fn print(&self) -> Result<()> {
        let text = fs::read_to_string(&self.0).with_context(|| format!("reading {}", self.0.display()))?;
        eprint!("{}", summary(&text));
        Ok(())
    }
}

fn summary(list: &str) -> String {
    let lines: BTreeSet<&str> = list.lines().collect();
    let tests: BTreeSet<&str> = lines.iter().filter_map(|line| line.split_once(": ")).map(|(test, _)| test).collect();
    let mut text = format!("skipped, in whole or in part: {} tests\n", tests.len());
    for line in lines {
        text += &format!("  {line}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_started_is_listed_and_fails_where_that_is_asked_for() {
        let skips = Skips(std::env::temp_dir().join(format!("xtask-{}-skips", std::process::id())));
        fs::write(&skips.0, "a: b\n").expect("a temporary file");
        assert!(skips.add("on the emulator", "no g++", false).expect("a temporary file"));
        assert!(!skips.add("on the emulator", "no g++", true).expect("a temporary file"));
        let text = summary(&fs::read_to_string(&skips.0).expect("it was written"));
        assert!(text.contains("2 tests\n") && text.contains("  on the emulator: no g++\n"), "{text}");
        let _ = fs::remove_file(&skips.0);
    }

    #[test]
    fn a_test_is_counted_once() {
        let list = "sort::types: no f64\nrandom::halves: no bf16\nsort::types: no f16\nsort::types: no f64\n";
        let text = summary(list);
        assert!(text.starts_with("skipped, in whole or in part: 2 tests\n  random::halves: no bf16\n"), "{text}");
        assert_eq!(text.lines().count(), 4);
    }
}
