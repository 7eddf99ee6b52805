//! How samples become batches.

use super::loader::DataLoader;
use super::pipeline::Pipeline;
use crate::random::RandomStream;
use burn_core::data::dataloader::batcher::Batcher;
use burn_core::data::dataset::Dataset;
use burn_core::tensor::Device;
use std::sync::Arc;

/// Builds a [`DataLoader`], with the methods of Burn's own `DataLoaderBuilder`, and a name.
pub struct DataLoaderBuilder<I, O> {
    name: Arc<str>,
    batcher: Arc<dyn Batcher<I, O>>,
    shuffle: Option<RandomStream>,
    random: Option<RandomStream>,
    batch_size: usize,
    workers: usize,
    prefetch: Option<usize>,
    device: Option<Device>,
}

impl<I: Send + 'static, O: Send + 'static> DataLoaderBuilder<I, O> {
    /// Batches of one sample in the dataset's order, made by the thread that asks for them, on the default device.
    ///
    /// With workers, several may call the batcher at a time. It must make the same of the same samples.
    ///
    /// The name (`"train"`, `"valid"`) distinguishes the loader from others with the same seeds: what
    /// [`augment`](Pipeline::augment) and the [batcher](Self::random) draw is forked by it, so loaders with different
    /// names draw different numbers, and two with one name and one seed the same. It is part of the loader's
    /// [`Position`](super::Position).
    pub fn new(name: &str, batcher: impl Batcher<I, O> + 'static) -> Self {
        Self {
            name: name.into(),
            batcher: Arc::new(batcher),
            shuffle: None,
            random: None,
            batch_size: 1,
            workers: 0,
            prefetch: None,
            device: None,
        }
    }

    /// Puts the samples of each epoch in an order of its own, drawn from a seed or a stream.
    ///
    /// All samples are shuffled, not the next few, and every order is as likely as any other: for `i` from the last
    /// place to the second, the sample there changes places with the one at `floor(u (i + 1) / 2^64)`, where `u` is the
    /// next 64-bit number of `internal(stream, "shuffle")`/`e`/`f`, in epoch `e` and with `f` the first sample, which is 0
    /// except in a slice. `internal` is in the documentation of [`RandomStream`].
    ///
    /// The loader's name is not part of it: of two loaders with as many samples and the same seed or stream, each epoch
    /// has one order, so that pairs of samples stay together. Give them two seeds, or streams forked by two names, where
    /// that is not wanted.
    pub fn shuffle(self, stream: impl Into<RandomStream>) -> Self {
        Self { shuffle: Some(stream.into()), ..self }
    }

    /// What random tensor operations of the batcher draw from: in epoch `e`, batch `b` of the loader `name` from
    /// `internal(stream, "batch")`/`name`/`e`/`f`/`b`, with `f` and `internal` as in [`shuffle`](Self::shuffle).
    ///
    /// Without it `stream` is that of the thread that asks for the pass: of its seed, or the one it has entered.
    pub fn random(self, stream: impl Into<RandomStream>) -> Self {
        Self { random: Some(stream.into()), ..self }
    }

    /// Samples in a batch; the last of an epoch may have fewer.
    ///
    /// # Panics
    ///
    /// When it is 0.
    pub fn batch_size(self, batch_size: usize) -> Self {
        assert!(batch_size > 0, "a batch has at least one sample");
        Self { batch_size, ..self }
    }

    /// Threads that make batches ahead of the program; with 0 it makes each when it asks for it.
    pub fn num_workers(self, num_workers: usize) -> Self {
        Self { workers: num_workers, ..self }
    }

    /// Batches that are kept ready, where the batcher puts them, besides those the workers are at; without it two for
    /// each worker.
    pub fn prefetch(self, batches: usize) -> Self {
        Self { prefetch: Some(batches), ..self }
    }

    /// The device that the batcher is given.
    pub fn set_device(self, device: Device) -> Self {
        Self { device: Some(device), ..self }
    }

    /// The loader of a dataset's items as they are.
    pub fn build(self, dataset: impl Dataset<I> + 'static) -> Arc<DataLoader<I, O>> {
        self.build_pipeline(Pipeline::new(dataset))
    }

    /// The loader of a pipeline's samples.
    pub fn build_pipeline(self, pipeline: Pipeline<I>) -> Arc<DataLoader<I, O>> {
        let Self { name, batcher, shuffle, random, batch_size, workers, prefetch, device } = self;
        Arc::new(DataLoader {
            name,
            pipeline,
            samples: None,
            shuffle,
            random,
            batcher,
            batch_size,
            workers,
            prefetch: prefetch.unwrap_or(workers.saturating_mul(2)),
            device: device.unwrap_or_default(),
            progression: Arc::default(),
            slices: Arc::default(),
        })
    }
}
