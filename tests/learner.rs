//! burn-train's `SupervisedTraining`, with everything it does beside training, on our loader.

use crate::process::{self, Folder, Output, Program};
use crate::programs::learner::{Run, train};
use burn::prelude::*;
use burn_deterministic::{Determinism, digest, enable_op_determinism, set_random_seed};
use std::path::{Path, PathBuf};

/// Processes of each kind.
const RUNS: usize = if cfg!(feature = "heavy") { 20 } else { 1 };

const FOLDER: &str = "BURN_DETERMINISTIC_FOLDER";
const WORKERS: &str = "BURN_DETERMINISTIC_WORKERS";
const EPOCHS: &str = "BURN_DETERMINISTIC_EPOCHS";
const FROM: &str = "BURN_DETERMINISTIC_FROM";

fn variable(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// Trains with dropout until the validation loss rises, and reports the weights and every metric of every epoch.
pub fn learner() {
    run(40, 0.3, true);
}

/// Trains for some epochs, or goes on from a checkpoint of another process.
pub fn learner_with_checkpoint() {
    // Dropout's stream goes on with the thread's draws, of which the second process has made fewer.
    run(variable(EPOCHS).expect("how many epochs"), 0.0, false);
}

fn run(epochs: usize, dropout: f64, early_stopping: bool) {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("a folder"));
    let run = Run {
        folder: &folder,
        workers: variable(WORKERS).unwrap_or(0),
        epochs,
        from: variable(FROM),
        dropout,
        early_stopping,
    };
    let model = train(&Device::default().autodiff(), &run);
    process::report("digest", digest(&model));
    process::report("metrics", metrics(&folder).concat().replace('\n', "; "));
}

/// What burn-train has logged of each metric, split and epoch.
fn metrics(folder: &Path) -> Vec<String> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("burn-train's folder").map(|entry| entry.expect("its entry").path()).collect();
    entries.sort();
    let of = |path: PathBuf| match path.is_dir() {
        true => metrics(&path),
        false if path.file_name().is_some_and(|name| name == "Loss.log" || name == "Accuracy.log") => {
            let logged = std::fs::read_to_string(&path).expect("a log of numbers");
            vec![format!("{}: {logged}\n", path.display()).replace(&folder.display().to_string(), "")]
        }
        false => Vec::new(),
    };
    entries.into_iter().flat_map(of).collect()
}

fn program(name: &str, folder: &Folder, workers: usize) -> Program {
    Program::new(name).env(FOLDER, folder.path()).env(WORKERS, workers.to_string())
}

#[test]
fn burn_train_ends_in_the_same_bits_with_any_number_of_workers() {
    let run = |workers| program("learner", &Folder::new(), workers).run();
    let first: Output = run(0);
    let epochs: usize = first.reported("epochs").parse().expect("a number");
    assert!((2..40).contains(&epochs), "stopped early, after {epochs} epochs");
    let logged = first.reported("metrics");
    assert!(logged.matches("Loss.log: ").count() >= 2 * epochs.min(2), "losses of both splits in {logged}");
    for workers in [1, 2, 8].into_iter().cycle().take(3 * RUNS) {
        let other = run(workers);
        other.assert_digest(&first);
        assert_eq!(other.reported("epochs"), first.reported("epochs"));
        assert_eq!(other.reported("metrics"), logged);
    }
}

#[test]
fn burn_train_goes_on_from_a_checkpoint() {
    let name = "learner_with_checkpoint";
    let whole = program(name, &Folder::new(), 2).env(EPOCHS, "4").run();
    let folder = Folder::new();
    let part = program(name, &folder, 0).env(EPOCHS, "2").run();
    assert_ne!(part.digest(), whole.digest());
    program(name, &folder, 3).env(EPOCHS, "4").env(FROM, "2").run().assert_digest(&whole);
}
