//! The warning for a program that seeds and never enables determinism.

use crate::error::Error;
use crate::exit::at_exit;
use crate::settings::is_op_determinism_enabled;
use crate::violation::warn;
use burn_fusion::observer::{BlockOperations, FusionObservation, FusionObserver};
use burn_ir::OperationIr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether the warning has been given, or is not due any more.
static WARNED: AtomicBool = AtomicBool::new(false);

/// Warns at the first operation, or else at the end of the process, if determinism is not enabled by then.
pub(super) fn watch() {
    static OPERATIONS: OnceLock<FusionObservation> = OnceLock::new();
    OPERATIONS.get_or_init(|| {
        at_exit(warn_at_exit);
        FusionObservation::new(Arc::new(Watch))
    });
}

extern "C" fn warn_at_exit() {
    warn_once(None);
}

/// Warns, once, that the program seeds and has not enabled determinism; `operation` was the first to run without it.
fn warn_once(operation: Option<&'static str>) {
    if !is_op_determinism_enabled() && !WARNED.swap(true, Ordering::Relaxed) {
        warn(&Error::SeededOnly { operation });
    }
}

/// Notes a draw outside Burn's stream, on [`Deterministic`](crate::Deterministic) itself: there the seed holds without
/// enabling.
pub(super) fn drawn() {
    WARNED.store(true, Ordering::Relaxed);
}

struct Watch;

impl FusionObserver for Watch {
    fn registered(&self, operation: &OperationIr) {
        // Once a tensor is made, determinism is enabled or cannot be any more.
        if !WARNED.load(Ordering::Relaxed) {
            warn_once(Some(crate::catalogue::operation(operation)));
            WARNED.store(true, Ordering::Relaxed);
        }
    }

    fn block_starts(&self, _block: BlockOperations<'_>) {}

    fn block_ran(&self) {}
}
