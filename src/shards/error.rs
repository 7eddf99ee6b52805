//! Why a batch could not be computed in shards.

use super::group::GroupError;
use crate::data::LoadError;
use crate::error::debug_as_display;
use burn_core::tensor::Device;

debug_as_display!(Error);

/// Why the devices or the shards of a training cannot be used, or what failed in a step. After an error the model is as
/// it was before the step.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no shards, no devices, or more devices than shards.
    #[error("{shards} shards on {devices} devices: want at least one device, and at least as many shards as devices")]
    Count {
        /// The number of shards.
        shards: usize,
        /// The number of devices.
        devices: usize,
    },

    /// A device was given twice.
    #[error("{device} is given twice; give each device once: one computes several shards in turn")]
    Twice {
        /// The device.
        device: String,
    },

    /// A device does not run on the deterministic backend.
    #[error("{reason}")]
    NotCovered {
        /// The device, and what to use instead.
        reason: String,
    },

    /// A device has gradient checkpointing.
    #[error(
        "{device} has gradient checkpointing (`Device::gradient_checkpointing`), which steps in shards lack: give the device \
         without it, and more shards where memory is short"
    )]
    GradientCheckpointing {
        /// The device.
        device: String,
    },

    /// Two devices are of different kinds, under a guarantee that holds on one.
    #[error(
        "{first} and {other} differ ({difference}): what a shard computes would depend on the device it is on; use \
         devices of one kind, or ask for the same bits on all devices \
         (`Determinism::default().guarantee(Guarantee::GpuToGpu)`)"
    )]
    Kinds {
        /// The first device.
        first: String,
        /// One that differs.
        other: String,
        /// In what.
        difference: String,
    },

    /// The model is not on the first device.
    #[error(
        "the model is on {model}, and the first device of the shards is {first}: make the model on \
         `shards.device()`"
    )]
    Model {
        /// Where the model is.
        model: String,
        /// Where it should be.
        first: String,
    },

    /// A loader that burn-train trains with makes its batches on one device, and there are several.
    #[error(
        "the training loader is not a `burn_deterministic::data::DataLoader`, which makes each batch on the device of its \
         shard: build it with `burn_deterministic::data::DataLoaderBuilder`, or train on one device"
    )]
    Loader,

    /// A step was given more parts than there are shards.
    #[error("a step was given {parts} parts of a batch, and there are {shards} shards; give each shard one part")]
    Parts {
        /// The number of parts.
        parts: usize,
        /// The number of shards.
        shards: usize,
    },

    /// A step was given no samples.
    #[error("step {step} was given no samples; end the epoch before it")]
    Empty {
        /// The step.
        step: u64,
    },

    /// The samples of a step are more than can be counted.
    #[error(
        "the samples of step {step} are more than {}: give numbers of samples, or of what a mean is over",
        usize::MAX
    )]
    Samples {
        /// The step.
        step: u64,
    },

    /// The thread that computes a step has no random stream.
    #[error(
        "step {step}: this thread has neither a seed nor a random stream, of which each shard draws from a fork, so \
         that its numbers do not depend on its device; call `set_random_seed`, or enter a stream, before"
    )]
    NoStream {
        /// The step.
        step: u64,
    },

    /// Two running states share one value.
    #[error(
        "the running state `{path}` shares its value with another one of the model: which of their updates comes \
         first is lost in the shards' copies of the model; give each layer a state of its own"
    )]
    SharedState {
        /// The path of the second one.
        path: String,
    },

    /// A loader has no next batch.
    #[error(transparent)]
    Load(#[from] LoadError),

    /// A loader starts amid a step.
    #[error(
        "the loader starts at batch {batch} of epoch {epoch}, which is not the first of a step of {shards} shards: \
         every batch would be another shard's; resume at a position that was taken between two steps, with as many \
         shards"
    )]
    Position {
        /// The epoch, from 0.
        epoch: usize,
        /// The batch, from 0.
        batch: usize,
        /// The number of shards.
        shards: usize,
    },

    /// Other processes cannot be trained with, or one of them has failed. No parameter has changed in this step.
    #[error(transparent)]
    Group(#[from] GroupError),

    /// burn-train's `Learner` was given shards that are in a group.
    #[error(
        "burn-train's `Learner` trains in the shards of one process: its metrics want the outputs of all shards; in \
         a group of processes train in a loop of your own (`Shards::step`)"
    )]
    Learner,

    /// A shard has panicked, or its device has failed.
    #[error(
        "shard {shard} of step {step} failed on {device}: {reason}; no parameter has changed in this step (where a \
         tensor is lost: is each batch on its shard's device, `Shards::device_of`?)"
    )]
    Shard {
        /// The step.
        step: u64,
        /// The shard.
        shard: usize,
        /// Its device.
        device: String,
        /// The text of the panic.
        reason: String,
    },

    /// The system gave no thread for a device.
    #[error(
        "step {step}: no thread could be started for {device}: {reason}; no parameter has changed in this step; end \
         other threads, or use fewer devices"
    )]
    Thread {
        /// The step.
        step: u64,
        /// The device.
        device: String,
        /// The system's error.
        reason: String,
    },

    /// What shards have returned could not be added.
    #[error(
        "step {step}: the gradients of two shards could not be added on {device}: {reason}; no parameter has changed \
         in this step; have each shard return gradients of the shapes of its parameters"
    )]
    Sum {
        /// The step.
        step: u64,
        /// Where they were to be added.
        device: String,
        /// The text of the panic.
        reason: String,
    },

    /// A tensor could not be copied between two devices.
    #[error(
        "step {step}: {what} could not be read from {device}, or written to it: {reason}; no parameter has changed in \
         this step (where a tensor is lost: is each batch on its shard's device, `Shards::device_of`?)"
    )]
    Copy {
        /// The step.
        step: u64,
        /// What was to be copied.
        what: &'static str,
        /// The device.
        device: String,
        /// The device's error.
        reason: String,
    },
}

/// A device as an error spells it.
pub(super) fn spelled(device: &Device) -> String {
    format!("{:?}", device.clone().without_autodiff())
}
