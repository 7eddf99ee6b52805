//! The orders in which this crate adds, multiplies and accumulates.
//!
//! There are three. `+` is the family's operation; `x[0..n]` are the terms of one output element in ascending order of
//! their logical position.
//!
//! ```text
//! chain(x)    = ((x[0] + x[1]) + x[2]) + ..
//! blocked(x)  = chain of chain(x[q * BLOCK .. min((q + 1) * BLOCK, n)])  for q in 0 .. ceil(n / BLOCK)        BLOCK = 1024
//! columns(x)  = while n > 1: x = [ chain over c of chain over r of b[COLUMNS * r + c]  for b in x.chunks(COLUMNS^2) ]
//!                                                                                                           COLUMNS = 64
//! ```
//!
//! `blocked` bounds the error of a long chain and lets its blocks run in parallel; a reader of `n` terms needs two
//! accumulators for it. `columns` is a tree of 64-term chains: the shortest error bound, and neighbouring threads read
//! neighbouring terms.
//!
//! | family | terms of one output | order | a term that is absent | depends on | batch-invariant |
//! |---|---|---|---|---|---|
//! | [`matmul`](crate::matmul) | `fma` over `k` | blocked, each block from +0 | - | `k` | yes |
//! | [`convolution`](crate::convolution), forward and input gradient | `fma` over (tap, channel) | blocked, each block from +0 | reads +0 | taps, channels of a group | yes |
//! | [`convolution`](crate::convolution), weight gradient | `fma` over (sample, position) | blocked, each block from +0 | reads +0 | samples, positions | sums over the batch |
//! | [`deform_convolution`](crate::deform_convolution) | as its module says | of `matmul`, `reduce` and `scatter` | reads +0 | as its module says | forward: yes |
//! | [`reduce`](crate::reduce) sums, products, means | elements of the reduced axes | columns | - | `n` | yes, unless the batch is reduced |
//! | [`scan`](crate::scan) sums, products | elements up to each one | blocked; each prefix is that of its own length | - | the element's position | yes |
//! | [`scatter`](crate::scatter) updates | values of one destination | blocked by source position | is left out | source positions | yes, where the destination is of one sample |
//! | attention, composed by the caller | scores, exponentials, values | `matmul`'s, `reduce`'s, `matmul`'s | - | width, keys | yes |
//! | [`grid_sample`](crate::grid_sample), [`interpolation`](crate::interpolation) | `fma` over the filter's taps | chain of rows of chains | reads +0, or is left out | the filter | yes |
//! | [`ctc`](crate::ctc) gradient | labels of one class | blocked | is left out | labels | yes |
//! | [`fourier`](crate::fourier) | as its module says | chain | - | `n` | yes |
//!
//! Everything else (element-wise operations, comparisons, sorts, gathers, random numbers) has no order to choose.
//! A function is batch-invariant if the result for a sample has the same bits in every batch.
//!
//! No order depends on the device, the memory layout, the launch or the values: a plan may change none of it. Half types
//! accumulate in f32 and are rounded once, integers wrap.

pub mod reference;

/// Terms of one chain of the blocked order.
pub const BLOCK: usize = 1024;

/// Columns of a block of the columns order, and rows of a full one.
pub const COLUMNS: u32 = 64;

/// Terms of a full block of the columns order.
pub const COLUMNS_BLOCK: u32 = COLUMNS * COLUMNS;
