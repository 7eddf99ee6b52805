//! burn-train's `Learner` with the strategy of shards.

use super::training::run_on;
use crate::one_kind::devices_of_one_kind;
use crate::process::{self, Folder, Program, arguments};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataloader::{DataLoader, DataLoaderBuilder as BurnLoaderBuilder};
use burn::data::dataset::InMemDataset;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig};
use burn::optim::AdamConfig;
use burn::prelude::*;
use burn::tensor::Distribution;
use burn::train::metric::{AccuracyMetric, LossMetric};
use burn::train::{ClassificationOutput, InferenceStep, Learner, SupervisedTraining, TrainOutput, TrainStep};
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::shards::Shards;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, set_random_seed};
use examples_common::{Batch, Digit, DigitBatcher, DigitSet, Digits};
use std::path::Path;
use std::sync::Arc;

/// The folder of burn-train's checkpoints and logs.
const FOLDER: &str = "BURN_DETERMINISTIC_LEARNER_FOLDER";
/// The epoch to go on after, and the last one.
const EPOCHS: &str = "BURN_DETERMINISTIC_LEARNER_EPOCHS";
/// What is wrong.
const FAULT: &str = "BURN_DETERMINISTIC_LEARNER_FAULT";

#[derive(Module, Debug)]
struct Classifier {
    norm: BatchNorm,
    dropout: Dropout,
    output: Linear,
}

impl Classifier {
    fn classify(&self, Batch { images, labels }: Batch) -> ClassificationOutput {
        let x = self.dropout.forward(self.norm.forward(images).flatten(1, 3));
        let logits = self.output.forward(x);
        let loss = CrossEntropyLossConfig::new().init(&logits.device()).forward(logits.clone(), labels.clone());
        ClassificationOutput::new(loss, logits, labels)
    }
}

impl TrainStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        assert!(batch.samples() == 16 || fault() != "panic", "no room for {} images", batch.samples());
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> ClassificationOutput {
        self.classify(batch)
    }
}

/// Adds noise that is drawn on the device.
struct Noisy;

impl Batcher<Digit, Batch> for Noisy {
    fn batch(&self, digits: Vec<Digit>, device: &Device) -> Batch {
        let Batch { images, labels } = DigitBatcher.batch(digits, device);
        let noise = Tensor::random(images.dims(), Distribution::Normal(0.0, 0.1), device);
        Batch { images: images + noise, labels }
    }
}

fn fault() -> String {
    std::env::var(FAULT).unwrap_or_default()
}

/// Trains on as many devices as the argument says.
pub fn sharded_learner() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let devices = devices_of_one_kind(arguments()[0].parse().expect("a number of devices"));
    process::report("devices", devices.len());
    let workers = devices.len() - 1;
    let shards = Shards::new(6, devices).expect("devices of one kind");
    let (digits, test) = Digits::load(DigitSet::Digits).expect("the file of this repository");
    // 1,079 images: the last step of an epoch has 2 shards, and the second of them 7 images.
    let (digits, _) = digits.split(4);
    let train = DataLoaderBuilder::new("train", Noisy).shuffle(5).batch_size(16).num_workers(workers);
    let train = train.build(digits);
    let valid = DataLoaderBuilder::new("valid", DigitBatcher).batch_size(64).build(test);
    let device = shards.device().clone();
    let model = Classifier {
        norm: BatchNormConfig::new(1).init(&device),
        dropout: DropoutConfig::new(0.2).init(),
        output: LinearConfig::new(64, 10).init(&device),
    };
    let model = initialize(model).expect("a seed");
    let folder = std::env::var(FOLDER).expect("a folder");
    let epochs = std::env::var(EPOCHS).unwrap_or("0 3".to_owned());
    let (after, last) = epochs.split_once(' ').expect("two numbers");
    let (after, last): (usize, usize) = (after.parse().expect("an epoch"), last.parse().expect("an epoch"));
    let loader: Arc<dyn DataLoader<Batch>> = match fault().as_str() {
        "another loader" => BurnLoaderBuilder::new(DigitBatcher).batch_size(16).build(InMemDataset::new(Vec::new())),
        _ => train.clone(),
    };
    let mut training = SupervisedTraining::new(&folder, loader, valid)
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .with_training_strategy(shards.strategy(Batch::samples))
        .with_default_checkpointers()
        .with_application_logger(None)
        .num_epochs(last);
    if after > 0 {
        train.start_at(after, 0);
        training = training.checkpoint(after);
    }
    if fault() == "accumulation" {
        training = training.grads_accumulation(2);
    }
    let result = training.launch(Learner::new(model, AdamConfig::new().init(), 1e-2));
    if let Some(error) = result.error {
        process::report("error", error.to_string().replace('\n', " "));
        return;
    }
    process::report("digest", digest(&result.model));
}

