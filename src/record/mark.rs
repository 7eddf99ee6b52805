//! What a program says about the place where it is.

use burn_ir::TensorId;
use core::panic::Location;

/// What a program says.
#[derive(Clone, Debug)]
pub(super) enum Mark {
    /// A part of the program begins.
    Begins(Part, &'static Location<'static>),
    /// The innermost part of this kind ends.
    Ends(PartKind),
    /// A step begins, on a batch of a loader.
    Batch { epoch: u64, batch: u64 },
    /// A loader's pass ends, and the step on its last batch.
    BatchesEnd,
    /// The parameters and buffers of a module.
    Parameters(Vec<Named>),
    /// The process ends.
    ProcessEnds,
}

/// A part of a program that it names or numbers.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Label(String),
    Step(u64),
    Epoch(u64),
}

/// What a [`Part`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PartKind {
    Label,
    Step,
    Epoch,
}

impl Part {
    pub(super) fn kind(&self) -> PartKind {
        match self {
            Self::Label(_) => PartKind::Label,
            Self::Step(_) => PartKind::Step,
            Self::Epoch(_) => PartKind::Epoch,
        }
    }
}

/// A parameter or buffer of a module.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) tensor: TensorId,
    pub(super) path: String,
    /// It takes no gradient, as running statistics.
    pub(super) is_buffer: bool,
}
