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
use examples_common::{Arguments, Batch, DIGITS, DigitBatcher, Digits, Help, Run};
use model::ConvNet;

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "Keras's \"Simple MNIST convnet\": two convolutions, dropout and a dense layer, by Adam",
    data: DIGITS,
    takes: "half a minute for 12 epochs on two cores without a GPU",
    leaves: &["confusion.svg"],
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
        run.end_epoch(&test.test(&device, |images| model.valid().forward(images))?)?;
    }
    let model = model.valid();
    run.confusion(&test.confusion(&device, |images| model.forward(images))?)?;
    run.finish(&model, digest(&model))
}
