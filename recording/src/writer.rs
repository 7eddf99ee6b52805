//! Writing a file.

use crate::error::Error;
use crate::record::Record;
use crate::{MAGIC, VERSION};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes records to a file, one after another.
///
/// A writer that is dropped writes what it holds, and loses the error of that, if there is one: call
/// [`finish`](Self::finish).
pub struct Writer {
    path: PathBuf,
    file: File,
    /// Records that are in no chunk yet, in CBOR.
    records: Vec<u8>,
    /// After an error the file may end inside a chunk, and nothing more may follow.
    failed: bool,
}

/// Size of the records of a chunk, uncompressed, from which it is written: a chunk is read as a whole.
const CHUNK: usize = 256 << 10;

impl Writer {
    /// Creates the file at `path`, and the folders above it. A file that is there is overwritten. It is locked until the writer is
    /// dropped, on file systems that have locks.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and [`Error::Locked`] for a file that another writer writes.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let io = |doing, reason| Error::Io { doing, path: path.clone(), reason };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| io("creating the folder of", error))?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            // Another process may be writing it.
            .truncate(false)
            .open(&path)
            .map_err(|error| io("creating", error))?;
        // Not a device or a pipe.
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            // Other errors are those of file systems without locks.
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Err(Error::Locked { path });
            }
            file.set_len(0).map_err(|error| io("creating", error))?;
        }
        let head = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
        file.write_all(&head).map_err(|error| io("writing", error))?;
        Ok(Self { path, file, records: Vec::new(), failed: false })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a record. It is in the file after the next [`flush`](Self::flush), or earlier.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn write(&mut self, record: &Record) -> Result<(), Error> {
        ciborium::into_writer(record, &mut self.records).expect("a record has no type that CBOR lacks");
        if self.records.len() < CHUNK { Ok(()) } else { self.flush() }
    }

    /// Hands all records to the operating system.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; after it, every further call is an error too.
    pub fn flush(&mut self) -> Result<(), Error> {
        let written =
            if self.failed { Err(io::Error::other("an earlier write has failed")) } else { self.write_chunk() };
        self.failed |= written.is_err();
        written.map_err(|reason| Error::Io { doing: "writing", path: self.path.clone(), reason })
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()
    }

    fn write_chunk(&mut self) -> io::Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&self.records)?;
        let data = encoder.finish()?;
        self.records.clear();
        let length = u32::try_from(data.len()).map_err(io::Error::other)?.to_le_bytes();
        let [length_crc, data_crc] = [crc32fast::hash(&length), crc32fast::hash(&data)].map(u32::to_le_bytes);
        self.file.write_all(&[&length, &length_crc, &data_crc, &data[..]].concat())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.failed {
            let _ = self.flush();
        }
    }
}
