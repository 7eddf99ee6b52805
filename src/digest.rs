//! Hashes that say whether two modules hold the same bits.

use crate::device;
use crate::error::Error;
use crate::module::{self, Content, Entry};
use crate::settings::is_op_determinism_enabled;
use burn_core::module::Module;
use core::fmt;

/// A 256-bit BLAKE3 hash. `Display` and `LowerHex` are its 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The 32 bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:x}")
    }
}

impl fmt::LowerHex for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self:x})")
    }
}

/// The digest of every parameter and buffer of `module`, in visiting order: path, dtype, shape and bits of each.
///
/// A running state (of a batch norm, say) counts with its last update, so a module and its [`valid`](Module::valid) have
/// one digest. Burn's `ParamId`s are random and take no part, nor do flags, which `valid` changes.
///
/// A parameter that is not initialised counts as such, and stays so: modules that will draw different weights have the
/// same digest until they are used or [initialised](crate::initialize()). No random numbers are drawn.
///
/// For each tensor the hash takes in, each text and each list after its length as 8 little-endian bytes: the path
/// (`conv1.weight`), the dtype as Rust's `Debug` prints it, the dimensions as 8 little-endian bytes each, and the
/// elements in row-major order as they lie in memory. Where a parameter is not initialised, `uninitialised float` (or
/// `int`, or `bool`) stands for the dtype, and there are no elements.
///
/// It applies the pending update of running statistics (of a batch norm), as `Module::valid` does. So evaluate with
/// `model.valid()`: inference without it uses the statistics before or after that update, whichever a checkpoint or a digest
/// has left.
///
/// # Panics
///
/// With what [`try_digest`] returns.
#[track_caller]
pub fn digest<M: Module>(module: &M) -> Digest {
    // A closure would hide the caller.
    match try_digest(module) {
        Ok(digest) => digest,
        Err(error) => panic!("{error}"),
    }
}

/// [`digest`](digest()), where a tensor may carry an error.
///
/// # Errors
///
/// - [`Error::Unreadable`] when a tensor cannot be read, with its path and the error that its operations left on it,
/// - [`Error::NotCovered`] where determinism is enabled and a parameter is on a device that is not
///   [covered](crate::covers).
pub fn try_digest<M: Module>(module: &M) -> Result<Digest, Error> {
    check_devices("digest", module)?;
    let mut hasher = Hasher::default();
    module::read("the module", module, |entry| hasher.entry(&entry))?;
    Ok(hasher.finish())
}

/// The path and the digest of each parameter and buffer of `module`, in visiting order.
///
/// The digest is that of a module that has this tensor at this path and nothing else: see [`digest`](digest()).
///
/// # Errors
///
/// As [`try_digest`].
pub fn digests<M: Module>(module: &M) -> Result<Vec<(String, Digest)>, Error> {
    check_devices("digests", module)?;
    let mut digests = Vec::new();
    module::read("the module", module, |entry| {
        let mut hasher = Hasher::default();
        hasher.entry(&entry);
        digests.push((entry.path, hasher.finish()));
    })?;
    Ok(digests)
}

/// Where determinism is enabled, weights that plain Burn has computed are no result of it.
fn check_devices<M: Module>(function: &'static str, module: &M) -> Result<(), Error> {
    match is_op_determinism_enabled() {
        true => module.devices().iter().try_for_each(|device| device::check(function, device)),
        false => Ok(()),
    }
}

#[derive(Default)]
struct Hasher(blake3::Hasher);

impl Hasher {
    fn entry(&mut self, entry: &Entry) {
        let (dtype, shape, elements) = match &entry.content {
            Content::Values(data) => (format!("{:?}", data.dtype()), data.shape(), data.as_bytes()),
            Content::Uninitialised { kind, shape } => (format!("uninitialised {kind}"), shape, &[][..]),
        };
        let dimensions: Vec<u8> = shape.iter().flat_map(|dimension| (*dimension as u64).to_le_bytes()).collect();
        for part in [entry.path.as_bytes(), dtype.as_bytes(), &dimensions, elements] {
            self.0.update(&(part.len() as u64).to_le_bytes());
            self.0.update(part);
        }
    }

    fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}
