//! Loaders of programs that are killed: what comes after is what would have come.

use crate::data::loader::WORKERS;
use crate::data::stages::{STAGES, loader};
use crate::process::{self, Folder, Program};
use burn_deterministic::checkpoint::{Checkpoint, CheckpointWriter};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::io::{BufRead, BufReader};
use std::thread;
use std::time::Duration;

/// The folder of the checkpoints.
const FOLDER: &str = "BURN_DETERMINISTIC_CHECKPOINTS";
const BATCHES: u64 = 40;
const STEPS_BETWEEN: u64 = 3;
/// Times that a program is killed before it is left to end.
const KILLS: usize = if cfg!(feature = "heavy") { 12 } else { 3 };

/// Loads batches of the stage that the arguments name, with so many workers, from where the last process stopped; each
/// is hashed with those before it.
pub fn killed_loader() {
    let arguments = process::arguments();
    let [stage, workers] = &arguments[..] else { panic!("{arguments:?}") };
    let loader = loader(stage, workers.parse().expect("a number"), 300);
    let folder = std::env::var_os(FOLDER).expect("the folder to write to");
    let mut writer = CheckpointWriter::open(folder).expect("a folder").keep(2);
    let (mut hash, mut step) = ([0u8; 32], 0);
    if let Some(mut checkpoint) = writer.latest().expect("an intact file") {
        hash = checkpoint.value("hash").expect("a hash");
        loader.resume_at(&checkpoint.value("loader").expect("a position")).expect("the same loader");
        step = checkpoint.resume().expect("everything was restored");
    }
    process::report("started at", step);
    let mut batches = loader.batches();
    while step < BATCHES {
        let Some(batch) = batches.next() else {
            batches = loader.batches();
            continue;
        };
        let text = format!("{:?}", batch.expect("nothing fails here"));
        hash = *blake3::Hasher::new().update(&hash).update(text.as_bytes()).finalize().as_bytes();
        step += 1;
        if step % STEPS_BETWEEN == 0 {
            let checkpoint = Checkpoint::new(step)
                .and_then(|checkpoint| checkpoint.with_value("hash", &hash))
                .and_then(|checkpoint| checkpoint.with_value("loader", &loader.position()));
            writer.save(&checkpoint.expect("plain values")).expect("a disk with room");
        }
        process::report("step", step);
    }
    process::report("hash", format!("{hash:02x?}"));
}

/// Each process has another number of workers.
#[test]
fn a_loader_that_was_killed_goes_on_with_the_same_batches() {
    let seed = rand::random();
    eprintln!("kills are drawn with the seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    for stage in STAGES {
        let [whole, killed] = [Folder::new(), Folder::new()];
        let program = |folder: &Folder, workers: usize| {
            let program = Program::new("killed_loader").arguments(&[stage, &workers.to_string()]);
            program.env(FOLDER, folder.path())
        };
        let expected = program(&whole, 0).run();
        for kill in 0..KILLS {
            let mut child = program(&killed, WORKERS[(kill + 1) % WORKERS.len()]).start();
            let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
            let mut steps = lines.map_while(Result::ok).filter(|line| line.starts_with("step: "));
            // The pipe stays open: a child must not end because it can no longer print.
            let seen =
                steps.by_ref().take(random.random_range(STEPS_BETWEEN as usize + 1..=BATCHES as usize / 3)).count();
            thread::sleep(Duration::from_micros(random.random_range(0..3000)));
            child.kill().expect("a child to kill, or one that has ended");
            child.wait().expect("the child's end");
            eprintln!("{stage}: a process was killed after it told of {seen} batches");
        }
        let last = program(&killed, WORKERS[(KILLS + 1) % WORKERS.len()]).run();
        let started: u64 = last.reported("started at").parse().expect("a number");
        assert!(started > 0, "{stage}: no process was killed behind a checkpoint");
        assert_eq!(last.reported("hash"), expected.reported("hash"), "{stage}, started at {started}");
    }
}
