//! A training that was stopped ends like one that was not.

pub mod environment;
pub mod file;
pub mod folder;
pub mod kill;
mod module;
mod optimizer;
pub mod poisoned;
mod versions;

use burn_deterministic::checkpoint::{Checkpoint, Error};

/// A checkpoint of two losses; the first is the step.
fn small(step: u64) -> Checkpoint {
    let checkpoint = Checkpoint::new(step).and_then(|checkpoint| checkpoint.with_value("losses", &[step as f64, 0.1]));
    checkpoint.expect("two numbers")
}

/// A checkpoint as it comes back from a file.
fn reloaded(checkpoint: &Checkpoint) -> Checkpoint {
    let folder = crate::process::Folder::new();
    let path = folder.path().join("a.checkpoint");
    checkpoint.save(&path).expect("a folder to write to");
    Checkpoint::load(&path).expect("the file just written")
}

/// The paths that did not fit, and in what way.
fn differences<T: std::fmt::Debug>(result: Result<T, Error>) -> Vec<String> {
    match result {
        Err(Error::Mismatch { mismatches, .. }) => mismatches.iter().map(ToString::to_string).collect(),
        other => panic!("expected differences, found {other:?}"),
    }
}
