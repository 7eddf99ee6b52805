//! Why a method may run on the inner backend unchanged.

pub(crate) const TRANSFER: &str = "copies between host and device";
pub(crate) const CREATION: &str = "writes one constant to every element";
pub(crate) const MOVEMENT: &str = "moves or renames elements; each output element is written once";
pub(crate) const WINDOWS: &str =
    "a view, without a kernel; `gather::select` where the strides of the view would mislead Burn's kernels";
pub(crate) const ELEMENTWISE: &str =
    "one unit computes an output element from the elements at its position, in one expression";
pub(crate) const PRODUCTS: &str = "one unit computes an output element from the elements at its position, in one expression; refused under `GpuToGpu`, since compilers may contract it";
pub(crate) const HAS_CTC: &str = "answers that `ctc_loss_backward` exists, as Burn's stream takes for granted";
pub(crate) const MANAGEMENT: &str = "manages the device and computes nothing";
pub(crate) const REPLAY: &str = "repeats the launches that were captured, random streams included";
pub(crate) const SEED: &str =
    "seeds this crate's streams, below the tensor API; no result is drawn from the inner backend's generator";
pub(crate) const NO_WORK: &str = "carries no work";
