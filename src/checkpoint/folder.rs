//! The checkpoints of one training: a folder, for reading.

use super::Checkpoint;
use super::error::Error;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const PREFIX: &str = "step-";
const SUFFIX: &str = ".checkpoint";

/// The name of the file of a step.
pub(super) fn file_name(step: u64) -> String {
    format!("{PREFIX}{step:012}{SUFFIX}")
}

/// The step of the file of that name, if it is one of a checkpoint.
pub(super) fn step_of(file_name: &str) -> Option<u64> {
    file_name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}

/// A folder with the checkpoints of one training, by step (`step-000000000120.checkpoint`), for reading.
///
/// It creates, changes and deletes nothing, so any number of processes may read while a [`CheckpointWriter`] in another
/// one trains.
///
/// [`CheckpointWriter`]: super::CheckpointWriter
#[derive(Clone, Debug)]
pub struct Checkpoints {
    pub(super) folder: PathBuf,
}

impl Checkpoints {
    /// Opens `folder`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when there is no such folder: a mistyped path is not a training without checkpoints.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref().to_owned();
        // Not only whether it is there, but whether it may be listed.
        std::fs::read_dir(&folder).map_err(|source| failed("open the folder", &folder, source))?;
        Ok(Self { folder })
    }

    /// The checkpoint of the highest step; `None` where there is none yet.
    ///
    /// Where a writer removes the file before it is opened, because newer ones took its place, this is a newer one.
    ///
    /// # Errors
    ///
    /// As of [`Checkpoint::load`]: an earlier one is not taken in the place of one that is damaged.
    pub fn latest(&self) -> Result<Option<Checkpoint>, Error> {
        let mut gone = None;
        loop {
            let Some((_, path)) = self.list()?.pop() else { return Ok(None) };
            match Checkpoint::load(&path) {
                Err(Error::Io { source, .. })
                    if source.kind() == ErrorKind::NotFound && gone.as_ref() != Some(&path) =>
                {
                    gone = Some(path);
                }
                loaded => return loaded.map(Some),
            }
        }
    }

    /// The steps there are checkpoints of, ascending, and their files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn list(&self) -> Result<Vec<(u64, PathBuf)>, Error> {
        let read = || -> io::Result<Vec<(u64, PathBuf)>> {
            let mut steps = Vec::new();
            for entry in std::fs::read_dir(&self.folder)? {
                let entry = entry?;
                let step = entry.file_name().to_str().and_then(step_of);
                steps.extend(step.map(|step| (step, entry.path())));
            }
            steps.sort();
            Ok(steps)
        };
        read().map_err(|source| failed("list", &self.folder, source))
    }
}

pub(super) fn failed(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { action, path: path.to_owned(), source }
}
