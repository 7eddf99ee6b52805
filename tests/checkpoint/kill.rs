//! Programs that are killed.

use crate::process::{self, Folder, Program};
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::{Distribution, activation};
use burn_deterministic::checkpoint::{Checkpoint, CheckpointWriter, Checkpoints};
use burn_deterministic::{Determinism, digest, enable_op_determinism, set_random_seed};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

/// Times that a training is killed before it is left to end.
const KILLS: usize = if cfg!(feature = "heavy") { 20 } else { 3 };
/// Times that a program is killed while it writes.
const KILLED_WRITES: usize = if cfg!(feature = "heavy") { 60 } else { 8 };

const STEPS: u64 = 24;
const STEPS_BETWEEN: u64 = 3;
const WORDS: usize = 40;
const SAMPLES: usize = 60;
const BATCH: usize = 16;
const CLASSES: usize = 4;

/// The folder of the checkpoints, in a child; without it there are none.
const FOLDER: &str = "BURN_DETERMINISTIC_CHECKPOINTS";

/// Sorts numbers into classes: a frozen embedding, noise, batch norm and dropout.
#[derive(Module, Debug)]
struct Sorter {
    words: Embedding,
    widen: Linear,
    norm: BatchNorm,
    dropout: Dropout,
    head: Linear,
}

impl Sorter {
    fn new(device: &Device) -> Self {
        Self {
            words: EmbeddingConfig::new(WORDS, 12).init(device).freeze(),
            widen: LinearConfig::new(12, 32).init(device),
            norm: BatchNormConfig::new(32).init(device),
            dropout: DropoutConfig::new(0.4).init(),
            head: LinearConfig::new(32, CLASSES).init(device),
        }
    }

    /// Words `[n, 1]` to logits `[n, 4]`.
    fn forward(&self, words: Tensor<2, Int>) -> Tensor<2> {
        let x = self.words.forward(words).squeeze_dim::<2>(1);
        let noise = Tensor::random(x.dims(), Distribution::Normal(0.0, 0.2), &x.device());
        let x = activation::relu(self.norm.forward(self.widen.forward(x + noise)));
        self.head.forward(self.dropout.forward(x))
    }
}

/// Where a training stands in its data: shuffled anew for each pass, by a generator that is consumed.
#[derive(Serialize, Deserialize)]
struct Position {
    pass: u64,
    next: usize,
}

impl Position {
    fn next_batch(&mut self) -> Vec<usize> {
        if self.next + BATCH > SAMPLES {
            *self = Self { pass: self.pass + 1, next: 0 };
        }
        let mut order: Vec<usize> = (0..SAMPLES).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(self.pass));
        self.next += BATCH;
        order[self.next - BATCH..self.next].to_vec()
    }
}

/// Trains, from where the last process stopped.
pub fn checkpointed() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let device = Device::default().autodiff();
    let mut model = Sorter::new(&device);
    let mut optimizer = AdamConfig::new().init();
    let mut rate = CosineAnnealingLrSchedulerConfig::new(0.02, 9).init().expect("a rate within 0 and 1");
    let mut position = Position { pass: 0, next: 0 };
    let mut losses: Vec<f64> = Vec::new();
    let loss = CrossEntropyLossConfig::new().init(&device);

    let mut writer = std::env::var_os(FOLDER).map(|folder| CheckpointWriter::open(folder).expect("a folder").keep(2));
    let mut start = 0;
    if let Some(mut checkpoint) = writer.as_mut().and_then(|all| all.latest().expect("an intact file")) {
        model = checkpoint.module("model", model).expect("the same model");
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model).expect("the same optimizer");
        rate = rate.load_record(checkpoint.scheduler("rate").expect("a scheduler"));
        position = checkpoint.value("position").expect("a position");
        losses = checkpoint.value("losses").expect("losses");
        start = checkpoint.resume().expect("everything was restored");
    }
    process::report("started at", start);
    for step in start..STEPS {
        let batch = position.next_batch();
        let words: Vec<i32> = batch.iter().map(|sample| (sample * 7 % WORDS) as i32).collect();
        let classes: Vec<i32> = words.iter().map(|word| word % CLASSES as i32).collect();
        let words = Tensor::<2, Int>::from_data(TensorData::new(words, [BATCH, 1]), &device);
        let classes = Tensor::<1, Int>::from_data(TensorData::new(classes, [BATCH]), &device);
        let value = loss.forward(model.forward(words), classes);
        let gradients = GradientsParams::from_grads(value.backward(), &model);
        model = optimizer.step(rate.step(), model, gradients);
        losses.push(value.into_scalar::<f64>());
        if let Some(writer) = &mut writer
            && (step + 1) % STEPS_BETWEEN == 0
        {
            let checkpoint = Checkpoint::new(step + 1)
                .and_then(|checkpoint| checkpoint.with_module("model", &model))
                .and_then(|checkpoint| checkpoint.with_optimizer("optimizer", &optimizer, &model))
                .and_then(|checkpoint| checkpoint.with_scheduler("rate", rate.to_record()))
                .and_then(|checkpoint| checkpoint.with_value("position", &position))
                .and_then(|checkpoint| checkpoint.with_value("losses", &losses));
            writer.save(&checkpoint.expect("a readable model")).expect("a disk with room");
        }
        process::report("step", step + 1);
    }
    process::report("losses", format!("{losses:?}"));
    process::report("digest", digest(&model));
}

/// The bytes of the newest checkpoint.
fn newest(folder: &Path) -> Vec<u8> {
    let checkpoints = Checkpoints::open(folder).expect("the folder of a training").list().expect("its files");
    let (step, path) = checkpoints.last().expect("a checkpoint");
    assert_eq!((*step, checkpoints.len()), (STEPS, 2), "the last checkpoint, and how many are kept");
    std::fs::read(path).expect("the file listed")
}

