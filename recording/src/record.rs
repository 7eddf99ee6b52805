//! What a recording consists of.

use crate::environment::Environment;
use core::fmt;
use serde::{Deserialize, Serialize};

/// One record of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Record {
    /// The first record.
    Header(Header),
    /// A thread that issues operations, before its first one.
    Thread(Thread),
    /// An operation. Those of one thread are in the order in which it issued them.
    Operation(Operation),
    /// The tensors that live at the end of a step.
    State(State),
    /// The last record of a program that came to its end.
    End {
        /// How many operations each thread issued, by [`Thread::number`], recorded or not.
        operations: Vec<u64>,
        /// What was known at the end: devices in use, the seed. Its entries replace those of [`Header::environment`].
        environment: Environment,
    },
}

/// What was recorded, where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What is recorded.
    pub level: Level,
    /// Whether the operations ran on deterministic kernels; if not, on Burn's own.
    pub deterministic: bool,
    /// Where the program ran, as far as it was known at the beginning.
    pub environment: Environment,
}

/// What is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Level {
    /// [`State`]s alone.
    #[default]
    Weights,
    /// States and every operation.
    Operations,
    /// States, and the operations of these steps, from 0.
    OperationsOf {
        /// The first step.
        first: u64,
        /// The last step.
        last: u64,
    },
}

/// A thread that issues operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Threads are numbered from 0 in the order of their first operations.
    pub number: u32,
}

/// An operation of the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The thread that issued it: [`Thread::number`].
    pub thread: u32,
    /// Its number among the operations of its thread, from 0: uploads count, frees do not.
    pub number: u64,
    /// Where in the program.
    pub place: Place,
    /// The method of Burn's backend (`float_matmul`), the id of a custom operation, `upload` for data from the host, or
    /// `receive` for a tensor of another thread.
    pub name: String,
    /// Whether it is a custom operation, of the program or of an extension that is not Burn's.
    pub is_custom: bool,
    /// The parameters that are no tensors, in Burn's spelling: scalars, axes, strides, ranges.
    pub parameters: String,
    /// The operands.
    pub inputs: Vec<Tensor>,
    /// The results.
    pub outputs: Vec<Output>,
    /// Of a custom operation, what its [operands](Self::inputs) held after it, by operand: its kernels may write where they
    /// should read. `None` where the operand is no more or the digest is unknown; empty for other operations.
    pub operands_after: Vec<Option<Digest>>,
    /// The kernels that it launched, in order, by their paths in Rust: those that compute, not those of the digest.
    pub kernels: Vec<String>,
    /// The plans of those that have several, in order: `scatter::scatter: BruteForce`. Of the kernels of this project's packages alone.
    pub plans: Vec<String>,
    /// The random numbers that it drew, where they came from a seed.
    pub draws: Vec<Draw>,
    /// Why it has no results.
    pub error: Option<String>,
}

impl Operation {
    /// The [name](Self::name) of data from the host.
    pub const UPLOAD: &str = "upload";

    /// The [name](Self::name) of a tensor that another thread made, where this thread first uses it. It has no operands and
    /// one result.
    pub const RECEIVE: &str = "receive";
}

/// Random numbers of an operation: `words` of ChaCha8 under `key`, stream number `stream`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Draw {
    /// The first 8 bytes of the BLAKE3 hash of the key: the key itself would be a secret in the wrong file.
    pub key: u64,
    /// ChaCha's stream number.
    pub stream: u64,
}

/// Where in the program an operation was issued, as far as the program says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The step, from 0: what `step` or a loader's batch said, or else the number of backward passes that had begun.
    pub step: Option<u64>,
    /// The epoch and the batch in it, both from 0.
    pub epoch: Option<u64>,
    /// The batch of the epoch, from 0.
    pub batch: Option<u64>,
    /// The labels in force, outermost first.
    pub labels: Vec<String>,
    /// Where in the program's source the innermost label, `step` or `epoch` in force begins: `src/main.rs:57`.
    pub source: Option<String>,
    /// What kind of work.
    pub phase: Phase,
}

/// What kind of work an operation is part of: between the first gradient of a step and its last one it is backward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Phase {
    /// Before a backward pass, or without one.
    #[default]
    Forward,
    /// From the beginning of a backward pass to the first update of a tensor that was there before the step.
    Backward,
    /// From that update to the next step.
    Update,
}

/// Which result of which operation of the same thread a tensor is. It is the same in two runs of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// [`Operation::number`].
    pub operation: u64,
    /// The index among the results.
    pub output: u32,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tensor {
    /// `None` where the tensor is older than the recording.
    pub origin: Option<Origin>,
    /// The logical shape.
    pub shape: Vec<u64>,
    /// Burn's name of the dtype: `f32`.
    pub dtype: String,
    /// The path of the parameter whose value it is (`conv1.weight`).
    pub parameter: Option<String>,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The logical shape.
    pub shape: Vec<u64>,
    /// Burn's name of the dtype: `f32`.
    pub dtype: String,
    /// Of its elements; `None` where it is unknown, and where nothing was written, as after an error.
    pub digest: Option<Digest>,
    /// The path of the parameter whose new value it is.
    pub parameter: Option<String>,
}

/// The tensors that live at the end of a step: parameters, the state of optimizers, running statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The thread that ended the step.
    pub thread: u32,
    /// How many operations it had issued.
    pub operations: u64,
    /// The step that ended.
    pub place: Place,
    /// Those that were written since the last state of the thread, in the order of their origins.
    pub tensors: Vec<StateTensor>,
}

/// A tensor that lives at the end of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateTensor {
    /// Where it came from.
    pub origin: Origin,
    /// The logical shape.
    pub shape: Vec<u64>,
    /// Burn's name of the dtype.
    pub dtype: String,
    /// The path of the parameter whose value it is.
    pub parameter: Option<String>,
    /// Of its elements; `None` where it is unknown.
    pub digest: Option<Digest>,
}

/// A digest of 128 bits of the elements of a tensor, in row-major order; see the module `digest` of the package
/// `burn-deterministic-kernels`. `Display` is 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(pub [u32; 4]);

/// `step 3, epoch 0, batch 3, backward, block 3 > attention, at src/main.rs:57`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = [("step", self.step), ("epoch", self.epoch), ("batch", self.batch)];
        for (name, number) in numbers.into_iter().filter_map(|(name, number)| Some((name, number?))) {
            write!(f, "{name} {number}, ")?;
        }
        f.write_str(match self.phase {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Update => "update",
        })?;
        if !self.labels.is_empty() {
            write!(f, ", {}", self.labels.join(" > "))?;
        }
        self.source.iter().try_for_each(|source| write!(f, ", at {source}"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|word| write!(f, "{word:08x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}
