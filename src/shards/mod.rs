//! Training a batch in logical shards, with the same bits on any number of devices, of one process or several.
//!
//! A shard is a part of a batch whose forward and backward pass run on one device. The training says how many there
//! are, and the program gives the devices it has: one device computes all shards in turn, four compute a quarter each,
//! and the weights have the same bits. Shards in turn on one device are gradient accumulation.
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
//! burn_deterministic::set_random_seed(812);
//! let mut shards = Shards::new(8, [gpu0, gpu1])?; // or [gpu0]: the same weights
//! let mut model = LinearConfig::new(64, 10).init(&shards.device());
//! let mut optimizer = AdamConfig::new().init();
//! for step in 0..1000 {
//!     // 8 parts of 16 samples, each on the device of its shard.
//!     let part = |shard| Part { samples: 16, batch: batch(8 * step + shard as u64, shards.device_of(shard)) };
//!     let parts = shards.own().map(part).collect();
//!     let computed = shards.step(step, &model, parts, |model, Batch { x, y }| {
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
//! A node without a shard adds nothing: the other is the sum. A shard in which a parameter has no gradient counts as no
//! shard of it, and one of no samples counts as no shard. Where a shard's loss is a mean over its samples, the gradient
//! is that of the mean over the batch. Clip the folded gradient, as Burn's optimizers do, not a shard's.
//!
//! # What a shard sees
//!
//! Each shard computes with a copy of the model as it was before the step.
//!
//! - **Random numbers**: shard `s` of step `t` draws from `internal(stream, "shard")`/`t`/`s`, with `stream` that of
//!   the thread that calls [`step`](Shards::step), which must have one, and `internal` as in the documentation of
//!   [`RandomStream`](crate::RandomStream); operations are numbered as on the default device. So a dropout is that of
//!   the shard, not of its device.
//! - **Running states**, of a batch norm, start from the model's in each shard: its statistics are those of the shard.
//!   What they become is folded as the gradients are, and given to the model at the end of the step.
//! - **Tied parameters** stay tied. Running states that share one value cannot, and are refused.
//!
//! # Devices
//!
//! The model, the optimizer and the folded gradients are on the first device. Of `d` devices, device `i` computes the
//! shards from `ceil(i * shards / d)` up to `ceil((i + 1) * shards / d)`, each device in a thread of its own. In a step
//! the parameters are read once and written to each other device, and each other device's sums, which are few, are read
//! and written to the first: through the memory of the host. A shard's gradients are added when its backward pass has
//! ended: Burn's autodiff gives none before.
//!
//! Under [`Guarantee::RunToRun`](crate::Guarantee::RunToRun) all devices are of one model, with one driver; under
//! [`Guarantee::GpuToGpu`](crate::Guarantee::GpuToGpu) they may differ.
//!
//! # Processes and machines
//!
//! Several processes, on one machine or several, compute the shards of one training, each on its own devices. Every one
//! runs the same program, with another rank: the same seed, model and settings, and of each batch its own parts. The
//! weights have the bits that one process with one device gives.
//!
//! ```no_run
//! # use burn::data::{dataloader::batcher::Batcher, dataset::InMemDataset};
//! # use burn::nn::LinearConfig;
//! # use burn::optim::{GradientsParams, SgdConfig};
//! # use burn::prelude::*;
//! # use burn_deterministic::data::DataLoaderBuilder;
//! use burn_deterministic::shards::{Group, Shards};
//! use burn_deterministic::{Determinism, enable_op_determinism, initialize, set_random_seed};
//!
//! # struct Column;
//! # impl Batcher<f32, Tensor<2>> for Column {
//! #     fn batch(&self, numbers: Vec<f32>, device: &Device) -> Tensor<2> { unimplemented!() }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let numbers = InMemDataset::new(vec![0.0]);
//! enable_op_determinism(Determinism::default())?;
//! set_random_seed(812);
//! // Say, `RANK=0 SIZE=2 TOKEN=.. ADDRESS=10.0.0.1:29812` on the first machine, and `RANK=1 ..` on the second.
//! let [rank, size] = ["RANK", "SIZE"].map(|name| std::env::var(name).map(|value| value.parse()));
//! let group = Group::new(rank??, size??, &std::env::var("TOKEN")?).address(std::env::var("ADDRESS")?);
//! let mut shards = Shards::new(8, [Device::default()])?.in_group(group)?;
//!
//! // As in a program of one process from here on.
//! let loader = DataLoaderBuilder::new("train", Column).batch_size(2).set_devices(shards.devices()).build(numbers);
//! let mut model = initialize(LinearConfig::new(1, 1).init(shards.device()))?;
//! let mut optimizer = SgdConfig::new().init();
//! for (step, parts) in (0..).zip(shards.steps(&loader, |x| x.dims()[0])) {
//!     let computed = shards.step(step, &model, parts?, |model, x| {
//!         let loss = (model.forward(x.clone()) - x * 2.0).square().mean();
//!         (GradientsParams::from_grads(loss.backward(), model), loss)
//!     })?;
//!     let loss = computed.try_mean(|loss| loss.clone())?; // in every process, whether it is wanted or not
//!     model = optimizer.step(0.1, model, computed.gradients);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Of `n` processes, that of rank `i` computes the shards from `ceil(i * shards / n)` up to
//! `ceil((i + 1) * shards / n)`, and [`steps`](Shards::steps) makes no batch of another one. In a step each process sends its sums, running
//! states included, to rank 0, which adds them in the tree and sends all processes the gradients; each then does the
//! optimizer's step itself, so parameters are never sent. Validate, log and save in one process or in all, as you like:
//! their models are equal.
//!
//! **Refused** at the start are another version of this crate, another token, other settings of determinism or none,
//! another number of shards or processes, a rank that is taken, and under
//! [`Guarantee::RunToRun`](crate::Guarantee::RunToRun) other devices (as of one process, above). In each step the
//! number of the step, the thread's random stream and all bits of the model are compared.
//!
//! **A failure**, a process that ends, a cut connection, a shard that panics, is an error in all processes, and names
//! the rank and the address. A process that computes is waited for, however long; one that gives no sign of life for
//! [10 seconds](Group::silence) has failed. Gradients are returned when they are complete, so that no step is half
//! applied; running states are the model's when `step` returns, so where `try_mean` fails before the optimizer's step, drop
//! the model. A process that has the gradients may apply a step that another one has not got, and of two checkpoints one may be a
//! step ahead. The group has then ended, and every later step is an error: start the processes again from a checkpoint
//! of one of them.
//!
//! **The network** is trusted with what is sent: tokens are proved and every message is authenticated, but nothing is
//! secret. Rank 0 listens on the loopback interface unless it is [told otherwise](Group::address). A process must not
//! stop within a step for another reason than its devices' work: while it lives, the others wait.
//!
//! # Checkpoints
//!
//! A checkpoint is taken between two steps, as of any training, and holds nothing of the devices or processes: a
//! training that was stopped on four goes on on one, or eight.

