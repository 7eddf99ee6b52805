//! The digests that trainings ended with when they were recorded, by driver: they say when an update of this crate, of
//! Burn or of Rust changes bits.
//!
//! `UPDATE_GOLDENS=1 cargo xtask test examples` records those of the present driver.

use crate::process::{self, Program};
use crate::skip::skip;
use cubecl::wgpu::{AutoGraphicsApi, RuntimeOptions, WgpuDevice, init_setup};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

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
    let driver = driver_name();
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
        None => skip(format_args!("no digest of `{training}` is recorded for {driver}")),
    }
}

/// The device model and the driver with its version.
pub fn driver_name() -> &'static str {
    static DRIVER: OnceLock<String> = OnceLock::new();
    DRIVER.get_or_init(|| Program::new("driver").run().reported("driver").to_owned())
}

/// Reports the device model and the driver with its version.
pub fn driver() {
    let info = init_setup::<AutoGraphicsApi>(&WgpuDevice::default(), RuntimeOptions::default()).adapter.get_info();
    process::report("driver", format!("{}; {} {}", info.name, info.driver, info.driver_info));
}
