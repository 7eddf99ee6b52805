//! One pass over the samples: their order, and the runs of consecutive ones that are made at a time.

use super::error::LoadError;
use super::panic::caught;
use super::pipeline::{Pipeline, Place, Sample};
use crate::random::RandomStream;
use rand_core::Rng;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

/// Samples in a run at most, where samples may be left out: a worker hands over this many at a time.
const RUN: usize = 64;

/// The samples of one epoch, from a place in their order on.
pub(super) struct Pass<I> {
    pub(super) pipeline: Pipeline<I>,
    /// The loader's name.
    loader: Arc<str>,
    pub(super) epoch: usize,
    pub(super) order: Order,
    /// The place in the order at which the pass starts.
    pub(super) start: usize,
    /// Places in a run.
    pub(super) run: usize,
}

/// Which samples, in which order.
pub(super) struct Order {
    samples: Range<usize>,
    /// Their order, where it is not the dataset's.
    shuffled: Option<Vec<usize>>,
}

/// The samples of a run that passed the filters, and where in the order each is.
pub(super) struct Run<I> {
    pub(super) items: Vec<I>,
    pub(super) places: Vec<usize>,
    /// Why the run ends early.
    pub(super) failure: Option<LoadError>,
}

impl Order {
    /// The samples as they are in the dataset.
    pub(super) fn of_dataset(samples: Range<usize>) -> Self {
        Self { samples, shuffled: None }
    }

    /// The samples in the order that [`shuffle`](super::DataLoaderBuilder::shuffle) states, with its epoch's stream.
    pub(super) fn shuffled(samples: Range<usize>, stream: &RandomStream) -> Self {
        let mut rng = stream.rng();
        let mut shuffled: Vec<usize> = samples.clone().collect();
        for last in (1..shuffled.len()).rev() {
            let other = (u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64;
            shuffled.swap(last, other as usize);
        }
        Self { samples, shuffled: Some(shuffled) }
    }

    pub(super) fn len(&self) -> usize {
        self.samples.len()
    }

    /// The index in the dataset of the sample at a place.
    pub(super) fn sample(&self, place: usize) -> usize {
        self.shuffled.as_ref().map_or(self.samples.start + place, |shuffled| shuffled[place])
    }
}

impl<I: 'static> Pass<I> {
    /// A pass from place `start` on. A run is a batch, or a part of one where samples may be left out.
    pub(super) fn new(
        pipeline: Pipeline<I>,
        loader: Arc<str>,
        epoch: usize,
        order: Order,
        start: usize,
        batch_size: usize,
    ) -> Self {
        let run = match pipeline.filters() {
            true => batch_size.div_ceil(batch_size.div_ceil(RUN)),
            false => batch_size,
        };
        Self { pipeline, loader, epoch, order, start, run }
    }

    /// The number of runs.
    pub(super) fn runs(&self) -> usize {
        self.order.len().saturating_sub(self.start).div_ceil(self.run)
    }

    /// Makes the samples of a run, until one fails or `cancelled`.
    pub(super) fn make(&self, run: usize, cancelled: impl Fn() -> bool) -> Run<I> {
        let start = self.start + run * self.run;
        let places = start..self.order.len().min(start + self.run);
        let mut made = Run { items: Vec::with_capacity(places.len()), places: Vec::new(), failure: None };
        made.places.reserve_exact(places.len());
        let (sample, at) = (Cell::new(0), Cell::new(None));
        let outcome = caught(|| {
            for place in places {
                if cancelled() {
                    break;
                }
                sample.set(self.order.sample(place));
                let asked = Sample { loader: &self.loader, epoch: self.epoch, index: sample.get(), place: &at };
                // The text of the dataset's error comes from the dataset's code, which may panic too.
                let item = self.pipeline.sample(&asked).map_err(|error| error.to_string())?;
                if let Some(item) = item {
                    made.items.push(item);
                    made.places.push(place);
                }
            }
            Ok(())
        });
        let (epoch, sample) = (self.epoch, sample.get());
        made.failure = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(reason)) => Some(LoadError::Dataset { epoch, sample, reason }),
            Err(panic) => {
                let stage = match at.get() {
                    None => "the dataset".to_owned(),
                    Some(Place { function, number }) => format!("`{function}` (function {number} of the pipeline)"),
                };
                Some(LoadError::Sample { epoch, sample, stage, panic })
            }
        };
        made
    }
}
