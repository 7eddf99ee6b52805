//! Panics of samples that are dropped.

use crate::panic::caught;

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
