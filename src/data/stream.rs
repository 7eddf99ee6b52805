//! Streams: shards whose items are read from their start to their end.

use super::panic::caught;
use super::sampler::Sampler;
use super::stage::{Asked, Made, Stage};
use super::windows::Windows;
use burn_core::data::dataset::DatasetError;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

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
            state: Mutex::new(State { items: Box::new(items), read: 0, windows: VecDeque::new(), end: None }),
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
    state: Mutex<State<I>>,
}

struct State<I> {
    items: Items<I>,
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.end.is_none() && state.read <= place {
            // A window that was read in part is none: its items must not be taken for those after it.
            if let Err(panic) = caught(|| self.read(&mut state, &cancelled)) {
                state.end = Some(End::Failed(format!("reading panicked: {panic}")));
            }
        }
        let State { read, windows, end, .. } = &mut *state;
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
            return Taken::Item(number, item);
        }
        match end {
            Some(End::Failed(reason)) => Taken::Failed(*read, reason.clone()),
            _ => Taken::End(*read),
        }
    }

    /// Reads a window.
    fn read(&self, state: &mut State<I>, cancelled: impl Fn() -> bool) {
        let first = state.read;
        let unasked = self.start.saturating_sub(first);
        let mut items = Vec::new();
        for within in 0..self.length {
            if cancelled() {
                // Nobody takes any more.
                state.end = Some(End::Failed("the pass is over".to_owned()));
                return;
            }
            match state.items.next() {
                Some(Ok(item)) => {
                    state.read += 1;
                    // Of a window that begins before the start, the order may put any item behind it.
                    let dropped = unasked >= self.length || self.windows.is_none() && within < unasked;
                    items.push(Some(item).filter(|_| !dropped));
                }
                Some(Err(reason)) => {
                    state.end = Some(End::Failed(reason));
                    break;
                }
                None => {
                    state.end = Some(End::Whole);
                    break;
                }
            }
        }
        let failed = matches!(state.end, Some(End::Failed(_)));
        let order = match &self.windows {
            // The order depends on how many there are.
            Some(_) if failed => return,
            Some(windows) => Some(windows.order(first / self.length, items.len())),
            None => None,
        };
        let unasked = unasked.min(items.len());
        for &number in order.iter().flat_map(|order| &order[..unasked]) {
            items[number] = None;
        }
        let left = items.len() - unasked;
        if left > 0 {
            state.windows.push_back(Window { first, items, order, left });
        }
    }
}
