//! The loader: passes over the samples, epoch after epoch.

use super::batches::{Batches, BurnBatches};
use super::batching::Batching;
use super::dealing::devices_of_view;
use super::error::LoadError;
use super::identity::{Identity, Samples};
use super::pass::Pass;
use super::pipeline::Pipeline;
use super::position::{Cursor, Position, Progression};
use super::sampler::Sampler;
use super::slices::{Reading, Slices};
use crate::device;
use crate::random::RandomStream;
use crate::settings::is_op_determinism_enabled;
use burn_core::data::dataloader::batcher::Batcher;
use burn_core::data::dataloader::{DataLoader as BurnDataLoader, DataLoaderIterator};
use burn_core::tensor::Device;
use std::ops::Range;
use std::sync::Arc;

/// Batches of type `O`, of samples of type `I`, epoch after epoch; [`DataLoaderBuilder`](super::DataLoaderBuilder)
/// makes it.
///
/// It is a [`DataLoader`](BurnDataLoader) of Burn. Its `iter` is [`batches`](Self::batches), with errors as Burn's
/// `DatasetError`; burn-train stops on one and returns it. `to_device` is a view of the same loader that makes all
/// batches on one device: what it hands out counts in [`position`](Self::position) of both. `slice` is a loader of its own, of samples `start..end` of the
/// dataset before shuffling, with the same random numbers for each sample, and a shuffle among them; a loader that
/// draws [`weighted`](super::DataLoaderBuilder::weighted) samples, or reads a [stream](Pipeline::shards), panics. Two
/// slices of one loader cannot be read at once ([`LoadError::SeveralDevices`]): burn-train takes one for each device,
/// and sums their gradients in no fixed order; [`Shards`](crate::shards::Shards) sums them in one.
///
/// Where determinism is enabled, a pass on a device that is not [covered](crate::covers) begins with
/// [`LoadError::Device`].
pub struct DataLoader<I, O> {
    pub(super) name: Arc<str>,
    pub(super) pipeline: Pipeline<I>,
    /// The samples of a slice.
    pub(super) samples: Option<Range<usize>>,
    pub(super) sampler: Sampler,
    pub(super) random: Option<RandomStream>,
    pub(super) batcher: Arc<dyn Batcher<I, O>>,
    pub(super) batch_size: usize,
    pub(super) drop_last: bool,
    pub(super) workers: usize,
    pub(super) prefetch: usize,
    /// In turn those of the batches of an epoch.
    pub(super) devices: Arc<[Device]>,
    pub(super) progression: Arc<Progression>,
    /// Of this loader and of those it is a slice of.
    pub(super) slices: Arc<Slices>,
}

impl<I, O> Clone for DataLoader<I, O> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            pipeline: self.pipeline.clone(),
            samples: self.samples.clone(),
            sampler: self.sampler.clone(),
            random: self.random.clone(),
            batcher: self.batcher.clone(),
            devices: self.devices.clone(),
            progression: self.progression.clone(),
            slices: self.slices.clone(),
            ..*self
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> DataLoader<I, O> {
    /// The next pass: one epoch's batches, or those from where [`resume_at`](Self::resume_at) or
    /// [`start_at`](Self::start_at) says.
    ///
    /// The first pass is epoch 0, and each is one epoch after the one before it, be that at its end or not; with
    /// [`fixed_epoch`](super::DataLoaderBuilder::fixed_epoch) it is that epoch again. One that is refused, with
    /// [`LoadError::Device`] or [`LoadError::SeveralDevices`], is none: the next one starts where it was to start.
    pub fn batches(&self) -> Batches<I, O> {
        self.batches_of(1, 0..1)
    }

    /// [`batches`](Self::batches), of which only those in the range `made` of each `of` consecutive ones are made.
    pub(crate) fn batches_of(&self, of: usize, made: Range<usize>) -> Batches<I, O> {
        let samples = self.samples();
        let reading = match self.read(samples.clone()) {
            Ok(reading) => reading,
            Err(failure) => {
                let places = self.pipeline.len().map(|_| self.sampler.len(&samples));
                return Batches::refused(failure, self.progression.start(), places, self.progression.clone());
            }
        };
        let (number, start) = self.progression.begin();
        let first = samples.start;
        let draws = self.random.clone().or_else(|| RandomStream::current().ok());
        let draws = draws.map(|stream| {
            let stream = stream.internal("batch").fork(&self.name);
            stream.fork_index(start.epoch as u64).fork_index(first as u64)
        });
        let batching = Batching {
            pass: Pass::new(
                self.pipeline.clone(),
                self.name.clone(),
                (start.epoch, start.batch),
                (&self.sampler, samples),
                self.batch_size,
                self.drop_last,
            ),
            first: start.batch,
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            batcher: self.batcher.clone(),
            devices: self.devices.clone(),
            draws,
            made: (of, made),
        };
        Batches::new(batching, start, (self.workers, self.prefetch), number, self.progression.clone(), reading)
    }

    /// Starts a pass of these samples, where the device and other passes permit one.
    fn read(&self, samples: Range<usize>) -> Result<Option<Reading>, LoadError> {
        if is_op_determinism_enabled() {
            for device in self.devices.iter() {
                device::check("DataLoader::batches", device)
                    .map_err(|error| LoadError::Device { reason: error.to_string() })?;
            }
        }
        self.samples.as_ref().map(|_| self.slices.read(&self.name, samples)).transpose()
    }
}

