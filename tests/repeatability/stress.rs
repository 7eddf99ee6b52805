//! What happens on a busy machine: pauses, waits, memory taken and given back, other threads at work.

use crate::bits::floats;
use crate::repeatability::threads::OnDrop;
use burn::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Disturbs the thread that has it, each time in another way.
pub struct Stress {
    rng: ChaCha8Rng,
    device: Device,
    held: Vec<Tensor<1>>,
}

impl Stress {
    pub fn new(seed: u64, device: &Device) -> Self {
        Self { rng: ChaCha8Rng::seed_from_u64(seed), device: device.clone(), held: Vec::new() }
    }

    /// One of: a pause, a read or a wait in the middle, a clone that keeps operations from working in place, memory
    /// taken, and given back; or nothing.
    pub fn strike<const D: usize>(&mut self, tensor: &Tensor<D>) {
        let elements = tensor.shape().num_elements();
        match self.rng.random_range(0..8) {
            0 => thread::sleep(Duration::from_micros(self.rng.random_range(0..3000))),
            1 => drop(tensor.to_data()),
            2 => self.device.sync().expect("waiting for the device"),
            3 => self.held.push(tensor.clone().reshape([elements])),
            4 => self.held.push(Tensor::zeros([self.rng.random_range(1..300) * 257], &self.device)),
            5 => self.held.clear(),
            6 => self.device.flush().expect("handing over what is queued"),
            _ => {}
        }
    }
}

/// Does `work` beside a thread that submits work of its own.
pub fn beside_others<T>(device: &Device, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| noise(device, &done));
        let _done = OnDrop(&done);
        work()
    })
}

/// Work of another thread, until `done`.
fn noise(device: &Device, done: &AtomicBool) {
    let values = Tensor::<2>::from_data(floats([40, 30]), device);
    while !done.load(Ordering::Relaxed) {
        let product = values.clone().matmul(values.clone().transpose());
        product.sum_dim(0).try_into_data().expect("work like any other");
        thread::sleep(Duration::from_millis(2));
    }
}
