//! Trains a perceptron on real handwritten digits with burn-train's `Learner`, which has the loop: metrics, early
//! stopping, a learning rate that falls, clipped gradients, and checkpoints. Keras's `fit` with callbacks. Each step is
//! computed in four shards, on one device or several.
//!
//! `cargo run --release --features wgpu --example digits_learner` prints the same digest every time, and with
//! `--devices 4` too.
//!
//! burn-train takes its checkpoints once an epoch. They hold neither where the random numbers stand, on which a step in
//! shards does not depend, nor what early stopping has seen, which is read again from its logs (see [`Stopping`]).

use anyhow::{Result, anyhow, ensure};
use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, Relu};
use burn::optim::AdamConfig;
use burn::prelude::*;
use burn::train::checkpoint::KeepLastNCheckpoints;
use burn::train::logger::{FileMetricLogger, MetricLogger};
use burn::train::metric::store::{Aggregate, Direction, EventStoreClient, Split};
use burn::train::metric::{AccuracyMetric, LossMetric, NumericEntry};
use burn::train::{
    ClassificationOutput, EarlyStoppingStrategy, InferenceStep, Learner, MetricEarlyStoppingStrategy,
    StoppingCondition, SupervisedTraining, TrainOutput, TrainStep,
};
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::shards::Shards;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Bar, Batch, DIGITS, DigitBatcher, Digits, Help, Run};
use std::fs;
use std::path::Path;

/// Parts of a step, each of them a batch.
const SHARDS: usize = 4;
/// Epochs without a smaller validation loss after which training stops.
const PATIENCE: usize = 3;

#[derive(Module, Debug)]
struct Classifier {
    hidden: Linear,
    dropout: Dropout,
    output: Linear,
    activation: Relu,
}

impl Classifier {
    /// For images of `side` rows and columns.
    fn new(side: usize, device: &Device) -> Self {
        Self {
            hidden: LinearConfig::new(side * side, 128).init(device),
            dropout: DropoutConfig::new(0.3).init(),
            output: LinearConfig::new(128, 10).init(device),
            activation: Relu::new(),
        }
    }

    /// Images `[n, 1, side, side]` to logits `[n, 10]`.
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.activation.forward(self.hidden.forward(images.flatten(1, 3)));
        self.output.forward(self.dropout.forward(x))
    }

    fn classify(&self, Batch { images, labels }: Batch) -> ClassificationOutput {
        let logits = self.forward(images);
        let loss = CrossEntropyLossConfig::new().init(&logits.device()).forward(logits.clone(), labels.clone());
        ClassificationOutput::new(loss, logits, labels)
    }
}

impl TrainStep for Classifier {
    type Input = Batch;
    type Output = ClassificationOutput;

