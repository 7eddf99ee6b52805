//! The runs of the program that is verified.

use crate::program::{run, spelled};
use anyhow::{Context, Result, bail};
use burn_deterministic_recording::Ending;
use burn_deterministic_recording::diff::{Comparison, Step, compare};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The program, and where it records.
pub struct Programs<'a> {
    pub command: &'a [OsString],
    pub folder: PathBuf,
}

/// A run of the program.
pub struct Run {
    /// What it is called in errors.
    name: String,
    recording: PathBuf,
    /// The last line `digest: ..` that it printed.
    pub digest: Option<String>,
}

impl Programs<'_> {
    /// Runs the program. `file` is that of its recording.
    pub fn run(&self, name: String, file: &str, level: &str) -> Result<Run> {
        let recording = self.folder.join(file);
        // One of an earlier run would be taken for this run's.
        if recording.exists() {
            fs::remove_file(&recording).with_context(|| format!("removing {}", recording.display()))?;
        }
        let variables = [
            ("BURN_DETERMINISTIC_RECORD", recording.clone().into_os_string()),
            ("BURN_DETERMINISTIC_RECORD_LEVEL", level.into()),
        ];
        let stdout = run(self.command, &variables).with_context(|| name.clone())?;
        self.check(&recording)?;
        Ok(Run { name, recording, digest: digest(&stdout) })
    }

    fn check(&self, recording: &Path) -> Result<()> {
        if recording.exists() {
            return Ok(());
        }
        bail!(
            "`{}` recorded nothing\n\n\
             - It must call one of these near the start of its `main`, before the first tensor operation:\n\n      \
             burn_deterministic::enable_op_determinism(burn_deterministic::Determinism::default())?;\n      \
             burn_deterministic::observe()?; // a program on Burn's own kernels\n\n\
             - It may be of a build from before that, or without the feature that has it call them: build it again.\n\
             - It may train in another process, which does not get the variable BURN_DETERMINISTIC_RECORD, or on another\n  \
             machine: verify the command that trains.",
            spelled(self.command)
        )
    }
}

/// Compares the recordings of two runs.
///
/// # Errors
///
/// When one cannot be compared to its end: then nothing is known of the rest.
pub fn compared(first: &Run, second: &Run) -> Result<Comparison> {
    let comparison = compare(&first.recording, &second.recording)?;
    if let Some(resumed) = comparison.resumed {
        let name = [first, second].map(|run| &run.name)[resumed.side];
        bail!(
            "{name} began at {}, from what an earlier run has left: give each run a folder of its own, or have the program \
             begin anew",
            Step { epoch: resumed.epoch, number: Some(resumed.step) }
        );
    }
    let records = |side: usize| comparison.sides[side].operations + comparison.sides[side].states;
    for (index, run) in [first, second].into_iter().enumerate() {
        let Run { name, recording, .. } = run;
        if comparison.sides[index].ending == Ending::Cut {
            bail!(
                "{name}: {} is not complete, so the runs cannot be compared: the disk is full, or the program was killed, \
                 or it ended by `_exit` or `abort`, which leave no time to write the end",
                recording.display()
            );
        }
        if records(index) == 0 && records(1 - index) > 0 {
            bail!("{name}: {} has no step and no operation, and that of another run has", recording.display());
        }
    }
    if comparison.compared.digests == 0 && comparison.compared.lost > 0 {
        bail!("no digest could be read in {} and {}: the device failed", first.name, second.name);
    }
    Ok(comparison)
}

/// What follows `digest: ` on the last line that begins so.
fn digest(stdout: &str) -> Option<String> {
    let digest = stdout.lines().rev().find_map(|line| line.trim().strip_prefix("digest: "))?.trim();
    let is_hex = digest.len() >= 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| digest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn a_digest_is_hexadecimal_on_its_line() {
        let hex = "0123456789abcdef";
        assert_eq!(digest(&format!("loss: 0.3\ndigest: {hex}\r\nbye\n")).as_deref(), Some(hex));
        assert_eq!(digest(&format!("digest: {hex}\ndigest: {hex}{hex}\n")).as_deref(), Some(&*hex.repeat(2)));
        for other in ["", "digest: none", "the digest: 0123456789abcdef", "digest: 0123"] {
            assert_eq!(digest(other), None, "{other}");
        }
    }
}
