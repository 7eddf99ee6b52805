//! What compute-sanitizer checks, for one launch: each access to global and shared memory.
//!
//! The launch's buffers are copied into an arena, each with room around it, so that an access beyond one never meets
//! another: CubeCL cuts its buffers from larger allocations, and gives each one's length with the launch. A cell for each byte
//! has who wrote it last, and who read it since.

use crate::memory;
use crate::module::{Index, Kernel};
use crate::report::{self, Kind};
use std::ffi::c_void;
use std::ops::Range;

/// Bytes around each buffer in the arena.
const ROOM: usize = 64 << 10;

const ALIGNMENT: usize = 512;

/// What the name of CubeCL's parameter for shapes and strides begins with; no launch gives its length.
const WITHOUT_LENGTH: &str = "dynamic_meta";

/// A buffer, as a parameter of the kernel names it.
struct Buffer {
    name: String,
    /// The device's address.
    address: usize,
    length: usize,
    /// Whether the kernel declares it as `T const* __restrict__`.
    constant: bool,
}

/// Buffers that overlap, at one place in the arena.
struct Region {
    /// Offset in the arena.
    start: usize,
    length: usize,
    /// The device's address.
    address: usize,
    /// Of its first byte in `written` and `cells`.
    at: usize,
    stored: bool,
}

/// Who touched a byte, as `thread_key` packs it; 0 is nobody.
#[derive(Clone, Copy, Default)]
struct Cell {
    writer: u64,
    reader: u64,
}

/// More than one thread of the block in this interval.
const MANY_THREADS: u64 = 0x7FF << 21;
const THREAD: u64 = 0x7FF << 21;
const EPOCH: u64 = (1 << 21) - 1;
/// More than one block.
const MANY_BLOCKS: u64 = 0xFFFF_FFFF << 32;

/// Block, thread and interval between barriers.
fn thread_key(block: u64, thread: u64, epoch: u64) -> u64 {
    (block + 1) << 32 | thread << 21 | (epoch & EPOCH)
}

/// An access that conflicts with an earlier one.
struct Race {
    kind: Kind,
    /// The key of who made the earlier one.
    other: u64,
    /// Whether both write, and nobody has read between them.
    of_writes: bool,
}

/// A write after another's: a race unless both write the same bytes, which is known when it has happened.
struct Rewrite {
    race: Race,
    /// The device's address.
    address: usize,
    /// Address in the arena.
    start: usize,
    /// The cells of the bytes.
    cells: Range<usize>,
    before: Vec<u8>,
}

/// Marks an access to one byte.
fn touch(cell: &mut Cell, me: u64, write: bool) -> Option<Race> {
    let conflict = |other: u64, of_writes| {
        let kind = if other == 0 {
            return None;
        } else if other >> 32 != me >> 32 {
            Kind::BlockRace
        } else if other & EPOCH == me & EPOCH && other & THREAD != me & THREAD {
            Kind::ThreadRace
        } else {
            return None;
        };
        Some(Race { kind, other, of_writes })
    };
    let mut found = conflict(cell.writer, write);
    if write {
        found = conflict(cell.reader, false).or(found);
        cell.writer = me;
    } else if cell.reader == 0 || cell.reader >> 32 == me >> 32 {
        let others = cell.reader != 0 && cell.reader & EPOCH == me & EPOCH && cell.reader & THREAD != me & THREAD;
        cell.reader = if others { me | MANY_THREADS } else { me };
    } else {
        cell.reader = MANY_BLOCKS;
    }
    found
}

