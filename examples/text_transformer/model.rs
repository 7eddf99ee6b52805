//! A transformer that sees only what comes before: A. Radford et al., "Improving Language Understanding by Generative
//! Pre-Training" (2018), with the norms before the layers, and without dropout: the text is seen five times only.

use burn::module::Module;
use burn::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig, generate_autoregressive_mask};
use burn::nn::{Embedding, EmbeddingConfig, Gelu, Initializer, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::prelude::*;

/// Characters that the model sees at most.
pub const LENGTH: usize = 32;
const WIDTH: usize = 64;
const HEADS: usize = 4;
const BLOCKS: usize = 1;

#[derive(Module, Debug)]
pub struct Gpt {
    characters: Embedding,
    positions: Embedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
    output: Linear,
}

#[derive(Module, Debug)]
struct Block {
    norm1: LayerNorm,
    attention: MultiHeadAttention,
    norm2: LayerNorm,
    widen: Linear,
    activation: Gelu,
    narrow: Linear,
}

impl Gpt {
    pub fn new(characters: usize, device: &Device) -> Self {
        let embedding = |count| {
            let initializer = Initializer::Normal { mean: 0.0, std: 0.02 };
            EmbeddingConfig::new(count, WIDTH).with_initializer(initializer).init(device)
        };
        Self {
            characters: embedding(characters),
            positions: embedding(LENGTH),
            blocks: (0..BLOCKS).map(|_| Block::new(device)).collect(),
            norm: LayerNormConfig::new(WIDTH).init(device),
            output: LinearConfig::new(WIDTH, characters).init(device),
        }
    }

    /// Characters `[batch, length]` to logits `[batch * length, characters]` of the next.
    pub fn forward(&self, text: Tensor<2, Int>) -> Tensor<2> {
        let [batch, length] = text.dims();
        let device = text.device();
        let positions = Tensor::arange(0..length as i64, &device).unsqueeze::<2>();
        let mask = generate_autoregressive_mask(batch, length, &device);
        let x = self.characters.forward(text) + self.positions.forward(positions);
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x, mask.clone()));
        self.output.forward(self.norm.forward(x).flatten::<2>(0, 1))
    }
}

impl Block {
    fn new(device: &Device) -> Self {
        Self {
            norm1: LayerNormConfig::new(WIDTH).init(device),
            attention: MultiHeadAttentionConfig::new(WIDTH, HEADS).with_dropout(0.0).init(device),
            norm2: LayerNormConfig::new(WIDTH).init(device),
            widen: LinearConfig::new(WIDTH, 4 * WIDTH).init(device),
            activation: Gelu::new(),
            narrow: LinearConfig::new(4 * WIDTH, WIDTH).init(device),
        }
    }

    /// `[batch, length, WIDTH]` to the same; `mask` is true where a position must not look.
    fn forward(&self, x: Tensor<3>, mask: Tensor<3, Bool>) -> Tensor<3> {
        let attended = self.attention.forward(MhaInput::self_attn(self.norm1.forward(x.clone())).mask_attn(mask));
        let x = x + attended.context;
        let hidden = self.activation.forward(self.widen.forward(self.norm2.forward(x.clone())));
        x + self.narrow.forward(hidden)
    }
}
