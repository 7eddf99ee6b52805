//! Trains Keras's "Simple MNIST convnet" on real handwritten digits, and prints the digest of its weights.
//!
//! `cargo run --release --features wgpu --example digits_convnet` prints the same digest every time. With `--plain` the
//! same program runs on plain Burn, for comparison.

mod model;

use anyhow::Result;
use burn::data::dataset::Dataset;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Batch, DigitBatcher, Digits, Run};
use model::ConvNet;

fn main() -> Result<()> {
    run(&Arguments::read())
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
    let (train, test) = Digits::load(arguments.dataset)?;
    let batch_size = arguments.batch_size.unwrap_or(64);
    let learning_rate = arguments.learning_rate.unwrap_or(1e-3);
    let steps = train.len().div_ceil(batch_size);
    let loader = DataLoaderBuilder::new("train", DigitBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build(train);

    let mut model = ConvNet::new(test.side(), &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let mut optimizer = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut run = Run::start("digits_convnet", arguments, 12, &["loss"])?;
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
        run.end_epoch(&[("test accuracy", accuracy(&model.valid(), &test, &device))])?;
    }
    let model = model.valid();
    run.finish(&model, digest(&model))
}

/// The fraction of `digits` that `model` names rightly.
fn accuracy(model: &ConvNet, digits: &Digits, device: &Device) -> f32 {
    let device = device.clone().without_autodiff();
    digits.accuracy(&device, |images| model.forward(images).argmax(1).squeeze_dim(1))
}
