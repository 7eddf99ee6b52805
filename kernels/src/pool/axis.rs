//! How windows lie along an axis: which pixels a window has, and which windows have a pixel.

use super::window::{Window, shared};
use crate::KernelError;
use crate::error::require_shapes;
use cubecl::prelude::*;
use std::ops::Range;

/// How the windows of an axis are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Windows {
    /// By their size, stride and padding.
    Strided,
    /// They share the pixels out, and a table has them: products of lengths may be above 32 bits.
    Shared,
}

/// The windows of an axis. A place is that of a pixel plus the padding.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Axis {
    pixels: u32,
    windows: u32,
    /// Places from the first one of a window to its last one.
    reach: u32,
    stride: u32,
    padding: u32,
    dilation: u32,
    /// Where its table begins: of each window, then of each pixel, the first one and the number of them.
    table: u32,
    /// Whether the padding is counted, as 0 or 1.
    counts_padding: u32,
}

/// Neighbours along an axis.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Span {
    pub(super) first: u32,
    pub(super) length: u32,
}

/// From one number to another, none if that is not above it.
#[cube]
fn between(first: u32, end: u32) -> u32 {
    select(end > first, end - first, 0u32)
}

#[cube]
impl Axis {
    /// How many pixels there are.
    pub(super) fn pixels(&self) -> u32 {
        self.pixels
    }

    /// How many windows there are.
    pub(super) fn windows(&self) -> u32 {
        self.windows
    }

    /// The pixel at a tap of a window, counted on beyond zero below the first one.
    pub(super) fn pixel(&self, window: u32, tap: u32) -> u32 {
        window * self.stride + tap * self.dilation - self.padding
    }

    /// The pixels of a window.
    pub(super) fn pixels_of(&self, window: u32, table: &[u32], #[comptime] windows: Windows) -> Span {
        match comptime!(windows) {
            Windows::Strided => {
                let start = window * self.stride;
                let first = max(start, self.padding);
                let end = min(start + self.reach, self.pixels + self.padding);
                Span { first: first - self.padding, length: between(first, end) }
            }
            Windows::Shared => {
                let at = (self.table + 2 * window) as usize;
                Span { first: table[at], length: table[at + 1] }
            }
        }
    }

    /// The strided windows that reach over a pixel.
    pub(super) fn strided_windows_of(&self, pixel: u32) -> Span {
        let place = pixel + self.padding;
        let end = min(place / self.stride + 1, self.windows);
        let first = select(place < self.reach, 0u32, (place - self.reach) / self.stride + 1);
        Span { first, length: between(first, end) }
    }

    /// The windows that reach over a pixel.
    pub(super) fn windows_of(&self, pixel: u32, table: &[u32], #[comptime] windows: Windows) -> Span {
        match comptime!(windows) {
            Windows::Strided => self.strided_windows_of(pixel),
            Windows::Shared => {
                let at = (self.table + 2 * (self.windows + pixel)) as usize;
                Span { first: table[at], length: table[at + 1] }
            }
        }
    }

    /// By how much of a window its sum is divided.
    pub(super) fn counted(&self, window: u32, table: &[u32], #[comptime] windows: Windows) -> u32 {
        match comptime!(windows) {
            Windows::Strided => {
                let start = window * self.stride;
                let inside = self.pixels + self.padding;
                let pads = self.counts_padding == 1;
                let first = select(pads, start, max(start, self.padding));
                between(first, min(start + self.reach, select(pads, inside + self.padding, inside)))
            }
            Windows::Shared => table[(self.table + 2 * window + 1) as usize],
        }
    }
}

/// An [`Axis`], on the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) pixels: usize,
    pub(super) windows: usize,
    pub(super) reach: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    pub(super) dilation: usize,
    pub(super) counts_padding: bool,
    pub(super) table: usize,
}

impl Lengths {
    /// An axis of one pixel in one window.
    pub(super) const ONE: Self =
        Self { pixels: 1, windows: 1, reach: 1, stride: 1, padding: 0, dilation: 1, counts_padding: false, table: 0 };

