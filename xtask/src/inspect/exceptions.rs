//! Findings that are known and accepted until a date, in `exceptions.toml`.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::checks::{Finding, Kind};

/// The file.
const TEXT: &str = include_str!("exceptions.toml");

/// An accepted finding.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The function of the kernel, as in the source.
    pub kernel: String,
    /// The case in which it is launched; with `*` at its end, every case that begins so.
    pub case: String,
    /// What is accepted.
    pub finding: Kind,
    /// The most instructions or bytes that are accepted.
    pub most: u32,
    /// The architecture, where it is accepted on one only.
    pub architecture: Option<String>,
    /// Why.
    pub reason: String,
    /// The last day, as `2027-03-01`.
    pub until: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    exception: Vec<Exception>,
}

/// What is accepted, and the largest amount of each that has been needed.
pub struct Exceptions {
    list: Vec<Exception>,
    largest: Vec<Option<u32>>,
}

impl Exceptions {
    /// The project's.
    pub fn of_project() -> Result<Self> {
        Self::parse(TEXT).context("reading xtask/src/inspect/exceptions.toml")
    }

    fn parse(text: &str) -> Result<Self> {
        let File { exception: list } = toml::from_str(text)?;
        for exception in &list {
            ensure!(!exception.reason.trim().is_empty(), "an exception for {} gives no reason", exception.kernel);
            ensure!(is_date(&exception.until), "`{}` is no date, want one such as 2027-03-01", exception.until);
        }
        let largest = vec![None; list.len()];
        Ok(Self { list, largest })
    }

    /// The exception that accepts a finding.
    pub fn accept(&mut self, case: &str, kernel: &str, architecture: &str, finding: &Finding) -> Option<&Exception> {
        let accepts = |exception: &Exception| {
            exception.kernel == kernel
                && exception.finding == finding.kind
                && finding.amount <= exception.most
                && exception.architecture.as_deref().is_none_or(|only| only == architecture)
                && match exception.case.strip_suffix('*') {
                    Some(start) => case.starts_with(start),
                    None => case == exception.case,
                }
        };
        let index = self.list.iter().position(accepts)?;
        self.largest[index] = self.largest[index].max(Some(finding.amount));
        Some(&self.list[index])
    }

    /// What is wrong with the list itself on this day: exceptions that have expired, and, at the end, those that nothing needed
    /// or that allow more than anything needed.
    pub fn faults(&self, today: &str) -> Vec<String> {
        let faults = self.list.iter().zip(&self.largest).filter_map(|(exception, largest)| {
            let Exception { kernel, case, finding, most, until, .. } = exception;
            let fault = match *largest {
                _ if until.as_str() < today => {
                    format!("expired on {until}: mend the kernel, or say why it takes longer")
                }
                None => "is not needed: remove it".to_owned(),
                Some(largest) if largest < *most => format!("allows {most}, and {largest} is needed: lower `most`"),
                Some(_) => return None,
            };
            Some(format!("exceptions.toml: {finding} of {kernel} in {case} {fault}"))
        });
        faults.collect()
    }
}

