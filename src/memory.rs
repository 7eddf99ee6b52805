//! Memory of tensors that several threads have.
//!
//! CubeCL has a stream of the device for each thread. Of two streams it does not ask what would order them:
//!
//! - Burn's kernels write in place where one handle has the memory. A kernel of another stream may have yet to read it.
//! - A stream that reads memory of another one waits for it, unless it has waited since that memory was reserved. The memory may have
//!   been written in place after that.
//!
//! So memory of another stream is not written in place, nor is memory that another stream has read; and who reads memory of another
//! stream that was written in place waits until that stream has nothing left to do. What the host reads is read on the stream that has
//! the memory (`backend::transfer`).

use burn_backend::{StreamId, read_sync};
use cubecl::client::Client;
use cubecl::server::{Handle, WeakBufferBinding};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What another stream than its own has read.
static READ_ELSEWHERE: Memories = Memories::new();

/// What was written in place, and not waited for since.
static WRITTEN_IN_PLACE: Memories = Memories::new();

/// Notes that the current stream reads the memory. If another stream has it and has written it in place, waits for that stream.
pub(crate) fn read(client: &Client, handle: &Handle) {
    if handle.stream == StreamId::current() {
        return;
    }
    READ_ELSEWHERE.add(handle);
    if WRITTEN_IN_PLACE.contains(handle) {
        // If the device has failed, what is read has the error.
        let _ = handle.stream.executes(|| read_sync(client.sync()));
        WRITTEN_IN_PLACE.remove(handle);
    }
}

/// Whether the current stream may write the memory in place.
pub(crate) fn may_write(handle: &Handle) -> bool {
    // Whoever reads it elsewhere notes that first, and gives the handle up after that.
    handle.stream == StreamId::current() && handle.can_mut() && !READ_ELSEWHERE.contains(handle)
}

/// Notes that the memory was written in place.
pub(crate) fn written(handle: &Handle) {
    WRITTEN_IN_PLACE.add(handle);
}

/// CubeCL's number of the memory, which no other memory ever gets.
pub(crate) fn number(handle: &Handle) -> usize {
    handle.memory.descriptor().id.value
}

/// Some of the memory that tensors have.
struct Memories {
    numbered: Mutex<Numbered>,
    /// False as long as there was none.
    exist: AtomicBool,
}

struct Numbered {
    all: BTreeMap<usize, WeakBufferBinding>,
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

    fn add(&self, handle: &Handle) {
        let Numbered { all, most } = &mut *self.numbered();
        self.exist.store(true, Ordering::Release);
        all.insert(number(handle), handle.clone().binding().downgrade());
        if all.len() > *most {
            all.retain(|_, memory| memory.upgrade().is_some());
            *most = Self::LEAST.max(2 * all.len());
        }
    }

    fn contains(&self, handle: &Handle) -> bool {
        self.exist.load(Ordering::Acquire) && self.numbered().all.contains_key(&number(handle))
    }

    fn remove(&self, handle: &Handle) {
        self.numbered().all.remove(&number(handle));
    }
}
