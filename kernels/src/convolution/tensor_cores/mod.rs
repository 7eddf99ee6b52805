//! Convolutions on the tensor cores of NVIDIA's GPUs: of f16 and bf16, and of f32 whose factors are rounded to TF32.
//!
//! # Order contract
//!
//! Every element is summed as an element of [`matmul::tensor_cores`](crate::matmul::tensor_cores) is, of the terms that
//! [`convolution`](super) has for it, in the same order. In a forward pass and an input gradient the channels of a tap are followed
//! by zeros, up to a multiple of 8 channels of half types, or 4 of f32. These are terms too: `k` and the blocks of 1024 count them. An
//! element without a term is +0. A bias is added in f32 to the total, before the one rounding to a half type.
//!
//! A pass [has this order](applies()), and not that of chains, if
//!
//! - it computes at least 16 channels of a group: output channels in a forward pass, input channels in an input gradient, and in a
//!   weight gradient output channels, and at least 16 pairs of an input channel and a tap;
//! - channels of the source in a group times taps are at least 16; in a weight gradient, samples times positions;
//! - an input gradient has at most 16 phases;
//! - the copies below, that of the source for one sample or in a weight gradient for all, have less than 2^31 elements, and so does
//!   the result of a weight gradient with those zeros.
//!
//! # Cost
//!
//! A product for each group `[channels, terms] x [terms, columns]`, and for each phase of an input gradient, in the tiles of
//! [`matmul::tensor_cores`](crate::matmul::tensor_cores). Its right factor is not written down (implicit GEMM): a cube reads it from a copy
//! of the source `[samples, groups, d, h, w, channels]`, with zeros where taps lie outside, at offsets that it finds once for each step and
//! column. The left factor is a copy too: the weights, channels of the source last, or in a weight gradient the output's gradient, samples
//! and positions last. So a pass has three launches, and two more for each further phase that has taps, or one for one without. An
//! input gradient with a stride computes no position but its own. In a forward pass or an input gradient a copy of 2^31 elements
//! or more is made of fewer samples at a time.
//!
//! Of several blocks, each has a launch; the totals are kept in f32, and one more launch rounds them and adds a bias. Where tiles are few, blocks
//! are computed side by side: rounds of as many as fit 2^24 sums, each with a second launch that adds them.

mod applies;
mod launch;
mod pack;
pub mod plan;
mod product;

pub use applies::applies;
pub use launch::run_pass;
