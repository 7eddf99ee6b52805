//! A folder of checkpoints: one process writes, others read.

use super::small;
use crate::process::{self, Folder, Program};
use crate::skip::skip;
use burn_deterministic::checkpoint::{Checkpoint, CheckpointWriter, Checkpoints, Error};
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a writer writes and readers read beside it.
const BESIDE: Duration = Duration::from_secs(if cfg!(feature = "heavy") { 30 } else { 3 });

/// The folder, in a child.
const FOLDER: &str = "BURN_DETERMINISTIC_BESIDE";

fn folder_of_child() -> PathBuf {
    std::env::var_os(FOLDER).expect("the folder to write to or to read").into()
}

fn writer(folder: &Folder) -> CheckpointWriter {
    CheckpointWriter::open(folder.path()).expect("a folder to write to")
}

fn steps(folder: &Path) -> Vec<u64> {
    let list = Checkpoints::open(folder).and_then(|checkpoints| checkpoints.list());
    list.expect("the folder").into_iter().map(|(step, _)| step).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

/// The step of a checkpoint of [`small`], which must be the one that its values are of.
fn step_of(mut checkpoint: Checkpoint) -> u64 {
    let losses: Vec<f64> = checkpoint.value("losses").expect("losses");
    let step = checkpoint.resume().expect("nothing is left");
    assert_eq!(losses[0], step as f64);
    step
}

#[test]
fn a_folder_keeps_the_last_few() {
    let folder = Folder::new();
    let mut writer = writer(&folder).keep(2);
    assert!(writer.latest().expect("an empty folder").is_none());
    for step in [0, 1, 3, 20, 100] {
        writer.save(&small(step)).expect("a folder to write to");
    }
    assert_eq!(steps(folder.path()), [20, 100]);
    assert_eq!(step_of(writer.latest().expect("an intact file").expect("a file")), 100);

    let (_, path) = writer.list().expect("the folder").pop().expect("a file");
    std::fs::write(&path, b"").expect("a folder to write to");
    assert!(matches!(writer.latest(), Err(Error::Length { .. })), "an earlier one is not taken instead");
}

#[test]
fn reading_changes_nothing() {
    let folder = Folder::new();
    writer(&folder).save(&small(7)).expect("a folder to write to");
    for name in [".step-000000000008.checkpoint.Ab3dEf.writing", "notes.txt"] {
        std::fs::write(folder.path().join(name), b"what a writer is writing").expect("a folder to write to");
    }
    let before = names(folder.path());
    let checkpoints = Checkpoints::open(folder.path()).expect("a folder to read");
    assert_eq!(step_of(checkpoints.latest().expect("an intact file").expect("a file")), 7);
    assert_eq!(names(folder.path()), before);

    let missing = folder.path().join("missing/deep");
    let error = Checkpoints::open(&missing).expect_err("no such folder");
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound), "{error}");
    assert!(error.to_string().contains(&missing.display().to_string()), "{error}");
    assert_eq!(names(folder.path()), before, "it is not created");
}

#[test]
fn a_writer_removes_unfinished_checkpoints_and_nothing_else() {
    let folder = Folder::new();
    let others = [".notes.Ab3dEf.writing", ".step-000000000008.checkpoint", ".step-x.checkpoint.Ab3dEf.writing", "a"];
    for name in others.into_iter().chain([".step-000000000008.checkpoint.Ab3dEf.writing"]) {
        std::fs::write(folder.path().join(name), b"").expect("a folder to write to");
    }
    let _writer = writer(&folder);
    let mut expected = [&[".lock"], &others[..]].concat();
    expected.sort();
    assert_eq!(names(folder.path()), expected);
}

/// A folder in folders that are not there, and one in the working folder.
pub fn nested_writers() {
    for folder in ["made/as/needed", "beside"] {
        let mut writer = CheckpointWriter::open(folder).expect("a folder to write to");
        writer.save(&small(1)).expect("a folder to write to");
        assert_eq!(steps(Path::new(folder)), [1]);
    }
}

#[test]
fn folders_are_created_as_needed() {
    let folder = Folder::new();
    Program::new("nested_writers").folder(folder.path()).run();
    assert_eq!(steps(&folder.path().join("made/as/needed")), [1]);
    let file = folder.path().join("file");
    std::fs::write(&file, b"").expect("a folder to write to");
    for path in [file.clone(), file.join("deep")] {
        let error = CheckpointWriter::open(&path).expect_err("it is in the way");
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }
}

