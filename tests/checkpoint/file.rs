//! Files that are no checkpoints, or no longer; disks without room.

use super::small;
use crate::process::{self, Folder, Program};
use crate::skip::skip;
use burn_deterministic::checkpoint::{Checkpoint, Error};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLDER: &str = "BURN_DETERMINISTIC_FULL_DISK";

fn saved(folder: &Folder) -> (PathBuf, Vec<u8>) {
    let path = folder.path().join("small.checkpoint");
    small(7).save(&path).expect("a folder to write to");
    let bytes = std::fs::read(&path).expect("the file just written");
    (path, bytes)
}

fn load(path: &Path, bytes: &[u8]) -> Error {
    std::fs::write(path, bytes).expect("a folder to write to");
    let error = Checkpoint::load(path).expect_err("this is not what was saved");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    error
}

#[test]
fn numbers_come_back_with_their_bits() {
    let numbers = [0.1, 1.0 / 3.0, f64::MIN_POSITIVE / 3.0, -0.0, f64::INFINITY, 1e300, f64::from(0.1_f32)];
    let whole = (u64::MAX, i64::MIN, Some("text"), vec![1_u8, 2]);
    let checkpoint = small(3).with_value("numbers", &numbers).and_then(|checkpoint| checkpoint.with_value("w", &whole));
    let mut checkpoint = super::reloaded(&checkpoint.expect("plain values"));
    let back: [f64; 7] = checkpoint.value("numbers").expect("numbers");
    assert_eq!(back.map(f64::to_bits), numbers.map(f64::to_bits));
    let back: (u64, i64, Option<String>, Vec<u8>) = checkpoint.value("w").expect("whole numbers and text");
    assert_eq!(back, (whole.0, whole.1, Some("text".to_owned()), whole.3));
}

#[test]
fn another_thread_may_write() {
    let folder = Folder::new();
    let path = folder.path().join("a.checkpoint");
    let (checkpoint, to) = (small(4), path.clone());
    std::thread::spawn(move || checkpoint.save(to)).join().expect("no panic").expect("a folder to write to");
    let mut checkpoint = Checkpoint::load(&path).expect("the file just written");
    let _: [f64; 2] = checkpoint.value("losses").expect("two numbers");
    assert_eq!(checkpoint.resume().expect("nothing is left"), 4);
}

