//! burn-train's `SupervisedTraining`, with everything it does beside training, on our loader: the example
//! `digits_learner`.

use crate::examples::{difference, training};
use crate::process::{Folder, Output};
use std::path::{Path, PathBuf};

/// Processes of each kind.
const RUNS: usize = if cfg!(feature = "heavy") { 20 } else { 1 };

/// Fast enough for early stopping to come to its turn.
const RATE: [&str; 2] = ["--learning-rate", "0.05"];
const EPOCHS: usize = 30;

/// What burn-train has logged of each metric, split and epoch.
fn metrics(folder: &Path) -> Vec<String> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("burn-train's folder").map(|entry| entry.expect("its entry").path()).collect();
    entries.sort();
    let of = |path: PathBuf| match path.is_dir() {
        true => metrics(&path),
        false if path.file_name().is_some_and(|name| name == "Loss.log" || name == "Accuracy.log") => {
            let logged = std::fs::read_to_string(&path).expect("a log of numbers");
            vec![format!("{}: {logged}", path.display()).replace(&folder.display().to_string(), "")]
        }
        false => Vec::new(),
    };
    entries.into_iter().flat_map(of).collect()
}

/// How many epochs it told of.
fn epochs(output: &Output) -> usize {
    output.stdout().lines().filter(|line| line.starts_with("epoch ")).count()
}

#[test]
fn burn_train_ends_in_the_same_bits_with_any_number_of_workers() {
    let run = |workers: usize| {
        let folder = Folder::new();
        let workers = workers.to_string();
        let output = training("digits_learner", &[&RATE[..], &["--workers", &workers]].concat(), &folder).run();
        let metrics = metrics(&folder.path().join("checkpoints"));
        (output, metrics, folder)
    };
    let (first, logged, folder) = run(0);
    let stopped = epochs(&first);
    assert!((2..EPOCHS).contains(&stopped), "stopped early, after {stopped} epochs");
    assert_eq!(logged.len(), 4 * stopped, "logs of two metrics in two splits, not {logged:?}");
    for workers in [1, 2, 8].into_iter().cycle().take(3 * RUNS) {
        let (other, other_logged, other_folder) = run(workers);
        other.assert_digest(&first);
        assert_eq!(epochs(&other), stopped);
        assert_eq!(other_logged, logged);
        assert!(difference(&folder, &other_folder).is_none(), "the digests agree, and the weights do not");
    }
}
