//! What `docs/recording.md` says of the file, for other languages, is so: its program in Python reads one.

use crate::skip::skip;
use crate::synthetic;
use burn_deterministic_recording::{Level, MAGIC, Record, Recording, VERSION};
use std::fs;
use std::process::Command;

const DESCRIPTION: &str = include_str!("../../../docs/recording.md");

#[test]
fn the_description_has_the_present_version() {
    assert!(DESCRIPTION.contains(&format!("| 4 | version: {VERSION} |")), "version {VERSION}");
    assert!(DESCRIPTION.contains(&format!("| {} | `burn-deterministic recording`", MAGIC.len())), "its first bytes");
}

#[test]
fn the_program_of_the_description_reads_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = synthetic::training(3, Level::Operations).write(folder.path(), "a");
    let program = DESCRIPTION.split_once("```python\n").and_then(|(_, rest)| rest.split_once("```"));
    let (program, _) = program.expect("the page has a program in Python");
    let script = folder.path().join("read.py");
    fs::write(&script, program).expect("a file");
    let Ok(output) = Command::new("python3").arg(&script).arg(&file).output() else {
        skip("python3 is not installed");
        return;
    };
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("{'Header': {'command': "), "{}", lines[0]);
    assert!(lines[lines.len() - 1].starts_with("{'End': "), "{}", lines[lines.len() - 1]);
    let read = Recording::read(&file).expect("a recording");
    let names = read.records.iter().filter_map(|record| match record {
        Record::Operation(operation) => Some(format!("'name': '{}'", operation.name)),
        _ => None,
    });
    let names: Vec<String> = names.collect();
    let operations: Vec<&&str> = lines.iter().filter(|line| line.starts_with("{'Operation': ")).collect();
    assert!(!names.is_empty() && names.len() == operations.len(), "{} of {}", operations.len(), names.len());
    assert!(names.iter().zip(operations).all(|(name, line)| line.contains(name)), "{names:?}");
}
