//! A GRU continues arithmetic sequences: weights tied between input and output, gradients through time, clipped by norm.

use super::train as descend;
use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::nn::gru::{Gru, GruConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Embedding, EmbeddingConfig};
use burn::optim::SgdConfig;
use burn::optim::momentum::MomentumConfig;
use burn::prelude::*;
use burn_deterministic::Digest;

const BATCH: usize = 16;
const LENGTH: usize = 9;
const WIDTH: usize = 20;

/// Tokens.
pub const VOCABULARY: usize = 31;

#[derive(Module, Debug)]
pub struct Continuation {
    tokens: Embedding,
    gru: Gru,
}

impl Continuation {
    pub fn new(device: &Device) -> Self {
        Self {
            tokens: EmbeddingConfig::new(VOCABULARY, WIDTH).init(device),
            gru: GruConfig::new(WIDTH, WIDTH, true).init(device),
        }
    }

    /// Tokens `[batch, length]` to logits of the next ones `[batch, length, vocabulary]`.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let hidden = self.gru.forward(self.tokens.forward(tokens), None);
        hidden.matmul(self.tokens.weight.val().transpose().unsqueeze())
    }
}

pub fn train(device: &Device) -> Digest {
    let clipping = GradientClippingConfig::Norm(1.0);
    let optimizer =
        SgdConfig::new().with_momentum(Some(MomentumConfig::new())).with_gradient_clipping(Some(clipping)).init();
    let loss = CrossEntropyLossConfig::new().init(device);
    descend(Continuation::new(device), optimizer, 0.1, 20, |model, step| {
        let token = |row: usize, at: usize| ((7 * row + 13 * step + (row % 4 + 1) * at) % VOCABULARY) as i32;
        let tokens = |from: usize| (0..BATCH * LENGTH).map(move |i| token(i / LENGTH, i % LENGTH + from)).collect();
        let [inputs, targets]: [Vec<i32>; 2] = [0, 1].map(tokens);
        let inputs = Tensor::<2, Int>::from_data(TensorData::new(inputs, [BATCH, LENGTH]), device);
        let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, [BATCH * LENGTH]), device);
        loss.forward(model.forward(inputs).flatten(0, 1), targets)
    })
}
