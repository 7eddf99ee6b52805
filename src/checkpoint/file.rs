//! The file: a header, an index and the bytes of the tensors. It is written atomically, and read only after
//! its hash has been verified.
//!
//! | bytes | |
//! |---|---|
//! | 0..8 | [`MAGIC`] |
//! | 8..12 | version, [`VERSION`] |
//! | 12..16 | zero |
//! | 16..24 | length of the file |
//! | 24..32 | length of the index |
//! | 32..64 | BLAKE3 over bytes 0..32 and everything from byte 64 on |
//! | 64..128 | [`Versions`] of the crates that took the checkpoint: two of 32 bytes, ASCII, then zeros |
//! | 128.. | the index in CBOR, then each tensor's contiguous bytes, in the order of the index |
//!
//! Numbers are little-endian. Bytes 0..12 and 64..128 mean the same in every later format, for errors to name what wrote
//! the file.

use super::error::Error;
use super::versions::{self, Versions};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

const MAGIC: [u8; 8] = *b"\x89BDckpt\n";
const VERSION: u32 = 3;
const HASHED_HEADER: usize = 32;
const WRITTEN_BY: usize = 64;
const HEADER: usize = WRITTEN_BY + versions::SIZE;
/// The name of a file being written starts with a dot and ends so.
const SUFFIX: &str = ".writing";

const _: () = assert!(cfg!(target_endian = "little"), "tensors are saved in native byte order");

/// The header, with zeros for the hash.
fn header(length: u64, index: u64, written_by: &Versions) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&length.to_le_bytes());
    header[24..32].copy_from_slice(&index.to_le_bytes());
    header[WRITTEN_BY..].copy_from_slice(&written_by.to_bytes());
    header
}

/// Writes a checkpoint to `path`, in the place of what is there.
///
/// The bytes go to a new file in the same folder, which takes the name only when they are on the disk; then the folder
/// is synced as well. A kill or a power failure at any moment leaves the previous file or the new one.
pub(super) fn write(path: &Path, written_by: &Versions, index: &[u8], tensors: &[&[u8]]) -> Result<(), Error> {
    let folder = parent(path);
    let failed = |action: &'static str| {
        let path = path.to_owned();
        move |source: io::Error| Error::Io { action, path, source }
    };
    let file = temporary(path, folder).map_err(failed("create a file beside"))?;
    let length = (HEADER + index.len() + tensors.iter().map(|bytes| bytes.len()).sum::<usize>()) as u64;
    let header = header(length, index.len() as u64, written_by);
    fill(file.as_file(), header, index, tensors).map_err(failed("write"))?;
    file.persist(path).map_err(|error| failed("rename the finished file to")(error.error))?;
    sync_folder(folder).map_err(failed("sync the folder of"))
}

/// The folder that `path` is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary(path: &Path, folder: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it has no file name"))?;
    let prefix = format!(".{}.", name.display());
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX);
    #[cfg(unix)]
    {
        // As of any new file, less what the umask takes; a temporary file would be the owner's alone.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

fn fill(file: &File, header: [u8; HEADER], index: &[u8], tensors: &[&[u8]]) -> io::Result<()> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&header[..HASHED_HEADER]);
    hasher.update(&header[WRITTEN_BY..]);
    let mut writer = BufWriter::new(file);
    writer.write_all(&header)?;
    for bytes in [index].iter().chain(tensors) {
        hasher.update(bytes);
        writer.write_all(bytes)?;
    }
    writer.seek(SeekFrom::Start(HASHED_HEADER as u64))?;
    writer.write_all(hasher.finalize().as_bytes())?;
    writer.flush()?;
    file.sync_all()
}

/// Creates `folder` and those of its parents that are missing, and syncs the entry of each: a power failure
/// would otherwise lose the folder with all files in it.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = parent(folder);
    create_folder(parent)?;
    match std::fs::create_dir(folder) {
        // Another process may have created it meanwhile.
        Err(error) if error.kind() != ErrorKind::AlreadyExists || !folder.is_dir() => Err(error),
        _ => sync_folder(parent),
    }
}