    /// The rows and the columns of the windows of an image.
    pub(super) fn of_window(
        kernel: &'static str,
        pixels: [usize; 2],
        windows: [usize; 2],
        window: &Window,
    ) -> Result<[Self; 2], KernelError> {
        let Window { kernel_size, stride, padding, dilation } = *window;
        if [kernel_size, stride, dilation].concat().contains(&0) {
            let reason = format!("{window:?}, want kernel sizes, strides and dilations of at least 1");
            return Err(KernelError::Argument { kernel, reason });
        }
        let axis = |n: usize| {
            let reach = (kernel_size[n] - 1).checked_mul(dilation[n])?.checked_add(1)?;
            let last = windows[n].checked_mul(stride[n])?.checked_add(reach)?;
            let padded = padding[n].checked_mul(2)?.checked_add(pixels[n])?;
            let axis = Self {
                pixels: pixels[n],
                windows: windows[n],
                reach,
                stride: stride[n],
                padding: padding[n],
                dilation: dilation[n],
                ..Self::ONE
            };
            (last.max(padded) <= i32::MAX as usize).then_some(axis)
        };
        let reason = || format!("{windows:?} windows {window:?} of {pixels:?} pixels reach over 2^31");
        match (axis(0), axis(1)) {
            (Some(rows), Some(columns)) => Ok([rows, columns]),
            _ => Err(KernelError::Shape { kernel, reason: reason() }),
        }
    }

    /// An axis whose windows share its pixels out; it adds to `table`.
    pub(super) fn shared(pixels: usize, windows: usize, table: &mut Vec<u32>) -> Self {
        let start = table.len();
        let ranges: Vec<Range<usize>> = (0..windows).map(|o| shared(o, pixels, windows)).collect();
        let mut having = vec![[0; 2]; pixels];
        for (o, range) in ranges.iter().enumerate() {
            table.extend([range.start as u32, range.len() as u32]);
            for having in &mut having[range.clone()] {
                *having = if having[1] == 0 { [o as u32, 1] } else { [having[0], having[1] + 1] };
            }
        }
        table.extend(having.iter().flatten());
        Self { pixels, windows, table: start, ..Self::ONE }
    }

    /// The most pixels that a window has.
    pub(super) fn most_pixels(&self, table: &[u32], windows: Windows) -> usize {
        match windows {
            Windows::Strided => self.reach.min(self.pixels),
            Windows::Shared => most(&table[self.table..][..2 * self.windows]),
        }
    }

    /// The most windows that have a pixel.
    pub(super) fn most_windows(&self, table: &[u32], windows: Windows) -> usize {
        match windows {
            Windows::Strided => self.reach.div_ceil(self.stride).min(self.windows),
            Windows::Shared => most(&table[self.table + 2 * self.windows..][..2 * self.pixels]),
        }
    }

    pub(super) fn launch(&self) -> AxisLaunch {
        let Self { pixels, windows, reach, stride, padding, dilation, counts_padding, table } = *self;
        AxisLaunch::new(
            pixels as u32,
            windows as u32,
            reach as u32,
            stride as u32,
            padding as u32,
            dilation as u32,
            table as u32,
            u32::from(counts_padding),
        )
    }
}

/// The largest number of a table's pairs of a first one and a number.
fn most(pairs: &[u32]) -> usize {
    pairs.chunks(2).map(|pair| pair[1] as usize).max().unwrap_or(0)
}

/// Refuses an axis without pixels, or without windows.
pub(super) fn require_some(kernel: &'static str, axes: &[Lengths]) -> Result<(), KernelError> {
    let pixels: Vec<usize> = axes.iter().map(|axis| axis.pixels).collect();
    let windows: Vec<usize> = axes.iter().map(|axis| axis.windows).collect();
    require_shapes(kernel, !pixels.contains(&0) && !windows.contains(&0), || {
        format!("{windows:?} windows of {pixels:?} pixels, want at least one")
    })
}
