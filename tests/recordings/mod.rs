//! Recordings: two runs of one program agree, and the first operation of a fault is named at its step.

mod agreement;
pub mod failures;
mod faults;
pub mod overwrite;
pub mod programs;
pub mod unmarked;

use crate::process::{Folder, Program};
use burn_deterministic_recording::Recording;
use burn_deterministic_recording::diff::{Cause, Comparison, Difference, Outcome, compare};
use std::path::{Path, PathBuf};

/// A program, to be recorded.
fn recorded(program: Program, file: &Path, level: &str) -> Program {
    program.env("BURN_DETERMINISTIC_RECORD", file).env("BURN_DETERMINISTIC_RECORD_LEVEL", level)
}

/// Records two programs, and compares them.
fn compared(programs: [Program; 2], level: &str) -> Comparison {
    let folder = Folder::new();
    let files = ["first", "second"].map(|name| folder.path().join(name));
    for (program, file) in programs.into_iter().zip(&files) {
        recorded(program, file, level).run();
    }
    compare(&files[0], &files[1]).expect("two recordings")
}

fn difference(comparison: &Comparison) -> &Difference {
    match &comparison.outcome {
        Outcome::Differ(difference) => difference,
        outcome => panic!("{outcome:?}"),
    }
}

/// The cause, and the name and the step of the first operation that differs.
fn first(comparison: &Comparison) -> (&Cause, &str, Option<u64>) {
    let difference = difference(comparison);
    let operation = difference.operation.as_ref().unwrap_or_else(|| panic!("no operation: {comparison:?}"));
    let [operation, _] = &operation.operations;
    (&difference.cause, &operation.name, operation.place.step)
}

fn read(file: PathBuf) -> Recording {
    Recording::read(file).expect("a recording")
}
