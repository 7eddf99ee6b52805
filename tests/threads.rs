//! What other threads do, and when, is not the main thread's business.

use crate::bits::{floats, indices};
use crate::process::Program;
use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::{Distribution, IndexingUpdateOp};
use burn_deterministic::{Digest, digest, set_random_seed};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Seeds the disturbance of [`stressed`]; without it there is none.
const DISTURBANCE: &str = "BURN_DETERMINISTIC_DISTURBANCE";

#[derive(Module, Debug)]
struct Classifier {
    first: Linear,
    dropout: Dropout,
    second: Linear,
}

impl Classifier {
    fn new(device: &Device) -> Self {
        Self {
            first: LinearConfig::new(12, 40).init(device),
            dropout: DropoutConfig::new(0.2).init(),
            second: LinearConfig::new(40, 3).init(device),
        }
    }

    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.second.forward(self.dropout.forward(self.first.forward(inputs).tanh()))
    }
}

/// A wait of up to 2 ms, as a scheduler would have it.
fn pause(rng: &mut Option<impl Rng>) {
    if let Some(rng) = rng {
        thread::sleep(Duration::from_micros(rng.random_range(0..2000)));
    }
}

/// Work of another thread: uploads, sums, scatters, draws of its own, reads.
fn disturb(seed: u64, device: &Device, done: &AtomicBool) {
    let mut rng = Some(ChaCha8Rng::seed_from_u64(seed));
    set_random_seed(seed);
    let at = Tensor::<1, Int>::from_data(indices([500], 7), device);
    while !done.load(Ordering::Relaxed) {
        let values = Tensor::<1>::random([500], Distribution::Default, device);
        pause(&mut rng);
        let sums = Tensor::<1>::zeros([7], device).scatter(0, at.clone(), values, IndexingUpdateOp::Add);
        pause(&mut rng);
        assert_eq!(sums.into_data().shape().as_slice(), [7]);
    }
}

/// Trains, with two other threads at work and pauses between submissions where [`DISTURBANCE`] asks for them.
pub fn stressed(device: &Device) -> Digest {
    let seed: Option<u64> = std::env::var(DISTURBANCE).ok().map(|seed| seed.parse().expect("a number"));
    let mut rng = seed.map(ChaCha8Rng::seed_from_u64);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in seed.iter().flat_map(|seed| [seed + 100, seed + 200]) {
            let (device, done) = (device.clone().without_autodiff(), &done);
            scope.spawn(move || disturb(seed, &device, done));
        }
        let inputs = Tensor::<2>::from_data(floats([64, 12]), device);
        let mut model = Classifier::new(device);
        let mut optimizer = AdamConfig::new().init();
        for _ in 0..30 {
            pause(&mut rng);
            let outputs = model.forward(inputs.clone());
            pause(&mut rng);
            let gradients = (outputs - 1.0).powi_scalar(2).mean().backward();
            pause(&mut rng);
            let gradients = GradientsParams::from_grads(gradients, &model);
            model = optimizer.step(1e-2, model, gradients);
        }
        let digest = digest(&model.valid());
        done.store(true, Ordering::Relaxed);
        digest
    })
}

/// A long program that reads, waits, detaches, clones, and moves and drops tensors on other threads wherever it can.
pub fn odd_places(device: &Device) -> Digest {
    let mut inputs = Tensor::<2>::from_data(floats([20, 12]), device);
    let mut model = Classifier::new(device);
    let mut optimizer = AdamConfig::new().init();
    let mut kept = Vec::new();
    for step in 0..40 {
        let outputs = model.forward(inputs.clone());
        let loss = (outputs.clone() - 1.0).powi_scalar(2).mean();
        match step % 8 {
            0 => device.sync().expect("waiting for the device"),
            1 => drop(loss.to_data()),
            2 => kept.push(outputs.detach()),
            3 => kept.clear(),
            4 => drop(thread::spawn(move || drop(outputs)).join()),
            5 => {
                // Computed there, of what was computed here, and used here again.
                let there = inputs.clone();
                let shifted = thread::spawn(move || there.clone().mul_scalar(0.5) + there.mean_dim(0));
                inputs = shifted.join().expect("element-wise work of another thread");
            }
            6 => device.flush().expect("handing over what is queued"),
            _ => drop((outputs.clone().max(), outputs.sum_dim(1).argmax(0).into_data())),
        }
        let gradients = loss.backward();
        let gradients = GradientsParams::from_grads(gradients, &model);
        let before = model.clone();
        model = optimizer.step(1e-2, model, gradients);
        thread::spawn(move || drop(before)).join().expect("dropping weights elsewhere");
    }
    // Left in the queue at the end, and never read.
    let _unread = inputs.matmul(kept.iter().fold(Tensor::<2>::ones([12, 3], device), |sum, _| sum * 2.0));
    digest(&model.valid())
}

#[test]
fn work_of_other_threads_changes_nothing() {
    let alone = Program::new("stressed").run();
    for seed in ["1", "2"] {
        Program::new("stressed").env(DISTURBANCE, seed).run().assert_digest(&alone);
    }
}

#[test]
fn operations_at_odd_places_stay_on_the_route() {
    let first = Program::new("odd_places").run();
    Program::new("odd_places").run().assert_digest(&first);
}
