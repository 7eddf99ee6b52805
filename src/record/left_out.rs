//! What is not recorded.

use burn_backend::StreamId;
use std::sync::Mutex;

/// Streams of Burn's whose operations are not recorded: those of a loader's workers, of which any may take any batch. What
/// they upload is recorded where another thread first uses it.
static UNRECORDED: Mutex<Vec<StreamId>> = Mutex::new(Vec::new());

/// Leaves the operations of `stream` out.
pub(crate) fn leave_out(stream: StreamId) {
    UNRECORDED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(stream);
}

/// Whether the operations of `stream` are left out.
pub(super) fn is_left_out(stream: StreamId) -> bool {
    UNRECORDED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).contains(&stream)
}
