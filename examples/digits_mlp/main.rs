//! Trains a multilayer perceptron with batch normalization on real handwritten digits: Keras's "MNIST MLP".
//!
//! `cargo run --release --features wgpu --example digits_mlp` prints the same digest every time.

use anyhow::Result;
use burn::data::dataset::Dataset;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig, Relu};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, SgdConfig};
use burn::prelude::*;
use burn_deterministic::data::DataLoaderBuilder;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, Batch, DIGITS, DigitBatcher, Digits, Help, Run};

#[derive(Module, Debug)]
struct Mlp {
    hidden: Vec<Block>,
    output: Linear,
}

/// A dense layer, normalized over the batch.
#[derive(Module, Debug)]
struct Block {
    dense: Linear,
    norm: BatchNorm,
    activation: Relu,
    dropout: Dropout,
}

impl Block {
    fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        Self {
            // The norm subtracts what a bias would add.
            dense: LinearConfig::new(inputs, outputs).with_bias(false).init(device),
            norm: BatchNormConfig::new(outputs).init(device),
            activation: Relu::new(),
            dropout: DropoutConfig::new(0.2).init(),
        }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.dropout.forward(self.activation.forward(self.norm.forward(self.dense.forward(x))))
    }
}

impl Mlp {
    /// For images of `side` rows and columns.
    fn new(side: usize, device: &Device) -> Self {
        Self {
            hidden: vec![Block::new(side * side, 128, device), Block::new(128, 128, device)],
            output: LinearConfig::new(128, 10).init(device),
        }
    }

    /// Images `[n, 1, side, side]` to logits `[n, 10]`.
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.hidden.iter().fold(images.flatten(1, 3), |x, block| block.forward(x));
        self.output.forward(x)
    }
}

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "Keras's \"MNIST MLP\": dense layers, batch norm and dropout, by SGD with momentum",
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
    let learning_rate = arguments.learning_rate.unwrap_or(0.05);
    let steps = train.len().div_ceil(batch_size);
    let loader = DataLoaderBuilder::new("train", DigitBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build(train);

    let mut model = Mlp::new(test.side(), &device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let mut optimizer = SgdConfig::new().with_momentum(Some(MomentumConfig::new())).init();
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut run = Run::start("digits_mlp", arguments, 20, &["loss"])?;
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
