//! Panics of the dataset, the functions, the batcher and the samples, turned into text.

use crate::panic;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; the error is the text of its panic.
pub(super) fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let text = panic::text(&*payload).unwrap_or("(a value that is no text)").to_owned();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            // The drop of this one may panic again, and so on without end.
            std::mem::forget(payload);
        }
        text
    })
}

/// Drops samples of which no batch is made.
///
/// Where the pass has `failed`, a panic of their `Drop` does not replace the failure; elsewhere it goes on.
pub(super) fn discard<I>(samples: Vec<I>, failed: bool) {
    match failed {
        // The panic hook has reported it.
        true => drop(caught(|| drop(samples))),
        false => drop(samples),
    }
}
