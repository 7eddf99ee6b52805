//! Pools: the order of Burn's kernels, which compute them. There are none of ours.
//!
//! # Order contract
//!
//! ```text
//! average            acc = +0; for the pixels of the window in row-major order { acc = acc + x }; acc / count
//! its gradient       acc = +0; for the windows that have the pixel in row-major order { acc = acc + dy / count }
//! maximum            the largest; its index is that of the first pixel above all before it, and above f32::MIN
//! its gradient       acc = +0; for the windows near the pixel in row-major order { acc = acc + dy, or + 0 }
//! ```
//!
//! Each operation is rounded. A count is that of the pixels of the window, with those of the padding if they are asked
//! for. The sign of a zero is the driver's: llvmpipe leaves out the +0 that a sum begins with, and of zeros `max` may
//! take either.

pub mod reference;
mod window;

pub use window::Window;
