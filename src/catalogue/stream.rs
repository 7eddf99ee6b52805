//! What Burn's operation stream carries besides methods of the traits.

use super::entry::{Entry, composed, forwarded, refused};
use super::reason;

const NO_SUCH: &str = "Burn has no such operation on bool tensors, and its tensor API ends before it gets here";

/// The stream's own operations, and those burn-ir can spell but no trait has.
pub(super) const STREAM: &[Entry] = &[
    forwarded("init", reason::NO_WORK),
    forwarded("drop", reason::NO_WORK),
    refused(
        "custom",
        "it is a custom operation, which runs code of a backend extension that this crate does not know",
        "compose it of Burn's operations, or vouch for it with `promise_deterministic`",
    ),
    refused("quantized", "burn-fusion issues no such operation on quantized tensors", "dequantize first"),
    refused("bool_cast", NO_SUCH, "use `bool_into_int` or `bool_into_float`"),
    refused("bool_scatter_nd", NO_SUCH, "use an int tensor"),
    refused("bool_gather_nd", NO_SUCH, "use an int tensor"),
];

/// What Burn and its extension crates do before the stream: the pieces are operations of the other tables, or the host's.
pub(super) const HOST: &[Entry] = &[
    composed("Transaction::execute", "the reads of the tensors, in order"),
    composed("Tensor::argwhere", "a read, the positions listed on the host in row-major order, and an upload"),
    composed("Tensor::nonzero", "`Tensor::argwhere` and `int_slice`"),
    composed("Tensor::mask_select", "`Tensor::argwhere` and `float_select`"),
    composed("Tensor::one_hot", "a read, the indices converted on the host, an upload, and `float_scatter`"),
    composed("Tensor::one_hot_fill", "as `Tensor::one_hot`"),
    composed("Tensor::iter_dim", "a slice for each item"),
    composed("burn_vision: erode, dilate, nms", "a read, one pass on the host, and an upload"),
    composed("burn_vision: filters, colours, transforms", "operations of the tensor API"),
    refused(
        "burn_vision: connected_components",
        "custom operations `connected_components` and `connected_components_with_stats`, which merge labels with atomics",
        "read the image and label it on the host",
    ),
    composed(
        "burn_signal: rfft, irfft",
        "custom operations `signal::rfft` and `signal::irfft`, known by these ids: `fourier::forward` and `fourier::inverse`",
    ),
    composed("burn_signal: cfft, stft, istft", "`rfft` and `irfft`, and operations of the tensor API"),
    composed("burn_signal: windows", "operations of the tensor API"),
    composed(
        "burn_linalg: svd",
        "custom operation `linalg::svd`, known by this id: in 0.22.1 a read, one order on the host, and uploads",
    ),
    composed("burn_linalg: all else", "operations of the tensor API"),
];