#[test]
fn a_training_that_was_killed_ends_like_one_that_was_not() {
    let plain = Program::new("checkpointed").run();
    let [whole, killed] = [Folder::new(), Folder::new()];
    let checkpointed = |folder: &Folder| Program::new("checkpointed").env(FOLDER, folder.path());
    let uninterrupted = checkpointed(&whole).run();
    uninterrupted.assert_digest(&plain);
    assert_eq!(uninterrupted.reported("losses"), plain.reported("losses"));

    let seed = rand::random();
    eprintln!("kills are drawn with the seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    for _ in 0..KILLS {
        let mut child = checkpointed(&killed).start();
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let mut steps = lines.map_while(Result::ok).filter(|line| line.starts_with("step: "));
        // The pipe stays open: a child must not end because it can no longer print.
        let seen = steps.by_ref().take(random.random_range(0..=STEPS as usize / KILLS + 1)).count();
        thread::sleep(Duration::from_micros(random.random_range(0..50_000)));
        child.kill().expect("a child to kill, or one that has ended");
        let status = child.wait().expect("the child's end");
        eprintln!("a process was killed after it told of {seen} steps: {status}");
        assert!(is_killed(status) || status.success(), "{status}");
    }
    let last = checkpointed(&killed).run();
    eprintln!("the last of {} processes started at step {}", KILLS + 1, last.reported("started at"));
    last.assert_digest(&plain);
    assert_eq!(last.reported("losses"), plain.reported("losses"));
    assert_eq!(newest(killed.path()), newest(whole.path()), "the bytes of the two last checkpoints");
}

/// The kills above may all come before the first checkpoint or after the last; this stops at each.
#[test]
fn a_training_goes_on_from_each_of_its_checkpoints() {
    let folder = Folder::new();
    let program = || Program::new("checkpointed").env(FOLDER, folder.path());
    let whole = program().run();
    let checkpoints = Checkpoints::open(folder.path()).expect("the folder of the training");
    for _ in 0..2 {
        let (step, path) = checkpoints.list().expect("its files").pop().expect("a checkpoint");
        let bytes = std::fs::read(&path).expect("the file listed");
        std::fs::remove_file(&path).expect("the file listed");
        let again = program().run();
        assert!(again.reported("started at").parse::<u64>().expect("a step") < step);
        again.assert_digest(&whole);
        assert!(std::fs::read(&path).expect("written again") == bytes, "the bytes of the checkpoint of step {step}");
        std::fs::remove_file(&path).expect("the file listed");
    }
}

#[cfg(unix)]
fn is_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(9)
}

#[cfg(not(unix))]
fn is_killed(status: ExitStatus) -> bool {
    !status.success()
}

/// A large text, of one letter for each step.
fn large(step: u64) -> String {
    char::from(b'a' + (step % 26) as u8).to_string().repeat(24 << 20)
}

/// The step of a checkpoint with that text.
fn text_step(mut checkpoint: Checkpoint) -> u64 {
    let text: String = checkpoint.value("text").expect("the text");
    let step = checkpoint.resume().expect("nothing else to restore");
    assert!(text == large(step), "the text of step {step}");
    step
}

/// Writes one large checkpoint after another.
pub fn endless_writes() {
    let folder = std::env::var_os(FOLDER).expect("the folder to write to");
    let mut writer = CheckpointWriter::open(folder).expect("a folder to write to").keep(1);
    let last = writer.latest().expect("a whole file").map(text_step);
    for step in last.map_or(0, |step| step + 1).. {
        let checkpoint = Checkpoint::new(step).and_then(|checkpoint| checkpoint.with_value("text", &large(step)));
        let path = writer.save(&checkpoint.expect("no device to count on")).expect("a disk with room");
        process::report("wrote", path.display());
    }
}

/// The files in a folder that a writer has begun and not ended.
fn unfinished_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry"));
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".writing")).count()
}

/// Every second kill waits for an unfinished file: kills at fixed times can all fall between two writes.
#[test]
fn a_kill_during_a_write_leaves_a_whole_file() {
    let folder = Folder::new();
    let mut unfinished = 0;
    let mut kill = 0;
    while kill < KILLED_WRITES || unfinished == 0 {
        assert!(kill < 20 * KILLED_WRITES, "of {kill} kills, none fell into a write");
        let mut child = Program::new("endless_writes").env(FOLDER, folder.path()).start();
        let lines = BufReader::new(child.stdout.take().expect("its output is piped")).lines();
        let mut lines = lines.map_while(Result::ok);
        lines.by_ref().find(|line| line.starts_with("wrote: ")).expect("a first write");
        if kill.is_multiple_of(2) {
            let deadline = Instant::now() + Duration::from_secs(60);
            while unfinished_files(folder.path()) == 0 {
                assert!(Instant::now() < deadline, "the child writes nothing");
                thread::sleep(Duration::from_micros(100));
            }
        } else {
            thread::sleep(Duration::from_millis(11 * (kill % 16) as u64));
        }
        child.kill().expect("an endless child");
        assert!(is_killed(child.wait().expect("the child's end")), "an endless child ends by a kill alone");
        let before = unfinished_files(folder.path());
        unfinished += before;
        let checkpoints = Checkpoints::open(folder.path()).expect("the folder");
        text_step(checkpoints.latest().expect("a whole file").expect("a file"));
        assert_eq!(unfinished_files(folder.path()), before, "a reader removes nothing");
        CheckpointWriter::open(folder.path()).expect("the folder of a dead writer");
        assert_eq!(unfinished_files(folder.path()), 0, "unfinished files after the folder was opened for writing");
        kill += 1;
    }
}
