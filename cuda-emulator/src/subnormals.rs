//! Subnormal numbers taken for zero, by the processor's own switches.

use std::arch::asm;

/// Flush to zero (of results) and denormals are zero (of operands), in MXCSR.
const SWITCHES: u32 = 1 << 15 | 1 << 6;

/// As long as it lives, the calling thread's float instructions take subnormal numbers for zero.
pub struct Flushed {
    before: u32,
}

impl Flushed {
    /// Sets both switches.
    ///
    /// # Safety
    ///
    /// Until it is dropped, on this thread, only kernels compute with floats.
    pub unsafe fn begin() -> Self {
        let before = control();
        set_control(before | SWITCHES);
        Self { before }
    }
}

impl Drop for Flushed {
    fn drop(&mut self) {
        set_control(self.before);
    }
}

fn control() -> u32 {
    let mut control = 0u32;
    // SAFETY: `stmxcsr` writes four bytes.
    unsafe { asm!("stmxcsr [{}]", in(reg) &mut control, options(nostack, preserves_flags)) };
    control
}

fn set_control(control: u32) {
    // SAFETY: `ldmxcsr` reads four bytes. What the switches change is the caller's matter.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &control, options(nostack, preserves_flags)) };
}
