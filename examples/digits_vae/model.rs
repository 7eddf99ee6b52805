//! A convolutional variational autoencoder for small images: D. P. Kingma and M. Welling, "Auto-Encoding Variational
//! Bayes" (2013).

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig, ConvTranspose2d, ConvTranspose2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d, Relu};
use burn::prelude::*;
use burn::tensor::{Distribution, activation};

/// Numbers that describe an image.
pub const LATENT: usize = 8;
/// Channels of the smallest images, whose sides are a quarter.
const CHANNELS: usize = 32;

#[derive(Module, Debug)]
pub struct Vae {
    conv1: Conv2d,
    conv2: Conv2d,
    mean: Linear,
    log_variance: Linear,
    dense: Linear,
    deconv1: ConvTranspose2d,
    deconv2: ConvTranspose2d,
    activation: Relu,
}

impl Vae {
    /// For images of `side` rows and columns.
    pub fn new(side: usize, device: &Device) -> Self {
        let conv = |channels| {
            let config = Conv2dConfig::new(channels, [3, 3]).with_stride([2, 2]);
            config.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(device)
        };
        let deconv = |channels| {
            let config = ConvTranspose2dConfig::new(channels, [4, 4]).with_stride([2, 2]);
            config.with_padding([1, 1]).init(device)
        };
        let flattened = CHANNELS * (side / 4) * (side / 4);
        Self {
            conv1: conv([1, 16]),
            conv2: conv([16, CHANNELS]),
            mean: LinearConfig::new(flattened, LATENT).init(device),
            log_variance: LinearConfig::new(flattened, LATENT).init(device),
            dense: LinearConfig::new(LATENT, flattened).init(device),
            deconv1: deconv([CHANNELS, 16]),
            deconv2: deconv([16, 1]),
            activation: Relu::new(),
        }
    }

    /// The two parts of the loss on images `[n, 1, side, side]`, each `[1]` and a sum over an image: the cross entropy of the
    /// reconstruction, and the Kullback-Leibler divergence of the latent numbers from normal ones.
    pub fn losses(&self, images: Tensor<4>) -> (Tensor<1>, Tensor<1>) {
        let [count, ..] = images.dims();
        let (mean, log_variance) = self.encode(images.clone());
        let noise = mean.random_like(Distribution::Normal(0.0, 1.0));
        let latent = mean.clone() + (log_variance.clone() * 0.5).exp() * noise;
        let logits = self.decode_logits(latent);
        let entropy = images.clone() * activation::log_sigmoid(logits.clone())
            + (images.neg() + 1.0) * activation::log_sigmoid(logits.neg());
        let divergence = mean.square() + log_variance.clone().exp() - log_variance - 1.0;
        (entropy.sum().neg() / count as f32, divergence.sum() * 0.5 / count as f32)
    }

    /// Images for latent numbers `[n, LATENT]`.
    pub fn decode(&self, latent: Tensor<2>) -> Tensor<4> {
        activation::sigmoid(self.decode_logits(latent))
    }

    /// The mean and the logarithm of the variance of the latent numbers, each `[n, LATENT]`.
    fn encode(&self, images: Tensor<4>) -> (Tensor<2>, Tensor<2>) {
        let x = self.activation.forward(self.conv1.forward(images));
        let x = self.activation.forward(self.conv2.forward(x)).flatten(1, 3);
        (self.mean.forward(x.clone()), self.log_variance.forward(x))
    }

    fn decode_logits(&self, latent: Tensor<2>) -> Tensor<4> {
        let x = self.activation.forward(self.dense.forward(latent));
        let [count, flattened] = x.dims();
        let side = (flattened / CHANNELS).isqrt();
        let x = x.reshape([count, CHANNELS, side, side]);
        self.deconv2.forward(self.activation.forward(self.deconv1.forward(x)))
    }
}
