//! How samples become batches.

use super::loader::DataLoader;
use super::pipeline::Pipeline;
use super::position::{Cursor, Progression};
use super::sampler::Sampler;
use super::weights::Weights;
use crate::random::RandomStream;
use burn_core::data::dataloader::batcher::Batcher;
use burn_core::data::dataset::Dataset;
use burn_core::tensor::Device;
use std::sync::Arc;

/// Builds a [`DataLoader`], with the methods of Burn's own `DataLoaderBuilder`, and a name.
pub struct DataLoaderBuilder<I, O> {
    name: Arc<str>,
    batcher: Arc<dyn Batcher<I, O>>,
    sampler: Sampler,
    random: Option<RandomStream>,
    batch_size: usize,
    drop_last: bool,
    fixed_epoch: bool,
    workers: usize,
    prefetch: Option<usize>,
    /// In turn those of the batches of an epoch; none is the default device.
    devices: Vec<Device>,
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
            sampler: Sampler::Sequential,
            random: None,
            batch_size: 1,
            drop_last: false,
            fixed_epoch: false,
            workers: 0,
            prefetch: None,
            devices: Vec::new(),
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
    ///
    /// # Panics
    ///
    /// After another order: a loader has one of `shuffle`, `shuffle_window` and `weighted`.
    pub fn shuffle(self, stream: impl Into<RandomStream>) -> Self {
        self.ordered(Sampler::Shuffle(stream.into()))
    }

    /// Shuffles windows of `window` consecutive samples, each by itself: for a [stream](Pipeline::shards), of which
    /// this many samples are kept in memory, and for a dataset that is slow to read in any other order.
    ///
    /// Window `w`, which is samples `w window..(w + 1) window` (the last may have fewer), is put in order as
    /// [`shuffle`](Self::shuffle) says, by the numbers of `internal(stream, "shuffle_window")`/`e`/`f`/`w`. So a sample
    /// stays within its window: unlike the buffer of tf.data's `shuffle(buffer_size)`, which a sample may stay in for
    /// long, where it goes does not depend on what was read before, and any window can be computed by itself.
    ///
    /// A stream's shards are put in an order of the epoch first, by the numbers of `internal(stream, "shards")`/`e`.
    /// Windows are of what is then read, and may have samples of several shards.
    ///
    /// # Panics
    ///
    /// When `window` is 0, and after another order.
    pub fn shuffle_window(self, stream: impl Into<RandomStream>, window: usize) -> Self {
        assert!(window > 0, "a window of `shuffle_window` has at least one sample");
        self.ordered(Sampler::ShuffleWindow { stream: stream.into(), window })
    }

    /// Draws the `samples` samples of an epoch with replacement, each sample of the dataset in proportion to its
    /// weight: PyTorch's `WeightedRandomSampler(weights, samples, replacement=True)`.
    ///
    /// Draw `k` of epoch `e` is the first sample whose cumulative weight is larger than `u total / 2^53` (inverse
    /// transform sampling, as NumPy's `Generator.choice(p=..)` does it). `u` is the highest 53 bits of the 64-bit
    /// number `k`, from 0, of `internal(stream, "weighted")`/`e`, cumulative weights are sums in f64 in the dataset's
    /// order, and `total` is the last. A weight that is too small to change the sum of those before it is never drawn,
    /// nor is one of 0.
    ///
    /// A sample that is drawn twice has other numbers of [`augment`](Pipeline::augment) each time: they are the draw's.
    ///
    /// # Panics
    ///
    /// When a weight is negative, infinite or NaN, when the sum of the weights is 0 or infinite, when `samples` is 0,
    /// and after another order. [`build`](Self::build) panics when there is not one weight for each sample of the
    /// dataset.
    pub fn weighted(
        self,
        stream: impl Into<RandomStream>,
        weights: impl IntoIterator<Item = f64>,
        samples: usize,
    ) -> Self {
        let weights = Arc::new(Weights::new(weights, samples));
        self.ordered(Sampler::Weighted { stream: stream.into(), weights })
    }

    fn ordered(self, sampler: Sampler) -> Self {
        let (before, now) = (self.sampler.method(), sampler.method());
        assert!(
            matches!(self.sampler, Sampler::Sequential) || before == now,
            "`{now}` of a loader that has an order by `{before}`: a loader has one order, call one of them"
        );
        Self { sampler, ..self }
    }

