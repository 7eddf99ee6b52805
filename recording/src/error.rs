//! Errors of reading and writing.

use std::io;
use std::path::PathBuf;

/// What `main` prints of an error that it returns, and what `expect` prints.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Why a recording cannot be read or written.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("{doing} {}: {reason}", path.display())]
    Io {
        /// `opening`, `reading`, `creating` or `writing`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What it said. The text has it, so it is no `source`.
        reason: io::Error,
    },
    /// Another process, or another writer of this one, writes the file.
    #[error(
        "{} is being written already, here or by another process; a child process inherits BURN_DETERMINISTIC_RECORD: start it without that \
         variable, or with another file",
        path.display()
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file does not begin with [`MAGIC`](crate::MAGIC).
    #[error("{} is not a recording: it does not begin with {:?}", path.display(), "burn-deterministic recording")]
    Magic {
        /// The file.
        path: PathBuf,
    },
    /// The file has another version.
    #[error(
        "{} is a recording of version {found}, and this program reads version {}; read it with the version of \
         burn-deterministic that wrote it, or record again",
        path.display(),
        crate::VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// Bytes of the file have changed since it was written: a checksum or a record does not fit.
    #[error("{} is damaged after record {records}: {reason}; record again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Whole records before the damage.
        records: u64,
        /// What is wrong.
        reason: String,
    },
    /// The file has no header: its program ended, or was ended, before it wrote one.
    #[error("{} has no record: its program ended before the first one was written; record again", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}