/// The checks of one launch.
pub struct Checker {
    kernel: String,
    arena: Vec<u8>,
    buffers: Vec<Buffer>,
    regions: Vec<Region>,
    /// 1 for each byte of the regions that was written since its allocation.
    written: Vec<u8>,
    cells: Vec<Cell>,
    /// Ranges of addresses in which accesses are allowed as they are.
    direct: Vec<(usize, usize)>,
    image: (usize, usize),
    shared: (usize, usize),
    /// The block, plus 1, that wrote each byte of shared memory last.
    shared_written: Vec<u64>,
    shared_cells: Vec<Cell>,
    stack: (usize, usize),
    block_size: Index,
    grid: Index,
    block: u64,
    thread: u64,
    epoch: u64,
    /// The last access, if it is one.
    rewrite: Option<Rewrite>,
    /// Whether an access was outside every buffer.
    pub illegal: bool,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

/// Whether a thread may go on after an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The memory is there.
    Continue,
    /// It is not: the access would end the process.
    Abandon,
}

impl Checker {
    /// The checks of a launch, and the kernel's arguments with pointers into the arena.
    ///
    /// # Safety
    ///
    /// `arguments` are those of a launch of `kernel`.
    pub unsafe fn new(
        kernel: &Kernel,
        grid: Index,
        block_size: Index,
        arguments: *mut *mut c_void,
    ) -> (Self, Vec<u64>) {
        let (mut buffers, mut direct) = (Vec::new(), Vec::new());
        let mut pointers = vec![0u64; kernel.parameters.len()];
        let mut place = 0;
        for (i, parameter) in kernel.parameters.iter().enumerate().filter(|(_, parameter)| parameter.pointee != 0) {
            // SAFETY: a pointer parameter's argument is an address of a pointer.
            let address = unsafe { *(*arguments.add(i)).cast::<u64>() } as usize;
            pointers[i] = address as u64;
            let remaining = memory::remaining(address);
            if parameter.name.starts_with(WITHOUT_LENGTH) {
                direct.push((address, address + remaining.unwrap_or(0)));
                continue;
            }
            // SAFETY: the caller's promise.
            let elements = unsafe { kernel.length(arguments, place) };
            place += 1;
            let length = elements.map_or(remaining.unwrap_or(0), |elements| elements * parameter.pointee);
            if length > remaining.unwrap_or(0) {
                report::add(Kind::Memory, &kernel.name, || {
                    format!(
                        "buffer {} (`{}`) has {length} bytes, {} of them allocated",
                        place - 1,
                        parameter.name,
                        remaining.unwrap_or(0)
                    )
                });
            }
            let length = length.min(remaining.unwrap_or(0));
            let name = format!("buffer {} (`{}`)", place - 1, parameter.name);
            buffers.push(Buffer { name, address, length, constant: parameter.constant });
        }
        let regions = regions(&buffers);
        let end = regions.last().map_or(0, |region| region.start + region.length + ROOM);
        let bytes = regions.last().map_or(0, |region| region.at + region.length);
        let mut checker = Self {
            kernel: kernel.name.clone(),
            arena: vec![0; end + ALIGNMENT],
            buffers,
            regions,
            written: Vec::with_capacity(bytes),
            cells: vec![Cell::default(); bytes],
            direct,
            image: kernel.image,
            shared: (0, 0),
            shared_written: Vec::new(),
            shared_cells: Vec::new(),
            stack: (0, 0),
            block_size,
            grid,
            block: 0,
            thread: 0,
            epoch: 0,
            rewrite: None,
            illegal: false,
            bytes_read: 0,
            bytes_written: 0,
        };
        let base = checker.base();
        for region in &checker.regions {
            // SAFETY: `remaining` bounded the region by its allocation, and the arena has room for it.
            unsafe {
                let into = (base + region.start) as *mut u8;
                into.copy_from_nonoverlapping(region.address as *const u8, region.length);
            }
            checker.written.extend(memory::written(region.address, region.length).expect("`remaining` bounded it"));
        }
        for (pointer, parameter) in pointers.iter_mut().zip(&kernel.parameters) {
            let address = *pointer as usize;
            let inside = |region: &&Region| (region.address..=region.address + region.length).contains(&address);
            if parameter.pointee != 0
                && !parameter.name.starts_with(WITHOUT_LENGTH)
                && let Some(region) = checker.regions.iter().rev().find(inside)
            {
                *pointer = (base + region.start + address - region.address) as u64;
            }
        }
        (checker, pointers)
    }

