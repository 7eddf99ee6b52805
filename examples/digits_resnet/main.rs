//! Trains a residual network on real handwritten digits, each shifted at random whenever it is seen: Keras's "image
//! classification from scratch".
//!
//! `cargo run --release --features wgpu --example digits_resnet` prints the same digest every time.

mod model;

use anyhow::Result;
use burn::data::dataset::Dataset;
use burn::grad_clipping::GradientClippingConfig;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::prelude::*;
use burn_deterministic::data::{DataLoaderBuilder, Pipeline};
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Batch, DIGITS, Digit, DigitBatcher, Digits, Help, Run};
use model::ResNet;
use rand::RngExt;

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "a residual network on digits that are shifted at random whenever they are seen, by AdamW",
    data: DIGITS,
    takes: "two minutes at most on two cores without a GPU",
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
    let learning_rate = arguments.learning_rate.unwrap_or(3e-3);
    let steps = train.len().div_ceil(batch_size);
    let side = train.side();
    let samples = Pipeline::new(train).augment(arguments.seed, move |digit: Digit, random| {
        let [down, right] = [(); 2].map(|()| random.random_range(-1..=1i32));
        Digit { image: shifted(&digit.image, side, down, right), ..digit }
    });
    let loader = DataLoaderBuilder::new("train", DigitBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build_pipeline(samples);

    let mut model = ResNet::new(&device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let clipping = Some(GradientClippingConfig::Norm(1.0));
    let mut optimizer = AdamWConfig::new().with_weight_decay(1e-3).with_grad_clipping(clipping).init();
    let loss = CrossEntropyLossConfig::new().with_smoothing(Some(0.05)).init(&device);
    let mut run = Run::start("digits_resnet", arguments, 8, &["loss"])?;
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

/// An image of `side` columns moved down and to the right; what comes in is black.
fn shifted(image: &[f32], side: usize, down: i32, right: i32) -> Vec<f32> {
    let moved = (0..image.len()).map(|pixel| {
        let y = (pixel / side).checked_add_signed(-down as isize).filter(|y| *y < side);
        let x = (pixel % side).checked_add_signed(-right as isize).filter(|x| *x < side);
        y.zip(x).map_or(0.0, |(y, x)| image[y * side + x])
    });
    moved.collect()
}
