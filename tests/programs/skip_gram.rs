//! Word vectors by skip-gram with negative sampling: thousands of gradients fall on few rows.

use super::train as descend;
use burn::module::Module;
use burn::nn::{Embedding, EmbeddingConfig};
use burn::optim::AdaGradConfig;
use burn::prelude::*;
use burn::tensor::{Distribution, activation};
use burn_deterministic::Digest;

const WORDS: usize = 50;
const PAIRS: usize = 2048;
const NEGATIVES: usize = 4;

#[derive(Module, Debug)]
struct SkipGram {
    words: Embedding,
    contexts: Embedding,
}

impl SkipGram {
    /// Scores `[n, k]` of `k` contexts for each word: words `[n, 1]`, contexts `[n, k]`.
    fn forward(&self, words: Tensor<2, Int>, contexts: Tensor<2, Int>) -> Tensor<2> {
        let scores = self.contexts.forward(contexts).matmul(self.words.forward(words).swap_dims(1, 2));
        scores.squeeze_dim::<2>(2)
    }
}

pub fn train(device: &Device) -> Digest {
    let embedding = || EmbeddingConfig::new(WORDS, 24).init(device);
    let model = SkipGram { words: embedding(), contexts: embedding() };
    descend(model, AdaGradConfig::new().init(), 0.1, 16, |model, step| {
        let word = |pair: usize| (pair * pair + step) % WORDS;
        let words: Vec<i32> = (0..PAIRS).map(|pair| word(pair) as i32).collect();
        let neighbours: Vec<i32> = (0..PAIRS).map(|pair| ((word(pair) + pair % 3) % WORDS) as i32).collect();
        let words = Tensor::<2, Int>::from_data(TensorData::new(words, [PAIRS, 1]), device);
        let neighbours = Tensor::<2, Int>::from_data(TensorData::new(neighbours, [PAIRS, 1]), device);
        let strangers = Distribution::Uniform(0.0, WORDS as f64);
        let strangers = Tensor::<2, Int>::random([PAIRS, NEGATIVES], strangers, device);
        let near = activation::log_sigmoid(model.forward(words.clone(), neighbours));
        let far = activation::log_sigmoid(model.forward(words, strangers).neg());
        (near.sum() + far.sum()).neg() / PAIRS as f32
    })
}
