//! Shuffles: of all samples, and of windows of consecutive ones.

use crate::random::RandomStream;
use rand_core::Rng;
use std::sync::{Arc, Mutex, PoisonError};

/// The order that [`shuffle`](super::DataLoaderBuilder::shuffle) states: Fisher and Yates's, from the last place on.
pub(super) fn shuffle(samples: &mut [usize], stream: &RandomStream) {
    let mut rng = stream.rng();
    for last in (1..samples.len()).rev() {
        let other = (u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64;
        samples.swap(last, other as usize);
    }
}

/// Windows of consecutive samples, each shuffled by a stream of its own.
#[derive(Debug)]
pub(super) struct Windows {
    /// Of the epoch; forked by a window's number, what its order is drawn from.
    stream: RandomStream,
    length: usize,
    /// The window that was asked for last: consecutive places are asked for at about the same time.
    last: Mutex<Option<(usize, Arc<[usize]>)>>,
}

impl Windows {
    /// Windows of `length` samples, drawn from the epoch's `stream`.
    pub(super) fn new(stream: RandomStream, length: usize) -> Self {
        Self { stream, length, last: Mutex::new(None) }
    }

    /// Samples in a window; the last may have fewer.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The order of a window that has `length` samples: their numbers in the window.
    pub(super) fn order(&self, window: usize, length: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..length).collect();
        shuffle(&mut order, &self.stream.fork_index(window as u64));
        order
    }

    /// The sample at a place, of `samples`.
    pub(super) fn sample(&self, place: usize, samples: usize) -> usize {
        let (window, within) = (place / self.length, place % self.length);
        let first = window * self.length;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let order = match &*last {
            Some((number, order)) if *number == window => order.clone(),
            _ => {
                let order: Arc<[usize]> = self.order(window, self.length.min(samples - first)).into();
                *last = Some((window, order.clone()));
                order
            }
        };
        first + order[within]
    }
}
