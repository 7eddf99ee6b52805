//! A convolutional network on embeddings finds which word a text has: duplicate indices, pooling, dropout, AdamW.

use super::train as descend;
use burn::module::Module;
use burn::nn::conv::{Conv1d, Conv1dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool1d, MaxPool1dConfig};
use burn::nn::{Dropout, DropoutConfig, Embedding, EmbeddingConfig, Linear, LinearConfig, PaddingConfig1d, Relu};
use burn::optim::AdamWConfig;
use burn::prelude::*;
use burn_deterministic::Digest;

const BATCH: usize = 32;
const LENGTH: usize = 24;
const CLASSES: usize = 4;

/// Letters.
const VOCABULARY: usize = 12;

#[derive(Module, Debug)]
pub struct TextConvNet {
    letters: Embedding,
    near: Conv1d,
    pool: MaxPool1d,
    far: Conv1d,
    dropout: Dropout,
    head: Linear,
    activation: Relu,
}

impl TextConvNet {
    pub fn new(device: &Device) -> Self {
        Self {
            letters: EmbeddingConfig::new(VOCABULARY, 10).init(device),
            near: Conv1dConfig::new(10, 24, 3).with_padding(PaddingConfig1d::Same).init(device),
            pool: MaxPool1dConfig::new(2).with_stride(2).init(),
            far: Conv1dConfig::new(24, 30, 3).with_dilation(2).with_groups(2).init(device),
            dropout: DropoutConfig::new(0.2).init(),
            head: LinearConfig::new(30, CLASSES).init(device),
            activation: Relu::new(),
        }
    }

    /// Letters `[batch, length]` to logits `[batch, 4]`.
    pub fn forward(&self, letters: Tensor<2, Int>) -> Tensor<2> {
        let x = self.letters.forward(letters).swap_dims(1, 2);
        let x = self.pool.forward(self.activation.forward(self.near.forward(x)));
        let x = self.activation.forward(self.far.forward(x));
        self.head.forward(self.dropout.forward(x.mean_dim(2).flatten(1, 2)))
    }
}

/// A text with the word of its class, three letters, among others.
fn text(number: usize) -> Vec<i32> {
    let class = number % CLASSES;
    let place = number * 5 % (LENGTH - 3);
    let letter = |at: usize| match at.checked_sub(place) {
        Some(of_word @ 0..3) => 3 * class + of_word,
        _ => (number * number + at * at * 7) % VOCABULARY,
    };
    (0..LENGTH).map(|at| letter(at) as i32).collect()
}

pub fn train(device: &Device) -> Digest {
    let loss = CrossEntropyLossConfig::new().init(device);
    descend(TextConvNet::new(device), AdamWConfig::new().init(), 1e-2, 24, |model, step| {
        let numbers = || (0..BATCH).map(|row| row + step % 3 * BATCH);
        let letters: Vec<i32> = numbers().flat_map(text).collect();
        let classes: Vec<i32> = numbers().map(|number| (number % CLASSES) as i32).collect();
        let letters = Tensor::<2, Int>::from_data(TensorData::new(letters, [BATCH, LENGTH]), device);
        let classes = Tensor::<1, Int>::from_data(TensorData::new(classes, [BATCH]), device);
        loss.forward(model.forward(letters), classes)
    })
}
