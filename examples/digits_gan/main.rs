//! Trains a generative adversarial network on real handwritten digits, and writes a picture of what it draws: Keras's
//! "DCGAN".
//!
//! `cargo run --release --features wgpu --example digits_gan` prints the same digest, and draws the same digits, every
//! time.

mod model;

use anyhow::Result;
use burn::data::dataset::Dataset;
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::{Distribution, activation};
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Batch, DIGITS, DigitBatcher, Digits, Help, Run};
use model::{Gan, LATENT};

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "a generative adversarial network (DCGAN), and draws digits that nobody wrote",
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
    let learning_rate = arguments.learning_rate.unwrap_or(1e-3);
    let steps = train.len().div_ceil(batch_size);
    let loader = DataLoaderBuilder::new("train", DigitBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build(train);

    let mut model = Gan::new(test.side(), &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let Gan { mut generator, mut discriminator } = model;
    let adam = AdamConfig::new().with_beta_1(0.5);
    let (mut generator_optimizer, mut discriminator_optimizer) = (adam.init(), adam.init());
    let mut run = Run::start("digits_gan", arguments, 15, &["generator", "discriminator"])?;
    if let Some(mut checkpoint) = run.resume()? {
        generator = checkpoint.module("generator", generator)?;
        discriminator = checkpoint.module("discriminator", discriminator)?;
        generator_optimizer = checkpoint.optimizer("generator optimizer", generator_optimizer, &generator)?;
        discriminator_optimizer =
            checkpoint.optimizer("discriminator optimizer", discriminator_optimizer, &discriminator)?;
        loader.resume_at(&checkpoint.value("loader")?)?;
        checkpoint.resume()?;
    }
    while run.epoch(steps)? {
        for batch in run.batches(&loader) {
            let Batch { images, .. } = batch?;
            let drawn = generator.forward(latent(images.dims()[0], &device));

            // The discriminator learns to tell them apart; nothing of that goes back into the generator.
            let real = is_real(discriminator.forward(images));
            let false_ = is_drawn(discriminator.forward(drawn.clone().detach()));
            let discriminator_loss = (real + false_) / 2.0;
            let gradients = GradientsParams::from_grads(discriminator_loss.backward(), &discriminator);
            discriminator = discriminator_optimizer.step(learning_rate, discriminator, gradients);

            // The generator learns to be taken for real.
            let generator_loss = is_real(discriminator.forward(drawn));
            let gradients = GradientsParams::from_grads(generator_loss.backward(), &generator);
            generator = generator_optimizer.step(learning_rate, generator, gradients);
            run.step(&[generator_loss, discriminator_loss])?;
            run.checkpoint(|checkpoint| {
                checkpoint
                    .with_module("generator", &generator)?
                    .with_module("discriminator", &discriminator)?
                    .with_optimizer("generator optimizer", &generator_optimizer, &generator)?
                    .with_optimizer("discriminator optimizer", &discriminator_optimizer, &discriminator)?
                    .with_value("loader", &loader.position())
            })?;
        }
        let inference = device.clone().without_autodiff();
        let judge = discriminator.valid();
        let drawn = generator.valid().forward(latent(test.len(), &inference));
        run.end_epoch(&[
            ("test digits taken for real", taken_for_real(judge.forward(test.all(&inference).images))),
            ("drawn digits taken for real", taken_for_real(judge.forward(drawn))),
        ])?;
    }
    let model = Gan { generator, discriminator }.valid();
    let drawn = model.generator.forward(latent(64, &device.without_autodiff()));
    run.picture("samples.png", drawn, 8)?;
    run.finish(&model, digest(&model))
}

/// What the generator makes images of.
fn latent(count: usize, device: &Device) -> Tensor<2> {
    Tensor::random([count, LATENT], Distribution::Normal(0.0, 1.0), device)
}

/// The loss of logits `[n, 1]` that are to say "real", `[1]`.
fn is_real(logits: Tensor<2>) -> Tensor<1> {
    activation::log_sigmoid(logits).mean().neg()
}

/// The loss of logits `[n, 1]` that are to say "drawn", `[1]`.
fn is_drawn(logits: Tensor<2>) -> Tensor<1> {
    is_real(logits.neg())
}

/// The fraction of the logits `[n, 1]` that say "real".
fn taken_for_real(logits: Tensor<2>) -> f32 {
    logits.greater_scalar(0.0).float().mean().into_scalar::<f32>()
}
