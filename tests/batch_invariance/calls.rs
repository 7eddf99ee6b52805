//! What a case really calls: the operations that reach Burn's stream from its thread.

use burn_backend::StreamId;
use burn_deterministic::catalogue::operation;
use burn_fusion::observer::{BlockOperations, FusionObservation, FusionObserver};
use burn_ir::OperationIr;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The operations of one thread, by their names in the catalogue.
struct Calls {
    thread: StreamId,
    operations: Mutex<BTreeSet<&'static str>>,
}

impl FusionObserver for Calls {
    fn registered(&self, called: &OperationIr) {
        if StreamId::current() == self.thread {
            self.operations.lock().expect("no observer panics").insert(operation(called));
        }
    }

    fn block_starts(&self, _block: BlockOperations<'_>) {}

    fn block_ran(&self) {}
}

/// Runs `body`, which reads its results, and names the operations that it called.
pub fn called<T>(body: impl FnOnce() -> T) -> (T, BTreeSet<&'static str>) {
    let calls = Arc::new(Calls { thread: StreamId::current(), operations: Mutex::default() });
    let observation = FusionObservation::new(calls.clone());
    let result = body();
    drop(observation);
    let operations = std::mem::take(&mut *calls.operations.lock().expect("no observer panics"));
    (result, operations)
}
