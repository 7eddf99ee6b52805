//! Tests that a device or a system cannot run: named and counted at the end, or failures.

use std::collections::BTreeSet;
use std::fs;
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
    fn a_test_is_counted_once() {
        let list = "sort::types: no f64\nrandom::halves: no bf16\nsort::types: no f16\nsort::types: no f64\n";
        let text = summary(list);
        assert!(text.starts_with("skipped, in whole or in part: 2 tests\n  random::halves: no bf16\n"), "{text}");
        assert_eq!(text.lines().count(), 4);
    }
}
