//! Memory of tensors that several threads have.
//!
//! CubeCL has a stream of the device for each thread. Of two streams it does not ask what would order them:
//!
//! - Burn's kernels write in place where one handle has the memory. A kernel of another stream may have yet to read it.
//! - On CUDA a stream that reads memory of another one waits for it, unless it has waited since that memory was reserved. What writes the
//!   memory may have been launched after that: it may be written in place, or the wait came between its reservation and its first launch.
//!
//! So memory of another stream is not written in place, nor is memory that another stream has read, or may have; a stream that reads memory of another
//! one for the first time waits for all that was given to that one; and what the host reads is read on the stream that has the memory:
//! by `backend::transfer`, or by Burn with the client of the [owner](of_owner).

use burn_backend::{Bytes, StreamId};
use cubecl::client::Client;
use cubecl::server::{Handle, WeakBufferBinding};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is not written in place: what other streams than its own have read, with these, and what the host has written.
static SHARED: Memories = Memories::new();

/// Notes that the current stream reads the memory of these handles. Of memory of other streams that it has not read before, it waits for
/// the streams, on the device.
pub(crate) fn read<'a>(client: &Client, handles: impl IntoIterator<Item = &'a Handle>) {
    let reader = StreamId::current();
    let mut owners = Vec::new();
    for handle in handles.into_iter().filter(|handle| handle.stream != reader) {
        if SHARED.add(handle, reader) && !owners.contains(&handle.stream) {
            owners.push(handle.stream);
        }
    }
    // wgpu's queue waits for whatever stream has an operand.
    if !client.name().starts_with("wgpu") {
        owners.into_iter().for_each(|owner| wait_for(client, owner));
    }
}

/// Notes that the host has written the memory. Where another thread reads that, Burn reads it on that thread's stream, and does not say so.
pub(crate) fn uploaded(handle: &Handle) {
    SHARED.add(handle, handle.stream);
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
    // SAFETY: the device knows the stream: it has the memory. What is given to it by several threads runs in the order in which it is given,
    // as it does where one thread ends and another gets its stream.
    unsafe { client.set_stream(handle.stream) };
    client
}

/// Whether the current stream may write the memory in place.
pub(crate) fn may_write(handle: &Handle) -> bool {
    // Whoever reads it elsewhere notes that first, and gives the handle up after that.
    handle.stream == StreamId::current() && handle.can_mut() && !SHARED.contains(handle)
}

/// CubeCL's number of the memory, which no other memory ever gets.
fn number(handle: &Handle) -> usize {
    handle.memory.descriptor().id.value
}

/// Some of the memory that tensors have, with the streams that have read it.
struct Memories {
    numbered: Mutex<Numbered>,
    /// False as long as there was none.
    exist: AtomicBool,
}

struct Numbered {
    all: BTreeMap<usize, (WeakBufferBinding, Vec<StreamId>)>,
    /// Where there are more, those that no tensor has any more are forgotten.
    most: usize,
}

impl Memories {
    /// Kept before any are forgotten.
    const LEAST: usize = 64;

    const fn new() -> Self {
        let numbered = Numbered { all: BTreeMap::new(), most: Self::LEAST };
        Self { numbered: Mutex::new(numbered), exist: AtomicBool::new(false) }
    }

    fn numbered(&self) -> MutexGuard<'_, Numbered> {
        self.numbered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a stream reads the memory. False where that was noted before.
    fn add(&self, handle: &Handle, reader: StreamId) -> bool {
        let Numbered { all, most } = &mut *self.numbered();
        self.exist.store(true, Ordering::Release);
        let weak = || (handle.clone().binding().downgrade(), Vec::new());
        let (_, readers) = all.entry(number(handle)).or_insert_with(weak);
        if readers.contains(&reader) {
            return false;
        }
        readers.push(reader);
        if all.len() > *most {
            all.retain(|_, (memory, _)| memory.upgrade().is_some());
            *most = Self::LEAST.max(2 * all.len());
        }
        true
    }

    fn contains(&self, handle: &Handle) -> bool {
        self.exist.load(Ordering::Acquire) && self.numbered().all.contains_key(&number(handle))
    }
}
