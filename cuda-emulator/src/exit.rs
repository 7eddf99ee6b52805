//! The end of the process: counts are written, and findings make it fail.

use crate::{count, report};
use std::sync::Once;

extern "C" fn at_exit() {
    count::write();
    if report::finish() {
        // SAFETY: no one else runs at the end of a process; buffered output is written first.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(report::STATUS);
        }
    }
}

/// Asks to be called at the end, once.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function stays: a program that initialised the driver does not unload it.
        unsafe { libc::atexit(at_exit) };
    });
}
