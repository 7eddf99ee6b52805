//! Proof that every operation ran on the route.
//!
//! Burn tells an observer of every block that starts and ends, and CubeCL one of every kernel before it is submitted,
//! both on the thread that runs the block. A kernel launched by a block that did not pass through
//! [`Block::run`](super::block::Block) is stopped before it is submitted, and Burn turns that into an error of the
//! tensors the block was to write. A block that launches nothing computes nothing: it was skipped, or is a view.
//!
//! CubeCL has one place for an observer, and a profiler may take it. The route notices when a kernel of its own (an
//! element-wise run's, or a matrix product's) goes unseen; until one is seen again, every block that ends without having
//! passed is a violation.

use crate::enable::{OnViolation, determinism, warn};
use crate::error::Error;
use burn_backend::StreamId;
use burn_fusion::observer::{BlockOperations, FusionObservation, FusionObserver};
use burn_ir::{OperationIr, TensorId};
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, Ordering};
use cubecl::logging::{LaunchObservation, LaunchObserver};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

thread_local! {
    /// The operation this thread's block starts with, until the block passes through the route.
    static UNROUTED: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// The result of the last operation that each thread has issued to this thread's device. Looked up by key only.
    static NEWEST: RefCell<HashMap<StreamId, TensorId>> = RefCell::new(HashMap::new());
    /// Whether a kernel was seen since this was last cleared.
    static SEEN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the operation that makes `output` is the last one that its thread has issued so far.
///
/// The route takes an operation when the next one comes, so a block that has the last one runs because the program waits:
/// for a read, or a sync.
pub(super) fn is_newest(output: TensorId) -> bool {
    NEWEST.with_borrow(|newest| newest.get(&StreamId::current()) == Some(&output))
}

/// The first operation that ran outside the route.
static VIOLATION: OnceLock<Error> = OnceLock::new();

/// Whether CubeCL still tells this observer of launches.
static WATCHING: AtomicBool = AtomicBool::new(true);

/// Starts observing, for the rest of the process.
pub(super) fn install() {
    static OBSERVATIONS: OnceLock<(FusionObservation, LaunchObservation)> = OnceLock::new();
    OBSERVATIONS
        .get_or_init(|| (FusionObservation::new(Arc::new(Coverage)), LaunchObservation::new(Arc::new(Coverage))));
}

/// Marks the block running on this thread as routed.
///
/// # Panics
///
/// When an earlier operation ran outside the route: Burn turns the panic into an error of the tensors this block was to
/// write.
pub(super) fn routed() {
    UNROUTED.set(None);
    if let (Some(violation), OnViolation::Error) = (VIOLATION.get(), determinism().on_violation) {
        panic!("{violation}");
    }
}

/// Runs `body`, which says whether it launched a kernel, and notes whether that was seen.
pub(super) fn launching(body: impl FnOnce() -> bool) {
    SEEN.set(false);
    if body() {
        WATCHING.store(SEEN.get(), Ordering::Relaxed);
    }
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
    fn registered(&self, operation: &OperationIr) {
        if let (Some(output), false) = (operation.outputs().next(), matches!(operation, OperationIr::Drop(_))) {
            NEWEST.with_borrow_mut(|newest| newest.insert(StreamId::current(), output.id));
        }
    }

    fn block_starts(&self, block: BlockOperations<'_>) {
        // An upload and a free carry no work.
        let mut work =
            block.iter().filter(|operation| !matches!(operation, OperationIr::Init(_) | OperationIr::Drop(_)));
        UNROUTED.set(work.next().map(crate::catalogue::operation));
    }

    fn block_ran(&self) {
        if let Some(operation) = UNROUTED.take()
            && !WATCHING.load(Ordering::Relaxed)
        {
            violation(operation);
        }
    }
}

impl LaunchObserver for Coverage {
    fn launched(&self, _kernel: &'static str) {
        SEEN.set(true);
        if let Some(operation) = UNROUTED.take() {
            let violation = violation(operation);
            if determinism().on_violation == OnViolation::Error {
                panic!("{violation}");
            }
        }
    }
}
