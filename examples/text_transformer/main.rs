//! Trains a small GPT on a real text, and prints what it writes: Keras's "text generation with a miniature GPT", by
//! character.
//!
//! `cargo run --release --features wgpu --example text_transformer` prints the same digest, and the same text, every
//! time.

mod model;

use anyhow::{Result, anyhow};
use burn::data::dataset::Dataset;
use burn::grad_clipping::GradientClippingConfig;
use burn::lr_scheduler::composed::ComposedLrSchedulerConfig;
use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::activation;
use burn_deterministic::data::{DataLoaderBuilder, Pipeline};
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Help, PassageBatcher, Passages, Run, TEXT};
use model::{Gpt, LENGTH};
use rand::RngExt;

/// Steps in which the learning rate rises.
const WARM_UP: usize = 30;

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "a small GPT to continue a text character by character, and prints what it writes",
    data: TEXT,
    takes: "two minutes at most on two cores without a GPU",
    leaves: &[],
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
    let (characters, train, test) = Passages::load(LENGTH);
    let batch_size = arguments.batch_size.unwrap_or(8);
    let learning_rate = arguments.learning_rate.unwrap_or(5e-3);
    let steps = train.len().div_ceil(batch_size);
    // Each epoch cuts the text at other places.
    let passages = Pipeline::new(train).augment(arguments.seed, |text: Vec<i32>, random| {
        let start = random.random_range(0..LENGTH);
        text[start..=start + LENGTH].to_vec()
    });
    let loader = DataLoaderBuilder::new("train", PassageBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build_pipeline(passages);

    let mut model = Gpt::new(characters.count(), &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let clipping = Some(GradientClippingConfig::Norm(1.0));
    let mut optimizer = AdamWConfig::new().with_weight_decay(0.01).with_grad_clipping(clipping).init();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let run = Run::start("text_transformer", arguments, 5, &["loss"])?;
    // The rate falls until the last epoch ends.
    let epochs = run.epochs();
    let mut run = run.depending_on("--epochs", epochs);
    let mut rate = ComposedLrSchedulerConfig::new()
        .linear(LinearLrSchedulerConfig::new(1.0 / WARM_UP as f64, 1.0, WARM_UP - 1))
        .cosine(CosineAnnealingLrSchedulerConfig::new(learning_rate, steps * epochs))
        .init()
        .map_err(|reason| anyhow!("the learning rate: {reason}"))?;
    if let Some(mut checkpoint) = run.resume()? {
        model = checkpoint.module("model", model)?;
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
        rate = rate.load_record(checkpoint.scheduler("rate")?);
        loader.resume_at(&checkpoint.value("loader")?)?;
        checkpoint.resume()?;
    }
    while run.epoch(steps)? {
        for batch in run.batches(&loader) {
            let (text, next) = batch?;
            let loss = loss.forward(model.forward(text), next);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(rate.step(), model, gradients);
            run.step(&[loss])?;
            run.checkpoint(|checkpoint| {
                checkpoint
                    .with_module("model", &model)?
                    .with_optimizer("optimizer", &optimizer, &model)?
                    .with_scheduler("rate", rate.to_record())?
                    .with_value("loader", &loader.position())
            })?;
        }
        let (text, next) = test.all(&device.clone().without_autodiff());
        let test_loss = loss.forward(model.valid().forward(text), next);
        run.end_epoch(&[("test loss", test_loss.into_scalar::<f32>())])?;
    }
    let model = model.valid();
    let written = write(&model, &characters.encode("The Congress shall "), 200, &device.without_autodiff());
    println!("{}", characters.decode(&written));
    run.finish(&model, digest(&model))
}

/// `start`, and `length` more characters, each after a look at the last [`LENGTH`].
fn write(model: &Gpt, start: &[i32], length: usize, device: &Device) -> Vec<i32> {
    let mut written = start.to_vec();
    for _ in 0..length {
        let seen = &written[written.len().saturating_sub(LENGTH)..];
        let text = Tensor::from_data(TensorData::new(seen.to_vec(), [1, seen.len()]), device);
        let last = model.forward(text).slice(s![-1.., ..]);
        // At temperature 0.5, likely characters become likelier.
        let next = activation::softmax(last / 0.5, 1).categorical(1);
        written.push(next.into_scalar::<i32>());
    }
    written
}
