//! The digests that trainings ended with when they were recorded, by runtime, device and driver ([`driver::name`]), which
//! decide bits: they say when an update of this crate, of Burn or of Rust changes bits. A training without a digest for the
//! present driver is listed among the skipped. Under `Guarantee::GpuToGpu` one digest is that of all drivers.
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

/// Names the file on a machine that has not this repository.
const GOLDENS: &str = "BURN_DETERMINISTIC_GOLDENS";

fn path() -> PathBuf {
    let in_repository = || [env!("CARGO_MANIFEST_DIR"), "tests", "goldens", "examples.json"].iter().collect();
    std::env::var_os(GOLDENS).map_or_else(in_repository, PathBuf::from)
}

fn load() -> Goldens {
    let path = path();
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{} holds no digests: {error}", path.display()))
}

/// In place of a driver, under `Guarantee::GpuToGpu`.
pub const EVERY_DEVICE: &str = "GPU to GPU";

/// Whether digests are recorded instead of compared.
fn is_recording() -> bool {
    std::env::var_os("UPDATE_GOLDENS").is_some()
}

/// Whether `training` will be compared with a digest recorded on this driver.
pub fn is_recorded(training: &str) -> bool {
    !is_recording() && load().get(driver::name()).is_some_and(|trainings| trainings.contains_key(training))
}

/// Requires the digest recorded for `training` on this driver; says so where none was recorded.
pub fn check(training: &str, digest: &str) {
    check_on(driver::name(), training, digest);
}

/// Requires the digest recorded for `training` on `driver`, or on [`EVERY_DEVICE`].
pub fn check_on(driver: &str, training: &str, digest: &str) {
    static FILE: Mutex<()> = Mutex::new(());
    // A test that fails while it holds the lock leaves the file whole.
    let _file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut goldens = load();
    if is_recording() {
        let known = goldens.get(driver).and_then(|trainings| trainings.get(training));
        assert!(
            driver != EVERY_DEVICE || known.is_none_or(|known| known == digest),
            "`{training}` ends with {digest} here and with {known:?} on the device it was recorded on; if bits were meant to \
             change, remove those of {EVERY_DEVICE:?} from {} first",
            path().display()
        );
        goldens.entry(driver.to_owned()).or_default().insert(training.to_owned(), digest.to_owned());
        let text = serde_json::to_string_pretty(&goldens).expect("strings are JSON");
        fs::write(path(), text + "\n").expect("the file of digests can be written");
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
