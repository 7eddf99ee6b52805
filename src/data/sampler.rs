//! Which samples an epoch has, in which order.

use super::identity::Sampling;
use super::weights::Weights;
use super::windows::{Held, Windows, shuffle};
use crate::random::RandomStream;
use std::ops::Range;
use std::sync::Arc;

/// How a loader orders the samples of each epoch.
#[derive(Clone)]
pub(super) enum Sampler {
    /// As they are in the dataset.
    Sequential,
    Shuffle(RandomStream),
    ShuffleWindow {
        stream: RandomStream,
        window: usize,
    },
    Weighted {
        stream: RandomStream,
        weights: Arc<Weights>,
    },
}

/// Which samples, in which order.
pub(super) enum Order {
    /// These, as they are in the dataset.
    Sequential(Range<usize>),
    /// Each of them once.
    Shuffled(Vec<usize>),
    /// As drawn, with replacement.
    Drawn(Vec<usize>),
    /// These, shuffled in windows.
    Windows(Range<usize>, Windows),
    /// A stream's: what is at a place is known when it has been read.
    Stream,
}

impl Sampler {
    /// The method of the builder.
    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Sequential => "none",
            Self::Shuffle(_) => "shuffle",
            Self::ShuffleWindow { .. } => "shuffle_window",
            Self::Weighted { .. } => "weighted",
        }
    }

    pub(super) fn identity(&self) -> Sampling {
        match self {
            Self::Sequential => Sampling::Sequential,
            Self::Shuffle(stream) => Sampling::Shuffle(stream.clone()),
            Self::ShuffleWindow { stream, window } => {
                Sampling::ShuffleWindow { stream: stream.clone(), window: *window }
            }
            Self::Weighted { stream, weights } => {
                Sampling::Weighted { stream: stream.clone(), weights: *weights.digest(), samples: weights.samples() }
            }
        }
    }

    /// The number of samples of an epoch, of these in the dataset.
    pub(super) fn len(&self, samples: &Range<usize>) -> usize {
        match self {
            Self::Weighted { weights, .. } => weights.samples(),
            _ => samples.len(),
        }
    }

    /// The order of these samples in an epoch.
    pub(super) fn order(&self, samples: Range<usize>, epoch: usize) -> Order {
        match self {
            Self::Sequential => Order::Sequential(samples),
            Self::Shuffle(stream) => {
                let stream = stream.internal("shuffle").fork_index(epoch as u64).fork_index(samples.start as u64);
                let mut shuffled: Vec<usize> = samples.collect();
                shuffle(&mut shuffled, &stream);
                Order::Shuffled(shuffled)
            }
            Self::ShuffleWindow { stream, window } => {
                let windows = windows(stream, epoch, samples.start, *window);
                Order::Windows(samples, windows)
            }
            Self::Weighted { stream, weights } => {
                Order::Drawn(weights.draw(&stream.internal("weighted").fork_index(epoch as u64)))
            }
        }
    }

    /// Of a stream: the order of its shards in an epoch, and how its samples are shuffled.
    pub(super) fn of_stream(&self, shards: usize, epoch: usize) -> (Vec<usize>, Option<Windows>) {
        let mut order: Vec<usize> = (0..shards).collect();
        match self {
            Self::ShuffleWindow { stream, window } => {
                shuffle(&mut order, &stream.internal("shards").fork_index(epoch as u64));
                (order, Some(windows(stream, epoch, 0, *window)))
            }
            // The builder refuses the others.
            _ => (order, None),
        }
    }
}

fn windows(stream: &RandomStream, epoch: usize, first: usize, window: usize) -> Windows {
    let stream = stream.internal("shuffle_window").fork_index(epoch as u64).fork_index(first as u64);
    Windows::new(stream, window)
}

impl Order {
    /// The number of places; of a stream more than there can be.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Sequential(samples) | Self::Windows(samples, _) => samples.len(),
            Self::Shuffled(samples) | Self::Drawn(samples) => samples.len(),
            Self::Stream => usize::MAX,
        }
    }

    /// The last place at which a pass may start. Of a stream there is one more: only who asks for it learns how many
    /// there are.
    pub(super) fn last_start(&self) -> usize {
        match self {
            Self::Stream => usize::MAX - 1,
            _ => self.len(),
        }
    }

    /// The index in the dataset of the sample at a place. Of a stream it is the place, until the sample has been read.
    /// Who asks for one place after another keeps `held`.
    pub(super) fn sample(&self, place: usize, held: &mut Held) -> usize {
        match self {
            Self::Sequential(samples) => samples.start + place,
            Self::Shuffled(samples) | Self::Drawn(samples) => samples[place],
            Self::Windows(samples, windows) => samples.start + windows.sample(place, samples.len(), held),
            Self::Stream => place,
        }
    }

    /// The number by which the sample at a place draws: its index, or where one may come twice its place.
    pub(super) fn number(&self, place: usize, sample: usize) -> usize {
        match self {
            Self::Drawn(_) => place,
            _ => sample,
        }
    }
}
