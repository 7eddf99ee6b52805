//! What a test program printed.

/// The tests that `--list` names.
pub fn listed(list: &str) -> Vec<&str> {
    list.lines().filter_map(|line| line.strip_suffix(": test")).collect()
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
    fn a_list_names_tests() {
        assert_eq!(listed("a::b: test\nprogram: test\nc: benchmark\n\n2 tests, 1 benchmark\n"), ["a::b", "program"]);
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
