//! Fixed-order CubeCL kernels for `burn-deterministic`.
//!
//! Every family states its **order contract** at the top of its module: which floating-point operations make up one
//! output element, in which order, as a function of logical shape and dtype alone. Its `reference` module is the same
//! contract in plain Rust, and the tests ask the two for equal bits. Where launches can be laid out in several ways, its
//! `plan` module chooses, which cannot change a result.
//!
//! This crate knows nothing of Burn. Operands are [`TensorHandle`](cubecl::std::tensor::TensorHandle)s with any
//! strides; results are newly allocated and contiguous.

pub mod arithmetic;
pub mod attention;
mod buffer;
pub mod convolution;
pub mod ctc;
pub mod deform_convolution;
pub mod device;
mod dtype;
pub mod elementwise;
pub mod error;
pub mod fourier;
pub mod gather;
pub mod grid;
pub mod grid_sample;
mod index;
pub mod index_check;
pub mod interpolation;
pub mod matmul;
pub mod order;
pub mod radix_sort;
pub mod random;
pub mod reduce;
pub mod scan;
pub mod scatter;
pub mod sort;
mod view;

pub use error::KernelError;
