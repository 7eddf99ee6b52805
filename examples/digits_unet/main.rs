//! Trains a small U-Net to find the pixels of handwritten digits in noise: Keras's "image segmentation with a U-Net-like
//! architecture", after O. Ronneberger et al., "U-Net" (2015).
//!
//! `cargo run --release --features wgpu --example digits_unet` prints the same digest, and draws the same masks, every time.

use anyhow::{Context, Result};
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::Dataset;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig, ConvTranspose2d, ConvTranspose2dConfig};
use burn::nn::loss::BinaryCrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, PaddingConfig2d, Relu};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn_deterministic::data::{DataLoaderBuilder, Pipeline};
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, observe, set_random_seed};
use examples_common::{Arguments, DIGITS, Digit, Digits, Help, Run};
use rand::{Rng, RngExt};

/// Pixels of a digit at least this bright are to be found.
const INK: f32 = 0.3;

#[derive(Module, Debug)]
struct UNet {
    down: Vec<Block>,
    bottom: Block,
    enlarge: Vec<ConvTranspose2d>,
    up: Vec<Block>,
    output: Conv2d,
    pool: MaxPool2d,
}

#[derive(Module, Debug)]
struct Block {
    conv: Conv2d,
    norm: BatchNorm,
    activation: Relu,
}

impl Block {
    fn new(inputs: usize, outputs: usize, device: &Device) -> Self {
        let conv = Conv2dConfig::new([inputs, outputs], [3, 3]).with_padding(PaddingConfig2d::Same).with_bias(false);
        let norm = BatchNormConfig::new(outputs).init(device);
        Self { conv: conv.init(device), norm, activation: Relu::new() }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.activation.forward(self.norm.forward(self.conv.forward(x)))
    }
}

