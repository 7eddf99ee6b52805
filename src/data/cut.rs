//! Runs cut into batches, in order.

use super::error::LoadError;
use super::pass::{End, Pass, Place, Run};
use super::position::Cursor;

/// The samples of a batch, and where each is.
pub(super) struct Cut<I> {
    /// The batch, from 0 in its epoch.
    pub(super) batch: usize,
    pub(super) items: Vec<I>,
    pub(super) places: Vec<Place>,
    /// Whether it is the epoch's last.
    pub(super) last: bool,
}

/// Takes runs, and gives batches as soon as their samples are known.
pub(super) struct Cutter<I> {
    epoch: usize,
    batch_size: usize,
    drop_last: bool,
    /// Samples needed before a batch is cut: those of a batch, and where only samples tell whether it is the last,
    /// those that the next one needs.
    enough: usize,
    /// Runs that are still to be taken.
    runs_left: usize,
    /// The batch that comes next.
    batch: usize,
    /// The batch of a resumed epoch that is to be the first, where that is still to be found.
    resumed: Option<usize>,
    /// Samples of the stream, when they have been counted.
    of_stream: Option<usize>,
    /// Samples that are in no batch yet, and where each is.
    items: Vec<I>,
    places: Vec<Place>,
    /// Why there are no more.
    failure: Option<LoadError>,
    /// Samples that no batch has, for the owner to drop: their `Drop` is the user's.
    pub(super) discarded: Vec<I>,
}

impl<I: 'static> Cutter<I> {
    /// For the batches of `pass` from `start` on. The pass begins there, or where it filters at the epoch's start.
    pub(super) fn new(pass: &Pass<I>, start: Cursor, batch_size: usize, drop_last: bool) -> Self {
        let fixed = pass.are_batches_fixed();
        let next = match (fixed, drop_last) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => batch_size,
        };
        let mut cutter = Self {
            epoch: pass.epoch,
            batch_size,
            drop_last,
            enough: batch_size.saturating_add(next),
            runs_left: pass.runs(),
            batch: if pass.pipeline.filters() { 0 } else { start.batch },
            resumed: Some(start.batch).filter(|&batch| !fixed && batch > 0),
            of_stream: None,
            items: Vec::new(),
            places: Vec::new(),
            failure: None,
            discarded: Vec::new(),
        };
        if fixed && start.batch > 0 && cutter.runs_left == 0 {
            cutter.fail(cutter.behind_the_end(start.batch, pass.end.div_ceil(batch_size)));
        }
        cutter
    }

    /// Whether the next batch needs another run.
    pub(super) fn wants(&self) -> bool {
        self.items.len() < self.enough && self.runs_left > 0
    }

    /// Whether all runs have been taken that there are.
    pub(super) fn has_all(&self) -> bool {
        self.runs_left == 0
    }

    /// Takes the run after those taken so far. Behind a failure or the end of a stream there is nothing to take.
    pub(super) fn take(&mut self, run: Run<I>) {
        if self.runs_left == 0 {
            return self.discarded.extend(run.items);
        }
        self.runs_left -= 1;
        match self.items.is_empty() {
            true => (self.items, self.places) = (run.items, run.places),
            false => {
                self.items.extend(run.items);
                self.places.extend(run.places);
            }
        }
        match run.end {
            None => {}
            Some(End::Failed(failure)) => self.fail(failure),
            Some(End::OfStream(samples)) => {
                self.runs_left = 0;
                self.of_stream = Some(samples);
            }
        }
    }

    /// There are no samples besides those taken so far.
    pub(super) fn fail(&mut self, failure: LoadError) {
        self.runs_left = 0;
        self.failure = Some(failure);
    }

    /// The next batch, or why there is none; nothing at the end, and where it [needs](Self::wants) another run.
    pub(super) fn cut(&mut self) -> Option<Result<Cut<I>, LoadError>> {
        while !self.wants() {
            if self.items.len() < self.batch_size
                && let Some(failure) = self.failure.take()
            {
                self.discarded.append(&mut self.items);
                self.resumed = None;
                return Some(Err(failure));
            }
            if !self.has_batch() {
                self.discarded.append(&mut self.items);
                let wanted = self.resumed.take().filter(|&wanted| self.batch <= wanted)?;
                return Some(Err(self.behind_the_end(wanted, self.batches())));
            }
            let cut = self.cut_one();
            if self.resumed.is_none_or(|first| cut.batch >= first) {
                return Some(Ok(cut));
            }
            self.discarded.extend(cut.items);
        }
        None
    }

    /// Whether what is left makes a batch, when there are no more runs.
    fn has_batch(&self) -> bool {
        self.items.len() >= if self.drop_last { self.batch_size } else { 1 }
    }

    fn cut_one(&mut self) -> Cut<I> {
        let size = self.batch_size.min(self.items.len());
        let (items, places) = (self.items.split_off(size), self.places.split_off(size));
        let (items, places) = (std::mem::replace(&mut self.items, items), std::mem::replace(&mut self.places, places));
        self.batch += 1;
        let last = !self.has_batch() && self.has_all() && self.failure.is_none();
        Cut { batch: self.batch - 1, items, places, last }
    }

    /// The batches of the epoch, when all have been counted or cut.
    fn batches(&self) -> usize {
        match self.of_stream {
            // Of which a pass reads those before its start without cutting them.
            Some(samples) if self.drop_last => self.batch.min(samples / self.batch_size),
            Some(samples) => self.batch.min(samples.div_ceil(self.batch_size)),
            None => self.batch,
        }
    }

    fn behind_the_end(&self, batch: usize, batches: usize) -> LoadError {
        LoadError::Position { epoch: self.epoch, batch, batches }
    }
}
