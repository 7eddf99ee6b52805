//! What a comparison finds.

use super::grid::Picture;
use super::step::Step;
use crate::environment::{Environment, EnvironmentDifference};
use crate::reader::Ending;
use crate::record::{Digest, Header, Operation, Place, Tensor};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Two recordings, side by side. `Display` is the report as text.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The first recording and the second.
    pub sides: [Side; 2],
    /// Whether they agree, and if not, why.
    pub outcome: Outcome,
    /// Whether one begins at a later step, of a run that was resumed from a checkpoint.
    pub resumed: Option<Resumed>,
    /// In which entries the environments differ. Other kernels than deterministic ones in one of them count as an entry.
    pub environment: Vec<EnvironmentDifference>,
    /// Threads that were matched by what they do, because their numbers differ: number in the first, in the second.
    /// Everywhere else threads have their number in the first recording.
    pub threads: Vec<(u32, u32)>,
    /// What was compared.
    pub compared: Compared,
    /// The first state that differs.
    pub state: Option<StateDifference>,
    /// Threads of which nothing is recorded but how many operations they issued, where these numbers differ: workers of a
    /// loader, say, which take what comes.
    pub uncompared: Vec<Length>,
    /// What the difference reaches.
    pub spread: Spread,
    /// Operations by step.
    pub operations: Picture,
    /// Parameters by step; tensors of a state that are not named share a row.
    pub parameters: Picture,
}

/// One of two recordings.
#[derive(Clone, Debug)]
pub struct Side {
    /// The file.
    pub path: PathBuf,
    /// Its header.
    pub header: Header,
    /// Where the program ran, as it was compared: with what was known at the end, where both recordings have that.
    pub environment: Environment,
    /// How it ends.
    pub ending: Ending,
    /// How many of its records, the last ones, no checksum covers, because they were cut.
    pub unverified: u64,
    /// Operations in it.
    pub operations: u64,
    /// States in it.
    pub states: u64,
    /// Threads in it.
    pub threads: u64,
    /// The last step of a record.
    pub last_step: Option<u64>,
}

/// A recording that begins at a later step than the other: the run was resumed from a checkpoint. The two are compared from that
/// step on, and all numbers of steps and operations are those of the run that was not interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// The run that was resumed: 0 or 1.
    pub side: usize,
    /// The first step of it.
    pub step: u64,
    /// The epoch of that step.
    pub epoch: Option<u64>,
    /// The batch of that epoch.
    pub batch: Option<u64>,
    /// The last step of the other run before it.
    pub after: Option<u64>,
    /// Whether the other run came as far; if not, nothing is compared.
    pub is_reached: bool,
    /// How many tensors that it resumed with are compared with those of the other run after the step [`after`](Self::after).
    pub tensors: u64,
    /// How many are not, because they have no name that the other run knows.
    pub unmatched: u64,
    /// Whether there are threads that are not compared: those without steps.
    pub other_threads: bool,
}

/// How many records have been compared with their counterparts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Operations.
    pub operations: u64,
    /// States.
    pub states: u64,
    /// States that ended a step; the others are what a training began with.
    pub steps: u64,
    /// Digests: of results and of tensors of a state.
    pub digests: u64,
    /// Digests that are unknown in one recording at least: whether these results agree is not known.
    pub lost: u64,
    /// Operations that ran other kernels and have the same results.
    pub other_kernels: u64,
}

/// Whether two recordings agree.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Nothing was compared: they have no state and no operation in common.
    Nothing,
    /// All of both is the same.
    Same,
    /// Nothing differs as far as both go; one of them was cut, or both.
    SameSoFar,
    /// Nothing differs as far as both go, and one program went on.
    Length(Length),
    /// Something differs.
    Differ(Box<Difference>),
}

/// A program that went on where the other had ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Length {
    /// The thread.
    pub thread: u32,
    /// How many operations it issued; in a recording that was cut, at least so many.
    pub operations: [u64; 2],
    /// How many states it recorded.
    pub states: [u64; 2],
    /// The first operation that the program recorded alone.
    pub next: Option<Box<Affected>>,
}

/// The first difference in the order of execution.
#[derive(Clone, Debug)]
pub struct Difference {
    /// What kind of difference it is.
    pub cause: Cause,
    /// The operation in both recordings; `None` for a difference of states that no recorded operation explains.
    pub operation: Option<OperationPair>,
    /// Custom operations that may have written into an operand or a result, or into the tensor of the state, before its digest was
    /// computed: some of them. What it writes into tensors that are neither its operands nor its results is not recorded.
    pub suspects: Vec<Affected>,
    /// The parameter that an upload without a name replaces, as far as the states around it tell.
    pub replaced: Option<String>,
}

