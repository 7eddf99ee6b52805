//! Proof that every operation ran on the route.
//!
//! Burn tells an observer of every block that starts and ends, and CubeCL of every kernel before it is submitted, both
//! on the thread that runs the block. A kernel launched by a block that did not pass through
//! [`Block::run`](super::block::Block) is stopped before it is submitted, and Burn turns that into an error of the
//! tensors the block was to write. A block that ends without having passed is a violation too, unless it was skipped,
//! which happens only after some operation has failed.

use crate::enable::{OnViolation, determinism, warn};
use crate::error::Error;
use burn_fusion::observer::{BlockOperations, FusionObservation, FusionObserver};
use burn_ir::OperationIr;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use cubecl::logging::{LaunchObservation, LaunchObserver};
use std::sync::{Arc, OnceLock};

thread_local! {
    /// The operation this thread's block starts with, until the block passes through the route.
    static UNROUTED: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The first operation that ran outside the route.
static VIOLATION: OnceLock<Error> = OnceLock::new();

/// Whether an operation has failed on the route, so that Burn may skip blocks.
static FAILED: AtomicBool = AtomicBool::new(false);

/// Starts observing, for the rest of the process.
pub(super) fn install() {
    static OBSERVATIONS: OnceLock<(FusionObservation, LaunchObservation)> = OnceLock::new();
    OBSERVATIONS
        .get_or_init(|| (FusionObservation::new(Arc::new(Coverage)), LaunchObservation::new(Arc::new(Coverage))));
}

/// Marks the block running on this thread as routed, and runs it.
///
/// # Panics
///
/// When an earlier operation ran outside the route, or `body` panics: Burn turns the panic into an error of the tensors
/// this block was to write.
pub(super) fn routed(body: impl FnOnce()) {
    struct Failure;
    impl Drop for Failure {
        fn drop(&mut self) {
            if std::thread::panicking() {
                FAILED.store(true, Ordering::Relaxed);
            }
        }
    }
    let _failure = Failure;
    UNROUTED.set(None);
    if let (Some(violation), OnViolation::Error) = (VIOLATION.get(), determinism().on_violation) {
        panic!("{violation}");
    }
    body();
}

fn violation(operation: &'static str) -> Error {
    let violation = Error::OutsideRoute { operation };
    // Standard error as well as the next operation: the program may end without another one.
    warn(&violation);
    let _ = VIOLATION.set(violation.clone());
    violation
}

struct Coverage;

impl FusionObserver for Coverage {
    fn registered(&self, _operation: &OperationIr) {}

    fn block_starts(&self, block: BlockOperations<'_>) {
        // An upload and a free carry no work.
        let mut work =
            block.iter().filter(|operation| !matches!(operation, OperationIr::Init(_) | OperationIr::Drop(_)));
        UNROUTED.set(work.next().map(crate::catalogue::operation));
    }

    fn block_ran(&self) {
        if let Some(operation) = UNROUTED.take()
            && !FAILED.load(Ordering::Relaxed)
        {
            violation(operation);
        }
    }
}

impl LaunchObserver for Coverage {
    fn launched(&self, _kernel: &'static str) {
        if let Some(operation) = UNROUTED.take() {
            FAILED.store(true, Ordering::Relaxed);
            let violation = violation(operation);
            if determinism().on_violation == OnViolation::Error {
                panic!("{violation}");
            }
        }
    }
}
