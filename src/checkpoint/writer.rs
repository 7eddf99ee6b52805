//! The checkpoints of one training: a folder, for the process that trains.

use super::Checkpoint;
use super::error::Error;
use super::file;
use super::folder::{Checkpoints, failed, file_name, step_of};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The file that a writer locks. It holds the writer's process id.
const LOCK: &str = ".lock";

/// A folder with the checkpoints of one training, for the process that trains: it alone writes there.
///
/// The writer holds an advisory lock on the file `.lock` in the folder; the operating system releases it when the writer
/// is dropped or its process ends, by a kill too.
///
/// Keep one writer for the whole of a training. It knows the step that the training stands at: that of the last checkpoint
/// that it loaded ([`latest`](Self::latest)) or saved. A [save](Self::save) that would leave another branch of the training
/// beside this one is an error, because the steps of both would be in one folder.
///
/// ```no_run
/// use burn_deterministic::checkpoint::{Checkpoint, CheckpointWriter};
///
/// # fn main() -> Result<(), burn_deterministic::checkpoint::Error> {
/// let mut writer = CheckpointWriter::open("runs/digits")?;
/// let (_, path) = writer.list()?.into_iter().find(|(step, _)| *step == 100).expect("it was kept");
/// let checkpoint = Checkpoint::load(path)?; // go back to step 100,
/// writer.truncate_after(100)?; // and lose what came after it
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CheckpointWriter {
    checkpoints: Checkpoints,
    kept: Option<usize>,
    /// The step that the training stands at; `None` at its beginning.
    position: Option<u64>,
    _lock: File,
}

impl CheckpointWriter {
    /// Opens `folder`, creates it and its parents where there are none, and removes what a writer that was killed left
    /// unfinished there.
    ///
    /// # Errors
    ///
    /// - [`Error::Locked`] when another writer has the folder open,
    /// - [`Error::LockUnavailable`] when the file system has no locks,
    /// - [`Error::Io`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let folder = folder.as_ref().to_owned();
        file::create_folder(&folder).map_err(|source| failed("create the folder", &folder, source))?;
        let lock = lock(&folder)?;
        remove_unfinished(&folder)?;
        Ok(Self { checkpoints: Checkpoints { folder }, kept: None, position: None, _lock: lock })
    }

    /// Keeps the `count` checkpoints of the highest steps: each save removes the others. Without this, all are kept.
    ///
    /// # Panics
    ///
    /// When `count` is 0.
    pub fn keep(self, count: usize) -> Self {
        assert!(count > 0, "a folder of checkpoints keeps one at least");
        Self { kept: Some(count), ..self }
    }

    /// The checkpoint of the highest step, from which the training now goes on; `None` where there is none yet.
    ///
    /// # Errors
    ///
    /// As of [`Checkpoint::load`]: an earlier one is not taken in the place of one that is damaged.
    pub fn latest(&mut self) -> Result<Option<Checkpoint>, Error> {
        let latest = self.checkpoints.latest()?;
        self.position = latest.as_ref().map(|checkpoint| checkpoint.step);
        Ok(latest)
    }

    /// The steps there are checkpoints of, ascending, and their files.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn list(&self) -> Result<Vec<(u64, PathBuf)>, Error> {
        self.checkpoints.list()
    }

    /// Writes a checkpoint under its step, then removes those that are no longer kept.
    ///
    /// A checkpoint of the step that the training stands at replaces the one there: a training has the same bits whenever
    /// it is at that step.
    ///
    /// # Errors
    ///
    /// - [`Error::OtherBranch`], and nothing is written, when the step is before the one that the training stands at, or the
    ///   folder holds later ones: the training did not go on from the newest checkpoint there. Say what becomes of those by
    ///   [`truncate_after`](Self::truncate_after) or [`clear`](Self::clear), or use another folder.
    /// - [`Error::Io`]; the checkpoint may be written all the same, and some of those no longer kept may be removed.
    pub fn save(&mut self, checkpoint: &Checkpoint) -> Result<PathBuf, Error> {
        let step = checkpoint.step;
        let newest = self.list()?.pop().map(|(step, _)| step);
        if step < self.position.unwrap_or(0) || newest > self.position {
            return Err(Error::OtherBranch {
                folder: self.checkpoints.folder.clone(),
                step,
                newest: newest.max(self.position).expect("one of them is greater than something"),
            });
        }
        // Before the file is there, for a save that fails may leave it.
        self.position = Some(step);
        let path = self.checkpoints.folder.join(file_name(step));
        checkpoint.save(&path)?;
        if let Some(kept) = self.kept {
            let mut steps = self.list()?;
            let surplus = steps.len().saturating_sub(kept);
            remove(steps.drain(..surplus))?;
        }
        Ok(path)
    }

    /// Removes the checkpoints of steps after `step`: the training goes on from there, and what came after is lost.
    ///
    /// A kill in the middle leaves the earlier ones of them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn truncate_after(&mut self, step: u64) -> Result<(), Error> {
        self.truncate(Some(step))
    }

    /// Removes all checkpoints: the training starts from the beginning.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn clear(&mut self) -> Result<(), Error> {
        self.truncate(None)
    }

    fn truncate(&mut self, position: Option<u64>) -> Result<(), Error> {
        let later = self.list()?.into_iter().rev().filter(|(step, _)| Some(*step) > position);
        remove(later)?;
        self.position = position;
        let folder = &self.checkpoints.folder;
        file::sync_folder(folder).map_err(|source| failed("sync", folder, source))
    }
}

fn remove(checkpoints: impl Iterator<Item = (u64, PathBuf)>) -> Result<(), Error> {
    for (_, path) in checkpoints {
        std::fs::remove_file(&path).map_err(|source| failed("remove", &path, source))?;
    }
    Ok(())
}

/// Takes the lock on `folder`.
fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = opened.map_err(|source| failed("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => {
            let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
            written.map_err(|source| failed("write", &path, source))?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Some systems do not let it be read while it is locked.
            let holder = file.read_to_string(&mut holder).ok().and_then(|_| holder.parse().ok());
            Err(Error::Locked { folder: folder.to_owned(), holder })
        }
        Err(TryLockError::Error(source)) => Err(Error::LockUnavailable { path, source }),
    }
}

/// Removes what killed writers left of checkpoints of this folder. The lock says that no writer is at work on one.
fn remove_unfinished(folder: &Path) -> Result<(), Error> {
    let remove = || {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_str().and_then(file::unfinished).and_then(step_of).is_some() {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    };
    remove().map_err(|source| failed("remove unfinished files from", folder, source))
}
