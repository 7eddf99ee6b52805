//! Which loader a position belongs to.

use crate::random::RandomStream;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What decides the batches of a loader, except for the code and the data.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) samples: Range<usize>,
    pub(super) batch_size: usize,
    pub(super) shuffle: Option<RandomStream>,
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

    fn properties(&self) -> [(&'static str, String); 6] {
        let key = |stream: &Option<RandomStream>| stream.as_ref().map_or_else(|| "none".to_owned(), key);
        let functions: Vec<String> = self.functions.iter().map(Function::text).collect();
        [
            ("its name", format!("`{}`", self.name)),
            ("the range of its samples", format!("{:?}", self.samples)),
            ("its batch size", self.batch_size.to_string()),
            ("the stream of its `shuffle`", key(&self.shuffle)),
            ("the stream of its `random`", key(&self.random)),
            ("its pipeline", format!("[{}]", functions.join(", "))),
        ]
    }
}

/// A function of a pipeline, by what it does to samples and what it draws from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Function {
    Map,
    Augment(RandomStream),
    Filter,
}

impl Function {
    /// The method that adds it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Augment(_) => "augment",
            Self::Filter => "filter",
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Augment(stream) => format!("`augment` with {}", key(stream)),
            function => format!("`{}`", function.name()),
        }
    }
}

/// The whole key: two that differ are never printed alike.
fn key(stream: &RandomStream) -> String {
    let bytes = stream.key().iter().map(|byte| format!("{byte:02x}"));
    format!("the key {}", bytes.collect::<String>())
}
