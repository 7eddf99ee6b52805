//! Streams: shards whose items are read from their start to their end.

use super::sampler::Sampler;
use super::stage::{Asked, Made, Stage};
use super::windows::Windows;
use crate::panic::caught;
use burn_core::data::dataset::DatasetError;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Items, or why there are no more.
type Items<I> = Box<dyn Iterator<Item = Result<I, String>> + Send>;

/// Shards of items, as the first stage of a pipeline.
pub(super) struct Stream<I> {
    shards: usize,
    /// Starts reading a shard.
    open: Arc<dyn Fn(usize) -> Result<Items<I>, String> + Send + Sync>,
}

/// A stream, whatever its items are.
pub(super) trait OpenStream: Send + Sync {
    fn shards(&self) -> usize;

    /// What a pass reads it with, from place `start` in the order on, in parts of `run` items where it is not shuffled.
    fn open(&self, sampler: &Sampler, epoch: usize, start: usize, run: usize) -> Box<dyn Any + Send + Sync>;
}

impl<I: Send + 'static> Stream<I> {
    pub(super) fn new<S, T, E>(shards: Vec<S>, open: impl Fn(&S) -> Result<T, E> + Send + Sync + 'static) -> Self
    where
        S: Send + Sync + 'static,
        T: Iterator<Item = Result<I, E>> + Send + 'static,
        E: Display + 'static,
    {
        let count = shards.len();
        let open =
            move |shard: usize| -> Result<Items<I>, String> {
                let items = open(&shards[shard]).map_err(|error| format!("shard {shard} cannot be opened: {error}"))?;
                let items = items.enumerate();
                Ok(Box::new(items.map(move |(number, item)| {
                    item.map_err(|error| format!("item {number} of shard {shard}: {error}"))
                })))
            };
        Self { shards: count, open: Arc::new(open) }
    }
}

impl<I: Send + 'static> OpenStream for Stream<I> {
    fn shards(&self) -> usize {
        self.shards
    }

    fn open(&self, sampler: &Sampler, epoch: usize, start: usize, run: usize) -> Box<dyn Any + Send + Sync> {
        let (shards, windows) = sampler.of_stream(self.shards, epoch);
        let open = self.open.clone();
        let items = shards.into_iter().flat_map(move |shard| -> Items<I> {
            open(shard).unwrap_or_else(|reason| Box::new(std::iter::once(Err(reason))))
        });
        Box::new(Reader {
            length: windows.as_ref().map_or(run, Windows::length),
            windows,
            start,
            state: Mutex::new(State { items: Some(Box::new(items)), read: 0, windows: VecDeque::new(), end: None }),
            has_read: Condvar::new(),
        })
    }
}

impl<I: Send + 'static> Stage<I> for Stream<I> {
    fn len(&self) -> usize {
        usize::MAX
    }

    fn sample(&self, index: usize, asked: &Asked<'_>) -> Result<Made<I>, DatasetError> {
        asked.place.set(None);
        let reader = asked.reader.and_then(|reader| reader.downcast_ref::<Reader<I>>());
        match reader.expect("the pass has opened its pipeline's stream").take(index, asked.cancelled) {
            Taken::Item(number, item) => {
                asked.number.set(number);
                Ok(Made::Sample(item))
            }
            Taken::End(items) => Ok(Made::End(items)),
            Taken::Failed(number, reason) => {
                asked.number.set(number);
                Err(DatasetError::new(std::io::Error::other(reason)))
            }
        }
    }
}

/// Reads a stream once, for whichever worker is first to need an item: in whole windows, of which each place is taken
/// once, in any order.
struct Reader<I> {
    /// Items in a window; the last may have fewer.
    length: usize,
    /// Where windows are shuffled.
    windows: Option<Windows>,
    /// The first place that is asked for.
    start: usize,
    /// None of the user's code runs under its lock.
    state: Mutex<State<I>>,
    /// A window has been read, or there is no more.
    has_read: Condvar,
}

struct State<I> {
    /// What is still to be read; `None` while a worker reads.
    items: Option<Items<I>>,
    /// Items that have been read.
    read: usize,
    /// Windows that have been read and not wholly taken.
    windows: VecDeque<Window<I>>,
    end: Option<End>,
}

