//! Whole trainings on one device and on several.

use crate::one_kind::devices_of_one_kind;
use crate::process::{self, Folder, Program, arguments};
use crate::repeatability::threads::OnDrop;
use burn::grad_clipping::GradientClippingConfig;
use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{
    BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Embedding, EmbeddingConfig, Linear, LinearConfig,
    PositionalEncoding, PositionalEncodingConfig,
};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::{Distribution, activation};
use burn_deterministic::checkpoint::{Checkpoint, CheckpointWriter};
use burn_deterministic::shards::{Part, Shards};
use burn_deterministic::{Determinism, digest, enable_op_determinism, set_random_seed};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

pub const SHARDS: usize = 8;
pub const STEPS: u64 = 8;
const CLASSES: usize = 12;

/// The folder of the checkpoints; without it there are none.
pub const FOLDER: &str = "BURN_DETERMINISTIC_SHARDS_FOLDER";
/// The step after which the process ends.
pub const UNTIL: &str = "BURN_DETERMINISTIC_SHARDS_UNTIL";
/// Set, other threads compute meanwhile, and shards wait.
const LOADED: &str = "BURN_DETERMINISTIC_SHARDS_LOADED";

/// A convolution with batch norm and dropout, and noise; a frozen layer; a constant; and classes that are named by an
/// embedding whose weight is also that of the last layer.
#[derive(Module, Debug)]
pub struct Everything {
    conv: Conv2d,
    norm: BatchNorm,
    dropout: Dropout,
    frozen: Linear,
    positions: PositionalEncoding,
    classes: Embedding,
    logits: Param<Tensor<2>>,
}

impl Everything {
    pub fn new(device: &Device) -> Self {
        let classes = EmbeddingConfig::new(CLASSES, 10).init(device);
        Self {
            conv: Conv2dConfig::new([1, 4], [3, 3]).init(device),
            norm: BatchNormConfig::new(4).init(device),
            dropout: DropoutConfig::new(0.3).init(),
            frozen: LinearConfig::new(4 * 36, 10).init(device).freeze(),
            positions: PositionalEncodingConfig::new(10).with_max_sequence_size(4).init(device),
            logits: classes.weight.clone(),
            classes,
        }
    }

    /// Makes one leaf of the tied weight, of which `Module::train` makes two.
    pub fn tied(self) -> Self {
        Self { logits: self.classes.weight.clone(), ..self }
    }

    /// Images `[n, 1, 8, 8]` and hints `[n, 1]` to logits `[n, 12]`.
    pub fn forward(&self, images: Tensor<4>, hints: Tensor<2, Int>) -> Tensor<2> {
        let noise = Tensor::random(images.dims(), Distribution::Normal(0.0, 0.1), &images.device());
        let x = activation::relu(self.norm.forward(self.conv.forward(images + noise)));
        let x = self.frozen.forward(self.dropout.forward(x.flatten::<2>(1, 3)));
        let x = self.positions.forward(x.unsqueeze_dim::<3>(1)).squeeze_dim::<2>(1);
        let x = x + self.classes.forward(hints).squeeze_dim::<2>(1);
        x.matmul(self.logits.val().transpose())
    }
}

/// Images, hints and labels.
pub type Batch = (Tensor<4>, Tensor<2, Int>, Tensor<1, Int>);

/// The samples of a shard: the last step of three has fewer shards, and a smaller one.
pub fn part(step: u64, shard: usize, device: &Device) -> Option<Part<Batch>> {
    let samples = match (step % 3, shard) {
        (2, 3) => 2,
        (2, 4..) => return None,
        _ => 5,
    };
    let number = |at: usize| (at as u64 * 2654435761 + step * 40503 + shard as u64 * 977) % 1000;
    let images: Vec<f32> = (0..samples * 64).map(|at| number(at) as f32 / 500.0 - 1.0).collect();
    let labels: Vec<i32> = (0..samples).map(|at| (number(at) % CLASSES as u64) as i32).collect();
    let hints: Vec<i32> = labels.iter().map(|label| (label * 5 + 1) % CLASSES as i32).collect();
    let images = Tensor::from_data(TensorData::new(images, [samples, 1, 8, 8]), device);
    let hints = Tensor::from_data(TensorData::new(hints, [samples, 1]), device);
    let labels = Tensor::from_data(TensorData::new(labels, [samples]), device);
    Some(Part { samples, batch: (images, hints, labels) })
}

