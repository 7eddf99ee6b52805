//! Training a batch in logical shards, with the same bits on any number of devices.
//!
//! A shard is a part of a batch whose forward and backward pass run on one device. The training says how many there are,
//! and the program gives the devices it has: one device computes all shards in turn, four compute a quarter each, and the
//! weights have the same bits. Shards in turn on one device are gradient accumulation.
//!
//! ```no_run
//! # use burn::module::Module;
//! # use burn::nn::{Linear, LinearConfig};
//! # use burn::optim::{AdamConfig, GradientsParams};
//! # use burn::prelude::*;
//! use burn_deterministic::shards::{Part, Shards};
//!
//! # struct Batch { x: Tensor<2>, y: Tensor<2> }
//! # fn batch(step: u64, device: &Device) -> Batch { unimplemented!() }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let [gpu0, gpu1] = [Device::default(), Device::default()];
//! let mut shards = Shards::new(8, [gpu0, gpu1])?; // or [gpu0]: the same weights
//! let mut model = LinearConfig::new(64, 10).init(&shards.device());
//! let mut optimizer = AdamConfig::new().init();
//! for step in 0..1000 {
//!     // 8 parts of 16 samples, each on the device of its shard.
//!     let parts = (0..8).map(|shard| Part { samples: 16, batch: batch(8 * step + shard, shards.device_of(shard as usize)) });
//!     let computed = shards.step(step, &model, parts.collect(), |model, Batch { x, y }| {
//!         let loss = (model.forward(x) - y).square().mean();
//!         (GradientsParams::from_grads(loss.backward(), model), loss)
//!     })?;
//!     let loss = computed.mean(|loss| loss.clone());
//!     model = optimizer.step(1e-3, model, computed.gradients);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Order contract
//!
//! With `n[s]` the samples of shard `s` and `w[s] = n[s] / (n[0] + n[1] + ..)`, computed in f64 and rounded to the
//! gradient's type, the gradient of a parameter is a fold over a fixed binary tree:
//!
//! ```text
//! node(s, 1)      = w[s] * gradient[s]
//! node(s, length) = node(s, length / 2) + node(s + length / 2, length / 2)
//! gradient        = node(0, 2^k)         of the least 2^k that is not below the number of shards
//! ```
//!
//! A node without a shard adds nothing: the other is the sum. A shard in which a parameter has no gradient counts as no shard
//! of it. Where a shard's loss is a mean over its samples, the gradient is that of the mean over the batch. Clip the folded
//! gradient, as Burn's optimizers do, not a shard's.
//!
//! # What a shard sees
//!
//! Each shard computes with a copy of the model as it was before the step.
//!
//! - **Random numbers**: shard `s` of step `t` draws from `internal(stream, "shard")`/`t`/`s`, with `stream` that of the thread
//!   that calls [`step`](Shards::step), and `internal` as in the documentation of [`RandomStream`](crate::RandomStream);
//!   operations are numbered as on the default device. So a dropout is that of the shard, not of its device.
//! - **Running states**, of a batch norm, start from the model's in each shard: its statistics are those of the shard.
//!   What they become is folded as the gradients are, and given to the model at the end of the step.
//! - **Tied parameters** stay tied.
//!
//! # Devices
//!
//! The model, the optimizer and the folded gradients are on the first device. Of `d` devices, device `i` computes the
//! shards from `ceil(i * shards / d)` up to `ceil((i + 1) * shards / d)`, each device in a thread of its own. In a step the
//! parameters are read once and written to each other device, and each other device's sums, which are few, are read
//! and written to the first: through the memory of the host.
//!
//! Under [`Guarantee::RunToRun`](crate::Guarantee::RunToRun) all devices are of one model, with one driver; under
//! [`Guarantee::GpuToGpu`](crate::Guarantee::GpuToGpu) they may differ.
//!
//! # Checkpoints
//!
//! A checkpoint is taken between two steps, as of any training, and holds nothing of the devices: a training that was
//! stopped on four goes on on one, or eight.

mod error;
mod replica;
mod step;
#[cfg(feature = "train")]
mod strategy;
mod terms;
mod transfer;
mod tree;

pub use error::Error;
pub use step::Step;

use crate::device;
use crate::environment::device_environment;
use crate::settings::{Guarantee, determinism};
use burn_backend::StreamId;
use burn_core::module::Module;
use burn_core::tensor::Device;
use error::spelled;

/// The shards of a training, and the devices that compute them.
pub struct Shards {
    count: usize,
    /// With autodiff.
    devices: Vec<Device>,
    /// Burn's stream of the thread of each device. A thread would get one of its own, with memory of its device for the rest
    /// of the process, in each step.
    streams: Vec<StreamId>,
}

