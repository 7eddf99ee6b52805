//! The functions of libcuda for streams and events.

use crate::driver::give;
use crate::queue::{self, Place};
use crate::status::SUCCESS;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A stream's handle is its number, from 1 on: 0 is the default stream.
#[unsafe(no_mangle)]
extern "C" fn cuStreamCreate(stream: *mut *mut c_void, _flags: c_uint) -> c_int {
    static STREAMS: AtomicUsize = AtomicUsize::new(1);
    give(stream, STREAMS.fetch_add(1, Ordering::Relaxed) as *mut c_void)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamCreateWithPriority(stream: *mut *mut c_void, flags: c_uint, _priority: c_int) -> c_int {
    cuStreamCreate(stream, flags)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: *mut c_void) -> c_int {
    queue::wait_for_stream(stream as usize)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> c_int {
    queue::wait_for_stream(stream as usize)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(stream: *mut c_void) -> c_int {
    queue::wait_for_stream(stream as usize)
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, _flags: c_uint) -> c_int {
    // SAFETY: the event is one of `cuEventCreate`.
    queue::wait_in(stream as usize, unsafe { &*event.cast::<Event>() }.place)
}

/// What an event's handle points to: when and where it was recorded.
struct Event {
    time: Instant,
    place: Place,
}

#[unsafe(no_mangle)]
extern "C" fn cuEventCreate(event: *mut *mut c_void, _flags: c_uint) -> c_int {
    let made = Event { time: Instant::now(), place: Place::default() };
    give(event, Box::into_raw(Box::new(made)).cast())
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> c_int {
    give(event.cast(), Event { time: Instant::now(), place: queue::place(stream as usize) })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(event: *mut c_void) -> c_int {
    // SAFETY: the event is one of `cuEventCreate`.
    queue::wait_for(unsafe { &*event.cast::<Event>() }.place)
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: *mut c_void) -> c_int {
    cuEventSynchronize(event)
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: *mut c_void) -> c_int {
    // SAFETY: the event is one of `cuEventCreate`, and the caller gives it up.
    drop(unsafe { Box::from_raw(event.cast::<Event>()) });
    SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, start: *mut c_void, end: *mut c_void) -> c_int {
    // SAFETY: both are events of `cuEventCreate`.
    let (start, end) = unsafe { (&*start.cast::<Event>(), &*end.cast::<Event>()) };
    give(milliseconds, (end.time - start.time).as_secs_f32() * 1e3)
}

#[unsafe(no_mangle)]
extern "C" fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: *mut c_void, end: *mut c_void) -> c_int {
    cuEventElapsedTime(milliseconds, start, end)
}
