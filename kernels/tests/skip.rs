//! Tests, or parts of them, that a device or a system cannot run: named, counted by `cargo xtask test`, and failures where
//! `BURN_DETERMINISTIC_STRICT` is set.

use std::env;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

/// The file in which skipped tests are listed, one a line; `cargo xtask test` names it, and prints the list at the end.
const LIST: &str = "BURN_DETERMINISTIC_SKIPPED";

/// Set, a test that cannot run fails.
const STRICT: &str = "BURN_DETERMINISTIC_STRICT";

/// Notes that this test, or a part of it, does not run here, and why.
///
/// # Panics
///
/// Where `BURN_DETERMINISTIC_STRICT` is set.
#[track_caller]
pub fn skip(reason: impl Display) {
    // The test harness names a test's thread after it.
    let current = thread::current();
    let test = current.name().unwrap_or("a test");
    assert!(env::var_os(STRICT).is_none(), "skipped, and {STRICT} is set: {reason}");
    eprintln!("skipped: {reason}");
    if let Some(list) = env::var_os(LIST) {
        let list = OpenOptions::new().create(true).append(true).open(list);
        let line = format!("{test}: {reason}\n");
        // In one write, so that tests side by side do not mix their lines.
        list.and_then(|mut list| list.write_all(line.as_bytes())).expect("the list of skipped tests can be written");
    }
}
