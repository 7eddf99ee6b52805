//! An LSTM on embeddings counts modulo 3: gradients through time, clipped by value, RMSprop.

use super::train as descend;
use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Embedding, EmbeddingConfig, Linear, LinearConfig, Lstm, LstmConfig};
use burn::optim::RmsPropConfig;
use burn::prelude::*;
use burn_deterministic::Digest;

const BATCH: usize = 24;
const LENGTH: usize = 6;
const DIGITS: usize = 10;
const CLASSES: usize = 3;

#[derive(Module, Debug)]
struct Counter {
    digits: Embedding,
    lstm: Lstm,
    head: Linear,
}

impl Counter {
    fn new(device: &Device) -> Self {
        Self {
            digits: EmbeddingConfig::new(DIGITS, 8).init(device),
            lstm: LstmConfig::new(8, 20, true).init(device),
            head: LinearConfig::new(20, CLASSES).init(device),
        }
    }

    /// Digits `[batch, length]` to logits `[batch, 3]`.
    fn forward(&self, digits: Tensor<2, Int>) -> Tensor<2> {
        let (_, state) = self.lstm.forward(self.digits.forward(digits), None);
        self.head.forward(state.hidden)
    }
}

pub fn train(device: &Device) -> Digest {
    let optimizer = RmsPropConfig::new().with_grad_clipping(Some(GradientClippingConfig::Value(0.5))).init();
    let loss = CrossEntropyLossConfig::new().init(device);
    let digits: Vec<i32> = (0..BATCH * LENGTH).map(|i| (i * i % 97 % DIGITS) as i32).collect();
    let sums: Vec<i32> = digits.chunks(LENGTH).map(|number| number.iter().sum::<i32>() % CLASSES as i32).collect();
    let digits = Tensor::<2, Int>::from_data(TensorData::new(digits, [BATCH, LENGTH]), device);
    let sums = Tensor::<1, Int>::from_data(TensorData::new(sums, [BATCH]), device);
    descend(Counter::new(device), optimizer, 5e-3, 16, |model, _| {
        loss.forward(model.forward(digits.clone()), sums.clone())
    })
}
