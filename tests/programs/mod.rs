//! Training programs as a user would write them.

pub mod convnet;
pub mod gru;
pub mod lstm;
pub mod mlp;
pub mod skip_gram;
pub mod text_convnet;
pub mod transformer;

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::prelude::*;
use burn_deterministic::{Digest, digest};

/// Takes `steps` steps down the loss of step `n`, requires that the model has learned, and returns its digest.
fn train<M: Module>(
    mut model: M,
    mut optimizer: ModuleOptimizer,
    learning_rate: f64,
    steps: usize,
    loss: impl Fn(&M, usize) -> Tensor<1>,
) -> Digest {
    let mut losses = Vec::new();
    for step in 0..steps {
        let loss = loss(&model, step);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(learning_rate, model, gradients);
        losses.push(loss.detach());
    }
    let losses = Tensor::cat(losses, 0).into_data().try_to_vec::<f32>().expect("losses are f32");
    assert!(losses[steps - 1] < losses[0], "training from {} ends at {}", losses[0], losses[steps - 1]);
    digest(&model)
}
