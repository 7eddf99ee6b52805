//! Trains Keras's "Simple MNIST convnet" on real handwritten digits, and prints the digest of its weights.
//!
//! `cargo run --release --features wgpu --example digits_convnet` prints the same digest every time. With `--plain` the
//! same program runs on plain Burn, for comparison.

mod dataset;
mod model;

use anyhow::Result;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn_deterministic::{Determinism, digest, enable_op_determinism, set_random_seed};
use clap::Parser;
use dataset::{Batch, Digits};
use indicatif::{ProgressBar, ProgressStyle};
use model::ConvNet;
use std::time::Instant;

#[derive(Parser)]
#[command(about)]
struct Arguments {
    /// Train on plain Burn, without determinism.
    #[arg(long)]
    plain: bool,
    /// Passes over the training images.
    #[arg(long, default_value_t = 12)]
    epochs: usize,
    /// Images in a batch.
    #[arg(long, default_value_t = 64)]
    batch_size: usize,
    /// Seed of initial weights, dropout and the order of the images.
    #[arg(long, default_value_t = 812)]
    seed: u64,
    /// Stop after this many steps.
    #[arg(long)]
    steps: Option<usize>,
    /// Learning rate of Adam.
    #[arg(long, default_value_t = 1e-3)]
    learning_rate: f64,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.plain {
        enable_op_determinism(Determinism::default())?;
        set_random_seed(arguments.seed);
    }
    let device = Device::default().autodiff();
    if arguments.plain {
        device.seed(arguments.seed);
    }
    let model = train(&arguments, &device)?;
    println!("digest: {}", digest(&model.valid()));
    Ok(())
}

fn train(arguments: &Arguments, device: &Device) -> Result<ConvNet> {
    let (train, test) = Digits::load()?;
    let mut model = ConvNet::new(device);
    let mut optimizer = AdamConfig::new().init();
    let loss = CrossEntropyLossConfig::new().init(device);
    let mut speed = Speed::new(arguments.steps.unwrap_or(usize::MAX));
    for epoch in 0..arguments.epochs {
        let order = train.shuffled(arguments.seed, epoch);
        let batches: Vec<&[usize]> = order.chunks(arguments.batch_size).take(speed.steps_left()).collect();
        if batches.is_empty() {
            break;
        }
        let progress = progress_bar(epoch, arguments.epochs, batches.len())?;
        // Losses are read once an epoch: reading one waits for the device.
        let mut losses = Vec::with_capacity(batches.len());
        for indices in batches {
            let Batch { images, labels } = train.batch(indices, device);
            let batch_loss = loss.forward(model.forward(images), labels);
            let gradients = GradientsParams::from_grads(batch_loss.backward(), &model);
            model = optimizer.step(arguments.learning_rate, model, gradients);
            losses.push(batch_loss.detach());
            speed.step(device)?;
            progress.inc(1);
        }
        let mean_loss = Tensor::cat(losses, 0).mean().into_scalar::<f32>();
        let accuracy = accuracy(&model.valid(), &test, &device.clone().without_autodiff());
        progress.finish_and_clear();
        println!("epoch {}/{}: loss {mean_loss:.4}, test accuracy {accuracy:.4}", epoch + 1, arguments.epochs);
    }
    speed.report(device)?;
    println!("test accuracy: {:.4}", accuracy(&model.valid(), &test, &device.clone().without_autodiff()));
    Ok(model)
}

/// The fraction of `digits` that `model` names rightly.
fn accuracy(model: &ConvNet, digits: &Digits, device: &Device) -> f32 {
    let indices: Vec<usize> = (0..digits.len()).collect();
    let Batch { images, labels } = digits.batch(&indices, device);
    let predicted = model.forward(images).argmax(1).squeeze_dim::<1>(1);
    predicted.equal(labels).float().mean().into_scalar::<f32>()
}

fn progress_bar(epoch: usize, epochs: usize, batches: usize) -> Result<ProgressBar> {
    let template = "epoch {prefix} [{bar:30}] {pos}/{len} batches, {per_sec}";
    let progress = ProgressBar::new(batches as u64).with_style(ProgressStyle::with_template(template)?);
    Ok(progress.with_prefix(format!("{}/{epochs}", epoch + 1)))
}

/// The time to the first step, which compiles the kernels, and the steps per second after it.
struct Speed {
    started: Instant,
    first_step: Option<Instant>,
    steps: usize,
    limit: usize,
}

impl Speed {
    fn new(limit: usize) -> Self {
        Self { started: Instant::now(), first_step: None, steps: 0, limit }
    }

    fn steps_left(&self) -> usize {
        self.limit - self.steps
    }

    fn step(&mut self, device: &Device) -> Result<()> {
        self.steps += 1;
        if self.first_step.is_none() {
            device.sync()?;
            self.first_step = Some(Instant::now());
        }
        Ok(())
    }

    fn report(&self, device: &Device) -> Result<()> {
        device.sync()?;
        if let Some(first_step) = self.first_step {
            let compile = (first_step - self.started).as_secs_f64();
            let rate = (self.steps - 1) as f64 / first_step.elapsed().as_secs_f64();
            println!("first step after {compile:.2} s, then {rate:.2} steps/s");
        }
        Ok(())
    }
}
