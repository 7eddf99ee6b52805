//! Memory of tensors that several threads have.
//!
//! CubeCL has a stream of the device for each thread. Of two streams it does not ask what would order them:
//!
//! - Burn's kernels write in place where one handle has the memory. A kernel of another stream may have yet to read it.
//! - On CUDA a stream that reads memory of another one waits for it, unless it has waited since that memory was reserved. The kernel that
//!   writes the memory may have been launched after that wait.
//!
//! So Burn's kernels write nothing in place but slices, and those only while one thread uses tensors ([`may_write`]); a stream that reads memory of another one for the
//! first time waits for all that was given to that one; and what the host reads is read on the stream that has the memory: by
//! `backend::transfer`, or by Burn with the client of the [owner](of_owner). Left to Burn are uploads, which are written when they are
//! reserved, and the tensors of a transaction but its first.

use burn_backend::{Bytes, StreamId};
use cubecl::client::Client;
use cubecl::server::Handle;
use cubecl_environment::stream::{StreamPolicy, policy};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Memory, by CubeCL's numbers, with streams that have waited for it, which is that of another one. None is written again: two threads
/// use tensors then.
static WAITED: Mutex<BTreeSet<(usize, u64)>> = Mutex::new(BTreeSet::new());

/// Kept before all are forgotten: then streams wait once more.
const MOST_WAITED: usize = 1 << 14;

/// Of so many bytes it takes longer to copy memory than to wait until all that was launched is given to the device.
const LARGE: u64 = 1 << 22;

/// How many of CubeCL's numbers for streams are those of no thread that uses tensors.
static UNUSED: Mutex<u64> = Mutex::new(0);

/// The first stream that ran something, plus one; [`SEVERAL`] once there was another.
static ONLY: AtomicU64 = AtomicU64::new(0);
const SEVERAL: u64 = u64::MAX;

/// Notes that the current stream runs something.
pub(crate) fn note_stream() {
    let stream = StreamId::current().value.saturating_add(1);
    let only = ONLY.compare_exchange(0, stream, Ordering::Relaxed, Ordering::Relaxed).unwrap_or_else(|only| only);
    if only != 0 && only != stream {
        ONLY.store(SEVERAL, Ordering::Relaxed);
    }
}

/// Whether a kernel of Burn's may write the memory in place, if the operation is the last use of the tensor that has this handle, and the
/// block runs now: no other tensor has the memory, no read of it is yet to be given to the device, and no other thread has ever used a tensor.
///
/// A thread's first use of one takes a number for its stream before it asks the device's stream of operations for a handle, and gets that
/// after this block. What it reads on its stream, by Burn, then waits for what the block has launched.
pub(crate) fn may_write(client: &Client, handle: &Handle) -> bool {
    if handle.stream != StreamId::current() || !is_only_thread() {
        return false;
    }
    // A binding counts for a read until what has it is given to the device; so does a launch's.
    let may_write = || handle.can_mut() && !handle.memory.is_bound();
    may_write() || handle.size_in_used() >= LARGE && client.check([]).is_ok() && may_write()
}

/// Whether one thread at most has used tensors. Numbers of streams are handed out in order; one is taken to see how many there are. A number
/// that the program gives a stream itself (`StreamId::executes`) is not among them, but such a stream is [noted](note_stream) when it computes.
pub(crate) fn is_only_thread() -> bool {
    if ONLY.load(Ordering::Relaxed) == SEVERAL {
        return false;
    }
    let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
    let last = StreamId::allocate().value;
    *unused += 1;
    let is_only = policy() == StreamPolicy::PerThread && last + 1 - *unused <= 1;
    if !is_only {
        ONLY.store(SEVERAL, Ordering::Relaxed);
    }
    is_only
}

/// Notes that a number was taken for a stream that computes nothing and reads nothing.
pub(crate) fn note_unused_stream() {
    *UNUSED.lock().unwrap_or_else(PoisonError::into_inner) += 1;
}

/// Has the current stream wait, on the device, for the streams that have memory of these handles which it has not read before.
pub(crate) fn wait_for_owners<'a>(client: &Client, handles: impl IntoIterator<Item = &'a Handle>) {
    let reader = StreamId::current();
    let mut of_others = handles.into_iter().filter(|handle| handle.stream != reader).peekable();
    // A graph of kernels has no place for a wait, and nothing is computed on its stream meanwhile. wgpu's queue waits for whatever stream has
    // an operand.
    let is_captured = |stream: StreamId| stream.executes(|| client.is_capturing());
    if of_others.peek().is_none() || client.name().starts_with("wgpu") || is_captured(reader) {
        return;
    }
    let of_others: Vec<_> = of_others.filter(|handle| !is_captured(handle.stream)).collect();
    let mut owners = Vec::new();
    let mut waited = WAITED.lock().unwrap_or_else(PoisonError::into_inner);
    for handle in of_others {
        if waited.len() == MOST_WAITED {
            waited.clear();
        }
        if waited.insert((number(handle), reader.value)) && !owners.contains(&handle.stream) {
            owners.push(handle.stream);
        }
    }
    drop(waited);
    owners.into_iter().for_each(|owner| wait_for(client, owner));
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