mod compute;
mod error;
mod exchange;
mod group;
mod replica;
mod step;
#[cfg(feature = "train")]
mod strategy;
mod terms;
mod transfer;
mod tree;

pub use error::Error;
pub use group::{Group, GroupError};
pub use step::Step;

use crate::data::DataLoader;
use crate::device;
use crate::environment::device_environment;
use crate::settings::{Guarantee, determinism};
use burn_backend::StreamId;
use burn_core::module::Module;
use burn_core::tensor::Device;
use error::spelled;
use group::{Members, shards_of};
use std::ops::Range;
use std::sync::Arc;

/// The shards of a training, and the devices that compute them.
pub struct Shards {
    count: usize,
    /// Those of this process.
    own: Range<usize>,
    /// With autodiff.
    devices: Vec<Device>,
    /// Burn's stream of the thread of each device. A thread would get one of its own, with memory of its device for the
    /// rest of the process, in each step.
    streams: Vec<StreamId>,
    /// The other processes.
    group: Option<Arc<Members>>,
}

/// A part of a batch: what one shard computes.
pub struct Part<B> {
    /// The number of samples, or whatever the shard's loss is a mean over: the tokens of its sequences, say. A shard of
    /// none counts as no shard.
    pub samples: usize,
    /// The samples, on the device of the shard.
    pub batch: B,
}

