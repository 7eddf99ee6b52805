//! The digests that trainings ended with when they were recorded, by runtime, device and driver ([`driver::name`]), which
//! decide bits: they say when an update of this crate, of Burn or of Rust changes bits. A training without a digest for the
//! present driver is listed among the skipped.
//!
//! `UPDATE_GOLDENS=1 cargo xtask test examples` records those of the present driver.

use crate::driver;
use crate::skip::skip;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// By driver, then by training.
type Goldens = BTreeMap<String, BTreeMap<String, String>>;

fn path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "goldens", "examples.json"].iter().collect()
}

fn load() -> Goldens {
    let text = fs::read_to_string(path()).expect("tests/goldens/examples.json is part of the repository");
    serde_json::from_str(&text).expect("tests/goldens/examples.json holds digests by driver and training")
}

/// Requires the digest recorded for `training` on this driver; says so where none was recorded.
pub fn check(training: &str, digest: &str) {
    static FILE: Mutex<()> = Mutex::new(());
    let driver = driver::name();
    // A test that fails while it holds the lock leaves the file whole.
    let _file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut goldens = load();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        goldens.entry(driver.to_owned()).or_default().insert(training.to_owned(), digest.to_owned());
        let text = serde_json::to_string_pretty(&goldens).expect("strings are JSON");
        fs::write(path(), text + "\n").expect("tests/goldens/examples.json can be written");
        return;
    }
    match goldens.get(driver).and_then(|trainings| trainings.get(training)) {
        Some(golden) => assert!(
            golden == digest,
            "`{training}` ends with the digest {digest} on {driver}, and ended with {golden} when it was recorded; if \
             bits were meant to change, record them with `UPDATE_GOLDENS=1 cargo xtask test examples` and list the \
             change in CHANGELOG.md under **Bits**"
        ),
        None => skip(format_args!(
            "no digest of `{training}` is recorded for {driver}; `UPDATE_GOLDENS=1 cargo xtask test examples` records it"
        )),
    }
}