    /// Where the arena's offsets are counted from.
    fn base(&self) -> usize {
        (self.arena.as_ptr() as usize).next_multiple_of(ALIGNMENT)
    }

    /// Finds buffers that nothing may write, and that the kernel wrote by another parameter.
    fn check_constants(&self) {
        for buffer in self.buffers.iter().filter(|buffer| buffer.constant) {
            let holds = |region: &&Region| (region.address..region.address + region.length).contains(&buffer.address);
            let Some(region) = self.regions.iter().find(holds) else { continue };
            let at = region.at + buffer.address - region.address;
            let written = self.cells[at..at + buffer.length].iter().position(|cell| cell.writer != 0);
            if let Some(byte) = written {
                report::add(Kind::Constant, &self.kernel, || {
                    format!("byte {byte} of {}, which is `const __restrict__`, is written by another name", buffer.name)
                });
            }
        }
    }

    /// Writes what the kernel wrote back to the device's memory.
    pub fn finish(mut self) {
        self.compare_rewrite();
        self.check_constants();
        let base = self.base();
        for region in self.regions.iter().filter(|region| region.stored) {
            // SAFETY: as in `new`, the other way round.
            unsafe {
                let from = (base + region.start) as *const u8;
                (region.address as *mut u8).copy_from_nonoverlapping(from, region.length);
            }
            memory::set_written(region.address, &self.written[region.at..region.at + region.length]);
        }
    }

    /// The block's shared memory.
    pub fn share(&mut self, address: usize, length: usize) {
        self.shared = (address, length);
        self.shared_written = vec![0; length];
        self.shared_cells = vec![Cell::default(); length];
    }

    pub fn enter_block(&mut self, block: u64) {
        self.compare_rewrite();
        (self.block, self.epoch) = (block, 0);
    }

    pub fn enter_thread(&mut self, thread: u64, stack: (usize, usize)) {
        self.compare_rewrite();
        (self.thread, self.stack) = (thread, stack);
    }

    /// A barrier: `waiting` of the block's threads are at it, `gone` have ended.
    pub fn pass_barrier(&mut self, waiting: usize, gone: usize, lines: (u32, u32)) {
        self.epoch += 1;
        let block = self.grid.place(self.block);
        let Index { x, y, z } = block;
        if gone > 0 {
            report::add(Kind::Barrier, &self.kernel, || {
                format!("block ({x}, {y}, {z}): {waiting} threads wait at a barrier that {gone} have left")
            });
        }
        if lines.0 != lines.1 {
            report::add(Kind::Barrier, &self.kernel, || {
                format!(
                    "block ({x}, {y}, {z}): threads wait at different barriers (lines {} and {} of the source)",
                    lines.0, lines.1
                )
            });
        }
    }

    /// Checks an access before it happens.
    pub fn access(&mut self, address: usize, size: usize, write: bool) -> Verdict {
        self.compare_rewrite();
        let me = thread_key(self.block, self.thread, self.epoch);
        let offset = address.wrapping_sub(self.base());
        // Of the arena `ALIGNMENT` bytes lie before its base and behind its end; what follows may be shared memory.
        if offset < self.arena.len() - ALIGNMENT {
            return self.access_global(offset, size, write, me);
        }
        let offset = address.wrapping_sub(self.shared.0);
        if self.shared.1 > 0 && offset < self.shared.1 {
            return self.access_shared(offset, size, write, me);
        }
        let within = |&(begin, end): &(usize, usize)| begin <= address && address + size <= end;
        // The library's image has constants, and a kernel has nothing to write there.
        if within(&self.stack) || (!write && within(&self.image)) {
            return Verdict::Continue;
        }
        if self.direct.iter().any(within) {
            if !write && let Some(at) = memory::first_unwritten(address, size) {
                self.found(Kind::Initialisation, || format!("reads byte {at} of {WITHOUT_LENGTH}, which nobody wrote"));
            }
            return Verdict::Continue;
        }
        self.outside(address, size, write);
        Verdict::Abandon
    }