/// Equal maps that iterate in different orders are written alike.
#[test]
fn a_hash_map_has_one_order() {
    let bytes = |capacity: usize| {
        let mut map = std::collections::HashMap::with_capacity(capacity);
        map.extend((0..50).map(|key| (format!("{key}"), key)));
        let folder = Folder::new();
        let path = folder.path().join("map.checkpoint");
        small(0).with_value("map", &map).expect("a map").save(&path).expect("a folder to write to");
        (map.keys().cloned().collect::<Vec<_>>(), std::fs::read(&path).expect("the file just written"))
    };
    let ((one_order, one), (other_order, other)) = (bytes(0), bytes(1000));
    assert_ne!(one_order, other_order, "the hazard");
    assert_eq!(one, other);
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let folder = Folder::new();
    let (path, bytes) = saved(&folder);
    for length in 0..bytes.len() {
        let error = load(&path, &bytes[..length]);
        let found = length as u64;
        assert!(matches!(error, Error::Length { found: f, .. } if f == found), "{length} bytes: {error}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(load(&path, &longer), Error::Length { .. }));
    std::fs::write(&path, &bytes).expect("a folder to write to");
    assert_eq!(Checkpoint::load(&path).expect("the file as it was").value::<[f64; 2]>("losses").expect("two")[1], 0.1);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let folder = Folder::new();
    let (path, bytes) = saved(&folder);
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = load(&path, &flipped);
        match bit / 8 {
            0..8 => assert!(matches!(error, Error::Foreign { .. }), "bit {bit}: {error}"),
            8..12 => assert!(matches!(error, Error::Version { .. }), "bit {bit}: {error}"),
            16..24 => assert!(matches!(error, Error::Length { .. }), "bit {bit}: {error}"),
            _ => assert!(matches!(error, Error::Damaged { .. }), "bit {bit}: {error}"),
        }
    }
}

#[test]
fn a_file_of_another_program_or_none_is_refused() {
    let folder = Folder::new();
    let path = folder.path().join("other");
    assert!(matches!(load(&path, b"\x89PNG\r\n\x1a\nand so on"), Error::Foreign { .. }));
    assert!(matches!(load(&path, &[0; 4096]), Error::Foreign { .. }));
    let absent = Checkpoint::load(folder.path().join("absent")).expect_err("nothing is there");
    assert!(matches!(&absent, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound), "{absent}");
    assert!(matches!(Checkpoint::load(folder.path()), Err(Error::Io { .. })), "a folder is not a file");
    assert!(matches!(small(0).save(folder.path()), Err(Error::Io { .. })), "a folder is not replaced");
    assert!(matches!(small(0).save(folder.path().join("absent/a")), Err(Error::Io { .. })));
}

#[test]
fn parts_have_names_of_their_own_and_all_are_restored() {
    let checkpoint = small(5);
    assert!(matches!(checkpoint.clone().with_value("losses", &1), Err(Error::Duplicate { .. })));
    let mut checkpoint = super::reloaded(&checkpoint);
    let missing = checkpoint.value::<u64>("loss").expect_err("it has another name");
    assert!(missing.to_string().contains("`losses`"), "{missing}");
    assert!(matches!(checkpoint.scheduler("losses"), Err(Error::Missing { .. })), "it is a value");
    let left = checkpoint.clone().resume().expect_err("there are losses");
    assert!(left.to_string().contains("the value `losses`"), "{left}");
    assert!(matches!(checkpoint.clone().value::<String>("losses"), Err(Error::Value { .. })), "it is no text");
    let _: [f64; 2] = checkpoint.value("losses").expect("two numbers");
    assert!(matches!(checkpoint.value::<[f64; 2]>("losses"), Err(Error::Missing { .. })), "it has been taken");
    assert_eq!(checkpoint.resume().expect("nothing is left"), 5);
}

#[cfg(unix)]
#[test]
fn a_checkpoint_is_as_readable_as_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let (path, _) = saved(&folder);
    let plain = folder.path().join("plain");
    std::fs::write(&plain, b"").expect("a folder to write to");
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode();
    assert_eq!(mode(&path), mode(&plain));
}

/// Saves what fits, then what does not.
pub fn full_disk() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the folder to fill"));
    let path = folder.join("a.checkpoint");
    small(1).save(&path).expect("room for a small file");
    let large = small(2).with_value("text", &"a".repeat(4 << 20)).expect("a text");
    let error = large.save(&path).expect_err("there is no room");
    process::report("error", &error);
    let mut left = Checkpoint::load(&path).expect("the small file");
    let _: [f64; 2] = left.value("losses").expect("two numbers");
    assert_eq!(left.resume().expect("nothing is left"), 1);
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1, "nothing half written is left");
    small(3).save(&path).expect("room for a small file");
}

/// A limit on the size of files stops a write as a full disk does, and anybody may set it.
#[cfg(unix)]
#[test]
fn a_write_past_a_limit_leaves_the_previous_checkpoint() {
    let folder = Folder::new();
    let output = Program::new("full_disk").env(FOLDER, folder.path()).after("trap '' XFSZ; ulimit -f 1024").run();
    let error = output.reported("error");
    assert!(error.contains("a.checkpoint`: File too large"), "{error}");
}

/// The command that mounts a disk of that size at `folder`, in namespaces of its own; `None` where those are not to be
/// had.
#[cfg(target_os = "linux")]
pub fn small_disk(folder: &Path, size: &str) -> Option<String> {
    let mount = format!("mount -t tmpfs -o size={size} tmpfs '{}'", folder.display());
    let unshare = ["--user", "--map-root-user", "--mount", "sh", "-c"];
    let probe = Command::new("unshare").args(unshare).arg(&mount).stderr(Stdio::null()).status();
    if probe.is_ok_and(|status| status.success()) {
        return Some(mount);
    }
    skip("this system does not let a program mount a small disk for itself");
    None
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_previous_checkpoint() {
    let folder = Folder::new();
    let Some(mount) = small_disk(folder.path(), "1m") else { return };
    let output = Program::new("full_disk").env(FOLDER, folder.path()).unshared(&mount).run();
    let error = output.reported("error");
    assert!(error.contains("a.checkpoint`: No space left on device"), "{error}");
}