/// Whether a text is a date that compares as text.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 10
        && bytes.iter().enumerate().all(|(i, b)| if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde::de::IntoDeserializer;
    use serde::de::value::Error;

    use super::{Exception, Exceptions, Finding, Kind};
    use crate::inspect::REPORT;
    use crate::inspect::date::today;
    use crate::workspace;

    const ONE: &str = "
        [[exception]]
        kernel = \"tiled\"
        case = \"matmul large*\"
        finding = \"spill\"
        most = 64
        reason = \"another tile is under way\"
        until = \"2027-03-01\"
    ";

    fn finding(kind: Kind, amount: u32) -> Finding {
        Finding { kind, detail: String::new(), amount }
    }

    #[test]
    fn the_projects_list_is_well_formed_and_holds_today() {
        let today = today();
        for exception in Exceptions::of_project().unwrap().list {
            let Exception { kernel, case, until, .. } = exception;
            assert!(until >= today, "{kernel} in {case} expired on {until}: mend it, or say why it takes longer");
        }
    }

    /// A row of the report's accepted findings: case, kernel, architecture, and what was found.
    fn reported(row: &str) -> (&str, &str, &str, Finding) {
        let [place, found, ..] = row.split(" | ").collect::<Vec<_>>()[..] else { panic!("no finding: {row}") };
        let [case, kernel, on] = place.split('`').collect::<Vec<_>>()[..] else { panic!("no kernel: {row}") };
        let (kind, detail) = found.split_once(": ").expect("a kind and what was found");
        let kind = Kind::deserialize(IntoDeserializer::<Error>::into_deserializer(kind)).expect("a kind of finding");
        assert_ne!(kind, Kind::Contraction, "a contraction changes bits: it is never accepted");
        // `12 bytes stored, 48 loaded`, or how often each instruction occurs: `VOTEU.ALL x1, SHFL x2`.
        let number = |word: &str| word.trim_end_matches(',').trim_start_matches('x').parse::<u32>().ok();
        let finding = Finding { kind, detail: detail.to_owned(), amount: detail.split(' ').filter_map(number).sum() };
        (case.trim_end_matches(": "), kernel, on.trim_start_matches(" on "), finding)
    }

    /// Needs no compiler: `cargo xtask inspect` compares the whole report.
    #[test]
    fn the_report_in_the_repository_needs_every_exception_to_its_last_byte() {
        let report = std::fs::read_to_string(workspace::root().join(REPORT)).unwrap();
        let (_, accepted) = report.split_once("\n## Accepted findings\n").expect("the report has accepted findings");
        let (accepted, _) = accepted.split_once("\n## ").expect("more follows");
        let mut exceptions = Exceptions::of_project().unwrap();
        for row in accepted.lines().filter_map(|line| line.strip_prefix("| ")).skip(1) {
            let (case, kernel, architecture, finding) = reported(row);
            assert!(exceptions.accept(case, kernel, architecture, &finding).is_some(), "no exception is for {row}");
        }
        assert_eq!(exceptions.faults("2000-01-01"), [""; 0]);
    }

    #[test]
    fn an_exception_accepts_what_it_names_and_nothing_else() {
        let mut exceptions = Exceptions::parse(ONE).unwrap();
        assert!(exceptions.accept("matmul small", "tiled", "sm_80", &finding(Kind::Spill, 64)).is_none());
        assert!(exceptions.accept("matmul large", "tiled", "sm_80", &finding(Kind::Atomic, 1)).is_none());
        assert!(exceptions.accept("matmul large", "tiled", "sm_80", &finding(Kind::Spill, 65)).is_none());
        assert!(exceptions.accept("matmul large", "direct", "sm_80", &finding(Kind::Spill, 64)).is_none());
        assert!(exceptions.accept("matmul large f16", "tiled", "sm_80", &finding(Kind::Spill, 64)).is_some());
        assert!(exceptions.accept("matmul large f32", "tiled", "sm_80", &finding(Kind::Spill, 48)).is_some());
        assert_eq!(exceptions.faults("2027-03-01"), [""; 0]);
        let on_one = ONE.replace("finding", "architecture = \"sm_90\"\nfinding");
        assert!(
            Exceptions::parse(&on_one)
                .unwrap()
                .accept("matmul large", "tiled", "sm_80", &finding(Kind::Spill, 64))
                .is_none()
        );
    }

    #[test]
    fn an_unused_loose_or_expired_exception_is_a_fault() {
        let mut exceptions = Exceptions::parse(ONE).unwrap();
        let unused = "exceptions.toml: spill of tiled in matmul large* is not needed: remove it";
        assert_eq!(exceptions.faults("2027-01-01"), [unused]);
        exceptions.accept("matmul large", "tiled", "sm_80", &finding(Kind::Spill, 8));
        let loose = "exceptions.toml: spill of tiled in matmul large* allows 64, and 8 is needed: lower `most`";
        assert_eq!(exceptions.faults("2027-01-01"), [loose]);
        let faults = exceptions.faults("2027-03-02");
        assert!(faults[0].contains("expired on 2027-03-01"), "{faults:?}");
    }

    #[test]
    fn a_list_that_is_not_well_formed_is_an_error() {
        for (from, to) in
            [("2027-03-01", "soon"), ("another tile is under way", " "), ("spill", "spilled"), ("case", "where")]
        {
            assert!(Exceptions::parse(&ONE.replace(from, to)).is_err(), "{to}");
        }
    }
}
