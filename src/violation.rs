//! What becomes of a violation: an error, or a warning.

use crate::error::Error;
use crate::settings::{OnViolation, determinism};
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Panics with `error`, or lets it pass with a warning, as the settings say.
pub(crate) fn violated(error: &Error) {
    match determinism().on_violation {
        OnViolation::Error => panic!("{error}"),
        OnViolation::Warn => warn(error),
    }
}

/// Texts of warnings that are kept, so that each is printed once.
const MAX_REPORTED: usize = 1 << 12;

/// Reports a violation that the settings let pass, once for each text.
pub(crate) fn warn(error: &Error) {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let text = error.to_string();
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    if reported.len() == MAX_REPORTED && !reported.contains(&text) {
        // It may be printed again later.
        reported.clear();
    }
    if reported.insert(text.clone()) {
        // A closed standard error must not become a panic: this may run while another one unwinds.
        let _ = writeln!(std::io::stderr(), "burn-deterministic: warning, this run is NOT deterministic: {text}");
    }
}
