//! What the process has [checked against the references](crate::Determinism::check_against_reference).

use crate::error::Error;
use crate::exit;
use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A number: how many operations there are to one that is checked.
const EVERY: &str = "BURN_DETERMINISTIC_REFERENCE";

/// The file that gets the [report] when the process ends.
const REPORT: &str = "BURN_DETERMINISTIC_REFERENCE_REPORT";

/// What was checked so far, by the names of methods in burn-backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferenceCheck {
    /// How often each operation was checked.
    pub checked: BTreeMap<String, u64>,
    /// What was to be checked, and has no reference, ordered by name.
    pub unchecked: Vec<Unchecked>,
    /// The first operation that gave other bits than its reference: the text of its [`Error::NotReference`].
    pub different: Option<String>,
}

/// An operation that was not checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unchecked {
    /// The operation, by the name of its method in burn-backend.
    pub operation: String,
    /// Why it has no reference, or none for such operands.
    pub reason: String,
    /// How often it was to be checked.
    pub count: u64,
}

/// What was counted, with why operations were not checked.
struct Counts {
    checked: BTreeMap<String, u64>,
    unchecked: BTreeMap<(String, String), u64>,
    different: Option<String>,
}

static COUNTS: Mutex<Counts> =
    Mutex::new(Counts { checked: BTreeMap::new(), unchecked: BTreeMap::new(), different: None });

fn counts() -> MutexGuard<'static, Counts> {
    COUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the process has [checked against the references](crate::Determinism::check_against_reference) so far.
/// Operations run later than they are issued: read a result of theirs first.
pub fn reference_check() -> ReferenceCheck {
    let counts = counts();
    let unchecked = counts.unchecked.iter().map(|((operation, reason), &count)| {
        let (operation, reason) = (operation.clone(), reason.clone());
        Unchecked { operation, reason, count }
    });
    ReferenceCheck {
        checked: counts.checked.clone(),
        unchecked: unchecked.collect(),
        different: counts.different.clone(),
    }
}

/// Counts an operation that was compared.
pub(crate) fn count_checked(operation: &str) {
    *counts().checked.entry(operation.to_owned()).or_default() += 1;
}

/// Counts an operation that has no reference.
pub(crate) fn count_unchecked(operation: &str, reason: String) {
    *counts().unchecked.entry((operation.to_owned(), reason)).or_default() += 1;
}

/// Keeps the first difference.
pub(crate) fn note_difference(error: &Error) {
    counts().different.get_or_insert_with(|| error.to_string());
}

/// How many operations there are to one that is checked, as the environment has it.
///
/// # Errors
///
/// [`Error::Variable`] for something else than a number.
pub(crate) fn of_environment() -> Result<Option<u32>, Error> {
    let Some(value) = env::var_os(EVERY).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.to_str().and_then(|value| value.parse().ok()) {
        Some(every) => Ok(Some(every)),
        None => {
            let value = value.to_string_lossy().into_owned();
            Err(Error::Variable { name: EVERY, value, expected: "a number: 1 checks each operation, 0 none" })
        }
    }
}

/// Has the process write its report when it ends, where the environment names a file.
pub(crate) fn report_at_exit() {
    if env::var_os(REPORT).is_some_and(|path| !path.is_empty()) {
        exit::at_exit(write_report);
    }
}

extern "C" fn write_report() {
    let Some(path) = env::var_os(REPORT) else { return };
    // Appended at once: programs that this one starts report to the same file.
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let report = report(&reference_check());
    if let Err(error) = file.and_then(|mut file| file.write_all(report.as_bytes())) {
        let _ = writeln!(std::io::stderr(), "burn-deterministic: writing {}: {error}", path.display());
    }
}

/// A line for each operation, its fields separated by tabs: `checked`, operation and count; `unchecked`, operation,
/// reason and count; `different` and the error.
fn report(check: &ReferenceCheck) -> String {
    let mut text = String::new();
    for (operation, count) in &check.checked {
        let _ = writeln!(text, "checked\t{operation}\t{count}");
    }
    for Unchecked { operation, reason, count } in &check.unchecked {
        let _ = writeln!(text, "unchecked\t{operation}\t{reason}\t{count}");
    }
    if let Some(error) = &check.different {
        let _ = writeln!(text, "different\t{error}");
    }
    // The last line tells that the report is whole.
    text + "end\n"
}