/// Why there is no more to read.
enum End {
    Whole,
    Failed(String),
}

struct Window<I> {
    /// The number of its first item, which is its first place too.
    first: usize,
    /// In the order in which they were read.
    items: Vec<Option<I>>,
    /// Which of them is at each place, where that is another order.
    order: Option<Vec<usize>>,
    /// Items that are still to be taken.
    left: usize,
}

enum Taken<I> {
    /// The item, and how many were read before it.
    Item(usize, I),
    /// The stream ends before the place, with so many items.
    End(usize),
    /// After so many items there was a failure, before the place or in its window.
    Failed(usize, String),
}

impl<I> Reader<I> {
    /// Takes the item at a place.
    fn take(&self, place: usize, cancelled: impl Fn() -> bool) -> Taken<I> {
        let mut state = self.state();
        loop {
            if let Some(taken) = self.taken(&mut state, place) {
                return taken;
            }
            state = match state.items.take() {
                Some(items) => self.read(state, items, &cancelled),
                None => self.has_read.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// What is at a place, if that has been read, or the end of the stream.
    fn taken(&self, state: &mut State<I>, place: usize) -> Option<Taken<I>> {
        let State { read, windows, end, .. } = state;
        let within = place % self.length;
        let at = windows.iter().position(|window| window.first == place - within && within < window.items.len());
        if let Some(at) = at {
            let window = &mut windows[at];
            let number = window.order.as_ref().map_or(within, |order| order[within]);
            let item = window.items[number].take().expect("a place of a pass is asked for once");
            let number = window.first + number;
            window.left -= 1;
            if window.left == 0 {
                windows.remove(at);
            }
            return Some(Taken::Item(number, item));
        }
        match end {
            Some(End::Failed(reason)) => Some(Taken::Failed(*read, reason.clone())),
            Some(End::Whole) => Some(Taken::End(*read)),
            None => {
                assert!(place >= *read, "place {place} of {read} is asked for again, or lies before the first");
                None
            }
        }
    }

    /// Reads a window, without the lock.
    fn read<'a>(
        &'a self,
        state: MutexGuard<'a, State<I>>,
        mut source: Items<I>,
        cancelled: impl Fn() -> bool,
    ) -> MutexGuard<'a, State<I>> {
        let first = state.read;
        drop(state);
        let unasked = self.start.saturating_sub(first);
        let is_unasked = unasked >= self.length;
        let (mut items, mut read, mut end) = (Vec::new(), 0, None);
        while read < self.length && end.is_none() {
            if cancelled() {
                // Nobody takes any more.
                end = Some(End::Failed("the pass is over".to_owned()));
                break;
            }
            // Of a window that begins before the start, the order may put any item behind it.
            let is_dropped = is_unasked || self.windows.is_none() && read < unasked;
            let next = caught(|| source.next().map(|item| item.map(|item| Some(item).filter(|_| !is_dropped))));
            match next.unwrap_or_else(|panic| Some(Err(format!("reading panicked: {panic}")))) {
                Some(Ok(item)) => {
                    read += 1;
                    if !is_unasked {
                        items.push(item);
                    }
                }
                Some(Err(reason)) => end = Some(End::Failed(reason)),
                None => end = Some(End::Whole),
            }
        }
        let failed = matches!(end, Some(End::Failed(_)));
        // The order depends on how many there are.
        let is_lost = failed && self.windows.is_some();
        let (window, dropped) = match items.len() > unasked && !is_lost {
            true => {
                let order = self.windows.as_ref().map(|windows| windows.order(first / self.length, items.len()));
                let before = order.iter().flat_map(|order| &order[..unasked]);
                let before: Vec<Option<I>> = before.map(|&item| items[item].take()).collect();
                let left = items.len() - unasked;
                (Some(Window { first, items, order, left }), before)
            }
            false => (None, items),
        };
        if let Err(panic) = caught(|| drop(dropped))
            && !failed
        {
            end = Some(End::Failed(format!("reading panicked: {panic}")));
        }
        let mut state = self.state();
        state.read += read;
        state.windows.extend(window);
        state.end = end;
        state.items = Some(source);
        self.has_read.notify_all();
        state
    }

    fn state(&self) -> MutexGuard<'_, State<I>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