/// What burn-train has logged of the loss, batch after batch.
fn losses(folder: &Folder) -> Vec<String> {
    let read = |split: &str, epoch: usize| {
        let path = folder.path().join(split).join(format!("epoch-{epoch}")).join("Loss.log");
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    ["train", "valid"].into_iter().flat_map(|split| (1..=3).map(move |epoch| read(split, epoch))).collect()
}

fn in_folder(folder: &Path) -> impl FnOnce(Program) -> Program {
    move |program| program.env(FOLDER, folder)
}

#[test]
fn a_learner_ends_in_the_same_bits_on_any_number_of_devices() {
    let folder = Folder::new();
    let one = run_on("sharded_learner", 1, in_folder(folder.path())).expect("a device");
    let logged = losses(&folder);
    assert!(logged[0].lines().count() >= 68, "a line for each batch: {}", logged[0]);
    for count in 2..=4 {
        let other = Folder::new();
        let Some(several) = run_on("sharded_learner", count, in_folder(other.path())) else { return };
        several.assert_digest(&one);
        assert_eq!(losses(&other), logged, "{count} devices");
    }
}

#[test]
fn a_learner_that_stopped_on_four_devices_goes_on_on_one() {
    let whole = Folder::new();
    let whole = run_on("sharded_learner", 1, in_folder(whole.path())).expect("a device");
    let folder = Folder::new();
    let part = |epochs: &'static str| {
        let path = folder.path();
        move |program: Program| program.env(FOLDER, path).env(EPOCHS, epochs)
    };
    let Some(_) = run_on("sharded_learner", 4, part("0 2")) else { return };
    let resumed = run_on("sharded_learner", 1, part("2 3")).expect("a device");
    resumed.assert_digest(&whole);
}

#[test]
fn gradients_of_steps_are_accumulated() {
    let run = |count, fault: &'static str| {
        let folder = Folder::new();
        run_on("sharded_learner", count, |program| program.env(FOLDER, folder.path()).env(FAULT, fault))
    };
    let one = run(1, "accumulation").expect("a device");
    assert_ne!(one.digest(), run(1, "").expect("a device").digest());
    let Some(two) = run(2, "accumulation") else { return };
    two.assert_digest(&one);
}

#[test]
fn what_fails_ends_the_training_with_an_error() {
    let error = |count, fault: &'static str| {
        let folder = Folder::new();
        let output = run_on("sharded_learner", count, |program| program.env(FOLDER, folder.path()).env(FAULT, fault))?;
        Some(output.reported("error").to_owned())
    };
    let wants = |error: String, parts: &[&str]| {
        for part in parts {
            assert!(error.contains(part), "{error}\nlacks\n{part}");
        }
    };
    wants(error(1, "panic").expect("a device"), &["shard 1 of step 4294967307", "no room for 7 images"]);
    let Some(error) = error(2, "another loader") else { return };
    wants(error, &["the training loader is not a `burn_deterministic::data::DataLoader`"]);
}
