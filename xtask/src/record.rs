//! `cargo xtask record`: takes over what a bundle has left on a GPU machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;

use crate::workspace;

/// Options of `cargo xtask record`.
#[derive(Args)]
pub struct Options {
    /// The folder of the report: report.json, and goldens.json where trainings have run
    report: PathBuf,
}

/// Digests of trainings, by driver and by training.
type Goldens = BTreeMap<String, BTreeMap<String, String>>;

/// What `bundle/src/report.rs` writes, as far as it is read here.
#[derive(Deserialize)]
struct Report {
    about: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    result: Verdict,
}

#[derive(Deserialize)]
struct Verdict {
    outcome: String,
    detail: String,
    section: String,
}

/// Adds the digests to those of the repository, and prints the rows for README.md and benches/README.md.
pub fn run(options: &Options) -> Result<ExitCode> {
    let read = |path: &Path| fs::read_to_string(path).with_context(|| format!("reading {}", path.display()));
    let path = options.report.join("report.json");
    let report: Report =
        serde_json::from_str(&read(&path)?).with_context(|| format!("{} is no report", path.display()))?;
    let found = options.report.join("goldens.json");
    if found.exists() {
        let place = workspace::root().join("tests/goldens/examples.json");
        let parse = |path: &Path| -> Result<Goldens> {
            serde_json::from_str(&read(path)?).with_context(|| format!("{} holds no digests", path.display()))
        };
        let (mut goldens, added) = (parse(&place)?, parse(&found)?);
        let count = merge(&mut goldens, added)?;
        let text = serde_json::to_string_pretty(&goldens).context("spelling digests")?;
        fs::write(&place, text + "\n").with_context(|| format!("writing {}", place.display()))?;
        eprintln!("{}: {count} digests added", place.display());
    }
    print!("{}", rows(&report));
    Ok(ExitCode::SUCCESS)
}

/// Adds digests, and says how many are new.
///
/// # Errors
///
/// A training has another digest on that driver.
fn merge(goldens: &mut Goldens, added: Goldens) -> Result<usize> {
    let mut count = 0;
    for (driver, trainings) in added {
        let known = goldens.entry(driver.clone()).or_default();
        for (training, digest) in trainings {
            match known.get(&training) {
                Some(golden) if *golden != digest => bail!(
                    "`{training}` ended with the digest {digest} on {driver}, where {golden} is recorded; nothing was \
                     written. If bits were meant to change, remove that from tests/goldens/examples.json first, and list the \
                     change in CHANGELOG.md under **Bits**"
                ),
                Some(_) => {}
                None => {
                    known.insert(training, digest);
                    count += 1;
                }
            }
        }
    }
    Ok(count)
}

/// A row for the devices that are tested on, for each device, and the table of the benchmarks.
fn rows(report: &Report) -> String {
    let mut text = String::from("For README.md, \"Tested on\":\n\n");
    for (prefix, device) in [("", "device"), ("vulkan-", "vulkan-device")] {
        let Some(device) = report.rows.iter().find(|row| row.name == device) else { continue };
        let is_of_device =
            |row: &&Row| row.name.starts_with("vulkan-") == (prefix == "vulkan-") && row.name != device.name;
        let done = report.rows.iter().filter(is_of_device).map(|row| {
            let Verdict { outcome, detail, .. } = &row.result;
            format!("{}: {outcome} ({detail})", row.name)
        });
        let done: Vec<_> = done.collect();
        text += &format!("| {} | {} | no |\n", device.result.detail, done.join("; "));
    }
    if let Some(bench) = report.rows.iter().find(|row| row.name == "bench") {
        text +=
            &format!("\nFor benches/README.md, of\n{}\n{}\n", report.about.trim_end(), bench.result.section.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goldens(digest: &str) -> Goldens {
        BTreeMap::from([("cuda: H100".to_owned(), BTreeMap::from([("a --steps 2".to_owned(), digest.to_owned())]))])
    }

    #[test]
    fn digests_are_added_and_never_replaced() {
        let mut known = goldens("12");
        known.insert("wgpu: llvmpipe".to_owned(), BTreeMap::new());
        assert_eq!(merge(&mut known, goldens("12")).expect("the same digest"), 0);
        let error = merge(&mut known, goldens("34")).expect_err("another digest").to_string();
        assert!(error.contains("a --steps 2") && error.contains("**Bits**"), "{error}");
        let other = BTreeMap::from([("cuda: A100".to_owned(), goldens("56")["cuda: H100"].clone())]);
        assert_eq!(merge(&mut known, other).expect("another device"), 1);
        assert_eq!(known.len(), 3);
    }

    #[test]
    fn each_device_has_a_row() {
        let row = |name: &str, detail: &str, section: &str| {
            let result = Verdict { outcome: "Passed".into(), detail: detail.into(), section: section.into() };
            Row { name: name.into(), result }
        };
        let rows = vec![row("device", "cuda: H100", ""), row("kernels", "2 of 2", ""), row("bench", "1 row", "| a |")];
        let text = super::rows(&Report { about: "commit: 12\n".into(), rows });
        assert!(text.contains("| cuda: H100 | kernels: Passed (2 of 2); bench: Passed (1 row) | no |\n"), "{text}");
        assert!(text.contains("commit: 12\n| a |\n"), "{text}");
    }
}
