//! The models of three examples, with dropout, with batch norms and with attention, on one device and on several.

#![allow(clippy::duplicate_mod, reason = "the examples have their models too, and keep them to themselves")]

use crate::one_kind::devices_of_one_kind;
use crate::process::{self, Load, Program, arguments};
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn_deterministic::data::{DataLoader, DataLoaderBuilder, Pipeline};
use burn_deterministic::shards::Shards;
use burn_deterministic::{Determinism, digest, enable_op_determinism, initialize, set_random_seed};
use examples_common::{Batch, Digit, DigitBatcher, DigitSet, Digits, PassageBatcher, Passages};
use std::sync::Arc;

#[path = "../../examples/digits_convnet/model.rs"]
mod convnet;
#[path = "../../examples/text_transformer/model.rs"]
mod gpt;
#[path = "../../examples/digits_resnet/model.rs"]
mod resnet;

const SHARDS: usize = 8;
const STEPS: u64 = 5;

/// Trains, and reports the losses and the digest of the weights.
fn train<M: Module, I: Send + 'static, B: Send + 'static>(
    mut shards: Shards,
    model: M,
    loader: &DataLoader<I, B>,
    samples: impl Fn(&B) -> usize,
    loss: impl Fn(&M, B) -> Tensor<1> + Sync,
) {
    let mut model = initialize(model).expect("a seed");
    let mut optimizer = AdamConfig::new().init();
    let mut losses: Vec<f32> = Vec::new();
    for (step, parts) in (0..STEPS).zip(shards.steps(loader, samples)) {
        let computed = shards.step(step, &model, parts.expect("made"), |model, batch| {
            let loss = loss(model, batch);
            (GradientsParams::from_grads(loss.backward(), model), loss)
        });
        let computed = computed.expect("no device fails");
        losses.push(computed.mean(Clone::clone).into_scalar());
        model = optimizer.step(3e-3, model, computed.gradients);
    }
    process::report("losses", format!("{losses:?}"));
    process::report("digest", digest(&model));
}

fn digits(shards: &Shards) -> Arc<DataLoader<Digit, Batch>> {
    let (digits, _) = Digits::load(DigitSet::Digits).expect("the file of this repository");
    DataLoaderBuilder::new("train", DigitBatcher)
        .shuffle(1)
        .batch_size(6)
        .num_workers(1)
        .set_devices(shards.devices())
        .build(digits)
}

fn cross_entropy(logits: Tensor<2>, labels: Tensor<1, Int>) -> Tensor<1> {
    CrossEntropyLossConfig::new().init(&logits.device()).forward(logits, labels)
}

/// The first argument names the model, the second the number of devices.
pub fn sharded_model() {
    enable_op_determinism(Determinism::default()).expect("this process has run no tensor operation");
    set_random_seed(812);
    let devices = devices_of_one_kind(arguments()[1].parse().expect("a number of devices"));
    process::report("devices", devices.len());
    let shards = Shards::new(SHARDS, devices).expect("devices of one kind");
    let device = shards.device().clone();
    match arguments()[0].as_str() {
        "convnet" => {
            let (model, loader) = (convnet::ConvNet::new(8, &device), digits(&shards));
            train(shards, model, &loader, Batch::samples, |model, Batch { images, labels }| {
                cross_entropy(model.forward(images), labels)
            });
        }
        "resnet" => {
            let (model, loader) = (resnet::ResNet::new(&device), digits(&shards));
            train(shards, model, &loader, Batch::samples, |model, Batch { images, labels }| {
                cross_entropy(model.forward(images), labels)
            });
        }
        "transformer" => {
            let (characters, passages, _) = Passages::load(gpt::LENGTH);
            let passages = Pipeline::new(passages).map(|text: Vec<i32>| text[..=gpt::LENGTH].to_vec());
            let loader =
                DataLoaderBuilder::new("train", PassageBatcher).shuffle(1).batch_size(2).set_devices(shards.devices());
            let (model, loader) = (gpt::Gpt::new(characters.count(), &device), loader.build_pipeline(passages));
            train(
                shards,
                model,
                &loader,
                |(text, _)| text.dims()[0],
                |model, (text, next)| cross_entropy(model.forward(text), next),
            );
        }
        other => panic!("no model {other}"),
    }
}

fn alike_on_any_number_of_devices(model: &str) {
    let run = |count: usize| Program::new("sharded_model").arguments(&[model, &count.to_string()]).run();
    let one = run(1);
    let _load = Load::new();
    for count in [2, 4] {
        let several = run(count);
        let there: usize = several.reported("devices").parse().expect("a number");
        if there < count {
            crate::skip::skip(format!("{count} devices: there are {there}"));
            return;
        }
        assert_eq!(several.reported("losses"), one.reported("losses"), "{count} devices");
        several.assert_digest(&one);
    }
}

#[test]
fn a_convolutional_network_with_dropout_ends_in_the_same_bits() {
    alike_on_any_number_of_devices("convnet");
}

#[test]
fn a_residual_network_with_batch_norms_ends_in_the_same_bits() {
    alike_on_any_number_of_devices("resnet");
}

#[test]
fn a_transformer_with_dropout_ends_in_the_same_bits() {
    alike_on_any_number_of_devices("transformer");
}
