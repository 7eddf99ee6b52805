//! A run of the program whose operations are checked against their plain-Rust references.

use crate::output::{note, print};
use crate::program::{run, spelled};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::process::ExitCode;

/// What the program reported: the operations that were checked, those that were not, and the first difference.
#[derive(Debug, Default, PartialEq)]
struct Report {
    checked: Vec<(String, u64)>,
    unchecked: Vec<Unchecked>,
    different: Option<String>,
}

/// An operation without a reference.
#[derive(Debug, PartialEq)]
struct Unchecked {
    operation: String,
    reason: String,
    count: u64,
}

/// Runs the program once: status 0 where every result that was compared has the bits of its reference, 1 where one has
/// not, 2 where that could not be found out: the program failed, nothing was compared, or a reference failed.
pub fn check(command: &[OsString], every: u32) -> Result<ExitCode> {
    let folder = tempfile::tempdir().context("creating a folder for the report")?;
    let file = folder.path().join("report");
    let variables = [
        ("BURN_DETERMINISTIC_GUARANTEE", "gpu-to-gpu".into()),
        ("BURN_DETERMINISTIC_REFERENCE", every.to_string().into()),
        ("BURN_DETERMINISTIC_REFERENCE_REPORT", file.clone().into_os_string()),
    ];
    note(format_args!("checking one operation of {every}: {}", spelled(command)));
    let ended = run(command, &variables);
    let report = match fs::read_to_string(&file) {
        Ok(text) => Report::of(&text).with_context(|| format!("reading {}", file.display()))?,
        Err(_) => {
            ended?;
            bail!(
                "`{}` reported nothing: it must call `burn_deterministic::enable_op_determinism` near the start of its \
                 `main`, in this process, and end by itself",
                spelled(command)
            )
        }
    };
    if let Some(different) = &report.different {
        print(format_args!("\nDIFFERENT: {different}\n{report}"))?;
        return Ok(ExitCode::FAILURE);
    }
    ended?;
    if report.checked.is_empty() {
        bail!("`{}` ran no operation that was checked", spelled(command));
    }
    if let Some(Unchecked { operation, reason, .. }) = report.failed() {
        bail!("`{operation}` was not checked: {reason}; this is a defect of burn-deterministic\n{report}");
    }
    let verdict = if report.unchecked.is_empty() { "EQUAL" } else { "EQUAL WHERE CHECKED" };
    print(format_args!("\n{verdict}: {report}"))?;
    Ok(ExitCode::SUCCESS)
}

impl Report {
    /// Of the lines that the library writes.
    fn of(text: &str) -> Result<Self> {
        let mut report = Self::default();
        for line in text.lines() {
            let count = |count: &str| count.parse().with_context(|| format!("a number in `{line}`"));
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["checked", operation, times] => report.checked.push((operation.to_owned(), count(times)?)),
                ["unchecked", operation, reason, times] => {
                    let (operation, reason, count) = (operation.to_owned(), reason.to_owned(), count(times)?);
                    report.unchecked.push(Unchecked { operation, reason, count });
                }
                ["different", error] => {
                    report.different.get_or_insert_with(|| error.to_owned());
                }
                // That of another process may follow.
                ["end"] => {}
                _ => bail!("`{line}` is of another version of burn-deterministic"),
            }
        }
        if text.lines().last() != Some("end") {
            bail!("the report has no end: the program was killed as it wrote it");
        }
        Ok(report)
    }

    /// The first operation whose reference failed.
    fn failed(&self) -> Option<&Unchecked> {
        self.unchecked.iter().find(|unchecked| unchecked.reason.starts_with("the reference failed"))
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let checked: u64 = self.checked.iter().map(|(_, count)| count).sum();
        let equal = if self.different.is_none() { ", all equal" } else { "" };
        writeln!(f, "{checked} operations of {} kinds checked{equal}", self.checked.len())?;
        for Unchecked { operation, reason, count } in &self.unchecked {
            writeln!(f, "not checked: {operation}, {count} times: {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, Unchecked};

    #[test]
    fn reports_are_read() {
        let text = "checked\tfloat_add\t3\nunchecked\tinterpolate\trefused\t2\ndifferent\t`float_add` differs\nend\n";
        let unchecked = Unchecked { operation: "interpolate".into(), reason: "refused".into(), count: 2 };
        let expected = Report {
            checked: vec![("float_add".into(), 3)],
            unchecked: vec![unchecked],
            different: Some("`float_add` differs".into()),
        };
        assert_eq!(Report::of(text).expect("a report"), expected);
        let of_two = Report::of(&format!("checked\tfloat_mul\t1\nend\n{text}")).expect("two reports");
        assert_eq!(
            (of_two.checked.len(), of_two.different, of_two.unchecked),
            (2, expected.different, expected.unchecked)
        );
        for cut in ["", "checked\tfloat_add\t3\n", "checked\tfloat_add\tx\nend\n", "other\nend\n"] {
            assert!(Report::of(cut).is_err(), "{cut}");
        }
    }
}