    /// What random tensor operations of the batcher draw from: in epoch `e`, batch `b` of the loader `name` from
    /// `internal(stream, "batch")`/`name`/`e`/`f`/`b`, with `f` and `internal` as in [`shuffle`](Self::shuffle).
    ///
    /// Without it `stream` is that of the thread that asks for the pass: of its seed, or the one it has entered.
    pub fn random(self, stream: impl Into<RandomStream>) -> Self {
        Self { random: Some(stream.into()), ..self }
    }

    /// Samples in a batch; the last of an epoch may have fewer, unless [`drop_last`](Self::drop_last) is set.
    ///
    /// # Panics
    ///
    /// When it is 0.
    pub fn batch_size(self, batch_size: usize) -> Self {
        assert!(batch_size > 0, "a batch has at least one sample");
        Self { batch_size, ..self }
    }

    /// Whether an epoch ends with its last full batch, and what is left is in none: PyTorch's `drop_last`, tf.data's
    /// `drop_remainder`. Without it the last batch has what is left.
    ///
    /// Behind a [`filter`](Pipeline::filter), and of a [stream](Pipeline::shards), a batch is handed out when as many
    /// samples as the next needs have been found, because the last one must be known to be the last. Progress counts
    /// the samples that are dropped with the last batch.
    pub fn drop_last(self, drop_last: bool) -> Self {
        Self { drop_last, ..self }
    }

    /// Makes each pass the same epoch, 0 if [`start_at`](DataLoader::start_at) says nothing else: one order, and one
    /// set of random numbers of augmentations and of the batcher, for an evaluation whose results are to be compared.
    ///
    /// The [`position`](DataLoader::position) after a whole pass is that epoch's first batch. tf.data's
    /// `shuffle(.., reshuffle_each_iteration=False)` does it for the order alone.
    pub fn fixed_epoch(self) -> Self {
        Self { fixed_epoch: true, ..self }
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
        Self { devices: vec![device], ..self }
    }

    /// The devices that the batcher is given: batch `b` of an epoch is made on `devices[b % devices.len()]`. Its random
    /// operations draw the same on any device.
    ///
    /// With the devices of [shards](crate::shards::Shards::devices) each batch is where its shard is.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn set_devices(self, devices: impl IntoIterator<Item = Device>) -> Self {
        let devices: Vec<Device> = devices.into_iter().collect();
        assert!(!devices.is_empty(), "`set_devices` of a loader with no devices: give at least one");
        Self { devices, ..self }
    }

    /// The loader of a dataset's items as they are.
    ///
    /// # Panics
    ///
    /// As [`build_pipeline`](Self::build_pipeline).
    pub fn build(self, dataset: impl Dataset<I> + 'static) -> Arc<DataLoader<I, O>> {
        self.build_pipeline(Pipeline::new(dataset))
    }

    /// The loader of a pipeline's samples.
    ///
    /// # Panics
    ///
    /// With [`weighted`](Self::weighted), when there is not one weight for each sample; and with that or
    /// [`shuffle`](Self::shuffle), when the samples are a [stream](Pipeline::shards)'s.
    pub fn build_pipeline(self, pipeline: Pipeline<I>) -> Arc<DataLoader<I, O>> {
        let Self { name, batcher, sampler, random, batch_size, drop_last, fixed_epoch, workers, prefetch, devices } =
            self;
        match (&sampler, pipeline.len()) {
            (Sampler::Weighted { weights, .. }, Some(samples)) => assert!(
                weights.len() == samples,
                "`weighted` with {} weights for {samples} samples: give one for each",
                weights.len()
            ),
            (Sampler::Weighted { .. } | Sampler::Shuffle(_), None) => panic!(
                "`{}` of a stream, whose samples are not known before they are read: use `shuffle_window`",
                sampler.method()
            ),
            _ => {}
        }
        Arc::new(DataLoader {
            name,
            pipeline,
            samples: None,
            sampler,
            random,
            batcher,
            batch_size,
            drop_last,
            workers,
            prefetch: prefetch.unwrap_or(workers.saturating_mul(2)),
            devices: if devices.is_empty() { Arc::new([Device::default()]) } else { devices.into() },
            progression: Arc::new(Progression::at(Cursor::default(), fixed_epoch)),
            slices: Arc::default(),
        })
    }
}
