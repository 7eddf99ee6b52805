//! Kernels against their plain-Rust references: equal bits.
//!
//! The device is the default one of the runtime that is compiled in by the feature `wgpu`, `cuda`, `cuda-nvrtc` or `rocm`.
//! `CUBECL_WGPU_DEFAULT_DEVICE=Cpu` selects a software Vulkan driver.

#[cfg(not(any(feature = "wgpu", feature = "cuda", feature = "rocm")))]
compile_error!(
    "no runtime is compiled in, so there is no device to test on: run `cargo xtask test`, or add `--features wgpu` (or \
     vulkan, metal, cuda, cuda-nvrtc, rocm)"
);

mod convolution;
mod copy;
mod ctc;
mod deform_convolution;
mod device;
mod digest;
mod elementwise;
mod faults;
mod fourier;
mod function;
mod gather;
mod grid_sample;
mod harness;
mod index_check;
mod interpolation;
mod known_answer;
mod matmul;
mod plans;
mod pool;
mod quotient;
mod radix_sort;
mod random;
mod reduce;
mod rows;
mod scan;
mod scatter;
mod skip;
mod sort;
mod sources;
mod subnormals;
mod tensor_cores;
