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

/// The order of a window, with its number.
pub(super) type Held = Option<(usize, Arc<[usize]>)>;

/// Windows of consecutive samples, each shuffled by a stream of its own.
#[derive(Debug)]
pub(super) struct Windows {
    /// Of the epoch; forked by a window's number, what its order is drawn from.
    stream: RandomStream,
    length: usize,
    /// The window that was asked for last: consecutive places are asked for at about the same time.
    last: Mutex<Held>,
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

    /// The sample at a place, of `samples`. Who asks for one place after another keeps the order in `held`: where workers
    /// are at two windows, each asks once for its own, and not with every sample for one that the other has replaced.
    pub(super) fn sample(&self, place: usize, samples: usize, held: &mut Held) -> usize {
        let (window, within) = (place / self.length, place % self.length);
        let first = window * self.length;
        let order = match held.take() {
            Some((number, order)) if number == window => order,
            _ => self.shared(window, self.length.min(samples - first)),
        };
        let sample = first + order[within];
        *held = Some((window, order));
        sample
    }

    /// The order of a window that has `length` samples, computed once for those who ask at about the same time.
    fn shared(&self, window: usize, length: usize) -> Arc<[usize]> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, order)) = &*last
            && *number == window
        {
            return order.clone();
        }
        let order: Arc<[usize]> = self.order(window, length).into();
        *last = Some((window, order.clone()));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two workers, each at a window of its own, sample by sample.
    #[test]
    fn who_keeps_an_order_asks_for_it_once() {
        let windows = Windows::new(RandomStream::from_seed(3), 50);
        let (mut one, mut other): (Held, Held) = (None, None);
        let mut kept: Option<[Arc<[usize]>; 2]> = None;
        for place in 0..50 {
            windows.sample(place, 100, &mut one);
            windows.sample(50 + place, 100, &mut other);
            let [one, other] = [&one, &other].map(|held| held.as_ref().expect("it was asked for").1.clone());
            let [first, second] = kept.get_or_insert_with(|| [one.clone(), other.clone()]);
            assert!(Arc::ptr_eq(first, &one) && Arc::ptr_eq(second, &other), "an order was computed anew");
        }
    }
}
