//! What a program says about the place where it is.

use burn_ir::TensorId;

/// What a program says.
#[derive(Clone, Debug)]
pub(super) enum Mark {
    /// The name of what follows.
    Label(String),
    /// The innermost label ends.
    LabelEnds,
    /// A step begins.
    Step(u64),
    /// The step ends.
    StepEnds,
    /// An epoch begins.
    Epoch(u64),
    /// The epoch ends.
    EpochEnds,
    /// A step begins, on a batch of a loader.
    Batch { epoch: u64, batch: u64 },
    /// A loader's pass ends, and the step on its last batch.
    BatchesEnd,
    /// The parameters and buffers of a module.
    Parameters(Vec<Named>),
    /// The process ends.
    ProcessEnds,
}

/// A parameter or buffer of a module.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) tensor: TensorId,
    pub(super) path: String,
    /// It takes no gradient, as running statistics.
    pub(super) is_buffer: bool,
}
