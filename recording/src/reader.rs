//! Reading a file, also one that was cut.

use crate::error::Error;
use crate::record::{Header, Record};
use crate::{MAGIC, VERSION};
use flate2::bufread::DeflateDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Reads the records of a file one after another.
pub struct Reader {
    path: PathBuf,
    stream: DeflateDecoder<BufReader<File>>,
    records: u64,
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
}

impl Reader {
    /// Opens the file at `path` and reads its header.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Magic`], [`Error::Version`], [`Error::Empty`], [`Error::Damaged`].
    pub fn open(path: impl Into<PathBuf>) -> Result<(Header, Self), Error> {
        let path = path.into();
        let file = File::open(&path).map_err(|source| Error::Io { doing: "opening", path: path.clone(), source })?;
        let mut file = BufReader::new(file);
        let mut head = Vec::new();
        let size = MAGIC.len() + size_of::<u32>();
        let read = file.by_ref().take(size as u64).read_to_end(&mut head);
        read.map_err(|source| Error::Io { doing: "reading", path: path.clone(), source })?;
        let magic = head.len().min(MAGIC.len());
        if head[..magic] != MAGIC[..magic] || (head.is_empty() && size > 0) {
            return Err(if head.is_empty() { Error::Empty { path } } else { Error::Magic { path } });
        }
        let Some(version) = head.get(MAGIC.len()..size) else { return Err(Error::Empty { path }) };
        let found = u32::from_le_bytes(version.try_into().expect("four bytes"));
        if found != VERSION {
            return Err(Error::Version { path, found });
        }
        let mut reader = Self { path, stream: DeflateDecoder::new(file), records: 0, ending: None };
        match reader.next_record()? {
            Some(Record::Header(header)) => Ok((header, reader)),
            Some(_) => Err(reader.damaged("the first record is no header".to_owned())),
            None => Err(Error::Empty { path: reader.path }),
        }
    }

    /// The next record; `None` at the end, and where the file was cut.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Damaged`].
    pub fn next_record(&mut self) -> Result<Option<Record>, Error> {
        if self.ending.is_some() {
            return Ok(None);
        }
        let Some(head) = self.bytes(8)? else { return Ok(None) };
        let (length, crc) = head.split_at(4);
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let (length, crc) = (number(length), number(crc));
        let Some(payload) = self.bytes(length as usize)? else { return Ok(None) };
        if crc32fast::hash(&payload) != crc {
            return Err(self.damaged("its checksum is another".to_owned()));
        }
        let record = ciborium::from_reader(&payload[..]).map_err(|error| self.damaged(error.to_string()))?;
        self.records += 1;
        if let Record::End { .. } = record {
            self.ending = Some(Ending::Complete);
        }
        Ok(Some(record))
    }

    /// How the file ends; `None` before its end was reached.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next `count` bytes of the stream; `None` where it ends before.
    fn bytes(&mut self, count: usize) -> Result<Option<Vec<u8>>, Error> {
        let mut bytes = Vec::new();
        // Not `read_exact`: a length that was damaged must not become an allocation.
        match self.stream.by_ref().take(count as u64).read_to_end(&mut bytes) {
            Ok(read) if read == count => return Ok(Some(bytes)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(self.damaged(error.to_string())),
            Err(source) => return Err(Error::Io { doing: "reading", path: self.path.clone(), source }),
        }
        self.ending = Some(Ending::Cut);
        Ok(None)
    }

    fn damaged(&self, reason: String) -> Error {
        Error::Damaged { path: self.path.clone(), records: self.records, reason }
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
        Ok(Self { header, records, ending })
    }
}