impl Shards {
    /// So many shards, on these devices.
    ///
    /// # Errors
    ///
    /// [`Error::Count`], [`Error::Twice`], [`Error::GradientCheckpointing`], [`Error::NotCovered`] for a device that
    /// does not run on the deterministic backend, and [`Error::Kinds`].
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
        Ok(Self { count, own: 0..count, devices, streams, group: None })
    }

    /// The same shards, computed by all processes of a group: waits until every one has come, with shards of this
    /// number and devices of this kind. Of `n` processes, that of rank `i` computes the shards from
    /// `ceil(i * shards / n)` up to `ceil((i + 1) * shards / n)`, on the devices that it has given.
    ///
    /// Dropping the shards, and the steps that they have computed, leaves the group.
    ///
    /// # Errors
    ///
    /// [`Error::Count`] when this process has more devices than shards, and [`Error::Group`]: when a process does not
    /// come, or differs from another in its version, its token, its settings of determinism, its shards or, under
    /// [`Guarantee::RunToRun`], its devices.
    pub fn in_group(mut self, group: Group) -> Result<Self, Error> {
        let members = group.meet(self.count, &self.devices[0])?;
        let own = shards_of(members.rank, members.size, self.count);
        if own.len() < self.devices.len() {
            let error = Error::Count { shards: own.len(), devices: self.devices.len() };
            members.give_up(&error.to_string());
            return Err(error);
        }
        (self.own, self.group) = (own, Some(Arc::new(members)));
        Ok(self)
    }

    /// The number of shards, of all processes of a [group](Self::in_group).
    pub fn count(&self) -> usize {
        self.count
    }

    /// The shards that this process computes: all, or in a [group](Self::in_group) those of its rank.
    pub fn own(&self) -> Range<usize> {
        self.own.clone()
    }

    /// The device of the model and the optimizer, with autodiff.
    pub fn device(&self) -> &Device {
        &self.devices[0]
    }

    /// The device that computes a shard, with autodiff.
    ///
    /// # Panics
    ///
    /// When there is no such shard, or another process of the [group](Self::in_group) computes it.
    pub fn device_of(&self, shard: usize) -> &Device {
        &self.devices[self.place_of(shard)]
    }

    /// The device of each shard, by shard, with autodiff: those of a loader whose batches are the shards of steps. For
    /// a shard of another process it is the first device, where [`steps`](Self::steps) makes nothing for it.
    pub fn devices(&self) -> Vec<Device> {
        let place_of = |shard| if self.own.contains(&shard) { self.place_of(shard) } else { 0 };
        (0..self.count).map(|shard| self.devices[place_of(shard)].clone()).collect()
    }

    /// The number of the device that computes a shard.
    fn place_of(&self, shard: usize) -> usize {
        assert!(self.own.contains(&shard), "shard {shard} of {:?}, of {} in all", self.own, self.count);
        (shard - self.own.start) * self.devices.len() / self.own.len()
    }

    /// The parts of the steps of the loader's next pass: in each as many batches as there are shards, and fewer in the
    /// last one. `samples` gives the number of samples in a batch. After an error there is nothing.
    ///
    /// The batches of 16 samples of a loader make steps of 128 in 8 shards. A loader with the [devices](Self::devices)
    /// of the shards makes each where it is wanted. In a [group](Self::in_group) this process gets the parts of [its
    /// own shards](Self::own), of which the last step may have none, and no other batch is made; nor are its samples, by
    /// a loader with workers.
    ///
    /// # Errors
    ///
    /// [`Error::Position`], and [`Error::Load`] of the loader. Both leave the loader's
    /// [position](DataLoader::position) where the step begins, so nothing is lost when the training goes on there.
    pub fn steps<I, B, S>(
        &self,
        loader: &DataLoader<I, B>,
        samples: S,
    ) -> impl Iterator<Item = Result<Vec<Part<B>>, Error>> + use<I, B, S>
    where
        I: Send + 'static,
        B: Send + 'static,
        S: Fn(&B) -> usize,
    {
        let (count, own, loader) = (self.count, self.own.clone(), loader.clone());
        let mut batches = loader.batches_of(count, own);
        let mut ended = false;
        core::iter::from_fn(move || {
            if ended {
                return None;
            }
            let (epoch, first) = batches.place();
            let (mut parts, mut pulled) = (Vec::new(), 0);
            let failure: Option<Error> = match first.is_multiple_of(count) {
                true => loop {
                    if pulled == count {
                        break None;
                    }
                    match batches.next_made() {
                        Some(Ok(batch)) => {
                            pulled += 1;
                            parts.extend(batch.map(|batch| Part { samples: samples(&batch), batch }));
                        }
                        Some(Err(failure)) => break Some(failure.into()),
                        None => break None,
                    }
                },
                false => Some(Error::Position { epoch, batch: first, shards: count }),
            };
            ended = failure.is_some() || pulled < count;
            match failure {
                Some(failure) => {
                    loader.start_at(epoch, first);
                    Some(Err(failure))
                }
                None => (pulled > 0).then_some(Ok(parts)),
            }
        })
    }

    /// The parts of steps, of any other iterator than a loader's, whose items are those of shard 0 of the first step,
    /// shard 1, and so on. After an error there is nothing, and the items of that step before it are gone.
    ///
    /// In a [group](Self::in_group) all items are asked for, and those of other processes dropped.
    pub fn steps_of<B, E, I, S>(
        &self,
        items: I,
        samples: S,
    ) -> impl Iterator<Item = Result<Vec<Part<B>>, E>> + use<B, E, I, S>
    where
        I: IntoIterator<Item = Result<B, E>>,
        S: Fn(&B) -> usize,
    {
        let (count, own, mut items) = (self.count, self.own.clone(), items.into_iter().fuse());
        let mut failed = false;
        core::iter::from_fn(move || {
            let (mut parts, mut pulled) = (Vec::with_capacity(own.len()), 0);
            while pulled < count && !failed {
                match items.next() {
                    Some(Ok(batch)) if own.contains(&pulled) => {
                        parts.push(Part { samples: samples(&batch), batch });
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        failed = true;
                        return Some(Err(error));
                    }
                    None => break,
                }
                pulled += 1;
            }
            (pulled > 0).then_some(Ok(parts))
        })
    }

    /// Requires that the model is on the first device.
    fn check_model<M: Module>(&self, model: &M) -> Result<(), Error> {
        match model.devices().iter().find(|device| *device != self.device()) {
            None => Ok(()),
            Some(device) => Err(Error::Model { model: format!("{device:?}"), first: format!("{:?}", self.device()) }),
        }
    }
}
