//! Writing a file.

use crate::error::Error;
use crate::record::Record;
use crate::{MAGIC, VERSION};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes records to a file, one after another.
pub struct Writer {
    path: PathBuf,
    stream: DeflateEncoder<File>,
    payload: Vec<u8>,
}

impl Writer {
    /// Creates the file at `path`, and the folders above it. A file that is there is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let io = |doing, source| Error::Io { doing, path: path.clone(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| io("creating the folder of", error))?;
        }
        let mut file = File::create(&path).map_err(|error| io("creating", error))?;
        file.write_all(MAGIC).and_then(|()| file.write_all(&VERSION.to_le_bytes())).map_err(|e| io("writing", e))?;
        let stream = DeflateEncoder::new(file, Compression::fast());
        Ok(Self { path, stream, payload: Vec::new() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a record. It is in the file after the next [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn write(&mut self, record: &Record) -> Result<(), Error> {
        self.payload.clear();
        ciborium::into_writer(record, &mut self.payload).expect("a record has no type that CBOR lacks");
        let length = u32::try_from(self.payload.len()).expect("a record is shorter than 4 GiB");
        let crc = crc32fast::hash(&self.payload);
        let parts: [&[u8]; 3] = [&length.to_le_bytes(), &crc.to_le_bytes(), &self.payload];
        let written = parts.into_iter().try_for_each(|part| self.stream.write_all(part));
        written.map_err(|source| self.io(source))
    }

    /// Hands all records to the operating system.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn flush(&mut self) -> Result<(), Error> {
        self.stream.flush().map_err(|source| self.io(source))
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<(), Error> {
        self.stream.try_finish().map_err(|source| self.io(source))
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { doing: "writing", path: self.path.clone(), source }
    }
}
