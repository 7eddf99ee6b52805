//! What a test program printed.

use std::collections::BTreeMap;

/// The tests that `--list` names, by their first module; those of no module have their own names there.
pub fn by_module(list: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in list.lines().filter_map(|line| line.strip_suffix(": test")) {
        modules.entry(name.split("::").next().unwrap_or(name)).or_default().push(name);
    }
    modules
}

/// The tests of one program, as far as it came.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tests {
    /// How many were to run.
    pub total: usize,
    pub passed: usize,
    pub ignored: usize,
    /// Their names.
    pub failed: Vec<String>,
}

impl Tests {
    /// Reads the lines `running N tests` and `test NAME ... ok`.
    pub fn parse(text: &str) -> Self {
        let mut tests = Self::default();
        for line in text.lines() {
            let total = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
            if let Some(total) = total.and_then(|(total, _)| total.parse::<usize>().ok()) {
                tests.total += total;
            }
            let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) else {
                continue;
            };
            match result.split_whitespace().next() {
                Some("ok") => tests.passed += 1,
                Some("FAILED") => tests.failed.push(name.to_owned()),
                Some(ignored) if ignored.starts_with("ignored") => tests.ignored += 1,
                _ => {}
            }
        }
        tests
    }

    /// `198 of 204 passed, 1 failed (sort::a), 5 did not run`.
    pub fn summary(&self) -> String {
        let mut text = format!("{} of {} tests passed", self.passed, self.total);
        if !self.failed.is_empty() {
            text += &format!(", {} failed ({})", self.failed.len(), self.failed.join(", "));
        }
        if self.ignored > 0 {
            text += &format!(", {} ignored", self.ignored);
        }
        let ended = self.passed + self.failed.len() + self.ignored;
        if let Some(unended @ 1..) = self.total.checked_sub(ended) {
            text += &format!(", {unended} did not end");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_by_modules() {
        let modules = by_module("a::b: test\nprogram: test\na::c::d: test\n\n3 tests, 0 benchmarks\n");
        assert_eq!(modules, BTreeMap::from([("a", vec!["a::b", "a::c::d"]), ("program", vec!["program"])]));
    }

    #[test]
    fn every_outcome_is_counted() {
        let text =
            "\nrunning 5 tests\ntest a::b ... ok\ntest c ... FAILED\ntest d ... ignored, takes long\ntest e ... ok\n";
        let tests = Tests::parse(text);
        assert_eq!(tests, Tests { total: 5, passed: 2, ignored: 1, failed: vec!["c".to_owned()] });
        assert_eq!(tests.summary(), "2 of 5 tests passed, 1 failed (c), 1 ignored, 1 did not end");
        assert_eq!(Tests::parse("test f has been running for over 60 seconds\n"), Tests::default());
    }
}
