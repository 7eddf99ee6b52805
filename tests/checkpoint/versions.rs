//! What a file tells of the versions that wrote it.

use super::{reloaded, small};
use crate::process::Folder;
use burn_deterministic::checkpoint::{Checkpoint, Error};
use std::path::{Path, PathBuf};

/// The places of the file format that every format keeps.
const FORMAT: std::ops::Range<usize> = 8..12;
const CRATE: std::ops::Range<usize> = 64..96;
const BURN: std::ops::Range<usize> = 96..128;

fn saved(folder: &Folder) -> (PathBuf, Vec<u8>) {
    let path = folder.path().join("small.checkpoint");
    small(7).save(&path).expect("a folder to write to");
    let bytes = std::fs::read(&path).expect("the file just written");
    (path, bytes)
}

fn name(bytes: &mut [u8], version: &str) {
    bytes.fill(0);
    bytes[..version.len()].copy_from_slice(version.as_bytes());
}

/// Writes the hash that belongs to the other bytes.
fn write(path: &Path, mut bytes: Vec<u8>) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..32]).update(&bytes[64..]);
    bytes[32..64].copy_from_slice(hasher.finalize().as_bytes());
    std::fs::write(path, bytes).expect("a folder to write to");
}

#[test]
fn a_file_names_the_versions_of_cargo_toml() {
    let folder = Folder::new();
    let (path, bytes) = saved(&folder);
    let loaded = Checkpoint::load(&path).expect("the file just written");
    let versions = loaded.written_by();
    assert_eq!(versions.burn_deterministic, env!("CARGO_PKG_VERSION"));
    let manifest = include_str!("../../Cargo.toml");
    let pinned = manifest.lines().filter_map(|line| {
        let (name, value) = line.split_once(" = ")?;
        let is_burns = name.starts_with("burn-") && !name.starts_with("burn-deterministic");
        Some(value.split_once("version = \"=")?.1.split_once('"')?.0).filter(|_| is_burns || name == "burn")
    });
    let pinned: Vec<_> = pinned.collect();
    assert!(pinned.len() > 5, "{pinned:?}");
    assert!(pinned.iter().all(|version| *version == versions.burn), "{pinned:?}, and files name {}", versions.burn);
    assert!(bytes[CRATE].starts_with(versions.burn_deterministic.as_bytes()));
    assert!(bytes[BURN].starts_with(versions.burn.as_bytes()));
    assert_eq!(small(1).written_by(), versions);
}

#[test]
fn a_checkpoint_of_other_versions_is_read_and_not_resumed() {
    for (place, version, others) in
        [(CRATE, "0.0.9-alpha.1", "burn-deterministic 0.0.9-alpha.1 with"), (BURN, "0.21.0", "with Burn 0.21.0")]
    {
        let folder = Folder::new();
        let (path, mut bytes) = saved(&folder);
        name(&mut bytes[place], version);
        write(&path, bytes);
        let checkpoint = || Checkpoint::load(&path).expect("the format is the same");
        assert!(checkpoint().written_by().to_string().contains(others), "{}", checkpoint().written_by());
        let missing = checkpoint().scheduler("rate").expect_err("there is none").to_string();
        assert!(missing.contains(others), "{missing}");
        let restored = || {
            let mut checkpoint = checkpoint();
            let _: Vec<f64> = checkpoint.value("losses").expect("two numbers");
            checkpoint
        };
        let error = restored().resume().expect_err("other versions can give other bits");
        assert!(matches!(&error, Error::OtherVersions { .. }), "{error}");
        for part in [others, env!("CARGO_PKG_VERSION"), "resume_across_versions", &path.display().to_string()] {
            assert!(error.to_string().contains(part), "no `{part}` in {error}");
        }
        assert_eq!(restored().resume_across_versions().expect("it was asked for"), 7);
        let error = checkpoint().resume_across_versions().expect_err("the losses are left");
        assert!(matches!(error, Error::Unrestored { .. }), "{error}");
        // Saved again, it is still a checkpoint of those versions.
        assert_eq!(reloaded(&checkpoint()).written_by(), checkpoint().written_by());
    }
}

#[test]
fn an_error_names_the_versions_that_wrote_the_file() {
    let folder = Folder::new();
    let (path, bytes) = saved(&folder);
    let error = |bytes: &[u8], is_rehashed: bool| {
        match is_rehashed {
            true => write(&path, bytes.to_vec()),
            false => std::fs::write(&path, bytes).expect("a folder to write to"),
        }
        Checkpoint::load(&path).expect_err("it is not as it was written").to_string()
    };
    let others = "burn-deterministic 9.8.7 with Burn 0.33.1";
    let mut later = bytes.clone();
    name(&mut later[CRATE], "9.8.7");
    name(&mut later[BURN], "0.33.1");
    let mut damaged = later.clone();
    *damaged.last_mut().expect("a file") ^= 1;
    assert!(error(&damaged, false).contains(others), "a wrong hash");
    let mut other_index = later.clone();
    other_index[128] ^= 0xff;
    assert!(error(&other_index, true).contains(others), "an index of other contents");
    let mut format = later.clone();
    format[FORMAT].copy_from_slice(&77_u32.to_le_bytes());
    assert!(error(&format, true).contains(others), "another format");
    // Where no versions stand, none are named.
    format[CRATE].fill(7);
    let text = error(&format, true);
    assert!(text.ends_with("load it with the version that wrote it"), "{text}");
    let mut nameless = bytes;
    nameless[BURN].fill(0);
    assert!(error(&nameless, true).contains("does not name the versions"), "no version");
}
