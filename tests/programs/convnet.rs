//! A convolutional network tells stripes apart: batch norm, pooling, dropout, Adam.

use super::train as descend;
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig, MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Gelu, Linear, LinearConfig, PaddingConfig2d};
use burn::optim::AdamConfig;
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::Digest;

const CLASSES: usize = 3;
const SIDE: usize = 10;

#[derive(Module, Debug)]
struct ConvNet {
    stem: Conv2d,
    norm: BatchNorm,
    pool: MaxPool2d,
    grouped: Conv2d,
    average: AdaptiveAvgPool2d,
    dropout: Dropout,
    head: Linear,
    activation: Gelu,
}

impl ConvNet {
    fn new(device: &Device) -> Self {
        let padding = PaddingConfig2d::Same;
        Self {
            stem: Conv2dConfig::new([2, 12], [3, 3]).with_padding(padding).with_bias(false).init(device),
            norm: BatchNormConfig::new(12).init(device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            grouped: Conv2dConfig::new([12, 18], [3, 2]).with_stride([2, 1]).with_groups(3).init(device),
            average: AdaptiveAvgPool2dConfig::new([1, 2]).init(),
            dropout: DropoutConfig::new(0.3).init(),
            head: LinearConfig::new(36, CLASSES).init(device),
            activation: Gelu::new(),
        }
    }

    /// Images `[n, 2, 10, 10]` to logits `[n, 3]`.
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(self.activation.forward(self.norm.forward(self.stem.forward(images))));
        let x = self.average.forward(self.activation.forward(self.grouped.forward(x)));
        self.head.forward(self.dropout.forward(x.flatten(1, 3)))
    }
}

/// Noisy images `[n, 2, 10, 10]` whose stripes lie across, along or nowhere, and which of these it is.
fn stripes(count: usize, device: &Device) -> (Tensor<4>, Tensor<1, Int>) {
    let labels: Vec<i32> = (0..count).map(|image| (image * 7 % CLASSES) as i32).collect();
    let mut pixels = Vec::with_capacity(count * 2 * SIDE * SIDE);
    for label in &labels {
        for place in 0..2 * SIDE * SIDE {
            let (row, column) = (place / SIDE % SIDE, place % SIDE);
            pixels.push([row % 2, column % 2, 0][*label as usize] as f32);
        }
    }
    let noise = Tensor::<4>::random([count, 2, SIDE, SIDE], Distribution::Normal(0.0, 0.4), device);
    let images = Tensor::<4>::from_data(TensorData::new(pixels, [count, 2, SIDE, SIDE]), device) + noise;
    (images, Tensor::from_data(TensorData::new(labels, [count]), device))
}

pub fn train(device: &Device) -> Digest {
    let (images, labels) = stripes(96, device);
    let loss = CrossEntropyLossConfig::new().with_smoothing(Some(0.1)).init(device);
    descend(ConvNet::new(device), AdamConfig::new().init(), 3e-3, 24, |model, step| {
        let start = step % 3 * 32;
        let batch = (images.clone().slice(s![start..start + 32]), labels.clone().slice(s![start..start + 32]));
        loss.forward(model.forward(batch.0), batch.1)
    })
}
