//! The versions that a file names.

use crate::environment::{BURN, version};
use std::fmt;

/// Bytes of a version in a file: ASCII, then zeros.
const LENGTH: usize = 32;

/// Bytes of [`Versions`] in a file.
pub(super) const SIZE: usize = 2 * LENGTH;

/// The versions of the crates that took a checkpoint. `Display` is `burn-deterministic 0.1.0 with Burn 0.22.1`.
///
/// The same bits need the same versions of both, and the same [environment](super::Checkpoint::environment) and build.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Versions {
    /// The version of this crate, with the commit where Cargo has it from a Git repository: `0.1.0+4931e51`.
    pub burn_deterministic: String,
    /// The version of Burn.
    pub burn: String,
}

impl Versions {
    /// The versions of this program.
    pub fn current() -> Self {
        Self { burn_deterministic: version(), burn: BURN.to_owned() }
    }

    pub(super) fn to_bytes(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        for (field, version) in bytes.chunks_exact_mut(LENGTH).zip([&self.burn_deterministic, &self.burn]) {
            field[..version.len()].copy_from_slice(version.as_bytes());
        }
        bytes
    }

    /// `None` where the bytes are not two versions.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let version = |field: &[u8]| {
            let end = field.iter().rposition(|byte| *byte != 0)? + 1;
            let is_version = field[..end].iter().all(|byte| byte.is_ascii_graphic());
            is_version.then(|| String::from_utf8_lossy(&field[..end]).into_owned())
        };
        let (burn_deterministic, burn) = bytes.split_at_checked(LENGTH)?;
        Some(Self { burn_deterministic: version(burn_deterministic)?, burn: version(burn)? })
    }

    /// What an error adds about a file: nothing where the present versions wrote it.
    pub(super) fn note(&self) -> String {
        let current = Self::current();
        if *self == current { String::new() } else { format!(" (written by {self}; this program has {current})") }
    }
}

// Of a commit there are 7 digits.
const _: () =
    assert!(env!("CARGO_PKG_VERSION").len() + 8 <= LENGTH && BURN.len() <= LENGTH, "a file has room for them");

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "burn-deterministic {} with Burn {}", self.burn_deterministic, self.burn)
    }
}

#[cfg(test)]
mod tests {
    use super::BURN;

    #[test]
    fn burns_version_is_the_pinned_one() {
        let manifest = include_str!("../../Cargo.toml").lines().filter(|line| line.starts_with("burn"));
        let pinned: Vec<&str> = manifest.filter(|line| line.contains("version = \"=")).collect();
        assert!(pinned.len() > 10, "Burn's crates are pinned: {pinned:?}");
        let of_burn = format!("version = \"={BURN}\"");
        pinned.iter().for_each(|line| assert!(line.contains(&of_burn), "{line}, and BURN is {BURN}"));
    }
}
