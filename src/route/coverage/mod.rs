//! Proof that every operation ran on the route.
//!
//! Burn calls an observer when a block starts and ends, and CubeCL calls one for every kernel before it is submitted,
//! both on the thread that runs the block. Three things are violations:
//!
//! - a kernel launched by a block that did not pass through [`Block::run`](super::block::Block): it is stopped before it
//!   is submitted, and Burn turns that into an error of the tensors the block was to write;
//! - a kernel launched outside every block, by other code than this crate's and without a promise: see [`outside`];
//! - a block of a device that is not [covered](crate::covers), a remote one, which launches nothing here.
//!
//! A block that launches nothing computes nothing: it was skipped, because an operand carries an error.
//!
//! CubeCL has one place for an observer, and a profiler may take it. The route notices when a kernel of its own (an
//! element-wise sequence's, or a matrix product's) goes unseen; until one is seen again, every block that ends without having
//! passed, and was not skipped, is a violation.

mod outside;

use super::pending;
use crate::catalogue;
use crate::context::{self, Stage};
use crate::error::Error;
use crate::promise;
use crate::random::waited;
use crate::record;
use crate::settings::{OnViolation, determinism};
use crate::violation::{violated, warn};
use burn_backend::StreamId;
use burn_fusion::observer::{BlockOperations, FusionObservation, FusionObserver};
use burn_ir::{OperationIr, TensorId, TensorStatus};
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, Ordering};
use cubecl::logging::{LaunchObservation, LaunchObserver};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// Failed tensors that a thread of a device remembers, of which the newest are kept.
const MAX_FAILED: usize = 1 << 12;

thread_local! {
    /// Tensors that carry an error, as far as this thread has seen: from one block to the next.
    static FAILED: RefCell<BTreeSet<TensorId>> = const { RefCell::new(BTreeSet::new()) };
    /// Whether the blocks of this thread come from devices that are covered: set once, by the first fuser.
    static COVERED: Cell<bool> = const { Cell::new(false) };
}

/// The first operation that ran outside the route.
static VIOLATION: OnceLock<Error> = OnceLock::new();

/// Whether CubeCL still calls this observer.
static WATCHING: AtomicBool = AtomicBool::new(true);

/// Starts observing, for the rest of the process.
pub(super) fn install() {
    static OBSERVATIONS: OnceLock<(FusionObservation, LaunchObservation)> = OnceLock::new();
    OBSERVATIONS
        .get_or_init(|| (FusionObservation::new(Arc::new(Coverage)), LaunchObservation::new(Arc::new(Coverage))));
}

/// Hands launches to the [recorder](record), for the rest of the process.
pub(super) fn observe() {
    static OBSERVATION: OnceLock<LaunchObservation> = OnceLock::new();
    OBSERVATION.get_or_init(|| LaunchObservation::new(Arc::new(Launches)));
}

struct Launches;

impl LaunchObserver for Launches {
    fn launched(&self, kernel: &'static str) {
        record::launched(kernel);
    }
}

/// Marks this thread as one that runs the blocks of a covered device.
pub(super) fn covered() {
    COVERED.set(true);
}

/// Marks the block running on this thread as routed.
///
/// # Panics
///
/// When an earlier operation ran outside the route: Burn turns the panic into an error of the tensors this block was to
/// write.
pub(super) fn routed() {
    set_stage(Stage::Routed);
    if let (Some(violation), OnViolation::Error) = (VIOLATION.get(), determinism().on_violation) {
        panic!("{violation}");
    }
}

/// The block running on this thread has run to its end.
pub(super) fn done() {
    set_stage(Stage::Done);
}

fn set_stage(stage: Stage) {
    context::with(|context| context.stage = stage);
}

/// Runs `body`, which says whether it launched a kernel, and notes whether that was seen.
pub(super) fn launching(body: impl FnOnce() -> bool) {
    context::with(|context| context.kernel_seen = false);
    if body() {
        WATCHING.store(context::with(|context| context.kernel_seen), Ordering::Relaxed);
    }
}

/// Notes a violation, after which no operation runs.
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
        if pending::registered(operation) {
            waited(StreamId::current());
        }
    }

    fn block_starts(&self, block: BlockOperations<'_>) {
        let first = block.iter().find(|operation| catalogue::computes(operation)).map(catalogue::operation);
        let written = block.iter().filter(|operation| !matches!(operation, OperationIr::Drop(_)));
        let outputs: Vec<TensorId> = written.flat_map(OperationIr::outputs).map(|output| output.id).collect();
        let waits = pending::runs(&block, &outputs);
        let stage = match first {
            None => Stage::Done,
            Some(operation) if skipped(&block) => Stage::Skipped(operation),
            Some(operation) => Stage::Unrouted(operation),
        };
        context::with(|context| (context.stage, context.outputs, context.waits) = (stage, outputs, waits));
        if let Some(operation) = first
            && !COVERED.get()
            && !promise::keeps(promise::REMOTE)
        {
            violated(&Error::OtherBackend { operation });
        }
    }

    fn block_ran(&self) {
        match context::with(|context| core::mem::take(&mut context.stage)) {
            Stage::Unrouted(operation) if COVERED.get() && !WATCHING.load(Ordering::Relaxed) => {
                violation(operation);
            }
            Stage::Routed | Stage::Skipped(_) => failed(),
            _ => {}
        }
    }
}

impl LaunchObserver for Coverage {
    fn launched(&self, kernel: &'static str) {
        record::launched(kernel);
        let stage = context::with(|context| {
            context.kernel_seen = true;
            context.stage
        });
        match stage {
            Stage::Unrouted(operation) | Stage::Skipped(operation) => {
                set_stage(Stage::Done);
                let violation = violation(operation);
                if determinism().on_violation == OnViolation::Error {
                    panic!("{violation}");
                }
            }
            Stage::Outside => outside::check(kernel),
            Stage::Routed | Stage::Done => {}
        }
    }
}

/// Whether Burn skips a block because an operand carries an error, as far as this thread has seen.
fn skipped(block: &BlockOperations<'_>) -> bool {
    FAILED.with_borrow_mut(|failed| {
        if failed.is_empty() {
            return false;
        }
        let mut skipped = false;
        for input in block.iter().flat_map(OperationIr::inputs) {
            // The last use takes the error along.
            skipped |= match input.status {
                TensorStatus::ReadWrite => failed.remove(&input.id),
                _ => failed.contains(&input.id),
            };
        }
        skipped
    })
}

/// The block that ran did not get to its end: what it was to write carries an error.
fn failed() {
    carry_error(context::with(|context| core::mem::take(&mut context.outputs)));
}

/// Notes that `tensors` carry an error: Burn skips the blocks that read them.
pub(super) fn carry_error(tensors: impl IntoIterator<Item = TensorId>) {
    FAILED.with_borrow_mut(|failed| {
        failed.extend(tensors);
        while failed.len() > MAX_FAILED {
            failed.pop_first();
        }
    });
}
