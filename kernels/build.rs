//! Links this package's tests, examples and benchmarks where CubeCL's LLVM is left out.
//!
//! With `DOCS_RS` in the environment, as `cargo xtask` sets it for kernels that NVRTC compiles, CubeCL is compiled without
//! it. With the feature `cuda-nvrtc` no function of LLVM's is called; so their symbols may stay open. A program that depends
//! on this package is not affected: Cargo hands these arguments to this package's own targets.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DOCS_RS");
    let is_left_out = env::var_os("CARGO_FEATURE_CUDA_NVRTC").is_some() && env::var_os("DOCS_RS").is_some();
    if is_left_out && env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
        // Their addresses are 0, so that the program starts; else the dynamic linker would look for them.
        println!("cargo::rustc-link-arg=-Wl,-z,nodynamic-undefined-weak");
    }
}
