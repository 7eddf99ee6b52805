//! Runs cut into batches, in order.

use super::error::LoadError;
use super::pass::{Pass, Run};
use super::position::Cursor;

/// The samples of a batch, and where in the order each is.
pub(super) struct Cut<I> {
    /// The batch, from 0 in its epoch.
    pub(super) batch: usize,
    pub(super) items: Vec<I>,
    pub(super) places: Vec<usize>,
    /// Whether it is the epoch's last.
    pub(super) last: bool,
}

/// Takes runs, and gives batches as soon as their samples are known.
pub(super) struct Cutter<I> {
    epoch: usize,
    batch_size: usize,
    /// Samples needed before a batch is cut: with filters one more than a batch has, to know whether it is the last.
    enough: usize,
    /// Runs that are still to be taken.
    runs_left: usize,
    /// The batch that comes next.
    batch: usize,
    /// The batch of a resumed epoch that is to be the first, where those before it have to be passed over.
    resumed: Option<usize>,
    /// Samples that are in no batch yet, and where in the order each is.
    items: Vec<I>,
    places: Vec<usize>,
    /// Why there are no more.
    failure: Option<LoadError>,
    /// Samples that no batch has, for the owner to drop: their `Drop` is the user's.
    pub(super) discarded: Vec<I>,
}

impl<I: 'static> Cutter<I> {
    /// For the batches of `pass` from `start` on. The pass begins there, or where it filters at the epoch's start.
    pub(super) fn new(pass: &Pass<I>, start: Cursor, batch_size: usize) -> Self {
        let filters = pass.pipeline.filters();
        let mut cutter = Self {
            epoch: pass.epoch,
            batch_size,
            enough: batch_size.saturating_add(usize::from(filters)),
            runs_left: pass.runs(),
            batch: if filters { 0 } else { start.batch },
            resumed: Some(start.batch).filter(|&batch| filters && batch > 0),
            items: Vec::new(),
            places: Vec::new(),
            failure: None,
            discarded: Vec::new(),
        };
        if !filters && start.batch > 0 && cutter.runs_left == 0 {
            cutter.fail(cutter.behind_the_end(start.batch, pass.order.len().div_ceil(batch_size)));
        }
        cutter
    }

    /// Whether the next batch needs another run.
    pub(super) fn wants(&self) -> bool {
        self.items.len() < self.enough && self.runs_left > 0
    }

    /// Takes the run after those taken so far. Behind a failure there is nothing to take.
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
        if let Some(failure) = run.failure {
            self.fail(failure);
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
            if self.items.is_empty() {
                let wanted = self.resumed.take().filter(|&wanted| self.batch <= wanted)?;
                return Some(Err(self.behind_the_end(wanted, self.batch)));
            }
            let cut = self.cut_one();
            if self.resumed.is_none_or(|first| cut.batch >= first) {
                return Some(Ok(cut));
            }
            self.discarded.extend(cut.items);
        }
        None
    }

    fn cut_one(&mut self) -> Cut<I> {
        let size = self.batch_size.min(self.items.len());
        let (items, places) = (self.items.split_off(size), self.places.split_off(size));
        let (items, places) = (std::mem::replace(&mut self.items, items), std::mem::replace(&mut self.places, places));
        self.batch += 1;
        let last = self.items.is_empty() && self.runs_left == 0 && self.failure.is_none();
        Cut { batch: self.batch - 1, items, places, last }
    }

    fn behind_the_end(&self, batch: usize, batches: usize) -> LoadError {
        LoadError::Position { epoch: self.epoch, batch, batches }
    }
}
