//! What can go wrong on the way to a batch.

use crate::error::debug_as_display;
use std::ops::Range;

debug_as_display!(LoadError);

/// Why a batch could not be made, which ends the pass, or why a pass cannot start where it is to.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The dataset has not given a sample.
    #[error(
        "the dataset failed at sample {sample} in epoch {epoch}: {reason}; the batches before it were handed out, and \
         a pass resumed at the loader's `position` tries this one again"
    )]
    Dataset {
        /// The epoch, from 0.
        epoch: usize,
        /// The sample's index in the dataset; with `take`, `skip` or `repeat` that in the whole pipeline, and of a stream
        /// how many items were read before it.
        sample: usize,
        /// The dataset's error.
        reason: String,
    },

    /// The dataset, or a function of the pipeline, panicked.
    #[error(
        "{stage} panicked at sample {sample} in epoch {epoch}: {panic}; correct it, or leave the sample out with a \
         `filter` before it"
    )]
    Sample {
        /// The epoch, from 0.
        epoch: usize,
        /// The sample's index in the dataset; with `take`, `skip` or `repeat` that in the whole pipeline, and of a stream
        /// how many items were read before it.
        sample: usize,
        /// What panicked: `the dataset`, or the function and its place in the pipeline; or either of a zipped one.
        stage: String,
        /// The text of the panic.
        panic: String,
    },

    /// The loader's device is not covered by determinism, which is enabled.
    #[error("{reason}")]
    Device {
        /// The device, and what to use instead.
        reason: String,
    },

    /// Two slices of a loader were read at once, as burn-train's strategies for several devices do.
    #[error(
        "the slices {first:?} and {second:?} of the loader `{loader}` are read at once, as burn-train does to train on several \
         devices (`MultiDeviceOptim::OptimMainDevice` adds gradients in the order in which devices finish, \
         `MultiDeviceOptim::OptimSharded` deals parameters to devices by random ids, and no order of an all-reduce is \
         fixed): the weights would differ from run to run; train in shards \
         (`.with_training_strategy(burn_deterministic::shards::Shards::new(8, devices)?.strategy(..))`), \
         or read one slice after the other"
    )]
    SeveralDevices {
        /// The loader's name.
        loader: String,
        /// The samples of one slice.
        first: Range<usize>,
        /// The samples of the other.
        second: Range<usize>,
    },

    /// The batcher panicked.
    #[error(
        "the batcher panicked at batch {batch} of epoch {epoch}, of samples {samples:?}: {panic}; correct it, or leave \
         out with `filter` what it cannot take"
    )]
    Batcher {
        /// The epoch, from 0.
        epoch: usize,
        /// The batch, from 0.
        batch: usize,
        /// The indices of the samples it was given, as in [`LoadError::Sample`].
        samples: Vec<usize>,
        /// The text of the panic.
        panic: String,
    },

    /// A pass was to resume at the position of another loader.
    #[error(
        "the position comes from another loader: {}; build the loader as it was when the position was taken, or say with \
         `burn_deterministic::data::DataLoader::start_at` where it is to start",
        .differences.join("; ")
    )]
    OtherLoader {
        /// What differs, each with what it was and what it is.
        differences: Vec<String>,
    },

    /// A pass was to start behind the end of its epoch.
    #[error(
        "the pass was to start at batch {batch} of epoch {epoch}, which has {batches}; start it at one of these, with the \
         dataset, the pipeline and the batch size that the number of the batch comes from"
    )]
    Position {
        /// The epoch, from 0.
        epoch: usize,
        /// The batch asked for, from 0.
        batch: usize,
        /// The batches that the epoch has.
        batches: usize,
    },

    /// The system gave no thread for a worker.
    #[error("worker {worker} could not be started: {reason}; ask for fewer with `num_workers`")]
    Worker {
        /// The worker, from 0.
        worker: usize,
        /// The system's error.
        reason: String,
    },

    /// A worker panicked outside the dataset, the functions of the pipeline and the batcher: where a sample of which no
    /// batch is made was dropped, for example. Batches that other workers had not made by then are not handed out.
    #[error(
        "worker {worker} panicked in epoch {epoch}, outside the dataset, the functions of the pipeline and the batcher: \
         {panic}; if it is the `Drop` of a sample, correct it, and resume the pass at the loader's `position`"
    )]
    WorkerPanic {
        /// The epoch, from 0.
        epoch: usize,
        /// The worker, from 0.
        worker: usize,
        /// The text of the panic.
        panic: String,
    },
}
