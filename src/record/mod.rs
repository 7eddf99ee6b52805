//! Recording what a program computes: [`Determinism::record`](crate::Determinism::record) and [`observe`](crate::observe()).
//!
//! ```text
//! thread of the program                      thread of a device                              thread of the writer
//! label, step, epoch, name_parameters  --->  Mark, an operation of Burn's stream
//!                                            Recorder: numbers, places, live tensors
//!                                            digests of results: launch, read  ------------>  Record -> file
//! ```
//!
//! The recorder of a device is a value of its thread: operations of one device run there one after another, in the order in
//! which each thread of the program issued them. So an operation's number is its number among those that its thread issued on
//! its device, and is the same in each run whatever Burn has cached.

mod digests;
mod mark;
mod parameters;
mod recorder;
mod scope;
mod settings;
mod writer;

pub use scope::{Scope, epoch, label, name_parameters, step};

pub(crate) use mark::{MARK, run_queued};
pub(crate) use recorder::{Run, Together, devices_end, each_operation, freed, launched};
pub(crate) use scope::Steps;
pub(crate) use settings::of_environment;
pub(crate) use writer::{end, is_recording, start};

use burn_backend::StreamId;
use std::sync::Mutex;

/// Streams of Burn's whose operations are not recorded: those of a loader's workers, of which any may take any batch. What
/// they upload is recorded where another thread first uses it.
static UNRECORDED: Mutex<Vec<StreamId>> = Mutex::new(Vec::new());

/// Leaves the operations of `stream` out.
pub(crate) fn leave_out(stream: StreamId) {
    UNRECORDED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(stream);
}

fn is_left_out(stream: StreamId) -> bool {
    UNRECORDED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).contains(&stream)
}