#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Elsewhere a folder cannot be opened as a file, and the rename has what durability the system gives it.
#[cfg(not(unix))]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// The name of the file that would have been the unfinished file of this name, if it is one.
pub(super) fn unfinished(name: &str) -> Option<&str> {
    let (name, _random) = name.strip_prefix('.')?.strip_suffix(SUFFIX)?.rsplit_once('.')?;
    Some(name)
}

/// A file whose hash is right.
pub(super) struct Verified {
    path: PathBuf,
    reader: BufReader<File>,
    /// Bytes not yet read.
    left: u64,
    index: u64,
    written_by: Versions,
}

impl Verified {
    /// Opens the file at `path` and checks all of it.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let damaged = |reason: &str, written_by: Option<&Versions>| Error::Damaged {
            path: path.to_owned(),
            reason: format!("{reason}{}", written_by.map(Versions::note).unwrap_or_default()),
        };
        let mut file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        let mut bytes = Vec::with_capacity(HEADER);
        (&mut file).take(HEADER as u64).read_to_end(&mut bytes).map_err(failed)?;
        let start = bytes.len().min(MAGIC.len());
        if bytes[..start] != MAGIC[..start] {
            return Err(Error::Foreign { path: path.to_owned() });
        }
        let Ok(bytes) = <[u8; HEADER]>::try_from(bytes) else {
            return Err(Error::Length { path: path.to_owned(), expected: HEADER as u64, found });
        };
        let version = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
        let written_by = Versions::from_bytes(&bytes[WRITTEN_BY..]);
        if version != VERSION {
            return Err(Error::Version { path: path.to_owned(), version, supported: VERSION, written_by });
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (expected, index) = (number(16), number(24));
        if expected != found {
            return Err(Error::Length { path: path.to_owned(), expected, found });
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes[..HASHED_HEADER]);
        hasher.update(&bytes[WRITTEN_BY..]);
        let hashed = hasher.update_reader(&mut file).map_err(failed)?.finalize();
        if hashed.as_bytes()[..] != bytes[HASHED_HEADER..WRITTEN_BY] {
            return Err(damaged("its contents do not have the hash that its header states", written_by.as_ref()));
        }
        let written_by =
            written_by.ok_or_else(|| damaged("its header does not name the versions that wrote it", None))?;
        file.seek(SeekFrom::Start(HEADER as u64)).map_err(failed)?;
        let (path, reader) = (path.to_owned(), BufReader::new(file));
        Ok(Self { path, reader, left: found - HEADER as u64, index, written_by })
    }

    /// The versions that the header names.
    pub(super) fn written_by(&self) -> &Versions {
        &self.written_by
    }

    /// The index; comes first.
    pub(super) fn index(&mut self) -> Result<Vec<u8>, Error> {
        self.bytes(self.index)
    }

    /// The next `length` bytes.
    pub(super) fn bytes(&mut self, length: u64) -> Result<Vec<u8>, Error> {
        self.left =
            self.left.checked_sub(length).ok_or_else(|| self.damaged("the index lists more data than the file has"))?;
        let mut bytes = vec![0; length as usize];
        let read = self.reader.read_exact(&mut bytes);
        read.map_err(|source| Error::Io { action: "read", path: self.path.clone(), source })?;
        Ok(bytes)
    }

    /// Requires that everything was read.
    pub(super) fn finish(self) -> Result<(), Error> {
        if self.left == 0 { Ok(()) } else { Err(self.damaged("the file has data that the index does not list")) }
    }

    /// What is there has the right hash and makes no sense all the same.
    pub(super) fn damaged(&self, reason: impl Display) -> Error {
        Error::Damaged { path: self.path.clone(), reason: format!("{reason}{}", self.written_by.note()) }
    }
}
