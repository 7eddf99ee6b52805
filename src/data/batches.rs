//! The batches of one pass.

use super::error::{LoadError, panic_text};
use super::pass::Pass;
use super::position::{Position, Progression};
use super::workers::Runs;
use burn_core::data::dataloader::batcher::Batcher;
use burn_core::data::dataloader::{DataLoaderIterator, Progress};
use burn_core::data::dataset::DatasetError;
use burn_core::tensor::Device;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The batches of one pass over a [`DataLoader`](super::DataLoader), in order.
///
/// After an error it is at its end. Dropping it ends and joins the workers: each finishes the sample it is at.
pub struct Batches<I, O> {
    pass: Arc<Pass<I>>,
    runs: Runs<I>,
    /// Runs that have not been taken.
    runs_left: usize,
    /// Samples that have been made and are in no batch yet, and where in the order each is.
    items: Vec<I>,
    places: Vec<usize>,
    /// Why there are no more.
    failure: Option<LoadError>,
    ended: bool,

    batcher: Arc<dyn Batcher<I, O>>,
    batch_size: usize,
    device: Device,

    /// The batch that comes next.
    batch: usize,
    /// Batches that are to be passed over first.
    skipped: usize,
    /// Places in the order that are behind us.
    processed: usize,
    /// This pass, by its number, of the loader's.
    number: u64,
    progression: Arc<Progression>,
}

/// What a pass is made of, besides its samples.
pub(super) struct Parts<I, O> {
    pub(super) batcher: Arc<dyn Batcher<I, O>>,
    pub(super) batch_size: usize,
    pub(super) device: Device,
    pub(super) workers: usize,
    pub(super) prefetch: usize,
    pub(super) number: u64,
    pub(super) progression: Arc<Progression>,
}

/// The samples of a batch, and the place in the order of each.
type Gathered<I> = (Vec<I>, Vec<usize>);

impl<I: Send + 'static, O> Batches<I, O> {
    /// The batches from `start` on. `pass` starts there, or `skipped` batches before.
    pub(super) fn new(pass: Pass<I>, start: Position, skipped: usize, parts: Parts<I, O>) -> Self {
        let Parts { batcher, batch_size, device, workers, prefetch, number, progression } = parts;
        let pass = Arc::new(pass);
        let started = Runs::new(&pass, workers, pass.runs_of(prefetch, batch_size));
        let (runs, failure) = match started {
            Ok(runs) => (runs, None),
            Err(failure) => (Runs::Here(0), Some(failure)),
        };
        let runs_left = pass.runs();
        Self {
            runs,
            runs_left,
            items: Vec::new(),
            places: Vec::new(),
            failure,
            ended: false,
            batcher,
            batch_size,
            device,
            batch: start.batch - skipped,
            skipped,
            processed: pass.start,
            number,
            progression,
            pass,
        }
    }

    /// The items processed are places of the epoch's order, so samples that a filter left out count.
    pub fn progress(&self) -> Progress {
        Progress::new(self.processed, self.pass.order.len(), Some("items".to_owned()))
    }

    /// The samples of the next batch, and the places in the order of each.
    fn gather(&mut self) -> Option<Result<Gathered<I>, LoadError>> {
        // Whether a batch is the last can be told from the number of samples, unless some are left out.
        let enough = self.batch_size + usize::from(self.pass.pipeline.filters());
        while self.items.len() < enough && self.runs_left > 0 && self.failure.is_none() {
            let run = self.runs.next(&self.pass);
            self.runs_left -= 1;
            match self.items.is_empty() {
                true => (self.items, self.places) = (run.items, run.places),
                false => {
                    self.items.extend(run.items);
                    self.places.extend(run.places);
                }
            }
            self.failure = run.failure;
        }
        if self.items.len() < self.batch_size
            && let Some(failure) = self.failure.take()
        {
            return Some(Err(failure));
        }
        if self.items.is_empty() {
            return None;
        }
        let cut = self.batch_size.min(self.items.len());
        let (items, places) = (self.items.split_off(cut), self.places.split_off(cut));
        Some(Ok((std::mem::replace(&mut self.items, items), std::mem::replace(&mut self.places, places))))
    }

    /// Counts a batch of samples at `places`.
    fn count(&mut self, places: &[usize]) {
        let last = self.items.is_empty() && self.runs_left == 0 && self.failure.is_none();
        self.processed = match places.last() {
            Some(&place) if !last => place + 1,
            _ => self.pass.order.len(),
        };
        self.batch += 1;
        let epoch = self.pass.epoch;
        let next = if last { Position { epoch: epoch + 1, batch: 0 } } else { Position { epoch, batch: self.batch } };
        if self.skipped == 0 {
            self.progression.advance(self.number, next);
        }
    }

    fn skip(&mut self) -> Result<(), LoadError> {
        while self.skipped > 0 {
            let wanted = self.batch + self.skipped;
            if let Some(gathered) = self.gather() {
                let (_, places) = gathered?;
                self.count(&places);
                self.skipped -= 1;
            }
            if self.items.is_empty() && self.runs_left == 0 && self.failure.is_none() {
                return Err(LoadError::Position { epoch: self.pass.epoch, batch: wanted, batches: self.batch });
            }
        }
        Ok(())
    }

    fn load(&mut self) -> Result<Option<O>, LoadError> {
        self.skip()?;
        let Some(gathered) = self.gather() else { return Ok(None) };
        let (items, places) = gathered?;
        let made = catch_unwind(AssertUnwindSafe(|| self.batcher.batch(items, &self.device)));
        let batch = made.map_err(|payload| LoadError::Batcher {
            epoch: self.pass.epoch,
            batch: self.batch,
            samples: places.iter().map(|&place| self.pass.order.sample(place)).collect(),
            panic: panic_text(&*payload),
        })?;
        self.count(&places);
        Ok(Some(batch))
    }
}

impl<I: Send + 'static, O> Iterator for Batches<I, O> {
    type Item = Result<O, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let loaded = self.load().transpose();
        if !matches!(loaded, Some(Ok(_))) {
            self.ended = true;
            self.runs.end();
            self.items.clear();
        }
        loaded
    }
}

/// The same batches, with the error that Burn's trait asks for.
pub(super) struct BurnBatches<I, O>(pub(super) Batches<I, O>);

impl<I: Send + 'static, O> Iterator for BurnBatches<I, O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(DatasetError::new))
    }
}

impl<I: Send + 'static, O> DataLoaderIterator<O> for BurnBatches<I, O> {
    fn progress(&self) -> Progress {
        self.0.progress()
    }
}
