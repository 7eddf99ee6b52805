//! The operations of each thread that have been issued and have not run, kept by the thread that runs a device's operations.
//!
//! The route takes an operation when the next one comes, so a block with the last operation that its thread has issued
//! runs because the program waits: for a read, or a sync. Unless this crate runs it: see `random::run_unasked`.

use crate::random::is_run_unasked;
use burn_backend::StreamId;
use burn_fusion::observer::BlockOperations;
use burn_ir::{OperationIr, TensorId};
use core::cell::RefCell;
use std::collections::HashMap;

#[derive(Default)]
struct Queue {
    operations: usize,
    /// The result of the last operation that writes something, if it waits.
    newest: Option<TensorId>,
}

thread_local! {
    /// Of the device whose operations this thread runs, between its blocks. Looked up by key only; a thread whose
    /// operations have run is not in it.
    static QUEUES: RefCell<HashMap<StreamId, Queue>> = RefCell::new(HashMap::new());
}

/// Notes an operation of the thread at work. Whether all before it have run.
pub(super) fn registered(operation: &OperationIr) -> bool {
    QUEUES.with_borrow_mut(|queues| {
        let queue = queues.entry(StreamId::current()).or_default();
        queue.operations += 1;
        let written = operation.outputs().next().filter(|_| !matches!(operation, OperationIr::Drop(_)));
        written.is_some_and(|written| queue.newest.replace(written.id).is_none())
    })
}

/// Notes that a block of the thread at work runs, which writes `outputs`. Whether the program waits for it.
pub(super) fn runs(block: &BlockOperations<'_>, outputs: &[TensorId]) -> bool {
    QUEUES.with_borrow_mut(|queues| {
        let stream = StreamId::current();
        let Some(queue) = queues.get_mut(&stream) else { return false };
        queue.operations = queue.operations.saturating_sub(block.iter().len());
        let waits = queue.newest.take_if(|newest| outputs.contains(newest)).is_some() && !is_run_unasked(stream);
        if queue.operations == 0 {
            queues.remove(&stream);
        }
        waits
    })
}

/// The threads of which something waits, in the order in which Burn numbers them.
pub(super) fn streams() -> Vec<StreamId> {
    let mut streams: Vec<_> = QUEUES.with_borrow(|queues| queues.keys().copied().collect());
    streams.sort_unstable();
    streams
}
