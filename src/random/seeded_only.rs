//! A program that seeds and never enables determinism is told so.

use crate::error::Error;
use crate::exit::at_exit;
use crate::settings::is_op_determinism_enabled;
use crate::violation::warn;
use burn_fusion::observer::{BlockOperations, FusionObservation, FusionObserver};
use burn_ir::OperationIr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether there is nothing left to tell.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Looks out for the first operation, and for the end of the process, where determinism is not enabled.
pub(super) fn watch() {
    static OPERATIONS: OnceLock<FusionObservation> = OnceLock::new();
    OPERATIONS.get_or_init(|| {
        at_exit(tell_at_exit);
        FusionObservation::new(Arc::new(Watch))
    });
}

extern "C" fn tell_at_exit() {
    tell(None);
}

/// Tells, once, that a program which seeds does not enable determinism, and that `operation` was the first to run without.
fn tell(operation: Option<&'static str>) {
    if !is_op_determinism_enabled() && !TOLD.swap(true, Ordering::Relaxed) {
        warn(&Error::SeededOnly { operation });
    }
}

/// Notes a draw outside Burn's stream, on [`Deterministic`](crate::Deterministic) itself: there the seed holds without
/// enabling.
pub(super) fn drawn() {
    TOLD.store(true, Ordering::Relaxed);
}

struct Watch;

impl FusionObserver for Watch {
    fn registered(&self, operation: &OperationIr) {
        // Once a tensor is made, determinism is enabled or cannot be any more.
        if !TOLD.load(Ordering::Relaxed) {
            tell(Some(crate::catalogue::operation(operation)));
            TOLD.store(true, Ordering::Relaxed);
        }
    }

    fn block_starts(&self, _block: BlockOperations<'_>) {}

    fn block_ran(&self) {}
}
