//! The batches of one pass.

use super::batching::{Batching, Load, Loaded};
use super::cut::{Cut, Cutter};
use super::error::LoadError;
use super::panic::discard;
use super::position::{Cursor, Progression};
use super::slices::Reading;
use super::workers::Workers;
use crate::record::Steps;
use burn_core::data::dataloader::{DataLoaderIterator, Progress};
use burn_core::data::dataset::DatasetError;
use std::sync::Arc;

/// The batches of one pass over a [`DataLoader`](super::DataLoader), in order.
///
/// After an error it is at its end. Dropping it ends and joins the workers: each finishes the sample or the batch it is
/// at.
pub struct Batches<I, O> {
    source: Source<I, O>,
    epoch: usize,
    /// The batch that comes next.
    batch: usize,
    /// Places in the order where they are counted, and how many of them are behind us.
    places: Option<usize>,
    processed: usize,
    /// Whether the last batch has been handed out.
    ended: bool,
    /// This pass, by its number, of the loader's.
    number: u64,
    progression: Arc<Progression>,
    /// Of a slice, that it is being read.
    _reading: Option<Reading>,
    /// In a recording.
    steps: Steps,
}

/// Where the batches of a pass come from.
enum Source<I, O> {
    /// The calling thread makes each when it is asked for.
    Caller(Box<Caller<I, O>>),
    /// Workers make them.
    Workers(Workers<I, O>),
    /// No worker could be started, or nothing may be read.
    Failed(LoadError),
    Ended,
}

/// The thread that asks for a batch makes it.
struct Caller<I, O> {
    batching: Batching<I, O>,
    cutter: Cutter<I>,
    /// The run that comes next.
    run: usize,
    /// What has been cut, and not been made yet: kept where a sample that is dropped panics.
    cut: Option<Result<Cut<I>, LoadError>>,
}

impl<I: 'static, O> Caller<I, O> {
    fn next(&mut self) -> Option<Loaded<O>> {
        loop {
            if self.cut.is_none() {
                self.cut = self.cutter.cut();
            }
            discard(std::mem::take(&mut self.cutter.discarded), matches!(self.cut, Some(Err(_))));
            if let Some(cut) = self.cut.take() {
                return Some(self.batching.load(cut));
            }
            if !self.cutter.wants() {
                return None;
            }
            self.cutter.take(self.batching.pass.make(self.run, || false));
            self.run += 1;
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Batches<I, O> {
    /// The batches from `start` on, with so many workers and batches kept ready, of the pass with this `number`.
    pub(super) fn new(
        batching: Batching<I, O>,
        start: Cursor,
        (workers, prefetch): (usize, usize),
        number: u64,
        progression: Arc<Progression>,
        reading: Option<Reading>,
    ) -> Self {
        let pass = &batching.pass;
        let (places, processed) = (pass.is_counted().then(|| pass.order.len()), pass.start);
        let cutter = Cutter::new(pass, start, batching.batch_size, batching.drop_last);
        // A pass of nothing needs no threads to say so.
        let source = match workers.min(pass.runs()) {
            0 => Source::Caller(Box::new(Caller { batching, cutter, run: 0, cut: None })),
            _ => Workers::start(batching, cutter, workers, prefetch).map_or_else(Source::Failed, Source::Workers),
        };
        Self {
            source,
            epoch: start.epoch,
            batch: start.batch,
            places,
            processed,
            ended: false,
            number,
            progression,
            _reading: reading,
            steps: Steps::default(),
        }
    }

    /// Nothing but the reason for which there is no pass from `start` on, of so many places where they are counted.
    pub(super) fn refused(
        failure: LoadError,
        start: Cursor,
        places: Option<usize>,
        progression: Arc<Progression>,
    ) -> Self {
        Self {
            source: Source::Failed(failure),
            epoch: start.epoch,
            batch: start.batch,
            places,
            processed: 0,
            ended: false,
            // Passes are numbered from 1.
            number: 0,
            progression,
            _reading: None,
            steps: Steps::default(),
        }
    }

    /// The items processed are places of the epoch's order, so samples that a filter or `drop_last` left out count. Of
    /// a stream, whose length nobody knows, the total is one more than these, up to the last batch.
    pub fn progress(&self) -> Progress {
        let total = self.places.unwrap_or(self.processed + usize::from(!self.ended));
        Progress::new(self.processed, total, Some("items".to_owned()))
    }

    fn load(&mut self) -> Option<Loaded<O>> {
        match &mut self.source {
            Source::Caller(caller) => caller.next(),
            Source::Workers(workers) => workers.next(),
            Source::Failed(failure) => Some(Err(failure.clone())),
            Source::Ended => None,
        }
    }
}

impl<I: Send + 'static, O: Send + 'static> Batches<I, O> {
    /// The epoch, and the batch that comes next.
    pub(crate) fn place(&self) -> (usize, usize) {
        (self.epoch, self.batch)
    }

    /// The next batch; `None` in its place where it is not one that this pass makes.
    pub(crate) fn next_made(&mut self) -> Option<Result<Option<O>, LoadError>> {
        // Before the batch is made: its uploads are part of its step.
        self.steps.begin(self.epoch, self.batch);
        let loaded = self.load();
        if !matches!(loaded, Some(Ok(_))) {
            self.source = Source::Ended;
            self.steps.end();
        }
        let Load { batch, processed, last } = match loaded? {
            Ok(load) => load,
            Err(failure) => return Some(Err(failure)),
        };
        self.processed = processed;
        self.ended = last;
        self.batch += 1;
        let next = match last {
            true => Cursor { epoch: self.progression.after(self.epoch), batch: 0 },
            false => Cursor { epoch: self.epoch, batch: self.batch },
        };
        self.progression.advance(self.number, next);
        Some(Ok(batch))
    }
}

impl<I: Send + 'static, O: Send + 'static> Iterator for Batches<I, O> {
    type Item = Result<O, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A program's own passes make every batch.
        self.next_made()?.transpose()
    }
}

/// The same batches, with the error that Burn's trait asks for.
pub(super) struct BurnBatches<I, O>(pub(super) Batches<I, O>);

impl<I: Send + 'static, O: Send + 'static> Iterator for BurnBatches<I, O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(DatasetError::new))
    }
}

impl<I: Send + 'static, O: Send + 'static> DataLoaderIterator<O> for BurnBatches<I, O> {
    fn progress(&self) -> Progress {
        self.0.progress()
    }
}
