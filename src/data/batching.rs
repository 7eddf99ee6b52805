//! Batches made of their samples.

use super::cut::Cut;
use super::error::LoadError;
use super::panic::discard;
use super::pass::{End, Pass, Run};
use crate::panic::caught;
use crate::random::RandomStream;
use burn_core::data::dataloader::batcher::Batcher;
use burn_core::tensor::Device;
use std::ops::Range;
use std::sync::Arc;

/// A batch, or why there is none.
pub(super) type Loaded<O> = Result<Load<O>, LoadError>;

pub(super) struct Load<O> {
    /// `None` for one that is not [asked for](Batching::made).
    pub(super) batch: Option<O>,
    /// Places in the order that are behind the program when it has the batch.
    pub(super) processed: usize,
    /// Whether it is the epoch's last.
    pub(super) last: bool,
}

/// How the batches of a pass are made.
pub(super) struct Batching<I, O> {
    pub(super) pass: Pass<I>,
    /// The batch of the epoch with which the pass starts.
    pub(super) first: usize,
    pub(super) batch_size: usize,
    pub(super) drop_last: bool,
    pub(super) batcher: Arc<dyn Batcher<I, O>>,
    /// In turn those of the batches of the epoch.
    pub(super) devices: Arc<[Device]>,
    /// Forked by its number, what the batcher's random operations draw from.
    pub(super) draws: Option<RandomStream>,
    /// The batches that are made: of so many consecutive ones those in the range.
    pub(super) made: (usize, Range<usize>),
}

impl<I: 'static, O> Batching<I, O> {
    /// The number of runs that a batch takes, at least.
    pub(super) fn runs_of_batch(&self) -> usize {
        self.batch_size.div_ceil(self.pass.run)
    }

    /// Whether a batch of the epoch is made.
    fn makes(&self, batch: usize) -> bool {
        let (of, made) = &self.made;
        made.contains(&(batch % of))
    }

    /// Makes the samples of a run that is a batch, if that batch is made.
    pub(super) fn make_whole(&self, number: usize, cancelled: impl Fn() -> bool) -> Run<I> {
        match self.makes(self.first + number) {
            true => self.pass.make(number, cancelled),
            false => self.pass.leave_out(number),
        }
    }

    /// The batch that a run is, where none is left out.
    pub(super) fn whole(&self, number: usize, run: Run<I>) -> Result<Cut<I>, LoadError> {
        let Run { items, places, end } = run;
        let last = number + 1 == self.pass.runs();
        match end {
            Some(End::Failed(failure)) => {
                discard(items, true);
                Err(failure)
            }
            // A stream is cut.
            _ => Ok(Cut { batch: self.first + number, items, places, last }),
        }
    }

    /// Makes a batch.
    pub(super) fn load(&self, cut: Result<Cut<I>, LoadError>) -> Loaded<O> {
        let Cut { batch, items, places, last } = cut?;
        let made = caught(|| {
            let _draws = self.draws.as_ref().map(|draws| draws.fork_index(batch as u64).enter_on_any_device());
            let device = &self.devices[batch % self.devices.len()];
            // The samples of one that is not made are dropped here, where a panic is caught.
            self.makes(batch).then(|| self.batcher.batch(items, device))
        });
        let made = made.map_err(|panic| LoadError::Batcher {
            epoch: self.pass.epoch,
            batch,
            samples: places.iter().map(|place| place.sample).collect(),
            panic,
        })?;
        let after = places.last().map_or(0, |place| place.place + 1);
        // Where samples are left out, those behind the last batch are too.
        let processed = if last && self.pass.is_counted() { self.pass.order.len() } else { after };
        Ok(Load { batch: made, processed, last })
    }
}
