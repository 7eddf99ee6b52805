//! Reading a file, also one that was cut.

use crate::error::Error;
use crate::record::{Header, Record};
use crate::{MAGIC, VERSION};
use flate2::bufread::DeflateDecoder;
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

/// Reads the records of a file one after another. It holds one chunk of the file in memory.
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    /// The records of the chunk, in CBOR.
    chunk: Cursor<Vec<u8>>,
    /// Whether the chunk was cut: its checksum cannot be checked, and its last record may not be whole.
    is_cut: bool,
    /// Records that were read.
    records: u64,
    /// Those of them that are of a chunk that was cut.
    unverified: u64,
    ending: Option<Ending>,
}

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With [`Record::End`]: the program came to its end.
    Complete,
    /// In the middle: the program, or the copy of the file, was stopped.
    Cut,
}

/// A file in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The first record.
    pub header: Header,
    /// All others, in the order of the file.
    pub records: Vec<Record>,
    /// How the file ends.
    pub ending: Ending,
    /// How many of the records, the last ones, no checksum covers, because their chunk was cut.
    pub unverified: u64,
}

impl Reader {
    /// Opens the file at `path` and reads its header.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Magic`], [`Error::Version`], [`Error::Empty`], [`Error::Damaged`].
    pub fn open(path: impl Into<PathBuf>) -> Result<(Header, Self), Error> {
        let path = path.into();
        let file = File::open(&path).map_err(|reason| Error::Io { doing: "opening", path: path.clone(), reason })?;
        let mut reader = Self {
            path,
            file: BufReader::new(file),
            chunk: Cursor::new(Vec::new()),
            is_cut: false,
            records: 0,
            unverified: 0,
            ending: None,
        };
        let magic = reader.read(MAGIC.len())?;
        if !MAGIC.starts_with(&magic) {
            return Err(Error::Magic { path: reader.path });
        }
        let Some(found) = reader.read_number()? else { return Err(Error::Empty { path: reader.path }) };
        if found != VERSION {
            return Err(Error::Version { path: reader.path, found });
        }
        match reader.next_record()? {
            Some(Record::Header(header)) => Ok((header, reader)),
            Some(_) => {
                Err(Error::Damaged { path: reader.path, records: 0, reason: "no header comes first".to_owned() })
            }
            None => Err(Error::Empty { path: reader.path }),
        }
    }

    /// The next record; `None` at the end, and where the file was cut. Of a chunk that was cut, the whole records are read.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn next_record(&mut self) -> Result<Option<Record>, Error> {
        while self.ending.is_none() && self.chunk.position() == self.chunk.get_ref().len() as u64 {
            match self.next_chunk()? {
                Some(records) => self.chunk = Cursor::new(records),
                None => self.ending = Some(Ending::Cut),
            }
        }
        if self.ending.is_some() {
            return Ok(None);
        }
        let record = match ciborium::from_reader(&mut self.chunk) {
            Ok(record) => record,
            Err(_) if self.is_cut => {
                self.ending = Some(Ending::Cut);
                return Ok(None);
            }
            Err(error) => return Err(self.damaged(error)),
        };
        self.records += 1;
        self.unverified += u64::from(self.is_cut);
        if matches!(record, Record::End { .. }) && !self.is_cut {
            self.ending = Some(Ending::Complete);
        }
        Ok(Some(record))
    }

    /// How many of the records that were read no checksum covers: those of a chunk that was cut.
    pub fn unverified(&self) -> u64 {
        self.unverified
    }

    /// How the file ends; `None` before its end was reached.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The records of the next chunk, as far as it goes; `None` where the file ends before it.
    fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let (Some(length), Some(length_crc), Some(data_crc)) =
            (self.read_number()?, self.read_number()?, self.read_number()?)
        else {
            return Ok(None);
        };
        // Before anything is read by it: with a length that was changed, the file would seem to be cut.
        if crc32fast::hash(&length.to_le_bytes()) != length_crc {
            return Err(self.damaged("the length of a chunk has another checksum"));
        }
        let data = self.read(length as usize)?;
        self.is_cut = data.len() < length as usize;
        if !self.is_cut && crc32fast::hash(&data) != data_crc {
            return Err(self.damaged("a chunk has another checksum"));
        }
        let mut records = Vec::new();
        match DeflateDecoder::new(&data[..]).read_to_end(&mut records) {
            Err(error) if !self.is_cut => Err(self.damaged(error)),
            // What was decoded before the cut is in `records`.
            _ => Ok(Some(records)),
        }
    }

    /// The next 4 bytes as a number; `None` where the file ends before.
    fn read_number(&mut self) -> Result<Option<u32>, Error> {
        Ok(self.read(4)?.try_into().ok().map(u32::from_le_bytes))
    }

    /// The next `count` bytes, or fewer where the file ends before.
    fn read(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        // Not `read_exact` into a vector of `count`: memory is allocated for what is there.
        let read = self.file.by_ref().take(count as u64).read_to_end(&mut bytes);
        read.map_err(|reason| Error::Io { doing: "reading", path: self.path.clone(), reason })?;
        Ok(bytes)
    }

    fn damaged(&self, reason: impl ToString) -> Error {
        Error::Damaged { path: self.path.clone(), records: self.records, reason: reason.to_string() }
    }
}

impl Recording {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// As [`Reader::open`] and [`Reader::next_record`].
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let (header, mut reader) = Reader::open(path)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next_record()? {
            records.push(record);
        }
        let ending = reader.ending().expect("the end was reached");
        Ok(Self { header, records, ending, unverified: reader.unverified() })
    }
}
