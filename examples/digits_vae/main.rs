//! Trains a variational autoencoder on real handwritten digits, and writes a picture of digits that nobody wrote:
//! Keras's "Variational AutoEncoder".
//!
//! `cargo run --release --features wgpu --example digits_vae` prints the same digest, and draws the same digits, every
//! time.

mod model;

use anyhow::Result;
use burn::data::dataset::Dataset;
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Batch, DIGITS, DigitBatcher, Digits, Help, Run};
use model::{LATENT, Vae};

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "a variational autoencoder of eight latent numbers, and draws digits that nobody wrote",
    data: DIGITS,
    takes: "two minutes at most on two cores without a GPU",
    leaves: &["samples.png"],
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
    let learning_rate = arguments.learning_rate.unwrap_or(3e-3);
    let steps = train.len().div_ceil(batch_size);
    let loader = DataLoaderBuilder::new("train", DigitBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build(train);

    let mut model = Vae::new(test.side(), &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let mut optimizer = AdamConfig::new().init();
    let mut run = Run::start("digits_vae", arguments, 20, &["reconstruction", "divergence"])?;
    if let Some(mut checkpoint) = run.resume()? {
        model = checkpoint.module("model", model)?;
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
        loader.resume_at(&checkpoint.value("loader")?)?;
        checkpoint.resume()?;
    }
    while run.epoch(steps)? {
        for batch in run.batches(&loader) {
            let Batch { images, .. } = batch?;
            let (reconstruction, divergence) = model.losses(images);
            let gradients =
                GradientsParams::from_grads((reconstruction.clone() + divergence.clone()).backward(), &model);
            model = optimizer.step(learning_rate, model, gradients);
            run.step(&[reconstruction, divergence])?;
            run.checkpoint(|checkpoint| {
                checkpoint
                    .with_module("model", &model)?
                    .with_optimizer("optimizer", &optimizer, &model)?
                    .with_value("loader", &loader.position())
            })?;
        }
        let (reconstruction, divergence) = model.valid().losses(test.all(&device.clone().without_autodiff()).images);
        run.end_epoch(&[("test loss", (reconstruction + divergence).into_scalar::<f32>())])?;
    }
    let model = model.valid();
    let latent = Tensor::random([64, LATENT], Distribution::Normal(0.0, 1.0), &device.without_autodiff());
    run.picture("samples.png", model.decode(latent), 8)?;
    run.finish(&model, digest(&model))
}
