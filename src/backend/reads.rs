//! When a read copies.

use burn_std::{RuntimeKind, set_runtime_kind};

/// Has Burn's reads copy at once, in the whole process.
///
/// Otherwise they copy when the data is first looked at, and get what operations have written in place by then. Burn
/// has this for programs on an asynchronous runtime, and asks nothing else of the kind of runtime.
pub(crate) fn copy_at_once() {
    set_runtime_kind(RuntimeKind::Async);
}