    fn step(&self, batch: Batch) -> TrainOutput<ClassificationOutput> {
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

/// burn-train's early stopping, which tells of each epoch, and which looks at the epochs of an earlier process too.
#[derive(Clone)]
struct Stopping {
    strategy: MetricEarlyStoppingStrategy,
    seen: usize,
}

impl EarlyStoppingStrategy for Stopping {
    fn should_stop(&mut self, epoch: usize, store: &EventStoreClient) -> bool {
        for earlier in self.seen + 1..epoch {
            self.strategy.should_stop(earlier, store);
        }
        self.seen = epoch;
        let mean = |name, split| store.find_metric(name, epoch, Aggregate::Mean, &split).unwrap_or(f64::NAN);
        println!(
            "epoch {epoch}: loss {:.4}, accuracy {:.2} %, validation loss {:.4}, validation accuracy {:.2} %",
            mean("Loss", Split::Train),
            mean("Accuracy", Split::Train),
            mean("Loss", Split::Valid),
            mean("Accuracy", Split::Valid),
        );
        self.strategy.should_stop(epoch, store)
    }
}

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "a perceptron by burn-train's Learner, with early stopping, each step in four shards (`--devices`)",
    data: DIGITS,
    takes: "two minutes at most on two cores without a GPU",
    leaves: &["checkpoints", "confusion.svg"],
};

fn main() -> Result<()> {
    run(&Arguments::read(&HELP))
}

/// Trains, and prints the digest of the weights.
pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(
        arguments.steps.is_none() && arguments.checkpoint_every.is_none(),
        "burn-train counts epochs, and takes a checkpoint after each: give `--epochs`, not `--steps` or \
         `--checkpoint-every`"
    );
    if arguments.plain {
        observe()?;
    } else {
        enable_op_determinism(Determinism::default())?;
        set_random_seed(arguments.seed);
    }
    let shards = Shards::new(SHARDS, arguments.devices()?)?;
    let device = shards.device().clone();
    let (train, test) = Digits::load(arguments.dataset)?;
    let (train, valid) = train.split(10);
    let batch_size = arguments.batch_size.unwrap_or(16);
    let learning_rate = arguments.learning_rate.unwrap_or(1e-2);
    let train = DataLoaderBuilder::new("train", DigitBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .build(train);
    let valid = DataLoaderBuilder::new("valid", DigitBatcher)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .build(valid);

    let mut model = Classifier::new(test.side(), &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let optimizer = AdamConfig::new().with_grad_clipping(Some(GradientClippingConfig::Norm(1.0))).init();
    let rate = ExponentialLrSchedulerConfig::new(learning_rate, 0.998).init().map_err(|reason| anyhow!(reason))?;
    let stopping = MetricEarlyStoppingStrategy::new(
        &LossMetric::new(),
        Aggregate::Mean,
        Direction::Lowest,
        Split::Valid,
        StoppingCondition::NoImprovementSince { n_epochs: PATIENCE },
    );
    let mut run = Run::start("digits_learner", arguments, 30, &["loss"])?;
    let folder = run.folder()?;
    let mut training = SupervisedTraining::new(&folder, train.clone(), valid)
        .metrics((AccuracyMetric::new(), LossMetric::new()))
        .with_training_strategy(shards.strategy(Batch::samples))
        .early_stopping(Stopping { strategy: stopping, seen: 0 })
        .with_default_checkpointers()
        .with_checkpointing_strategy(KeepLastNCheckpoints::new(3))
        .renderer(Box::new(Bar::new()))
        .with_application_logger(None)
        .num_epochs(run.epochs());
    if let Some(epoch) = last_epoch(&folder)? {
        println!("going on after epoch {epoch}");
        train.start_at(epoch, 0);
        training = training.checkpoint(epoch);
    }
    let result = training.launch(Learner::new(model, optimizer, rate));
    if let Some(error) = result.error {
        return Err(anyhow!("{error}").context(format!("burn-train stopped; its folder is {}", folder.display())));
    }
    let mut logs = FileMetricLogger::new(&folder);
    let (mut losses, mut epochs) = (Vec::new(), Vec::new());
    for epoch in 1..=train.position().epoch {
        let mut read = |name, split| logs.read_numeric(name, epoch, &split).map_err(|reason| anyhow!(reason));
        let entries = read("Loss", Split::Train)?;
        let of_batches = entries.iter().filter(|entry| !matches!(entry, NumericEntry::Final(_)));
        losses.extend(of_batches.map(|entry| entry.current() as f32));
        // The last entry is the epoch's; accuracies are percentages.
        let mut last = |name, split| {
            let entries = read(name, split)?;
            Ok::<_, anyhow::Error>(entries.last().map_or(f32::NAN, |entry| entry.current() as f32))
        };
        epochs.push(vec![
            ("validation loss", last("Loss", Split::Valid)?),
            ("accuracy", last("Accuracy", Split::Train)? / 100.0),
            ("validation accuracy", last("Accuracy", Split::Valid)? / 100.0),
        ]);
    }
    let model = result.model;
    let steps = losses.len() / epochs.len().max(1);
    run.report(vec![losses], steps, &epochs, &test.test(&device, |images| model.forward(images))?);
    run.confusion(&test.confusion(&device, |images| model.forward(images))?)?;
    run.finish(&model, digest(&model))
}

/// The last epoch, from 1, whose checkpoint is whole even if a kill cut off the writing of one: burn-train writes a
/// scheduler's only after all of the epoch before.
fn last_epoch(folder: &Path) -> Result<Option<usize>> {
    let folder = folder.join("checkpoint");
    if !folder.exists() {
        return Ok(None);
    }
    let mut last = 0;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let epoch = name.to_str().and_then(|name| name.strip_prefix("scheduler-")?.strip_suffix(".bpk")?.parse().ok());
        last = last.max(epoch.unwrap_or(0));
    }
    Ok((last > 1).then(|| last - 1))
}
