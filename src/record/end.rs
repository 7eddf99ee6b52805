//! The beginning and the end of a recording.

use super::issue::issue_on;
use super::launches;
use super::mark::Mark;
use super::recorder;
use super::writer::{self, Prepared, is_recording, say};
use crate::device;
use crate::environment::environment;
use crate::exit;
use crate::random::{note_seeds, run_on};
use burn_deterministic_kernels::planned;
use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The seeds of all threads.
static SEEDS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Records from now on, to the end of the process.
pub(crate) fn begin(prepared: Prepared) {
    exit::first(end);
    note_seeds(note_seed);
    planned::observe(launches::planned);
    prepared.begin();
}

/// Notes that a thread has been seeded.
fn note_seed(seed: u64) {
    if is_recording() {
        SEEDS.lock().unwrap_or_else(PoisonError::into_inner).insert(seed);
    }
}

/// Runs the operations and marks that wait when the process ends, if it records, and writes the file. Waits for `limit` at
/// most: the process may end in a device's own thread, which runs nothing then.
fn end(limit: Duration) {
    if !is_recording() {
        return;
    }
    let (done, ended) = channel();
    // The thread-locals of this thread may be gone.
    let end = move || {
        for stream in recorder::streams() {
            for device in device::in_use() {
                issue_on(&device, stream, Mark::ProcessEnds);
                // What fails is nobody's to read any more.
                let _ = run_on(&device, stream);
            }
        }
        recorder::send_all();
        let mut environment = environment();
        let seeds = SEEDS.lock().unwrap_or_else(PoisonError::into_inner);
        if !seeds.is_empty() {
            environment.set("seed", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "));
        }
        writer::end(environment, done);
    };
    if thread::Builder::new().spawn(end).is_ok()
        && let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(limit)
    {
        say(&format!("the recording is not written after {limit:?}; the process ends, and the file is cut"));
    }
}
