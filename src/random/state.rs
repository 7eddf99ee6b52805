//! What a thread needs to go on drawing where another run stopped.

use super::device_seed;
use super::thread::{Source, Thread};
use super::threads::{change, settle, with_thread};
use crate::error::Error;
use burn_backend::StreamId;
use serde::{Deserialize, Serialize};

/// Where the random operations of a thread stand: see [`random_state`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RandomState {
    seeded: Option<Source>,
    /// Whether that seed was set with `Device::seed`.
    of_device: bool,
    entered: Vec<Source>,
}

/// Where the random operations of the calling thread stand: the key of its seed and of each stream it has
/// [entered](crate::RandomStream::enter), and how many operations have drawn under each, by device.
///
/// Taking it changes no numbers. It runs what the thread has issued and Burn's stream still holds, on every device in
/// use, because operations are counted when they run; it does not wait for a device to finish.
///
/// # Errors
///
/// [`Error::Device`] when a device cannot run its operations.
pub fn random_state() -> Result<RandomState, Error> {
    let stream = StreamId::current();
    settle(stream)?;
    let ((seeded, entered), of_device) = with_thread(stream, |thread| (thread.save(), thread.has_seed_of_device()));
    Ok(RandomState { seeded, of_device, entered })
}

/// Makes the calling thread go on from `state`: its next random operation draws what the next one would have drawn in
/// the thread that the state was taken from.
///
/// A thread that had no seed then has none now. Operations are counted by Burn's id of their device, so a program goes
/// on with the same numbers on the device of the same id.
///
/// # Errors
///
/// [`Error::Depth`] when the thread is inside more or fewer entered streams than when the state was taken: restore it
/// at the same place of the program. Nothing has changed then.
pub fn restore_random_state(state: &RandomState) -> Result<(), Error> {
    let stream = StreamId::current();
    let thread = with_thread(stream, |thread| thread.depth());
    if thread != state.entered.len() {
        return Err(Error::Depth { state: state.entered.len(), thread });
    }
    let RandomState { seeded, of_device, entered } = state.clone();
    change(stream, |thread: &mut Thread| thread.restore(seeded, of_device, entered));
    if of_device {
        device_seed::restored(stream);
    }
    Ok(())
}
