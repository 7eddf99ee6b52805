//! A residual network of three blocks for small images.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d, Relu};
use burn::prelude::*;

#[derive(Module, Debug)]
pub struct ResNet {
    stem: ConvNorm,
    blocks: Vec<Residual>,
    pool: AdaptiveAvgPool2d,
    output: Linear,
    activation: Relu,
}

/// Two convolutions and a way around them.
#[derive(Module, Debug)]
struct Residual {
    conv1: ConvNorm,
    conv2: ConvNorm,
    /// On the way around, where the blocks changes the shape.
    shortcut: Option<ConvNorm>,
    activation: Relu,
}

#[derive(Module, Debug)]
struct ConvNorm {
    conv: Conv2d,
    norm: BatchNorm,
}

impl ResNet {
    pub fn new(device: &Device) -> Self {
        Self {
            stem: ConvNorm::new([1, 16], 3, 1, device),
            blocks: vec![
                Residual::new([16, 16], 1, device),
                Residual::new([16, 32], 2, device),
                Residual::new([32, 64], 2, device),
            ],
            pool: AdaptiveAvgPool2dConfig::new([1, 1]).init(),
            output: LinearConfig::new(64, 10).init(device),
            activation: Relu::new(),
        }
    }

    /// Images `[n, 1, side, side]` to logits `[n, 10]`.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.activation.forward(self.stem.forward(images));
        let x = self.blocks.iter().fold(x, |x, block| block.forward(x));
        self.output.forward(self.pool.forward(x).flatten(1, 3))
    }
}

impl Residual {
    fn new(channels: [usize; 2], stride: usize, device: &Device) -> Self {
        let [_, outputs] = channels;
        Self {
            conv1: ConvNorm::new(channels, 3, stride, device),
            conv2: ConvNorm::new([outputs, outputs], 3, 1, device),
            shortcut: (stride > 1).then(|| ConvNorm::new(channels, 1, stride, device)),
            activation: Relu::new(),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let around = match &self.shortcut {
            Some(shortcut) => shortcut.forward(x.clone()),
            None => x.clone(),
        };
        let x = self.activation.forward(self.conv1.forward(x));
        self.activation.forward(self.conv2.forward(x) + around)
    }
}

impl ConvNorm {
    fn new(channels: [usize; 2], kernel: usize, stride: usize, device: &Device) -> Self {
        let padding = kernel / 2;
        let conv = Conv2dConfig::new(channels, [kernel, kernel])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
            // The norm subtracts what a bias would add.
            .with_bias(false);
        Self { conv: conv.init(device), norm: BatchNormConfig::new(channels[1]).init(device) }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.norm.forward(self.conv.forward(x))
    }
}
