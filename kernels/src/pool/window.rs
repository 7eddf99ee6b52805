//! The windows of pools.

use std::ops::Range;

/// How windows step over an image, rows before columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// Pixels of a window.
    pub kernel_size: [usize; 2],
    /// From one window to the next.
    pub stride: [usize; 2],
    /// Pixels outside the image, on each side.
    pub padding: [usize; 2],
    /// From one pixel of a window to the next.
    pub dilation: [usize; 2],
}

/// The pixels of window `o` of so many, which share the pixels of an axis out.
pub(super) fn shared(o: usize, pixels: usize, windows: usize) -> Range<usize> {
    o * pixels / windows..((o + 1) * pixels).div_ceil(windows).min(pixels)
}
