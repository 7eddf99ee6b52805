//! What a sample is: an item of a dataset, and the functions applied to it in turn.

use super::identity::Function;
use crate::random::{RandomStream, StreamRng};
use burn_core::data::dataset::{Dataset, DatasetError};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

/// Samples of type `I`: a dataset's items, mapped, augmented and filtered, in the order in which the functions were
/// added.
///
/// Nothing runs before a loader asks, and then on any of its workers. The functions must compute the same for the same
/// sample and random numbers; what they draw comes from [`augment`](Self::augment).
pub struct Pipeline<I> {
    stage: Arc<dyn Stage<I>>,
    functions: Vec<Function>,
}

impl<I> Clone for Pipeline<I> {
    fn clone(&self) -> Self {
        Self { stage: self.stage.clone(), functions: self.functions.clone() }
    }
}

impl<I: 'static> Pipeline<I> {
    /// The items of a dataset.
    pub fn new(dataset: impl Dataset<I> + 'static) -> Self {
        Self { stage: Arc::new(Items { dataset, item: PhantomData }), functions: Vec::new() }
    }

    /// Applies a function to each sample.
    pub fn map<J: 'static>(self, function: impl Fn(I) -> J + Send + Sync + 'static) -> Pipeline<J> {
        self.then(Function::Map, |before, place| Arc::new(Map { before, place, function, mapped: PhantomData }))
    }

    /// Applies a function with random numbers to each sample.
    ///
    /// The numbers for sample `i` of the dataset in epoch `e` of the loader `name` are those of
    /// `internal(stream, "augment")`/`n`/`name`/`e`/`i`, where `n` counts the functions of the pipeline before this one,
    /// filters included. So two functions with the same seed or stream draw different numbers, be they of one pipeline or
    /// of two loaders with different names, and a sample's do not depend on where the shuffle has put it. Another function
    /// before this one changes its numbers. `internal` is in the documentation of [`RandomStream`].
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

    /// Adds a function, of which `stage` makes a stage.
    fn then<J>(
        mut self,
        function: Function,
        stage: impl FnOnce(Arc<dyn Stage<I>>, Place) -> Arc<dyn Stage<J>>,
    ) -> Pipeline<J> {
        let place = Place { function: function.name(), number: self.functions.len() };
        self.functions.push(function);
        Pipeline { stage: stage(self.stage, place), functions: self.functions }
    }

    /// The number of samples before filters.
    pub(super) fn len(&self) -> usize {
        self.stage.len()
    }

    /// Whether there may be fewer samples than [`len`](Self::len).
    pub(super) fn filters(&self) -> bool {
        self.functions.contains(&Function::Filter)
    }

    /// The functions, in the order in which they are applied.
    pub(super) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Makes a sample; `None` where a filter leaves it out.
    pub(super) fn sample(&self, sample: &Sample<'_>) -> Result<Option<I>, DatasetError> {
        self.stage.sample(sample)
    }
}

/// A function of a pipeline, by its name and its number in the pipeline, from 0.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) function: &'static str,
    pub(super) number: usize,
}

/// The sample to be made.
pub(super) struct Sample<'a> {
    /// The name of the loader that asks.
    pub(super) loader: &'a str,
    pub(super) epoch: usize,
    pub(super) index: usize,
    /// The function that runs.
    pub(super) place: &'a Cell<Option<Place>>,
}

/// A dataset, or a function and what is before it.
trait Stage<I>: Send + Sync {
    fn len(&self) -> usize;

    fn sample(&self, sample: &Sample<'_>) -> Result<Option<I>, DatasetError>;
}

struct Items<D, I> {
    dataset: D,
    item: PhantomData<fn() -> I>,
}

impl<D: Dataset<I>, I> Stage<I> for Items<D, I> {
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn sample(&self, sample: &Sample<'_>) -> Result<Option<I>, DatasetError> {
        sample.place.set(None);
        self.dataset.get(sample.index).map(Some)
    }
}

struct Map<I, J, F> {
    before: Arc<dyn Stage<I>>,
    place: Place,
    function: F,
    mapped: PhantomData<fn() -> J>,
}

impl<I, J, F: Fn(I) -> J + Send + Sync> Stage<J> for Map<I, J, F> {
    fn len(&self) -> usize {
        self.before.len()
    }

    fn sample(&self, sample: &Sample<'_>) -> Result<Option<J>, DatasetError> {
        let Some(item) = self.before.sample(sample)? else { return Ok(None) };
        sample.place.set(Some(self.place));
        Ok(Some((self.function)(item)))
    }
}

struct Augment<I, J, F> {
    before: Arc<dyn Stage<I>>,
    place: Place,
    /// Forked by the number of the function.
    stream: RandomStream,
    function: F,
    mapped: PhantomData<fn() -> J>,
}

impl<I, J, F: Fn(I, &mut StreamRng) -> J + Send + Sync> Stage<J> for Augment<I, J, F> {
    fn len(&self) -> usize {
        self.before.len()
    }

    fn sample(&self, sample: &Sample<'_>) -> Result<Option<J>, DatasetError> {
        let Some(item) = self.before.sample(sample)? else { return Ok(None) };
        sample.place.set(Some(self.place));
        let Sample { loader, epoch, index, .. } = *sample;
        let stream = self.stream.fork(loader).fork_index(epoch as u64).fork_index(index as u64);
        Ok(Some((self.function)(item, &mut stream.rng())))
    }
}

struct Filter<I, F> {
    before: Arc<dyn Stage<I>>,
    place: Place,
    function: F,
}

impl<I, F: Fn(&I) -> bool + Send + Sync> Stage<I> for Filter<I, F> {
    fn len(&self) -> usize {
        self.before.len()
    }

    fn sample(&self, sample: &Sample<'_>) -> Result<Option<I>, DatasetError> {
        let Some(item) = self.before.sample(sample)? else { return Ok(None) };
        sample.place.set(Some(self.place));
        Ok(Some(item).filter(&self.function))
    }
}