impl UNet {
    fn new(device: &Device) -> Self {
        let block = |[inputs, outputs]: [usize; 2]| Block::new(inputs, outputs, device);
        let enlarge = |channels| ConvTranspose2dConfig::new(channels, [2, 2]).with_stride([2, 2]).init(device);
        Self {
            down: [[1, 8], [8, 16]].map(block).into(),
            bottom: block([16, 32]),
            enlarge: [[32, 16], [16, 8]].map(enlarge).into(),
            // What comes from below, and what was there on the way down.
            up: [[16 + 16, 16], [8 + 8, 8]].map(block).into(),
            output: Conv2dConfig::new([8, 1], [1, 1]).init(device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
        }
    }

    /// Images `[n, 1, side, side]` to logits of the same shape, positive where there is ink; `side` is divisible by four.
    fn forward(&self, images: Tensor<4>) -> Tensor<4> {
        let (mut x, mut passed) = (images, Vec::new());
        for block in &self.down {
            let wide = block.forward(x);
            x = self.pool.forward(wide.clone());
            passed.push(wide);
        }
        x = self.bottom.forward(x);
        for ((enlarge, block), wide) in self.enlarge.iter().zip(&self.up).zip(passed.into_iter().rev()) {
            x = block.forward(Tensor::cat(vec![enlarge.forward(x), wide], 1));
        }
        self.output.forward(x)
    }
}

/// A digit somewhere in noise, and where its ink is, row by row.
#[derive(Clone)]
struct Scene {
    image: Vec<f32>,
    mask: Vec<i32>,
}

/// Puts a digit of `side` rows and columns into noise of twice as many.
fn scene(digit: &Digit, side: usize, random: &mut impl Rng) -> Scene {
    let [top, left] = [(); 2].map(|()| random.random_range(0..=side));
    let ink = (0..4 * side * side).map(|pixel| {
        let y = (pixel / (2 * side)).checked_sub(top).filter(|y| *y < side);
        let x = (pixel % (2 * side)).checked_sub(left).filter(|x| *x < side);
        y.zip(x).map_or(0.0, |(y, x)| digit.image[y * side + x])
    });
    let ink: Vec<f32> = ink.collect();
    let image = ink.iter().map(|ink| (0.5 * ink + random.random_range(0.0..0.8f32)) / 1.3).collect();
    Scene { image, mask: ink.iter().map(|&ink| i32::from(ink >= INK)).collect() }
}

/// Images and masks, each `[n, 1, 2 side, 2 side]`.
struct SceneBatcher;

impl Batcher<Scene, (Tensor<4>, Tensor<4, Int>)> for SceneBatcher {
    fn batch(&self, scenes: Vec<Scene>, device: &Device) -> (Tensor<4>, Tensor<4, Int>) {
        let side = scenes[0].image.len().isqrt();
        let shape = [scenes.len(), 1, side, side];
        let images = scenes.iter().flat_map(|scene| &scene.image).copied().collect::<Vec<f32>>();
        let masks = scenes.iter().flat_map(|scene| &scene.mask).copied().collect::<Vec<i32>>();
        let images = Tensor::from_data(TensorData::new(images, shape), device);
        (images, Tensor::from_data(TensorData::new(masks, shape), device))
    }
}

/// What `--help` says.
pub const HELP: Help = Help {
    trains: "a small U-Net to find the pixels of a digit somewhere in noise, with batch norms, by Adam",
    data: DIGITS,
    takes: "a minute for 8 epochs on two cores without a GPU; the best threshold of brightness has an IoU of 0.43",
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
    let learning_rate = arguments.learning_rate.unwrap_or(5e-3);
    let (side, steps, test_size) = (train.side(), train.len().div_ceil(batch_size), test.len());
    // Each epoch has other places and other noise.
    let scenes = |digits: Digits| {
        Pipeline::new(digits).augment(arguments.seed, move |digit: Digit, random| scene(&digit, side, random))
    };
    let train = DataLoaderBuilder::new("train", SceneBatcher)
        .shuffle(arguments.seed)
        .batch_size(batch_size)
        .num_workers(arguments.workers)
        .set_device(device.clone())
        .build_pipeline(scenes(train));
    // The same scenes after each epoch, so that results can be compared.
    let test = DataLoaderBuilder::new("test", SceneBatcher)
        .batch_size(test_size)
        .fixed_epoch()
        .set_device(device.clone().without_autodiff())
        .build_pipeline(scenes(test));

    let mut model = UNet::new(&device);
    if !arguments.plain {
        model = initialize(model)?;
    }
    let mut optimizer = AdamConfig::new().init();
    let loss = BinaryCrossEntropyLossConfig::new().with_logits(true).init(&device);
    let mut run = Run::start("digits_unet", arguments, 8, &["loss"])?;
    if let Some(mut checkpoint) = run.resume()? {
        model = checkpoint.module("model", model)?;
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model)?;
        train.resume_at(&checkpoint.value("train")?)?;
        checkpoint.resume()?;
    }
    let scenes = || test.batches().next().context("there are digits to test with");
    while run.epoch(steps)? {
        for batch in run.batches(&train) {
            let (images, masks) = batch?;
            let loss = loss.forward(model.forward(images), masks);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(learning_rate, model, gradients);
            run.step(&[loss])?;
            run.checkpoint(|checkpoint| {
                checkpoint
                    .with_module("model", &model)?
                    .with_optimizer("optimizer", &optimizer, &model)?
                    .with_value("train", &train.position())
            })?;
        }
        let (images, masks) = scenes()??;
        let logits = model.valid().forward(images);
        let test_loss = loss.forward(logits.clone(), masks.clone()).into_scalar::<f32>();
        run.end_epoch(&[("test loss", test_loss), ("test IoU", intersection_over_union(logits, masks))])?;
    }
    let model = model.valid();
    // Scenes, where their ink is, and where the model finds it.
    let (images, masks) = scenes()??;
    let (images, masks) = (images.slice(s![..12, .., .., ..]), masks.slice(s![..12, .., .., ..]));
    let found = model.forward(images.clone()).greater_scalar(0.0).float();
    run.picture("samples.png", Tensor::cat(vec![images, masks.float(), found], 0), 12)?;
    run.finish(&model, digest(&model))
}

/// Of the pixels that are ink or taken for it, the fraction that are both.
fn intersection_over_union(logits: Tensor<4>, masks: Tensor<4, Int>) -> f32 {
    let (found, ink) = (logits.greater_scalar(0.0), masks.equal_scalar(1));
    let count = |pixels: Tensor<4, Bool>| pixels.int().sum().into_scalar::<i64>() as f32;
    count(found.clone().bool_and(ink.clone())) / count(found.bool_or(ink))
}