/// A power failure after a save must not lose a folder that was made for it: the entry of each is brought to the disk.
#[cfg(target_os = "linux")]
#[test]
fn folders_that_are_created_are_brought_to_the_disk() {
    let folder = Folder::new();
    let trace = Folder::new();
    let trace = trace.path().join("trace");
    let strace = format!("strace -f -y -e trace=mkdir,fsync -o '{}'", trace.display());
    let probe = std::process::Command::new("sh").arg("-c").arg(format!("{strace} true")).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skip("there is no `strace` that may trace a program");
    }
    Program::new("nested_writers").after(&format!("exec {strace} \"$0\" \"$@\"")).folder(folder.path()).run();
    let trace = std::fs::read_to_string(trace).expect("what was traced");
    let root = folder.path().canonicalize().expect("the folder");
    for synced in ["", "/made", "/made/as", "/made/as/needed", "/beside"] {
        let call = format!("<{}{synced}>) = 0", root.display());
        assert!(trace.lines().any(|line| line.contains("fsync(") && line.contains(&call)), "{call} in\n{trace}");
    }
}

pub fn second_writer() {
    let error = CheckpointWriter::open(folder_of_child()).expect_err("the folder has a writer");
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    process::report("error", error);
    let checkpoints = Checkpoints::open(folder_of_child()).expect("reading needs no lock");
    process::report("latest", step_of(checkpoints.latest().expect("an intact file").expect("a file")));
}

#[test]
fn a_second_writer_is_refused() {
    let folder = Folder::new();
    let mut first = writer(&folder);
    first.save(&small(1)).expect("a folder to write to");
    let other = Program::new("second_writer").env(FOLDER, folder.path()).run();
    let process = format!("process {}", std::process::id());
    for part in [&folder.path().display().to_string(), &process, "another folder"] {
        assert!(other.reported("error").contains(part), "no `{part}` in {other}");
    }
    assert_eq!(other.reported("latest"), "1");
    let error = CheckpointWriter::open(folder.path()).expect_err("the folder has a writer").to_string();
    assert!(error.contains("this process"), "{error}");
    first.save(&small(2)).expect("the lock is still held");
    drop(first);
    assert_eq!(step_of(writer(&folder).latest().expect("an intact file").expect("a file")), 2);
}

/// Steps after each other, each with a text large enough to be met while it is written.
fn large(step: u64) -> Checkpoint {
    small(step).with_value("text", &"a".repeat(1 << 20)).expect("a text")
}

pub fn rotating_writer() {
    let mut writer = CheckpointWriter::open(folder_of_child()).expect("a folder to write to").keep(1);
    let start = Instant::now();
    let mut step = 0;
    while start.elapsed() < BESIDE {
        step += 1;
        let saved = writer.save(&large(step));
        saved.unwrap_or_else(|error| panic!("the checkpoint of step {step}: {error}"));
    }
    process::report("saved", step);
}

pub fn reader() {
    let latest = || {
        let checkpoints = Checkpoints::open(folder_of_child()).expect("a folder to read");
        checkpoints.latest().unwrap_or_else(|error| panic!("{error}")).map(|mut checkpoint| {
            let _: String = checkpoint.value("text").expect("a text");
            step_of(checkpoint)
        })
    };
    let start = Instant::now();
    let mut last = loop {
        match latest() {
            Some(step) => break step,
            None => assert!(start.elapsed() < Duration::from_secs(60), "no checkpoint in a minute"),
        }
    };
    let (first, start) = (last, Instant::now());
    let mut reads = 0;
    while start.elapsed() < BESIDE {
        let step = latest().expect("there has been one all the time since the first");
        assert!(step >= last, "step {step} after step {last}");
        last = step;
        reads += 1;
    }
    process::report("reads", format!("{reads}, of steps {first} to {last}"));
    process::report("steps", last - first);
}

