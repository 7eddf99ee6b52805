//! A multilayer perceptron learns a function of two variables: SGD with momentum and weight decay.

use super::train as descend;
use burn::module::Module;
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{Linear, LinearConfig, Relu};
use burn::optim::SgdConfig;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::prelude::*;
use burn::tensor::Distribution;
use burn_deterministic::Digest;

#[derive(Module, Debug)]
struct Mlp {
    layers: Vec<Linear>,
    activation: Relu,
}

impl Mlp {
    fn new(sizes: &[usize], device: &Device) -> Self {
        let layers = sizes.windows(2).map(|pair| LinearConfig::new(pair[0], pair[1]).init(device)).collect();
        Self { layers, activation: Relu::new() }
    }

    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let last = self.layers.len() - 1;
        let hidden = self.layers[..last].iter().fold(inputs, |x, layer| self.activation.forward(layer.forward(x)));
        self.layers[last].forward(hidden)
    }
}

pub fn train(device: &Device) -> Digest {
    train_for(device, 40)
}

pub fn train_for(device: &Device, steps: usize) -> Digest {
    let points = Tensor::<2>::random([300, 2], Distribution::Uniform(-1.0, 1.0), device);
    let targets = (points.clone() * 3.0).sin().prod_dim(1);
    let optimizer = SgdConfig::new()
        .with_momentum(Some(MomentumConfig::new()))
        .with_weight_decay(Some(WeightDecayConfig::new(1e-4)))
        .init();
    descend(Mlp::new(&[2, 48, 33, 1], device), optimizer, 0.05, steps, |model, _| {
        MseLoss::new().forward(model.forward(points.clone()), targets.clone(), Reduction::Mean)
    })
}
