//! What a sample is: an item of a dataset, and the functions applied to it in turn.

use super::identity::Function;
use super::sampler::Sampler;
use super::stage::{Asked, Augment, Filter, Items, Made, Map, Part, Place, Repeat, Stage, Zip};
use super::stream::{OpenStream, Stream};
use crate::random::{RandomStream, StreamRng};
use burn_core::data::dataset::{Dataset, DatasetError};
use std::any::Any;
use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;

/// Samples of type `I`: a dataset's items, mapped, augmented and filtered, in the order in which the functions were
/// added.
///
/// Nothing runs before a loader asks, and then on any of its workers. The functions must compute the same for the same
/// sample and random numbers; what they draw comes from [`augment`](Self::augment).
///
/// [`take`](Self::take), [`skip`](Self::skip), [`repeat`](Self::repeat) and [`zip`](Self::zip) rearrange samples by
/// their index, as tf.data's methods of these names do by their place, before the loader orders them. So they are
/// refused where samples have no index: take and skip items of a stream in its iterator, and take batches by
/// `batches().take(n)`.
pub struct Pipeline<I> {
    stage: Arc<dyn Stage<I>>,
    functions: Vec<Function>,
    /// Where the samples are not a dataset's.
    stream: Option<Arc<dyn OpenStream>>,
}

impl<I> Clone for Pipeline<I> {
    fn clone(&self) -> Self {
        Self { stage: self.stage.clone(), functions: self.functions.clone(), stream: self.stream.clone() }
    }
}