/// Readers once removed what the writer was writing, and failed where it removed what they were about to read.
#[test]
fn readers_beside_a_writer() {
    let folder = Folder::new();
    let program = |name| Program::new(name).env(FOLDER, folder.path());
    thread::scope(|scope| {
        let readers = [0, 1].map(|_| scope.spawn(|| program("reader").run()));
        let written = program("rotating_writer").run();
        eprintln!("saved: {}", written.reported("saved"));
        for reader in readers {
            let read = reader.join().expect("a reader that does not fail");
            eprintln!("reads: {}", read.reported("reads"));
            assert_ne!(read.reported("steps"), "0", "it saw no new checkpoint");
        }
    });
    assert_eq!(steps(folder.path()).len(), 1);
}

pub fn holder() {
    let mut writer = CheckpointWriter::open(folder_of_child()).expect("a folder to write to");
    writer.save(&small(1)).expect("a folder to write to");
    process::report("holds", "it");
    thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_kill_releases_the_folder() {
    let folder = Folder::new();
    let mut child = Program::new("holder").env(FOLDER, folder.path()).start();
    let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
    lines.map_while(Result::ok).find(|line| line.starts_with("holds: ")).expect("a first write");
    let error = CheckpointWriter::open(folder.path()).expect_err("the child is the writer");
    assert!(matches!(error, Error::Locked { holder, .. } if holder == Some(child.id())), "{error}");
    child.kill().expect("a child that sleeps");
    child.wait().expect("the child's end");
    assert_eq!(step_of(writer(&folder).latest().expect("an intact file").expect("a file")), 1);
}

/// A folder with the checkpoints of steps 100 to 1,100.
fn trained() -> Folder {
    let folder = Folder::new();
    let mut writer = writer(&folder);
    for step in 1..=11 {
        writer.save(&small(100 * step)).expect("a folder to write to");
    }
    folder
}

/// The training started anew, or from a checkpoint that it did not get from the writer.
#[test]
fn a_save_beside_another_branch_is_refused() {
    let folder = trained();
    let before = names(folder.path());
    for step in [0, 200, 1100, 1200] {
        let error = writer(&folder).save(&small(step)).expect_err("it did not go on from step 1100").to_string();
        for part in [&folder.path().display().to_string(), &format!("step {step} "), "step 1100", "truncate_after"] {
            assert!(error.contains(part), "no `{part}` in {error}");
        }
    }
    let mut back = writer(&folder);
    back.latest().expect("an intact file").expect("a file");
    back.save(&small(200)).expect_err("it stands at step 1100");
    assert_eq!(names(folder.path()), before, "nothing is written");
    back.save(&small(1200)).expect("it goes on");
    assert_eq!(steps(folder.path()).last(), Some(&1200));
    back.save(&small(1199)).expect_err("it stands at step 1200");
}

#[test]
fn a_step_saved_again_by_the_same_training_is_replaced() {
    let folder = Folder::new();
    let mut first = writer(&folder);
    let with = |more: u64| small(5).with_value("more", &more).expect("a number");
    let more =
        || Checkpoints::open(folder.path()).and_then(|all| all.latest()).expect("an intact file").expect("a file");
    for number in [1, 2] {
        first.save(&with(number)).expect("it stands at this step");
        assert_eq!(more().value::<u64>("more").expect("a number"), number);
    }
    drop(first);
    let mut second = writer(&folder);
    second.save(&with(3)).expect_err("it did not go on from this step");
    assert_eq!(more().value::<u64>("more").expect("a number"), 2);
    second.latest().expect("an intact file").expect("a file");
    second.save(&with(3)).expect("it goes on from this step");
    assert_eq!(more().value::<u64>("more").expect("a number"), 3);
}

#[test]
fn a_training_goes_back_when_it_says_so() {
    let folder = trained();
    let mut back = writer(&folder);
    back.truncate_after(150).expect("a folder to write to");
    assert_eq!(steps(folder.path()), [100]);
    back.save(&small(149)).expect_err("it stands at step 150");
    back.save(&small(150)).expect("it goes on from there");
    back.truncate_after(150).expect("a folder to write to");
    back.save(&small(160)).expect("it goes on from there");
    assert_eq!(steps(folder.path()), [100, 150, 160]);
    drop(back);

    let mut anew = writer(&folder);
    anew.clear().expect("a folder to write to");
    assert_eq!(steps(folder.path()), [0; 0]);
    anew.save(&small(0)).expect("it starts anew");
    assert_eq!(steps(folder.path()), [0]);
}