/// Forward and backward pass of a shard.
pub fn shard(model: &Everything, (images, hints, labels): Batch) -> (GradientsParams, Tensor<1>) {
    let loss = CrossEntropyLossConfig::new().init(&images.device()).forward(model.forward(images, hints), labels);
    (GradientsParams::from_grads(loss.backward(), model), loss)
}

/// Trains on as many devices as the argument says.
pub fn sharded() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let count: usize = arguments()[0].parse().expect("a number of devices");
    let devices = devices_of_one_kind(count);
    process::report("devices", devices.len());
    train(Shards::new(SHARDS, devices).expect("devices of one kind"));
}

/// Trains, and reports the losses and the digest of the model.
pub fn train(mut shards: Shards) {
    let is_loaded = std::env::var_os(LOADED).is_some();
    let mut model = Everything::new(shards.device());
    let clipping = GradientClippingConfig::Norm(0.5);
    let mut optimizer = AdamConfig::new().with_grad_clipping(Some(clipping)).init();
    let mut losses: Vec<f32> = Vec::new();
    let mut start = 0;
    let mut writer = std::env::var_os(FOLDER).map(|folder| CheckpointWriter::open(folder).expect("a folder").keep(1));
    if let Some(mut checkpoint) = writer.as_mut().and_then(|all| all.latest().expect("an intact file")) {
        model = checkpoint.module("model", model).expect("the same model");
        optimizer = checkpoint.optimizer("optimizer", optimizer, &model).expect("the same optimizer");
        losses = checkpoint.value("losses").expect("losses");
        start = checkpoint.resume().expect("everything was restored");
    }
    let until = std::env::var(UNTIL).map_or(STEPS, |until| until.parse().expect("a step"));
    let done = AtomicBool::new(false);
    let model = thread::scope(|scope| {
        let _done = OnDrop(&done);
        if is_loaded {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        std::hint::spin_loop()
                    }
                });
            }
        }
        for step in start..until {
            let parts = shards.own().filter_map(|number| part(step, number, shards.device_of(number))).collect();
            let computed = shards.step(step, &model, parts, |model, batch| {
                if is_loaded {
                    thread::sleep(Duration::from_micros(rand::random_range(0..3000)));
                }
                shard(model, batch)
            });
            let computed = computed.expect("no device fails");
            losses.push(computed.mean(Clone::clone).into_scalar());
            model = optimizer.step(0.01, model, computed.gradients);
        }
        model
    });
    if let Some(writer) = &mut writer {
        let checkpoint = Checkpoint::new(until)
            .and_then(|checkpoint| checkpoint.with_module("model", &model))
            .and_then(|checkpoint| checkpoint.with_optimizer("optimizer", &optimizer, &model))
            .and_then(|checkpoint| checkpoint.with_value("losses", &losses));
        writer.save(&checkpoint.expect("a readable model")).expect("a disk with room");
    }
    process::report("losses", format!("{losses:?}"));
    process::report("digest", digest(&model));
}

/// A program that trains on as many devices as its argument says; `None` where there are fewer.
pub fn run_on(name: &str, count: usize, prepare: impl FnOnce(Program) -> Program) -> Option<process::Output> {
    let output = prepare(Program::new(name).arguments(&[&count.to_string()])).run();
    let there: usize = output.reported("devices").parse().expect("a number");
    if there < count {
        crate::skip::skip(format!("{count} devices: there are {there}"));
        return None;
    }
    Some(output)
}

#[test]
fn any_number_of_devices_ends_in_the_same_bits() {
    let one = run_on("sharded", 1, |program| program).expect("a device");
    for count in 2..=4 {
        for loaded in [false, true] {
            let prepare = |program: Program| if loaded { program.env(LOADED, "1") } else { program };
            let Some(several) = run_on("sharded", count, prepare) else { return };
            several.assert_digest(&one);
            assert_eq!(several.reported("losses"), one.reported("losses"), "{count} devices");
        }
    }
}

#[test]
fn a_training_on_four_devices_goes_on_on_any_number() {
    let whole = run_on("sharded", 1, |program| program).expect("a device");
    for (first, then) in [(4, 1), (1, 2)] {
        let folder = Folder::new();
        let on = |count, until| {
            run_on("sharded", count, |program: Program| {
                program.env(FOLDER, folder.path()).env(UNTIL, format!("{until}"))
            })
        };
        let Some(_) = on(first, 5) else { return };
        let Some(resumed) = on(then, STEPS) else { return };
        resumed.assert_digest(&whole);
        assert_eq!(resumed.reported("losses"), whole.reported("losses"), "from {first} devices to {then}");
    }
}