impl<I: 'static> Pipeline<I> {
    /// The items of a dataset.
    pub fn new(dataset: impl Dataset<I> + 'static) -> Self {
        Self { stage: Arc::new(Items::new(dataset)), functions: Vec::new(), stream: None }
    }

    /// The items of shards (files, say) that are read from their start to their end, one shard after another, and need
    /// not fit in memory: PyTorch's `IterableDataset`, WebDataset's shards, tf.data's `from_generator`.
    ///
    /// `open` starts reading a shard. Each pass reads every shard once; how many items there are is known at its end.
    /// One shard is a plain stream.
    ///
    /// ```
    /// use burn_deterministic::data::Pipeline;
    /// use std::fs::File;
    /// use std::io::{BufRead, BufReader};
    ///
    /// let files = ["reviews-0.txt", "reviews-1.txt"];
    /// let reviews: Pipeline<String> = Pipeline::shards(files, |path| Ok(BufReader::new(File::open(path)?).lines()))
    ///     .filter(|line| !line.is_empty());
    /// # fn error() -> std::io::Result<()> { Ok(()) }
    /// ```
    ///
    /// With workers, one of them reads at a time, and the others make samples and batches of what was read. A sample's
    /// number, which [`augment`](Self::augment) draws by and an error names, is how many items the pass read before it.
    ///
    /// - Of the orders, a loader takes the stream's and [`shuffle_window`](super::DataLoaderBuilder::shuffle_window),
    ///   which also shuffles the shards. It keeps a window in memory, and what its workers are at.
    /// - A pass that [resumes](super::DataLoader::resume_at) reads the stream from its start: what is before the
    ///   position is read and dropped, and the functions run on it only if one of them is a filter.
    /// - A batch is handed out when the next sample has been read, because the last one must be known to be the last.
    /// - Its loader cannot be sliced; [`num_items`](burn_core::data::dataloader::DataLoader::num_items) is 0, and
    ///   progress has one item more than were processed, up to the last batch.
    /// - An error of `open` or of an item, or a panic of either, ends the pass with
    ///   [`LoadError::Dataset`](super::LoadError::Dataset), in place of the first batch that needs it. Of a window that is
    ///   to be shuffled, every sample does.
    pub fn shards<S, T, E>(
        shards: impl IntoIterator<Item = S>,
        open: impl Fn(&S) -> Result<T, E> + Send + Sync + 'static,
    ) -> Self
    where
        S: Send + Sync + 'static,
        T: Iterator<Item = Result<I, E>> + Send + 'static,
        E: Display + 'static,
        I: Send,
    {
        let stream = Arc::new(Stream::new(shards.into_iter().collect(), open));
        Self { stage: stream.clone(), functions: Vec::new(), stream: Some(stream) }
    }

    /// Applies a function to each sample.
    pub fn map<J: 'static>(self, function: impl Fn(I) -> J + Send + Sync + 'static) -> Pipeline<J> {
        self.then(Function::Map, |before, place| Arc::new(Map { before, place, function, mapped: PhantomData }))
    }

    /// Applies a function with random numbers to each sample.
    ///
    /// The numbers for sample `i` of the dataset in epoch `e` of the loader `name` are those of `internal(stream,
    /// "augment")`/`n`/`name`/`e`/`i`, where `n` counts the functions of the pipeline before this one, filters
    /// included; after a [`zip`](Self::zip), those of the pipeline that has more, and the `zip`. So two functions with
    /// the same seed or stream draw different numbers, be they of one pipeline or of two loaders with different names,
    /// and a sample's do not depend on where the shuffle has put it. Another function before this one changes its
    /// numbers. `internal` is in the documentation of [`RandomStream`].
    ///
    /// Where a dataset's sample may come several times in an epoch, each has numbers of its own: behind or before
    /// `take`, `skip` and `repeat`, `i` is the index in the whole pipeline, and with
    /// [`weighted`](super::DataLoaderBuilder::weighted) it is the number of the draw.
    pub fn augment<J: 'static>(
        self,
        stream: impl Into<RandomStream>,
        function: impl Fn(I, &mut StreamRng) -> J + Send + Sync + 'static,
    ) -> Pipeline<J> {
        let stream = stream.into();
        self.then(Function::Augment(stream.clone()), |before, place| {
            let stream = stream.internal("augment").fork_index(place.number as u64);
            Arc::new(Augment { before, place, stream, function, mapped: PhantomData })
        })
    }

    /// Leaves out each sample for which the function says no.
    ///
    /// Batches are filled with what is left, so all but the last are full. How many there are is known at the end of the
    /// epoch only: [`num_items`](burn_core::data::dataloader::DataLoader::num_items) and progress count the samples of
    /// the dataset. A full batch is handed out when the next sample that passes has been found, because the last batch
    /// of an epoch must be known to be the last (burn-train takes its last accumulated gradients in there).
    pub fn filter(self, function: impl Fn(&I) -> bool + Send + Sync + 'static) -> Self {
        self.then(Function::Filter, |before, place| Arc::new(Filter { before, place, function }))
    }

    /// The first samples, at most so many.
    ///
    /// # Panics
    ///
    /// Behind a [`filter`](Self::filter), and on [`shards`](Self::shards).
    pub fn take(self, samples: usize) -> Self {
        self.indexed("take");
        self.then(Function::Take(samples), |before, _| Arc::new(Part { before, first: 0, most: samples }))
    }

    /// The samples but for the first so many.
    ///
    /// # Panics
    ///
    /// Behind a [`filter`](Self::filter), and on [`shards`](Self::shards).
    pub fn skip(self, samples: usize) -> Self {
        self.indexed("skip");
        self.then(Function::Skip(samples), |before, _| Arc::new(Part { before, first: samples, most: usize::MAX }))
    }

    /// All samples so many times in an epoch, one time after another where nothing shuffles them.
    ///
    /// # Panics
    ///
    /// Behind a [`filter`](Self::filter), on [`shards`](Self::shards), and when there are more than `usize::MAX`
    /// samples.
    pub fn repeat(self, times: usize) -> Self {
        self.indexed("repeat");
        let samples = self.stage.len();
        assert!(
            samples.checked_mul(times).is_some(),
            "`repeat({times})` of {samples} samples: more than can be counted"
        );
        self.then(Function::Repeat(times), |before, _| Arc::new(Repeat { before, times }))
    }

    /// Pairs of the samples that have one index here and in `other`.
    ///
    /// Functions with one place in the two pipelines and one seed draw the same numbers for a pair, so that an image
    /// and its mask are cropped alike. Give them two seeds where that is not wanted.
    ///
    /// # Panics
    ///
    /// When the two have different numbers of samples, where either has a [`filter`](Self::filter), and on
    /// [`shards`](Self::shards).
    pub fn zip<J: 'static>(self, other: Pipeline<J>) -> Pipeline<(I, J)> {
        self.indexed("zip");
        other.indexed("zip");
        let [samples, others] = [self.stage.len(), other.stage.len()];
        assert!(samples == others, "`zip` of {samples} samples with {others}: `take` as many of both");
        let Pipeline { stage, functions, .. } = other;
        self.then(Function::Zip(functions), |before, _| Arc::new(Zip { before, other: stage }))
    }

    /// Requires that samples have an index.
    fn indexed(&self, method: &str) {
        assert!(
            !self.filters(),
            "`{method}` of a pipeline with a `filter`, whose samples have no index: filter after it (or, for `take`, take \
             batches of a pass by `batches().take(n)`)"
        );
        assert!(
            self.stream.is_none(),
            "`{method}` of a stream, whose samples have no index: let the iterator that `open` returns do it"
        );
    }

    /// Adds a function, of which `stage` makes a stage.
    fn then<J>(
        mut self,
        function: Function,
        stage: impl FnOnce(Arc<dyn Stage<I>>, Place) -> Arc<dyn Stage<J>>,
    ) -> Pipeline<J> {
        let place = Place { function: function.name(), number: depth(&self.functions) };
        self.functions.push(function);
        Pipeline { stage: stage(self.stage, place), functions: self.functions, stream: self.stream }
    }

    /// The number of samples before filters; `None` of a stream.
    pub(super) fn len(&self) -> Option<usize> {
        self.stream.is_none().then(|| self.stage.len())
    }

    /// The number of shards, of a stream.
    pub(super) fn stream_shards(&self) -> Option<usize> {
        self.stream.as_ref().map(|stream| stream.shards())
    }

    /// Of a stream, what a pass of this epoch reads it with, from a place in the order on, in parts of `run` samples.
    pub(super) fn open(
        &self,
        sampler: &Sampler,
        epoch: usize,
        start: usize,
        run: usize,
    ) -> Option<Box<dyn Any + Send + Sync>> {
        self.stream.as_ref().map(|stream| stream.open(sampler, epoch, start, run))
    }

    /// Whether there may be fewer samples than a dataset or a stream has.
    pub(super) fn filters(&self) -> bool {
        self.functions.contains(&Function::Filter)
    }

    /// The functions, in the order in which they are applied.
    pub(super) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Makes the sample at an index.
    pub(super) fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<I>, DatasetError> {
        self.stage.sample(index, asked)
    }
}

/// The number of a function after these. Zipped pipelines number theirs side by side.
fn depth(functions: &[Function]) -> usize {
    functions.iter().fold(0, |before, function| match function {
        Function::Zip(other) => before.max(depth(other)) + 1,
        _ => before + 1,
    })
}
