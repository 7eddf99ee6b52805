//! Memory of tensors that several threads have.
//!
//! CubeCL has a stream of the device for each thread. Of two streams it does not ask what would order them:
//!
//! - Burn's kernels write in place where one handle has the memory. A kernel of another stream may have yet to read it.
//! - On CUDA a stream that reads memory of another one waits for it, unless it has waited since that memory was reserved. The kernel that
//!   writes the memory may have been launched after that wait.
//!
//! So no kernel of Burn's writes in place; a stream that reads memory of another one for the first time waits for all that was given to that
//! one; and what the host reads is read on the stream that has the memory: by `backend::transfer`, or by Burn with the client of the
//! [owner](of_owner). Left to Burn are uploads, which are written when they are reserved, and the tensors of a transaction but its first.

use burn_backend::{Bytes, StreamId};
use cubecl::client::Client;
use cubecl::server::Handle;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Memory, by CubeCL's numbers, with streams that have waited for it, which is that of another one. None is written again.
static WAITED: Mutex<BTreeSet<(usize, u64)>> = Mutex::new(BTreeSet::new());

/// Kept before all are forgotten: then streams wait once more.
const MOST_WAITED: usize = 1 << 14;

/// Has the current stream wait, on the device, for the streams that have memory of these handles which it has not read before.
pub(crate) fn wait_for_owners<'a>(client: &Client, handles: impl IntoIterator<Item = &'a Handle>) {
    let reader = StreamId::current();
    let mut owners = Vec::new();
    // A graph of kernels has no place for a wait, and nothing is computed on its stream meanwhile.
    let is_captured = |stream: StreamId| stream.executes(|| client.is_capturing());
    let may_wait = |owner: StreamId| owner != reader && !is_captured(owner) && !is_captured(reader);
    for handle in handles.into_iter().filter(|handle| may_wait(handle.stream)) {
        let mut waited = WAITED.lock().unwrap_or_else(PoisonError::into_inner);
        if waited.len() == MOST_WAITED {
            waited.clear();
        }
        if waited.insert((number(handle), reader.value)) && !owners.contains(&handle.stream) {
            owners.push(handle.stream);
        }
    }
    // wgpu's queue waits for whatever stream has an operand.
    if !client.name().starts_with("wgpu") {
        owners.into_iter().for_each(|owner| wait_for(client, owner));
    }
}

/// Has the current stream wait for all that was given to the `owner`: it writes memory that the owner has just reserved, which no earlier
/// wait can have been for.
fn wait_for(client: &Client, owner: StreamId) {
    let bytes = [0; size_of::<u32>()];
    let reserved = owner.executes(|| client.empty(bytes.len()));
    client.write(&reserved, Bytes::from_bytes_vec(bytes.to_vec()));
}

/// The client on the stream that has the memory, whatever thread uses it.
pub(crate) fn of_owner(mut client: Client, handle: &Handle) -> Client {
    // SAFETY: the device knows the stream, which has the memory, and runs what it is given by several threads in the order in which they
    // give it.
    unsafe { client.set_stream(handle.stream) };
    client
}

/// CubeCL's number of the memory, which no other memory ever gets.
fn number(handle: &Handle) -> usize {
    handle.memory.descriptor().id.value
}
