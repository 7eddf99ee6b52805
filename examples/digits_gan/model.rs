//! A DCGAN for small images: A. Radford, L. Metz and S. Chintala, "Unsupervised Representation Learning with Deep
//! Convolutional Generative Adversarial Networks" (2015).

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig, ConvTranspose2d, ConvTranspose2dConfig};
use burn::nn::{
    BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Initializer, LeakyRelu, LeakyReluConfig, Linear, LinearConfig,
    PaddingConfig2d, Relu,
};
use burn::prelude::*;
use burn::tensor::activation;

/// Numbers that an image is made of.
pub const LATENT: usize = 16;
/// Channels of the smallest images, whose sides are a quarter.
const CHANNELS: usize = 64;
/// What the authors draw their weights from.
const INITIALIZER: Initializer = Initializer::Normal { mean: 0.0, std: 0.05 };

#[derive(Module, Debug)]
pub struct Gan {
    pub generator: Generator,
    pub discriminator: Discriminator,
}

impl Gan {
    /// For images of `side` rows and columns.
    pub fn new(side: usize, device: &Device) -> Self {
        Self { generator: Generator::new(side, device), discriminator: Discriminator::new(side, device) }
    }
}

#[derive(Module, Debug)]
pub struct Generator {
    dense: Linear,
    norm1: BatchNorm,
    deconv1: ConvTranspose2d,
    norm2: BatchNorm,
    deconv2: ConvTranspose2d,
    activation: Relu,
}

impl Generator {
    fn new(side: usize, device: &Device) -> Self {
        let deconv = |channels| {
            let config = ConvTranspose2dConfig::new(channels, [4, 4]).with_stride([2, 2]).with_padding([1, 1]);
            config.with_initializer(INITIALIZER).init(device)
        };
        Self {
            dense: LinearConfig::new(LATENT, CHANNELS * (side / 4) * (side / 4))
                .with_initializer(INITIALIZER)
                .init(device),
            norm1: BatchNormConfig::new(CHANNELS).init(device),
            deconv1: deconv([CHANNELS, 32]),
            norm2: BatchNormConfig::new(32).init(device),
            deconv2: deconv([32, 1]),
            activation: Relu::new(),
        }
    }

    /// Latent numbers `[n, LATENT]` to images `[n, 1, side, side]` in 0..=1.
    pub fn forward(&self, latent: Tensor<2>) -> Tensor<4> {
        let x = self.dense.forward(latent);
        let [count, flattened] = x.dims();
        let side = (flattened / CHANNELS).isqrt();
        let x = x.reshape([count, CHANNELS, side, side]);
        let x = self.activation.forward(self.norm1.forward(x));
        let x = self.activation.forward(self.norm2.forward(self.deconv1.forward(x)));
        activation::sigmoid(self.deconv2.forward(x))
    }
}

#[derive(Module, Debug)]
pub struct Discriminator {
    conv1: Conv2d,
    conv2: Conv2d,
    norm: BatchNorm,
    dropout: Dropout,
    dense: Linear,
    activation: LeakyRelu,
}

impl Discriminator {
    fn new(side: usize, device: &Device) -> Self {
        let conv = |channels| {
            let config = Conv2dConfig::new(channels, [3, 3]).with_stride([2, 2]);
            let config = config.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1));
            config.with_initializer(INITIALIZER).init(device)
        };
        Self {
            conv1: conv([1, 32]),
            conv2: conv([32, CHANNELS]),
            norm: BatchNormConfig::new(CHANNELS).init(device),
            dropout: DropoutConfig::new(0.3).init(),
            dense: LinearConfig::new(CHANNELS * (side / 4) * (side / 4), 1).with_initializer(INITIALIZER).init(device),
            activation: LeakyReluConfig::new().with_negative_slope(0.2).init(),
        }
    }

    /// Images `[n, 1, side, side]` to logits `[n, 1]`, above 0 for "real".
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.activation.forward(self.conv1.forward(images));
        let x = self.activation.forward(self.norm.forward(self.conv2.forward(x)));
        self.dense.forward(self.dropout.forward(x.flatten(1, 3)))
    }
}
