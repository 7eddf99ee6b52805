//! One transformer block continues a text: attention, layer norm, weights tied between input and output, gradients
//! clipped by norm, AdamW.

use super::train as descend;
use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig, generate_autoregressive_mask};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{
    Dropout, DropoutConfig, Embedding, EmbeddingConfig, Gelu, LayerNorm, LayerNormConfig, Linear, LinearConfig,
};
use burn::optim::AdamWConfig;
use burn::prelude::*;
use burn_deterministic::Digest;

const TEXT: &str = "the quick brown fox jumps over the lazy dog, and the lazy dog sleeps on and on. ";
const BATCH: usize = 8;
const LENGTH: usize = 20;
const WIDTH: usize = 32;
const VOCABULARY: usize = 128;

#[derive(Module, Debug)]
struct Transformer {
    tokens: Embedding,
    positions: Embedding,
    norm_attention: LayerNorm,
    attention: MultiHeadAttention,
    norm_feed_forward: LayerNorm,
    widen: Linear,
    narrow: Linear,
    dropout: Dropout,
    activation: Gelu,
}

impl Transformer {
    fn new(device: &Device) -> Self {
        let norm = || LayerNormConfig::new(WIDTH).init(device);
        Self {
            tokens: EmbeddingConfig::new(VOCABULARY, WIDTH).init(device),
            positions: EmbeddingConfig::new(LENGTH, WIDTH).init(device),
            norm_attention: norm(),
            attention: MultiHeadAttentionConfig::new(WIDTH, 4).with_dropout(0.1).init(device),
            norm_feed_forward: norm(),
            widen: LinearConfig::new(WIDTH, 3 * WIDTH).init(device),
            narrow: LinearConfig::new(3 * WIDTH, WIDTH).init(device),
            dropout: DropoutConfig::new(0.1).init(),
            activation: Gelu::new(),
        }
    }

    /// Tokens `[batch, length]` to logits `[batch * length, vocabulary]`.
    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<2> {
        let [batch, length] = tokens.dims();
        let device = tokens.device();
        let positions = Tensor::arange(0..length as i64, &device).unsqueeze::<2>();
        let x = self.dropout.forward(self.tokens.forward(tokens) + self.positions.forward(positions));
        let mask = generate_autoregressive_mask(batch, length, &device);
        let attended =
            self.attention.forward(MhaInput::self_attn(self.norm_attention.forward(x.clone())).mask_attn(mask));
        let x = x + attended.context;
        let hidden = self.activation.forward(self.widen.forward(self.norm_feed_forward.forward(x.clone())));
        let x = x + self.narrow.forward(hidden);
        x.flatten::<2>(0, 1).matmul(self.tokens.weight.val().transpose())
    }
}

pub fn train(device: &Device) -> Digest {
    let text: Vec<i32> = TEXT.bytes().map(i32::from).collect();
    let passage = |start: usize, length: usize| text.iter().cycle().skip(start % text.len()).take(length).copied();
    let optimizer = AdamWConfig::new().with_grad_clipping(Some(GradientClippingConfig::Norm(1.0))).init();
    let loss = CrossEntropyLossConfig::new().init(device);
    descend(Transformer::new(device), optimizer, 3e-3, 24, |model, step| {
        let start = |row: usize| 7 * row + 13 * step;
        let inputs: Vec<i32> = (0..BATCH).flat_map(|row| passage(start(row), LENGTH)).collect();
        let targets: Vec<i32> = (0..BATCH).flat_map(|row| passage(start(row) + 1, LENGTH)).collect();
        let inputs = Tensor::<2, Int>::from_data(TensorData::new(inputs, [BATCH, LENGTH]), device);
        let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, [BATCH * LENGTH]), device);
        loss.forward(model.forward(inputs), targets)
    })
}