    fn access_global(&mut self, offset: usize, size: usize, write: bool, me: u64) -> Verdict {
        let inside = |region: &Region| region.start <= offset && offset + size <= region.start + region.length;
        let Some(number) = self.regions.iter().position(inside) else {
            self.outside(self.base() + offset, size, write);
            return Verdict::Continue;
        };
        let region = &mut self.regions[number];
        region.stored |= write;
        let (address, at) = (region.address + offset - region.start, region.at + offset - region.start);
        match write {
            true => self.bytes_written += size as u64,
            false => self.bytes_read += size as u64,
        }
        if write {
            self.written[at..at + size].fill(1);
        } else if self.written[at..at + size].contains(&0) {
            self.found(Kind::Initialisation, || {
                format!("reads {size} bytes at {} that nobody wrote", self.name(address))
            });
        }
        let races = self.cells[at..at + size].iter_mut().filter_map(|cell| touch(cell, me, write));
        // Over all bytes, so that each is marked; one with a read before one without.
        let race = races.reduce(|first, race| if first.of_writes && !race.of_writes { race } else { first });
        match race {
            Some(race) if race.of_writes => {
                let start = self.base() + offset;
                // SAFETY: the bytes are inside a region, which the arena holds.
                let before = unsafe { std::slice::from_raw_parts(start as *const u8, size) }.to_vec();
                self.rewrite = Some(Rewrite { race, address, start, cells: at..at + size, before });
            }
            Some(race) => self.race(&race, write, || self.name(address)),
            None => {}
        }
        Verdict::Continue
    }

    /// Says whether the last access has written other bytes than the one before it.
    ///
    /// The order of two writes of the same bytes shows in nothing, and compute-sanitizer calls it a note.
    fn compare_rewrite(&mut self) {
        let Some(Rewrite { race, address, start, cells, before }) = self.rewrite.take() else { return };
        // SAFETY: as where it was taken.
        let after = unsafe { std::slice::from_raw_parts(start as *const u8, before.len()) };
        if after != before {
            self.race(&race, true, || self.name(address));
            return;
        }
        // Each of them may be the last: whoever writes or reads next, does so after another one.
        let many = if let Kind::BlockRace = race.kind { MANY_BLOCKS } else { MANY_THREADS };
        self.cells[cells].iter_mut().for_each(|cell| cell.writer |= many);
    }

    fn access_shared(&mut self, offset: usize, size: usize, write: bool, me: u64) -> Verdict {
        if offset + size > self.shared.1 {
            self.outside(self.shared.0 + offset, size, write);
            return Verdict::Abandon;
        }
        let bytes = offset..offset + size;
        let block = self.block + 1;
        if write {
            self.shared_written[bytes.clone()].fill(block);
        } else if self.shared_written[bytes.clone()].iter().any(|&by| by != block) {
            self.found(Kind::Initialisation, || {
                format!("reads {size} bytes at byte {offset} of shared memory that nobody wrote")
            });
        }
        let race = self.shared_cells[bytes].iter_mut().filter_map(|cell| {
            // What other blocks left.
            if cell.writer >> 32 != me >> 32 {
                cell.writer = 0;
            }
            if cell.reader >> 32 != me >> 32 {
                cell.reader = 0;
            }
            touch(cell, me, write)
        });
        if let Some(race) = race.last() {
            self.race(&race, write, || format!("byte {offset} of shared memory"));
        }
        Verdict::Continue
    }