impl<I: 'static, O> DataLoader<I, O> {
    /// The batch after the last one that was handed out, which is the first of the next epoch after an epoch's last.
    ///
    /// Of several passes at a time, the one that started last counts.
    pub fn position(&self) -> Position {
        let Cursor { epoch, batch } = self.progression.reached();
        Position { epoch, batch, loader: self.identity() }
    }

    /// Starts the next pass at a position of this loader, or of one that is built alike, be it in another process.
    ///
    /// The batches are those that a pass from the epoch's start would hand out from there on. Behind a filter the
    /// samples before them are made once more, to find where they start.
    ///
    /// # Errors
    ///
    /// [`LoadError::OtherLoader`], which says how the loaders differ, when the position is that of a loader with other
    /// batches (see [`Position`]). Nothing changes then: the next pass starts where it would have.
    pub fn resume_at(&self, position: &Position) -> Result<(), LoadError> {
        let differences = position.loader.differences(&self.identity());
        if !differences.is_empty() {
            return Err(LoadError::OtherLoader { differences });
        }
        self.start_at(position.epoch, position.batch);
        Ok(())
    }

    /// Starts the next pass at a batch of an epoch, both from 0: [`resume_at`](Self::resume_at) for a program that keeps
    /// no [`Position`]. When the epoch has no such batch, the pass begins with [`LoadError::Position`].
    ///
    /// burn-train counts epochs from 1: with `SupervisedTraining::checkpoint(n)` goes `start_at(n, 0)`.
    pub fn start_at(&self, epoch: usize, batch: usize) {
        self.progression.start_at(Cursor { epoch, batch });
    }

    fn identity(&self) -> Identity {
        Identity {
            name: self.name.to_string(),
            samples: match self.pipeline.stream_shards() {
                Some(shards) => Samples::Shards(shards),
                None => Samples::Range(self.samples()),
            },
            batch_size: self.batch_size,
            drop_last: self.drop_last,
            fixed_epoch: self.progression.is_fixed(),
            sampling: self.sampler.identity(),
            random: self.random.clone(),
            functions: self.pipeline.functions().to_vec(),
        }
    }

    /// The indices of the samples in the dataset; of a stream none.
    fn samples(&self) -> Range<usize> {
        self.samples.clone().unwrap_or_else(|| 0..self.pipeline.len().unwrap_or(0))
    }
}

impl<I: Send + 'static, O: Send + 'static> BurnDataLoader<O> for DataLoader<I, O> {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        Box::new(BurnBatches(self.batches()))
    }

    fn num_items(&self) -> usize {
        self.sampler.len(&self.samples())
    }

    fn to_device(&self, device: &Device) -> Arc<dyn BurnDataLoader<O>> {
        Arc::new(Self { devices: devices_of_view(device), ..self.clone() })
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn BurnDataLoader<O>> {
        let samples = self.samples();
        assert!(
            self.pipeline.len().is_some() && !matches!(self.sampler, Sampler::Weighted { .. }),
            "a slice of the loader `{}`, which draws weighted samples or reads a stream: train on one device \
             (`burn::train::ExecutionStrategy::SingleDevice(device)`), or give each part a loader of its own",
            self.name
        );
        assert!(
            start <= end && end <= samples.len(),
            "the slice {start}..{end} of a loader of {} samples",
            samples.len()
        );
        let samples = Some(samples.start + start..samples.start + end);
        let progression = Arc::new(Progression::at(self.progression.start(), self.progression.is_fixed()));
        Arc::new(Self { samples, progression, ..self.clone() })
    }
}
