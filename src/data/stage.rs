//! How a sample is made: a dataset's item, and one function after another.

use crate::random::{RandomStream, StreamRng};
use burn_core::data::dataset::{Dataset, DatasetError};
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

/// A dataset, or a function and what is before it.
pub(super) trait Stage<I>: Send + Sync {
    /// The number of samples before filters; of a stream it means nothing.
    fn len(&self) -> usize;

    /// Makes the sample at an index of this stage's.
    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<I>, DatasetError>;
}

/// What a stage makes.
pub(super) enum Made<I> {
    Sample(I),
    /// A filter leaves it out.
    LeftOut,
    /// The stream ends before it, after so many samples.
    End(usize),
}

impl<I> Made<I> {
    fn and_then<J>(self, function: impl FnOnce(I) -> Made<J>) -> Made<J> {
        match self {
            Self::Sample(item) => function(item),
            Self::LeftOut => Made::LeftOut,
            Self::End(samples) => Made::End(samples),
        }
    }
}

/// The sample that a loader asks for.
pub(super) struct Asked<'a> {
    /// The loader's name.
    pub(super) loader: &'a str,
    pub(super) epoch: usize,
    /// The number by which it draws. A stream says it when it has read the sample.
    pub(super) number: Cell<usize>,
    /// The function that runs; none while the dataset is read.
    pub(super) place: Cell<Option<Place>>,
    /// Whether a zipped pipeline makes it.
    zipped: Cell<bool>,
    /// Of a stream, what this pass reads it with.
    pub(super) reader: Option<&'a (dyn Any + Send + Sync)>,
    /// Whether nobody waits for it any more.
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

/// A function of a pipeline, by its name and its number in the pipeline, from 0.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) function: &'static str,
    pub(super) number: usize,
}

impl<'a> Asked<'a> {
    pub(super) fn new(
        loader: &'a str,
        epoch: usize,
        reader: Option<&'a (dyn Any + Send + Sync)>,
        cancelled: &'a dyn Fn() -> bool,
    ) -> Self {
        let (number, place, zipped) = (Cell::new(0), Cell::new(None), Cell::new(false));
        Self { loader, epoch, number, place, zipped, reader, cancelled }
    }

    /// What runs, for an error.
    pub(super) fn running(&self) -> String {
        let pipeline = if self.zipped.get() { "zipped pipeline" } else { "pipeline" };
        match self.place.get() {
            Some(Place { function, number }) => format!("`{function}` (function {number} of the {pipeline})"),
            None if self.zipped.get() => "the zipped dataset".to_owned(),
            None => "the dataset".to_owned(),
        }
    }
}

pub(super) struct Items<D, I> {
    dataset: D,
    item: PhantomData<fn() -> I>,
}

impl<D, I> Items<D, I> {
    pub(super) fn new(dataset: D) -> Self {
        Self { dataset, item: PhantomData }
    }
}

impl<D: Dataset<I>, I> Stage<I> for Items<D, I> {
    fn len(&self) -> usize {
        self.dataset.len()
    }

    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<I>, DatasetError> {
        asked.place.set(None);
        self.dataset.get(index).map(Made::Sample)
    }
}

pub(super) struct Map<I, J, F> {
    pub(super) before: Arc<dyn Stage<I>>,
    pub(super) place: Place,
    pub(super) function: F,
    pub(super) mapped: PhantomData<fn() -> J>,
}

impl<I, J, F: Fn(I) -> J + Send + Sync> Stage<J> for Map<I, J, F> {
    fn len(&self) -> usize {
        self.before.len()
    }

    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<J>, DatasetError> {
        let made = self.before.sample(index, asked)?;
        asked.place.set(Some(self.place));
        Ok(made.and_then(|item| Made::Sample((self.function)(item))))
    }
}

pub(super) struct Augment<I, J, F> {
    pub(super) before: Arc<dyn Stage<I>>,
    pub(super) place: Place,
    /// Forked by the number of the function.
    pub(super) stream: RandomStream,
    pub(super) function: F,
    pub(super) mapped: PhantomData<fn() -> J>,
}

impl<I, J, F: Fn(I, &mut StreamRng) -> J + Send + Sync> Stage<J> for Augment<I, J, F> {
    fn len(&self) -> usize {
        self.before.len()
    }

    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<J>, DatasetError> {
        let made = self.before.sample(index, asked)?;
        asked.place.set(Some(self.place));
        Ok(made.and_then(|item| {
            let Asked { loader, epoch, number, .. } = asked;
            let stream = self.stream.fork(loader).fork_index(*epoch as u64).fork_index(number.get() as u64);
            Made::Sample((self.function)(item, &mut stream.rng()))
        }))
    }
}

pub(super) struct Filter<I, F> {
    pub(super) before: Arc<dyn Stage<I>>,
    pub(super) place: Place,
    pub(super) function: F,
}

impl<I, F: Fn(&I) -> bool + Send + Sync> Stage<I> for Filter<I, F> {
    fn len(&self) -> usize {
        self.before.len()
    }

    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<I>, DatasetError> {
        let made = self.before.sample(index, asked)?;
        asked.place.set(Some(self.place));
        Ok(made.and_then(|item| match (self.function)(&item) {
            true => Made::Sample(item),
            false => Made::LeftOut,
        }))
    }
}

/// Samples `first..first + most` of the stage before.
pub(super) struct Part<I> {
    pub(super) before: Arc<dyn Stage<I>>,
    pub(super) first: usize,
    pub(super) most: usize,
}

impl<I> Stage<I> for Part<I> {
    fn len(&self) -> usize {
        self.before.len().saturating_sub(self.first).min(self.most)
    }

    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<I>, DatasetError> {
        self.before.sample(self.first + index, asked)
    }
}

pub(super) struct Repeat<I> {
    pub(super) before: Arc<dyn Stage<I>>,
    pub(super) times: usize,
}

impl<I> Stage<I> for Repeat<I> {
    fn len(&self) -> usize {
        self.before.len().saturating_mul(self.times)
    }

    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<I>, DatasetError> {
        self.before.sample(index % self.before.len(), asked)
    }
}

/// Pairs of samples that have one index in two stages.
pub(super) struct Zip<I, J> {
    pub(super) before: Arc<dyn Stage<I>>,
    pub(super) other: Arc<dyn Stage<J>>,
}

impl<I, J> Stage<(I, J)> for Zip<I, J> {
    fn len(&self) -> usize {
        self.before.len()
    }

    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<(I, J)>, DatasetError> {
        let one = self.before.sample(index, asked)?;
        let outer = asked.zipped.replace(true);
        let other = self.other.sample(index, asked)?;
        asked.zipped.set(outer);
        Ok(one.and_then(|one| other.and_then(|other| Made::Sample((one, other)))))
    }
}
