//! burn-train's `Learner` on several devices, in processes of their own: its own strategy, which adds the gradients of the
//! devices on the first, against that of shards, one for each device.

use crate::measure::median;
use crate::model::ConvNet;
use crate::one_kind::devices_of_one_kind;
use crate::side::{EmptyFolder, Side};
use crate::table::Table;
use crate::table::Target::AtLeast;
use anyhow::{Context, Result, anyhow, ensure};
use burn::data::dataloader::DataLoaderBuilder as BurnLoaderBuilder;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::AdamConfig;
use burn::prelude::*;
use burn::train::{
    ClassificationOutput, ExecutionStrategy, InferenceStep, Learner, MultiDeviceOptim, SupervisedTraining, TrainOutput,
    TrainStep, TrainingStrategy,
};
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::shards::Shards;
use examples_common::{Bar, Batch, DigitBatcher, DigitSet, Digits};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The rows, and how many devices each has.
const ROWS: [(&str, usize); 3] = [
    ("digits_convnet with a Learner, steps per second on 1 device", 1),
    ("digits_convnet with a Learner, steps per second on 2 devices", 2),
    ("digits_convnet with a Learner, steps per second on 4 devices", 4),
];

const SEED: u64 = 812;
/// Images of a device in a step.
const BATCH_SIZE: usize = 32;
/// Steps of the first device; in the first half Burn meets every shape, tunes its kernels and learns what to fuse.
const STEPS: usize = 40;

/// When each step of the first device began.
static BEGAN: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// Whether a row of these is wanted.
pub fn is_wanted(table: &mut Table) -> bool {
    ROWS.into_iter().any(|(name, _)| table.wants(name))
}

/// Trains `trainings` times on each side, in turns, and adds the medians to `table`.
pub fn compare(table: &mut Table, trainings: usize) -> Result<()> {
    for (name, count) in ROWS {
        if !table.wants(name) {
            continue;
        }
        let there = devices_of_one_kind(count).len();
        if there < count {
            table.not_comparable(name, format!("there are {there} devices of one kind"));
            continue;
        }
        let mut rates = [Vec::new(), Vec::new()];
        for training in 1..=trainings {
            for (side, rates) in [Side::Burn, Side::Here].into_iter().zip(&mut rates) {
                eprintln!("{name}, training {training} of {trainings}, {}..", side.name());
                rates.push(in_child(side, count)?);
            }
        }
        table.quantities(name, rates.map(median), "/s", Some(AtLeast(0.91)));
    }
    Ok(())
}

fn in_child(side: Side, count: usize) -> Result<f64> {
    let caches = EmptyFolder::new()?;
    let mut command = side.command("--learn", &caches)?;
    let output = command.args(["--devices", &count.to_string()]).output().context("starting the training")?;
    ensure!(output.status.success(), "the training failed: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.lines().last().context("a line")?.parse()?)
}

/// The model, which notes when the first device begins a step.
#[derive(Module, Debug)]
struct Timed {
    model: ConvNet,
}

impl Timed {
    fn classify(&self, Batch { images, labels }: Batch) -> ClassificationOutput {
        let logits = self.model.forward(images);
        let loss = CrossEntropyLossConfig::new().init(&logits.device()).forward(logits.clone(), labels.clone());
        ClassificationOutput::new(loss, logits, labels)
    }
}

impl TrainStep for Timed {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
        if batch.images.device().without_autodiff() == Device::default() {
            BEGAN.lock().expect("no holder panics").push(Instant::now());
        }
        let output = self.classify(batch);
        TrainOutput::new(self, output.loss.backward(), output)
    }
}

impl InferenceStep for Timed {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> ClassificationOutput {
        self.classify(batch)
    }
}

/// Trains in this process, which has done nothing else, and prints the steps of a second.
pub fn train(side: Side, count: usize) -> Result<()> {
    side.enter(SEED)?;
    let devices: Vec<Device> = devices_of_one_kind(count).into_iter().map(Device::autodiff).collect();
    let device = devices[0].clone();
    let (digits, test) = Digits::load(DigitSet::Digits)?;
    let model = Timed { model: ConvNet::new(test.side(), &device) };
    let (_, few) = test.split(180);
    let folder = tempfile::tempdir()?;
    let shards = Shards::new(count, devices.clone())?;
    let (train, valid, strategy): (_, _, TrainingStrategy<Timed>) = match side {
        Side::Burn => {
            let loader = || BurnLoaderBuilder::new(DigitBatcher).batch_size(BATCH_SIZE).shuffle(SEED);
            let strategy = ExecutionStrategy::MultiDevice(devices, MultiDeviceOptim::OptimMainDevice);
            (loader().build(digits), loader().build(few), TrainingStrategy::Default(strategy))
        }
        Side::Here => {
            let train = DataLoaderBuilder::new("train", DigitBatcher).batch_size(BATCH_SIZE).shuffle(SEED);
            let valid = DataLoaderBuilder::new("valid", DigitBatcher).batch_size(BATCH_SIZE);
            (train.build(digits), valid.build(few), shards.strategy(Batch::samples))
        }
    };
    let epochs = (STEPS * count * BATCH_SIZE).div_ceil(train.num_items());
    let result = SupervisedTraining::new(folder.path(), train, valid)
        .with_training_strategy(strategy)
        .renderer(Box::new(Bar::new()))
        .with_application_logger(None)
        .num_epochs(epochs)
        .launch(Learner::new(model, AdamConfig::new().init(), 1e-3));
    if let Some(error) = result.error {
        return Err(anyhow!("{error}"));
    }
    let began = BEGAN.lock().expect("no holder panics");
    let steps: Vec<Duration> = began.windows(2).map(|pair| pair[1] - pair[0]).collect();
    println!("{}", 1.0 / median(steps[steps.len() / 2..].iter().map(Duration::as_secs_f64).collect()));
    Ok(())
}
