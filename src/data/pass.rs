//! One pass over the samples: the runs of consecutive ones that are made at a time.

use super::error::LoadError;
use super::pipeline::Pipeline;
use super::sampler::{Order, Sampler};
use super::stage::{Asked, Made};
use crate::panic::caught;
use std::any::Any;
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
    /// The place in the order before which it ends, which an incomplete last batch may be behind.
    pub(super) end: usize,
    /// Places in a run.
    pub(super) run: usize,
    /// Of a stream, what it is read with.
    reader: Option<Box<dyn Any + Send + Sync>>,
}

/// The samples of a run that passed the filters.
pub(super) struct Run<I> {
    pub(super) items: Vec<I>,
    pub(super) places: Vec<Place>,
    /// Why the run ends early.
    pub(super) end: Option<End>,
}

/// Where a sample is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// In the order.
    pub(super) place: usize,
    /// In the dataset or the stream.
    pub(super) sample: usize,
}

pub(super) enum End {
    Failed(LoadError),
    /// The stream has no more than so many samples.
    OfStream(usize),
}

impl<I: 'static> Pass<I> {
    /// The pass of an epoch from a batch on. A run is a batch, or a part of one where samples may be left out.
    pub(super) fn new(
        pipeline: Pipeline<I>,
        loader: Arc<str>,
        (epoch, batch): (usize, usize),
        (sampler, samples): (&Sampler, Range<usize>),
        batch_size: usize,
        drop_last: bool,
    ) -> Self {
        let order = match pipeline.len() {
            Some(_) => sampler.order(samples, epoch),
            None => Order::Stream,
        };
        let fixed = are_batches_fixed(&pipeline);
        // Where a filter leaves samples out, only the filter knows where a batch starts.
        let start = match pipeline.filters() {
            true => 0,
            false => batch.saturating_mul(batch_size).min(order.last_start()),
        };
        let run = if fixed { batch_size } else { batch_size.div_ceil(batch_size.div_ceil(RUN)) };
        let end = if fixed && drop_last { order.len() - order.len() % batch_size } else { order.len() };
        let reader = pipeline.open(sampler, epoch, start, run);
        Self { pipeline, loader, epoch, order, start, end, run, reader }
    }

    /// Whether each batch is made of as many consecutive places. It is not where a filter leaves samples out, and of
    /// the last batches of a stream nobody knows.
    pub(super) fn are_batches_fixed(&self) -> bool {
        are_batches_fixed(&self.pipeline)
    }

    /// Whether the number of places is known: of all but streams.
    pub(super) fn is_counted(&self) -> bool {
        !matches!(self.order, Order::Stream)
    }

    /// The number of runs; of a stream more than there can be.
    pub(super) fn runs(&self) -> usize {
        self.end.saturating_sub(self.start).div_ceil(self.run)
    }

    /// A run that nobody asks for: it ends where it would, and has no samples.
    pub(super) fn leave_out(&self, run: usize) -> Run<I> {
        let end = self.end.min(self.start.saturating_add(run.saturating_add(1).saturating_mul(self.run)));
        let last = end.checked_sub(1).map(|place| Place { place, sample: self.order.sample(place, &mut None) });
        Run { items: Vec::new(), places: last.into_iter().collect(), end: None }
    }

    /// Makes the samples of a run, until one fails or `cancelled`.
    pub(super) fn make(&self, run: usize, cancelled: impl Fn() -> bool) -> Run<I> {
        // A stream may be asked for places up to the last number that there is.
        let start = self.start.saturating_add(run.saturating_mul(self.run));
        let places = start..self.end.min(start.saturating_add(self.run));
        let mut made = Run { items: Vec::with_capacity(places.len()), places: Vec::new(), end: None };
        made.places.reserve_exact(places.len());
        let asked = Asked::new(&self.loader, self.epoch, self.reader.as_deref(), &cancelled);
        let asked_for = Cell::new(0);
        let mut held = None;
        // What a stream has at a place is known when it was read.
        let sample = || if self.is_counted() { asked_for.get() } else { asked.number.get() };
        let outcome = caught(|| {
            for place in places {
                if cancelled() {
                    break;
                }
                let index = self.order.sample(place, &mut held);
                asked_for.set(index);
                asked.number.set(self.order.number(place, index));
                // The text of the dataset's error comes from the dataset's code, which may panic too.
                match self.pipeline.sample(index, &asked).map_err(|error| error.to_string())? {
                    Made::Sample(item) => {
                        made.items.push(item);
                        made.places.push(Place { place, sample: sample() });
                    }
                    Made::LeftOut => {}
                    Made::End(samples) => {
                        made.end = Some(End::OfStream(samples));
                        break;
                    }
                }
            }
            Ok(())
        });
        let (epoch, sample) = (self.epoch, sample());
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(reason)) => made.end = Some(End::Failed(LoadError::Dataset { epoch, sample, reason })),
            Err(panic) => {
                let stage = asked.running();
                made.end = Some(End::Failed(LoadError::Sample { epoch, sample, stage, panic }));
            }
        }
        made
    }
}

fn are_batches_fixed<I: 'static>(pipeline: &Pipeline<I>) -> bool {
    !pipeline.filters() && pipeline.len().is_some()
}
