//! The checkpoints of one training.

use super::Checkpoint;
use super::error::Error;
use super::file;
use std::io;
use std::path::{Path, PathBuf};

const PREFIX: &str = "step-";
const SUFFIX: &str = ".checkpoint";

/// A folder with the checkpoints of one training, by step: `step-000000000120.checkpoint`.
///
/// One process at a time writes to it.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
    kept: Option<usize>,
}

impl Checkpoints {
    /// Opens `folder`, makes it where there is none, and removes what a writer that was killed left unfinished in it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref().to_owned();
        std::fs::create_dir_all(&folder).map_err(|source| failed("make the folder", &folder, source))?;
        file::remove_unfinished(&folder).map_err(|source| failed("tidy", &folder, source))?;
        Ok(Self { folder, kept: None })
    }

    /// Keeps the `count` checkpoints of the highest steps: each save removes the others, but never the one it wrote. Without
    /// this, all are kept.
    ///
    /// # Panics
    ///
    /// When `count` is 0.
    pub fn keep(self, count: usize) -> Self {
        assert!(count > 0, "a folder of checkpoints keeps one at least");
        Self { kept: Some(count), ..self }
    }

    /// Writes a checkpoint under its step, then removes those that are no longer kept.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; the checkpoint may be written all the same, and some of those no longer kept may be removed.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf, Error> {
        let path = self.folder.join(format!("{PREFIX}{:012}{SUFFIX}", checkpoint.step));
        checkpoint.save(&path)?;
        if let Some(kept) = self.kept {
            let mut steps = self.list()?;
            let surplus = steps.len().saturating_sub(kept);
            for (_, old) in steps.drain(..surplus).filter(|(_, old)| *old != path) {
                std::fs::remove_file(&old).map_err(|source| failed("remove", &old, source))?;
            }
        }
        Ok(path)
    }

    /// The checkpoint of the highest step; `None` where there is none yet.
    ///
    /// # Errors
    ///
    /// As of [`Checkpoint::load`]: an earlier one is not taken in the place of one that is damaged.
    pub fn latest(&self) -> Result<Option<Checkpoint>, Error> {
        self.list()?.last().map(|(_, path)| Checkpoint::load(path)).transpose()
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
                let name = entry.file_name();
                let step = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok());
                steps.extend(step.map(|step| (step, entry.path())));
            }
            steps.sort();
            Ok(steps)
        };
        read().map_err(|source| failed("list", &self.folder, source))
    }
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io { action, path: path.to_owned(), source }
}
