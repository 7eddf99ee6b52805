//! The end of the process: no driver may compile then.
//!
//! A program may end with work queued. A driver compiles kernels in threads of its own (Mesa's llvmpipe when a kernel first
//! runs), and the C library ends a process with the destructors of its libraries. LLVM's free what a compilation uses, and
//! the process dies of a signal after `main` has returned. So it waits for the devices before.

use crate::device;
use burn_backend::read_sync;
use burn_cubecl::CubeDevice;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use cubecl::prelude::*;
use std::io::Write;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// How long the end of the process waits for the devices at most.
const LIMIT: Duration = Duration::from_secs(60);

/// Whether the process ends.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Blocks that have begun.
static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// The block at which the end of the process is registered for the last time.
const LAST_REGISTRATION: u64 = 1 << 16;

/// Devices that have not finished yet, while the process ends.
static WORKING: Mutex<usize> = Mutex::new(0);
static DONE: Condvar = Condvar::new();

/// What runs before blocks are kept from beginning.
static FIRST: OnceLock<fn(Duration)> = OnceLock::new();

unsafe extern "C" {
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// Has the end of the process wait for `device`, which is [in use](device::in_use).
///
/// What was registered last is called first. So the driver has to have made what its destructors destroy: LLVM makes some
/// of it when it first compiles, for which a kernel is run here.
///
/// Windows ends all other threads before it calls destructors.
pub(crate) fn wait_for(device: &CubeDevice) {
    if !cfg!(unix) {
        return;
    }
    if matches!(device, CubeDevice::Wgpu(_)) {
        compile(device);
    }
    at_exit(wait);
}

/// Has the process call `function` at its end, before what was registered so far.
pub(crate) fn at_exit(function: extern "C" fn()) {
    // Where there is no memory for it, the process ends as it would without.
    let _ = atexit(function);
}

/// Has `function` called at the end of the process, while blocks still begin, with the time that it may take.
pub(crate) fn first(function: fn(Duration)) {
    let _ = FIRST.set(function);
}

/// Compiles and runs a kernel.
fn compile(device: &CubeDevice) {
    let client = device.client();
    let output = client.empty(size_of::<u32>());
    // SAFETY: one unit writes the one element that the buffer has.
    unsafe {
        one::launch_unchecked(
            &client,
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(1),
            BufferArg::from_raw_parts(output.clone(), 1),
        );
    }
    // A device that fails says so at the program's first read.
    let _ = client.read_one(output);
}

#[cube(launch_unchecked)]
fn one(output: &mut [u32]) {
    output[0] = 1u32;
}

/// Keeps a block of Burn's stream from beginning when the process ends: other threads may still issue operations.
pub(crate) fn hold() {
    if ENDING.load(Ordering::Relaxed) {
        thread::sleep(LIMIT);
    }
    // What a driver makes for the first kernel of some kind is made after the registration before.
    let block = BLOCKS.fetch_add(1, Ordering::Relaxed) + 1;
    if cfg!(unix) && block.is_power_of_two() && block <= LAST_REGISTRATION {
        at_exit(wait);
    }
}

/// Lets each device finish what has been submitted to it, and keeps it from beginning anything else.
///
/// The thread-locals of this thread may be gone, so CubeCL is called in others.
extern "C" fn wait() {
    // It is registered several times, and the first call is for all.
    if ENDING.load(Ordering::Relaxed) {
        return;
    }
    if let Some(first) = FIRST.get() {
        first(LIMIT);
    }
    ENDING.store(true, Ordering::Relaxed);
    for device in device::in_use() {
        *WORKING.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        if thread::Builder::new().spawn(move || finish(&device)).is_err() {
            drop(Working);
        }
    }
    let working = WORKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok((_, waited)) = DONE.wait_timeout_while(working, LIMIT, |working| *working > 0)
        && waited.timed_out()
    {
        let _ =
            writeln!(std::io::stderr(), "burn-deterministic: a device still works after {LIMIT:?}; the process ends");
    }
}

fn finish(device: &CubeDevice) {
    let working = Working;
    // On the device's own thread, which all that is launched passes through.
    let _ = device.client().exclusive(move || {
        let _ = read_sync(device.client().sync());
        drop(working);
        thread::sleep(LIMIT);
    });
}

/// A device that still works; dropped when it does not, or has failed.
struct Working;

impl Drop for Working {
    fn drop(&mut self) {
        *WORKING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        DONE.notify_all();
    }
}
