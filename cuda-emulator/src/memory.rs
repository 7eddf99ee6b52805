//! Allocations, and which of their bytes were written.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The device's memory, in bytes.
pub const CAPACITY: usize = 16 << 30;

/// What new memory holds: a pattern that a test notices, and the same in every run.
const FILL: u8 = 0xCD;

const ALIGNMENT: usize = 512;

struct Allocation {
    length: usize,
    /// 1 for each byte that was written; absent without checks.
    written: Option<Vec<u8>>,
}

#[derive(Default)]
struct Memory {
    allocations: BTreeMap<usize, Allocation>,
    allocated: usize,
}

fn memory() -> MutexGuard<'static, Memory> {
    static MEMORY: Mutex<Memory> = Mutex::new(Memory { allocations: BTreeMap::new(), allocated: 0 });
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn layout(length: usize) -> Layout {
    Layout::from_size_align(length.max(1), ALIGNMENT).expect("an allocation is smaller than the device's memory")
}

/// The address of `length` new bytes, or none where the device has no more.
pub fn allocate(length: usize, checked: bool) -> Option<usize> {
    let mut memory = memory();
    if length > CAPACITY - memory.allocated {
        return None;
    }
    // SAFETY: the layout's size is at least 1.
    let address = unsafe { alloc(layout(length)) };
    if address.is_null() {
        return None;
    }
    // SAFETY: `address` has `length` bytes, which nobody else knows yet.
    unsafe { address.write_bytes(FILL, length) };
    let written = checked.then(|| vec![0; length]);
    memory.allocated += length;
    memory.allocations.insert(address as usize, Allocation { length, written });
    Some(address as usize)
}

/// Frees what `allocate` gave; false where it gave no such address.
pub fn free(address: usize) -> bool {
    let mut memory = memory();
    let Some(allocation) = memory.allocations.remove(&address) else { return false };
    memory.allocated -= allocation.length;
    // SAFETY: `allocate` gave this address for this length, and it is in no table any more.
    unsafe { dealloc(address as *mut u8, layout(allocation.length)) };
    true
}

impl Memory {
    /// The allocation that holds `length` bytes at `address`, and their offset in it.
    fn holding(&mut self, address: usize, length: usize) -> Option<(&mut Allocation, usize)> {
        let (base, allocation) = self.allocations.range_mut(..=address).next_back()?;
        let offset = address - base;
        (offset <= allocation.length && length <= allocation.length - offset).then_some((allocation, offset))
    }
}

/// How many bytes the allocation has from `address` on, or none where there is none.
pub fn remaining(address: usize) -> Option<usize> {
    memory().holding(address, 0).map(|(allocation, offset)| allocation.length - offset)
}

/// The written state of `length` bytes: all written where it is not tracked, none where they are not allocated.
pub fn written(address: usize, length: usize) -> Option<Vec<u8>> {
    memory().holding(address, length).map(|(allocation, offset)| match &allocation.written {
        Some(written) => written[offset..offset + length].to_vec(),
        None => vec![1; length],
    })
}

/// The first of `length` bytes that nobody wrote.
pub fn first_unwritten(address: usize, length: usize) -> Option<usize> {
    let mut memory = memory();
    let (allocation, offset) = memory.holding(address, length)?;
    allocation.written.as_ref()?[offset..offset + length].iter().position(|&written| written == 0)
}

/// Takes over the written state of bytes.
pub fn set_written(address: usize, state: &[u8]) {
    if let Some((allocation, offset)) = memory().holding(address, state.len())
        && let Some(written) = &mut allocation.written
    {
        written[offset..offset + state.len()].copy_from_slice(state);
    }
}

/// Marks `length` bytes as written.
pub fn mark_written(address: usize, length: usize) {
    if let Some((allocation, offset)) = memory().holding(address, length)
        && let Some(written) = &mut allocation.written
    {
        written[offset..offset + length].fill(1);
    }
}
