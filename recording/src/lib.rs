//! Recordings of the operations of a program: the file, and its records.
//!
//! A recording says what a program computed, operation by operation: names, shapes, scalars, kernels and a digest of each
//! result. Two recordings of one program show where it first computed something else.
//!
//! # File
//!
//! ```text
//! file       = magic version chunk*
//! magic      = "burn-deterministic recording\n"       29 bytes
//! version    = VERSION                                4 bytes, little-endian
//! chunk      = length length_crc data_crc data
//! length     = number of bytes of `data`              4 bytes, little-endian
//! length_crc = CRC-32 (IEEE 802.3) of `length`        4 bytes, little-endian
//! data_crc   = CRC-32 of `data`                       4 bytes, little-endian
//! data       = DEFLATE (RFC 1951) of one [`Record`] after another in CBOR (RFC 8949), as serde and ciborium write it
//! ```
//!
//! A file is written from the beginning to the end and never changed. The first record is [`Record::Header`]; the last one of
//! a program that came to its end is [`Record::End`]. A chunk ends at least at the end of each step, so a file cut at any
//! byte, as by a crash, is read up to its last whole record; those of the chunk that was cut are
//! [unverified](Reader::unverified). A byte that changed in a whole chunk is [`Error::Damaged`].

pub mod diff;
mod environment;
mod error;
mod reader;
mod record;
pub mod report;
mod writer;

pub use environment::{Environment, EnvironmentDifference};
pub use error::Error;
pub use reader::{Ending, Reader, Recording};
pub use record::{
    Digest, Draw, Header, Level, Operation, Origin, Output, Phase, Place, Record, State, StateTensor, Tensor, Thread,
};
pub use writer::Writer;

/// The version of the file that this crate writes, and the only one that it reads.
pub const VERSION: u32 = 2;

/// The first bytes of a file.
pub const MAGIC: &[u8; 29] = b"burn-deterministic recording\n";