/// Why a result differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The programs differ: another operation, other shapes, other operands.
    Program(String),
    /// A parameter differs that is no tensor: a scalar, an axis.
    Parameters,
    /// Data from the host differ.
    Data {
        /// Whether both runs uploaded the same data in all, in another order.
        reordered: bool,
    },
    /// A tensor that another thread made differs.
    Received {
        /// Whether both runs received the same tensors in all, in another order.
        reordered: bool,
    },
    /// Random numbers were drawn from another place: another seed, or another number of draws before.
    Seed,
    /// Random numbers came from no seed.
    Unseeded,
    /// The operation failed in one run.
    Failure {
        /// The run: 0 or 1.
        side: usize,
    },
    /// The same operands gave another result, with other kernels.
    KernelChoice,
    /// The same operands and kernels gave another result.
    Kernel(Owner),
    /// The same operands gave another result, in another environment.
    Environment,
    /// A tensor of a state is not what its operation computed, in one of the runs.
    Overwritten,
    /// A run was resumed with other values than the other run had.
    Resumed {
        /// Whether these are values of parameters. If not, they are operands of the operation that have no name, and are not
        /// known to agree.
        named: bool,
    },
    /// States differ, and the operations that would tell why are not recorded.
    NotRecorded,
}

/// Whose kernels an operation ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The fixed-order kernels of burn-deterministic.
    Library,
    /// Burn's, or CubeCL's.
    Burn,
    /// The program's, or another crate's: kernels of other crates, and all custom operations.
    Program,
    /// No kernel is recorded.
    Unknown,
}

/// An operation in both recordings.
#[derive(Clone, Debug)]
pub struct OperationPair {
    /// As recorded, with the threads' numbers of the first recording.
    pub operations: [Operation; 2],
    /// The operands of each, with the operations that made them, two levels up.
    pub operands: [Vec<Operand>; 2],
    /// Indices of the results that differ.
    pub outputs: Vec<usize>,
    /// Indices of the operands that were the same before the operation and differ after it.
    pub overwritten: Vec<usize>,
}

/// An operand, and where it came from.
#[derive(Clone, Debug)]
pub struct Operand {
    /// As recorded.
    pub tensor: Tensor,
    /// Whether it is the same in both recordings; `None` where its digest is not recorded.
    pub same: Option<bool>,
    /// Its digest, where it is recorded.
    pub digest: Option<Digest>,
    /// The operation that made it, where it is recorded, and its operands, as far as they were looked for.
    pub producer: Option<Box<(Operation, Vec<Operand>)>>,
}

/// The first state that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct StateDifference {
    /// The thread that ended the step.
    pub thread: u32,
    /// The step.
    pub place: Place,
    /// The step in the second recording, where it has another number.
    pub other_place: Option<Place>,
    /// The least and the greatest number of a step that was compared, up to this one.
    pub steps: [u64; 2],
    /// How many operations the thread had issued in each run.
    pub operations: [u64; 2],
    /// How many tensors were compared.
    pub tensors: u64,
    /// How many of them differ.
    pub differing: u64,
    /// The first that differ: the parameter, or the shape and dtype.
    pub names: Vec<String>,
}

/// What a difference reaches.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// By step.
    pub steps: BTreeMap<Step, StepSpread>,
    /// The first operations whose result differs because an operand does.
    pub first: Vec<Affected>,
    /// Operations whose operands agree and whose results differ, or which differ otherwise, after the first difference.
    pub others: Vec<Affected>,
    /// How many those are.
    pub others_count: u64,
    /// Parameters by path: the first step after which each differs, if it does.
    pub parameters: BTreeMap<String, Option<Step>>,
    /// Operations that are in one recording alone, because the programs differ or one ended before.
    pub only: [u64; 2],
    /// Tensors without a name that are part of a state in one recording alone.
    pub only_tensors: [u64; 2],
}

/// How many operations of a step differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepSpread {
    /// Compared.
    pub compared: u64,
    /// With another result.
    pub differing: u64,
    /// Tensors of its state that were compared.
    pub tensors: u64,
    /// Tensors of its state that differ.
    pub tensors_differing: u64,
}

/// An operation that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affected {
    /// Its thread.
    pub thread: u32,
    /// Its number.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Its place.
    pub place: Place,
    /// The shape and dtype of its first result.
    pub result: String,
    /// The parameter whose new value it computes.
    pub parameter: Option<String>,
}

impl Comparison {
    /// Whether nothing differs, as far as both recordings go; `None` where nothing was compared.
    pub fn same(&self) -> Option<bool> {
        match self.outcome {
            Outcome::Nothing => None,
            Outcome::Same | Outcome::SameSoFar => Some(true),
            Outcome::Length(_) | Outcome::Differ(_) => Some(false),
        }
    }

    /// The first difference.
    pub fn difference(&self) -> Option<&Difference> {
        match &self.outcome {
            Outcome::Differ(difference) => Some(difference),
            _ => None,
        }
    }
}

impl Affected {
    pub(super) fn new(operation: &Operation) -> Self {
        let output = operation.outputs.first();
        Self {
            thread: operation.thread,
            number: operation.number,
            name: operation.name.clone(),
            place: operation.place.clone(),
            result: output.map_or_else(String::new, |output| format!("{:?} {}", output.shape, output.dtype)),
            parameter: operation.outputs.iter().find_map(|output| output.parameter.clone()),
        }
    }
}
