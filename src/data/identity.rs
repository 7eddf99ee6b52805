//! Which loader a position belongs to.

use crate::random::RandomStream;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What decides the batches of a loader, except for the code and the data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) samples: Samples,
    pub(super) batch_size: usize,
    pub(super) drop_last: bool,
    pub(super) fixed_epoch: bool,
    pub(super) sampling: Sampling,
    pub(super) random: Option<RandomStream>,
    pub(super) functions: Vec<Function>,
}

impl Identity {
    /// How the loader `now` differs from this one, which made a position.
    pub(super) fn differences(&self, now: &Self) -> Vec<String> {
        let pairs = self.properties().into_iter().zip(now.properties());
        let differing = pairs.filter(|((_, was), (_, is))| was != is);
        differing.map(|((property, was), (_, is))| format!("{property} was {was}, and is {is}")).collect()
    }

    fn properties(&self) -> [(&'static str, String); 8] {
        [
            ("its name", format!("`{}`", self.name)),
            ("the range of its samples", self.samples.text()),
            ("its batch size", self.batch_size.to_string()),
            ("its `drop_last`", self.drop_last.to_string()),
            ("its `fixed_epoch`", self.fixed_epoch.to_string()),
            ("its order", self.sampling.text()),
            ("the stream of its `random`", self.random.as_ref().map_or_else(|| "none".to_owned(), key)),
            ("its pipeline", text(&self.functions)),
        ]
    }
}

/// The samples that a loader orders.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Samples {
    /// Those of a dataset.
    Range(Range<usize>),
    /// Those of so many shards of a stream.
    Shards(usize),
}

impl Samples {
    fn text(&self) -> String {
        match self {
            Self::Range(samples) => format!("{samples:?}"),
            Self::Shards(shards) => format!("that of {shards} shards"),
        }
    }
}

/// How a loader orders its samples, by the method of the builder and what it draws from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Sampling {
    Sequential,
    Shuffle(RandomStream),
    ShuffleWindow {
        stream: RandomStream,
        window: usize,
    },
    Weighted {
        stream: RandomStream,
        /// Their digest.
        weights: [u8; 32],
        samples: usize,
    },
}

impl Sampling {
    fn text(&self) -> String {
        match self {
            Self::Sequential => "the dataset's".to_owned(),
            Self::Shuffle(stream) => format!("`shuffle` with {}", key(stream)),
            Self::ShuffleWindow { stream, window } => {
                format!("`shuffle_window` of {window} samples with {}", key(stream))
            }
            Self::Weighted { stream, weights, samples } => {
                format!(
                    "`weighted` of {samples} samples by weights with the digest {} with {}",
                    hex(weights),
                    key(stream)
                )
            }
        }
    }
}

/// A function of a pipeline, by what it does to samples and what it draws from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Function {
    Map,
    Augment(RandomStream),
    Filter,
    Take(usize),
    Skip(usize),
    Repeat(usize),
    /// With a pipeline of these functions.
    Zip(Vec<Function>),
}

impl Function {
    /// The method that adds it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Augment(_) => "augment",
            Self::Filter => "filter",
            Self::Take(_) => "take",
            Self::Skip(_) => "skip",
            Self::Repeat(_) => "repeat",
            Self::Zip(_) => "zip",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Augment(stream) => format!("`augment` with {}", key(stream)),
            Self::Take(samples) | Self::Skip(samples) | Self::Repeat(samples) => {
                format!("`{}({samples})`", self.name())
            }
            Self::Zip(functions) => format!("`zip` with {}", text(functions)),
            function => format!("`{}`", function.name()),
        }
    }
}

fn text(functions: &[Function]) -> String {
    let functions: Vec<String> = functions.iter().map(Function::text).collect();
    format!("[{}]", functions.join(", "))
}

/// The whole key: two that differ are never printed alike.
fn key(stream: &RandomStream) -> String {
    format!("the key {}", hex(stream.key()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
