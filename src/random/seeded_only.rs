//! A program that seeds and never enables determinism is told so.

use crate::enable::{is_op_determinism_enabled, warn};
use crate::error::Error;
use burn_fusion::observer::{BlockOperations, FusionObservation, FusionObserver};
use burn_ir::OperationIr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether there is nothing left to tell.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Looks out for the first operation, where determinism is not enabled.
pub(super) fn watch() {
    static OPERATIONS: OnceLock<FusionObservation> = OnceLock::new();
    OPERATIONS.get_or_init(|| FusionObservation::new(Arc::new(Watch)));
}

/// Tells, once, that a program which seeds does not enable determinism, and that `operation` was the first to run without.
pub(super) fn tell(operation: Option<&'static str>) {
    if !is_op_determinism_enabled() && !TOLD.swap(true, Ordering::Relaxed) {
        warn(&Error::SeededOnly { operation });
    }
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