/// A part of a batch: what one shard computes.
pub struct Part<B> {
    /// The number of samples, or whatever the shard's loss is a mean over: the tokens of its sequences, say.
    pub samples: usize,
    /// The samples, on the device of the shard.
    pub batch: B,
}

impl Shards {
    /// So many shards, on these devices.
    ///
    /// # Errors
    ///
    /// [`Error::Count`], [`Error::Twice`], [`Error::GradientCheckpointing`], [`Error::NotCovered`] for a device that does not run on the deterministic
    /// backend, and [`Error::Kinds`].
    pub fn new(count: usize, devices: impl IntoIterator<Item = Device>) -> Result<Self, Error> {
        let devices: Vec<Device> = devices.into_iter().map(Device::autodiff).collect();
        if devices.is_empty() || count < devices.len() {
            return Err(Error::Count { shards: count, devices: devices.len() });
        }
        for (number, device) in devices.iter().enumerate() {
            device::check("Shards::new", device).map_err(|error| Error::NotCovered { reason: error.to_string() })?;
            // Copies of a model are made without it, and Burn mixes no tensors with and without.
            if device.gradient_checkpointing_strategy() != Some(Default::default()) {
                return Err(Error::GradientCheckpointing { device: spelled(device) });
            }
            if devices[..number].contains(device) {
                return Err(Error::Twice { device: spelled(device) });
            }
        }
        if determinism().guarantee == Guarantee::RunToRun {
            let first = device_environment(&devices[0]);
            for other in &devices[1..] {
                if let Some(difference) = first.differences(&device_environment(other)).first() {
                    let [first, other] = [&devices[0], other].map(spelled);
                    return Err(Error::Kinds { first, other, difference: difference.to_string() });
                }
            }
        }
        let streams = devices.iter().map(|_| StreamId::allocate()).collect();
        Ok(Self { count, devices, streams })
    }

    /// The number of shards.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The device of the model and the optimizer, with autodiff.
    pub fn device(&self) -> &Device {
        &self.devices[0]
    }

    /// The device that computes a shard, with autodiff.
    ///
    /// # Panics
    ///
    /// When there is no such shard.
    pub fn device_of(&self, shard: usize) -> &Device {
        &self.devices[self.place_of(shard)]
    }

    /// The device of each shard, by shard, with autodiff: those of a loader whose batches are the shards of steps.
    pub fn devices(&self) -> Vec<Device> {
        (0..self.count).map(|shard| self.device_of(shard).clone()).collect()
    }

    /// The number of the device that computes a shard.
    fn place_of(&self, shard: usize) -> usize {
        assert!(shard < self.count, "shard {shard} of {}", self.count);
        shard * self.devices.len() / self.count
    }

    /// Cuts what an iterator gives into the parts of steps, as many in each as there are shards, and fewer in the last one.
    /// `samples` gives the number of samples in an item. After an error there is nothing.
    ///
    /// The items of a [loader](crate::data::DataLoader) of batches of 16 make steps of 128 samples in 8 shards. A loader
    /// with the [devices](Self::devices) of the shards makes each where it is wanted.
    pub fn steps<B, E, I, S>(
        &self,
        items: I,
        samples: S,
    ) -> impl Iterator<Item = Result<Vec<Part<B>>, E>> + use<B, E, I, S>
    where
        I: IntoIterator<Item = Result<B, E>>,
        S: Fn(&B) -> usize,
    {
        let (count, mut items) = (self.count, items.into_iter().fuse());
        let mut failed = false;
        core::iter::from_fn(move || {
            let mut parts = Vec::with_capacity(count);
            while parts.len() < count && !failed {
                match items.next() {
                    Some(Ok(batch)) => parts.push(Part { samples: samples(&batch), batch }),
                    Some(Err(error)) => {
                        failed = true;
                        return Some(Err(error));
                    }
                    None => break,
                }
            }
            (!parts.is_empty()).then_some(Ok(parts))
        })
    }

    /// `w[s]` of each shard.
    fn weights<B>(&self, step: u64, parts: &[Part<B>]) -> Result<Vec<f64>, Error> {
        if parts.len() > self.count {
            return Err(Error::Parts { parts: parts.len(), shards: self.count });
        }
        let samples: usize = parts.iter().map(|part| part.samples).sum();
        if samples == 0 {
            return Err(Error::Empty { step });
        }
        Ok(parts.iter().map(|part| part.samples as f64 / samples as f64).collect())
    }

    /// Requires that the model is on the first device.
    fn check_model<M: Module>(&self, model: &M) -> Result<(), Error> {
        match model.devices().iter().find(|device| *device != self.device()) {
            None => Ok(()),
            Some(device) => Err(Error::Model { model: format!("{device:?}"), first: format!("{:?}", self.device()) }),
        }
    }
}