    /// A device address as a buffer's name and offset.
    fn name(&self, address: usize) -> String {
        let inside = |buffer: &&Buffer| buffer.address <= address && address < buffer.address + buffer.length;
        let buffer = self.buffers.iter().find(inside).expect("regions are made of buffers");
        format!("byte {} of {} ({} bytes)", address - buffer.address, buffer.name, buffer.length)
    }

    /// An access outside every buffer: named by the buffer that is next to it.
    fn outside(&mut self, address: usize, size: usize, write: bool) {
        self.illegal = true;
        let base = self.base();
        let verb = if write { "writes" } else { "reads" };
        self.found(Kind::Memory, || {
            let shared = (address.wrapping_sub(self.shared.0) as isize, "shared memory".to_string(), self.shared.1);
            let buffers = self.buffers.iter().filter_map(|buffer| {
                let region = self
                    .regions
                    .iter()
                    .find(|region| (region.address..region.address + region.length).contains(&buffer.address))?;
                let start = base + region.start + buffer.address - region.address;
                Some((address.wrapping_sub(start) as isize, buffer.name.clone(), buffer.length))
            });
            let distance = |offset: isize, length: usize| match usize::try_from(offset) {
                Ok(offset) => offset.saturating_sub(length),
                Err(_) => offset.unsigned_abs(),
            };
            let nearest = buffers.chain([shared]).min_by_key(|&(offset, _, length)| distance(offset, length));
            let (offset, name, length) = nearest.expect("shared memory is always there");
            match distance(offset, length) < ROOM {
                true => format!("{verb} {size} bytes at byte {offset} of {name}, which has {length} bytes"),
                false => format!("{verb} {size} bytes at {address:#x}, outside every buffer"),
            }
        });
    }

    fn race(&self, &Race { kind, other, .. }: &Race, write: bool, place: impl FnOnce() -> String) {
        let verb = if write { "writes" } else { "reads" };
        self.found(kind, || {
            let what = match kind {
                Kind::BlockRace if other & MANY_BLOCKS == MANY_BLOCKS => "other blocks used".to_string(),
                Kind::BlockRace => {
                    let Index { x, y, z } = self.grid.place((other >> 32) - 1);
                    format!("block ({x}, {y}, {z}) used")
                }
                _ if other & THREAD == MANY_THREADS => "other threads used without a barrier between".to_string(),
                _ => {
                    let Index { x, y, z } = self.block_size.place((other & THREAD) >> 21);
                    format!("thread ({x}, {y}, {z}) used without a barrier between")
                }
            };
            format!("{verb} {}, which {what}", place())
        });
    }

    fn found(&self, kind: Kind, what: impl FnOnce() -> String) {
        report::add(kind, &self.kernel, || {
            let (block, thread) = (self.grid.place(self.block), self.block_size.place(self.thread));
            let what = what();
            format!(
                "block ({}, {}, {}), thread ({}, {}, {}) {what}",
                block.x, block.y, block.z, thread.x, thread.y, thread.z
            )
        });
    }
}

/// The places of buffers in the arena; those that overlap share one.
fn regions(buffers: &[Buffer]) -> Vec<Region> {
    let mut sorted: Vec<(usize, usize)> = buffers.iter().map(|buffer| (buffer.address, buffer.length)).collect();
    sorted.retain(|&(_, length)| length > 0);
    sorted.sort_unstable();
    let mut regions: Vec<Region> = Vec::new();
    for (address, length) in sorted {
        match regions.last_mut() {
            Some(last) if address < last.address + last.length => {
                last.length = last.length.max(address + length - last.address);
            }
            last => {
                let (end, at) = last.map_or((0, 0), |last| (last.start + last.length, last.at + last.length));
                // As far from an aligned address as on the device.
                let start = (end + ROOM).next_multiple_of(ALIGNMENT) + address % ALIGNMENT;
                regions.push(Region { start, length, address, at, stored: false });
            }
        }
    }
    regions
}
