//! Trains a residual network on real handwritten digits, each shifted at random whenever it is seen: Keras's "image
//! classification from scratch".
//!
//! `cargo run --release --features wgpu --example digits_resnet` prints the same digest every time.

mod model;

use anyhow::Result;
use burn::grad_clipping::GradientClippingConfig;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::prelude::*;
use burn_deterministic::{Determinism, digest, enable_op_determinism, set_random_seed};
use examples_common::{Arguments, Batch, Digits, Run, SIDE, generator, shuffled};
use model::ResNet;
use rand::RngExt;

fn main() -> Result<()> {
    run(&Arguments::read())
}

/// Trains, and prints the digest of the weights.
pub fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.plain {
        enable_op_determinism(Determinism::default())?;
        set_random_seed(arguments.seed);
    }
    let device = arguments.device();
    let (train, test) = Digits::load()?;
    let batch_size = arguments.batch_size.unwrap_or(64);
    let learning_rate = arguments.learning_rate.unwrap_or(3e-3);

    let mut model = ResNet::new(&device);
    let clipping = Some(GradientClippingConfig::Norm(1.0));
    let mut optimizer = AdamWConfig::new().with_weight_decay(1e-3).with_grad_clipping(clipping).init();
    let loss = CrossEntropyLossConfig::new().with_smoothing(Some(0.05)).init(&device);
    let mut run = Run::start("digits_resnet", arguments, 8, &["loss"])?;
    while let Some(epoch) = run.epoch(train.len().div_ceil(batch_size))? {
        let order = shuffled(train.len(), arguments.seed, epoch);
        // A shift for every image, whichever batch it is in.
        let mut random = generator(!arguments.seed, epoch);
        let shifts: Vec<[i32; 2]> = order.iter().map(|_| [(); 2].map(|()| random.random_range(-1..=1))).collect();
        for indices in order.chunks(batch_size).take(run.steps_left()) {
            let Batch { images, labels } =
                train.batch_with(indices, &device, |index, image| shifted(image, shifts[index]));
            let loss = loss.forward(model.forward(images), labels);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimizer.step(learning_rate, model, gradients);
            run.step(&[loss])?;
        }
        run.end_epoch(&[("test accuracy", accuracy(&model.valid(), &test, &device))])?;
    }
    let model = model.valid();
    run.finish(&model, digest(&model))
}

/// An image moved down and to the right; what comes in is black.
fn shifted(image: &[f32; SIDE * SIDE], [down, right]: [i32; 2]) -> [f32; SIDE * SIDE] {
    std::array::from_fn(|pixel| {
        let y = (pixel / SIDE).checked_add_signed(-down as isize).filter(|y| *y < SIDE);
        let x = (pixel % SIDE).checked_add_signed(-right as isize).filter(|x| *x < SIDE);
        y.zip(x).map_or(0.0, |(y, x)| image[y * SIDE + x])
    })
}

/// The fraction of `digits` that `model` names rightly.
fn accuracy(model: &ResNet, digits: &Digits, device: &Device) -> f32 {
    let Batch { images, labels } = digits.all(&device.clone().without_autodiff());
    let predicted = model.forward(images).argmax(1).squeeze_dim::<1>(1);
    predicted.equal(labels).float().mean().into_scalar::<f32>()
}
