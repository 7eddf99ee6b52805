//! What Burn's operation stream carries besides methods of the traits.

use super::{Entry, forwarded, reason, refused};

const NO_SUCH: &str = "Burn has no such operation on bool tensors, and its tensor API ends before it gets here";

/// The stream's own operations, and those burn-ir can spell but no trait has.
pub(super) const STREAM: &[Entry] = &[
    forwarded("init", reason::NO_WORK),
    forwarded("drop", reason::NO_WORK),
    refused(
        "custom",
        "a custom operation, such as burn-signal's `rfft` and `irfft`, runs code that this crate does not know",
        "compose it of Burn's operations",
    ),
    refused(
        "quantized",
        "Burn's stream interpreter does not carry quantized tensors",
        "dequantize on the host, or use `Deterministic<CubeBackend>` directly",
    ),
    refused("bool_cast", NO_SUCH, "use `bool_into_int` or `bool_into_float`"),
    refused("bool_scatter_nd", NO_SUCH, "use an int tensor"),
    refused("bool_gather_nd", NO_SUCH, "use an int tensor"),
];
