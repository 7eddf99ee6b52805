//! Kernels against their plain-Rust references: equal bits.
//!
//! The device is the default one of the runtime that is compiled in by the feature `wgpu`, `cuda` or `cuda-nvrtc`; without one
//! there is nothing to test. `CUBECL_WGPU_DEFAULT_DEVICE=Cpu` selects a software Vulkan driver.

#![cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]

mod convolution;
mod ctc;
mod deform_convolution;
mod device;
mod digest;
mod elementwise;
mod faults;
mod fourier;
mod gather;
mod grid_sample;
mod harness;
mod index_check;
mod interpolation;
mod known_answer;
mod matmul;
mod plans;
mod radix_sort;
mod random;
mod reduce;
mod scan;
mod scatter;
mod skip;
mod sort;
mod sources;
