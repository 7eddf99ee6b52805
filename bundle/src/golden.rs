//! Digests of trainings, by device and driver and by training, as `tests/goldens/examples.json` has them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// By driver, then by training.
pub type Goldens = BTreeMap<String, BTreeMap<String, String>>;

/// In place of a driver: the digests that every device ends with under `Guarantee::GpuToGpu`.
pub const EVERY_DEVICE: &str = "GPU to GPU";

/// Reads a file of goldens.
pub fn load(path: &Path) -> Result<Goldens> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no digests by driver and training", path.display()))
}

/// Adds a digest to a file of goldens, which may not be there yet.
pub fn record(path: &Path, driver: &str, training: &str, digest: &str) -> Result<()> {
    let mut goldens = if path.exists() { load(path)? } else { Goldens::new() };
    goldens.entry(driver.to_owned()).or_default().insert(training.to_owned(), digest.to_owned());
    let text = serde_json::to_string_pretty(&goldens).context("spelling digests")?;
    fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
}

/// The short trainings that have been recorded for some driver: those that say how far they go.
pub fn trainings(goldens: &Goldens) -> Vec<String> {
    let mut trainings: Vec<_> = goldens.values().flat_map(BTreeMap::keys).cloned().collect();
    trainings.retain(|training| training.contains(" --"));
    trainings.sort_unstable();
    trainings.dedup();
    trainings
}

/// The value of the last line `NAME: VALUE` of what a program of the suite printed.
pub fn reported<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_read_again_beside_the_rest() {
        let path = std::env::temp_dir().join(format!("bundle-{}-goldens.json", std::process::id()));
        let _ = fs::remove_file(&path);
        record(&path, "cuda: H100", "a --steps 2", "12").expect("a temporary file");
        record(&path, "cuda: H100", "b --steps 2", "34").expect("a temporary file");
        record(&path, "vulkan: H100", "a", "56").expect("a temporary file");
        let goldens = load(&path).expect("it was written");
        assert_eq!(goldens["cuda: H100"]["a --steps 2"], "12");
        assert_eq!(trainings(&goldens), ["a --steps 2", "b --steps 2"]);
    }

    #[test]
    fn the_repository_has_every_short_training() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens/examples.json");
        assert_eq!(trainings(&load(&path).expect("it is in the repository")).len(), 12);
    }

    #[test]
    fn the_last_report_counts() {
        let text = "running 1 test\n\ndigest: 12\nepoch 2\ndigest: 34\ntest program ... ok\n";
        assert_eq!(reported(text, "digest"), Some("34"));
        assert_eq!(reported(text, "driver"), None);
    }
}
