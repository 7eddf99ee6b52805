//! Keras's "Simple MNIST convnet", on 8x8 images too: `same` padding keeps them large enough for two poolings.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, PaddingConfig2d, Relu};
use burn::prelude::*;

#[derive(Module, Debug)]
pub struct ConvNet {
    conv1: Conv2d,
    conv2: Conv2d,
    pool: MaxPool2d,
    dropout: Dropout,
    dense: Linear,
    activation: Relu,
}

impl ConvNet {
    /// For images of `side` rows and columns.
    pub fn new(side: usize, device: &Device) -> Self {
        let conv = |channels| Conv2dConfig::new(channels, [3, 3]).with_padding(PaddingConfig2d::Same).init(device);
        let flattened = 64 * (side / 4) * (side / 4);
        Self {
            conv1: conv([1, 32]),
            conv2: conv([32, 64]),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            dropout: DropoutConfig::new(0.5).init(),
            dense: LinearConfig::new(flattened, 10).init(device),
            activation: Relu::new(),
        }
    }

    /// Images `[n, 1, side, side]` to logits `[n, 10]`.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(self.activation.forward(self.conv1.forward(images)));
        let x = self.pool.forward(self.activation.forward(self.conv2.forward(x)));
        self.dense.forward(self.dropout.forward(x.flatten(1, 3)))
    }
}
