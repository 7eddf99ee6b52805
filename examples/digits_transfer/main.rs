//! Trains a convnet on the digits 0 to 4, freezes it, and trains a new last layer to tell 5 to 9 apart: Keras's
//! "transfer learning & fine-tuning".
//!
//! Frozen are the weights and the batch norms, with their running statistics: TensorFlow raises an error there when
//! determinism is enabled.
//!
//! `cargo run --release --features wgpu --example digits_transfer` prints the same digest every time.

use anyhow::{Result, ensure};
use burn::data::dataset::Dataset;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d, Relu};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Batch, DIGITS, DigitBatcher, Digits, Help, Run};
use std::ops::Range;
use std::path::PathBuf;

#[derive(Module, Debug)]
struct Classifier {
    features: Features,
    output: Linear,
}

/// What is learned from 0 to 4 and used for 5 to 9.
#[derive(Module, Debug)]
struct Features {
    conv1: Conv2d,
    norm1: BatchNorm,
    conv2: Conv2d,
    norm2: BatchNorm,
    pool: MaxPool2d,
    activation: Relu,
}

impl Features {
    fn new(device: &Device) -> Self {
        let conv = |channels| Conv2dConfig::new(channels, [3, 3]).with_padding(PaddingConfig2d::Same).init(device);
        Self {
            conv1: conv([1, 16]),
            norm1: BatchNormConfig::new(16).init(device),
            conv2: conv([16, 32]),
            norm2: BatchNormConfig::new(32).init(device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            activation: Relu::new(),
        }
    }

    /// Images `[n, 1, side, side]` to features `[n, 32 * (side / 4)^2]`.
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(self.activation.forward(self.norm1.forward(self.conv1.forward(images))));
        let x = self.pool.forward(self.activation.forward(self.norm2.forward(self.conv2.forward(x))));
        x.flatten(1, 3)
    }
}

impl Classifier {
    /// For images of `side` rows and columns.
    fn new(features: Features, side: usize, device: &Device) -> Self {
        let count = 32 * (side / 4) * (side / 4);
        Self { features, output: LinearConfig::new(count, 5).init(device) }
    }

    /// Images `[n, 1, side, side]` to logits `[n, 5]`.
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        self.output.forward(self.features.forward(images))
    }
}

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "a convnet on the digits 0 to 4, then a new last layer on 5 to 9 with all else frozen",
    data: DIGITS,
    takes: "two minutes at most on two cores without a GPU",
    leaves: &["confusion.svg", "pretraining"],
};

fn main() -> Result<()> {
    run(&Arguments::read(&HELP))
}

/// Trains, and prints the digest of the weights.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.plain {
        observe()?;
    } else {
        enable_op_determinism(Determinism::default())?;
        set_random_seed(arguments.seed);
    }
    let device = arguments.device();
    // Half of the epochs, and of the steps, are for each part.
    let steps = arguments.steps.map(|steps| steps.div_ceil(2));
    let epochs = arguments.epochs.map(|epochs| epochs.div_ceil(2));
    let part = Arguments { steps, epochs, ..arguments.clone() };
    let within = |folder: &Option<PathBuf>| folder.as_ref().map(|folder| folder.join("pretraining"));
    let (out, checkpoint) = (within(&arguments.out), within(&arguments.checkpoint));
    let pretraining = Arguments { out, checkpoint, ..part.clone() };

    let (train_set, _) = Digits::load(arguments.dataset)?;
    let features = Features::new(&device);
    let first = Classifier::new(features, train_set.side(), &device);
    let mut run = Run::start("digits_transfer/pretraining", &pretraining, 10, &["loss"])?;
    let first = train(first, 0..5, arguments, &mut run, &device)?;
    run.finish(&first.valid(), digest(&first))?;

    let features = first.features.freeze();
    let before = digest(&features);
    let second = Classifier::new(features, train_set.side(), &device);
    let mut run = Run::start("digits_transfer", &part, 10, &["loss"])?.depending_on("the pretraining", before);
    let second = train(second, 5..10, arguments, &mut run, &device)?.valid();
    ensure!(digest(&second.features) == before, "fine-tuning changed what is frozen");
    run.finish(&second, digest(&second))
}

/// Trains `model` to tell apart the digits `labels`.
fn train(
    mut model: Classifier,
    labels: Range<i32>,
    arguments: &Arguments,
    run: &mut Run,
    device: &Device,
) -> Result<Classifier> {
    let (train, test) = Digits::load(arguments.dataset)?;
    let (train, test) = (train.with_labels(labels.clone()), test.with_labels(labels));
    let batch_size = arguments.batch_size.unwrap_or(64);
    let learning_rate = arguments.learning_rate.unwrap_or(2e-3);
    let steps = train.len().div_ceil(batch_size);
    let loader = DataLoaderBuilder::new("train", DigitBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build(train);
    let mut optimizer = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().init(device);
    if !arguments.plain {
        // What is frozen has its values, and keeps them.
        model = initialize(model)?;
    }
    if let Some(mut checkpoint) = run.resume()? {
        model = checkpoint.module("model", model)?;
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
        loader.resume_at(&checkpoint.value("loader")?)?;
        checkpoint.resume()?;
    }
    while run.epoch(steps)? {
        for batch in run.batches(&loader) {
            let Batch { images, labels } = batch?;
            let loss = loss.forward(model.forward(images), labels);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(learning_rate, model, gradients);
            run.step(&[loss])?;
            run.checkpoint(|checkpoint| {
                checkpoint
                    .with_module("model", &model)?
                    .with_optimizer("optimizer", &optimizer, &model)?
                    .with_value("loader", &loader.position())
            })?;
        }
        run.end_epoch(&test.test(device, |images| model.valid().forward(images))?)?;
    }
    let inference = model.valid();
    run.confusion(&test.confusion(device, |images| inference.forward(images))?)?;
    Ok(model)
}
