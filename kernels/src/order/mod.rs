//! The orders in which this crate adds, multiplies and accumulates.
//!
//! Sums of any length have one of three, but for those of tensor cores. Transforms, recurrences and short filters (`fourier`, `ctc`, `grid_sample`, `interpolation`) state
//! theirs in their own module. `+` is the family's operation; `x[0..n]` are the terms of one output element in ascending
//! order of their logical position.
//!
//! ```text
//! chain(x)    = ((x[0] + x[1]) + x[2]) + ..                                      a sequential sum, left to right
//!
//! blocked(x)  = chain of chain(x[1024 q .. min(1024 (q + 1), n)]) for q in 0 .. ceil(n / 1024)
//!
//! block(b)    = chain over c in 0 .. 64 of (chain over r of b[64 r + c])         b of at most 4096 terms, 64 columns
//! columns(x)  = x[0] if n = 1, else columns([block(b) for b in x.chunks(4096)])  a tree of arity 4096
//! ```
//!
//! `blocked` bounds the error of a long chain and lets its blocks run in parallel; one thread needs two accumulators for
//! it, of the block and of the total. The blocked order of a prefix does not depend on what follows the prefix. `columns` has the
//! smallest error bound, and neighbouring threads read neighbouring terms (CUB's striped arrangement).
//!
//! | family | terms of one output | order | an absent term | depends on | independent of the batch |
//! |---|---|---|---|---|---|
//! | [`matmul`](crate::matmul) | products over `k` | blocked, each block from +0 | - | `k` | yes |
//! | [`matmul::tensor_cores`](crate::matmul::tensor_cores) | products over `k` | blocked; in a block a chain of sums of 4, 8 or 16 products, as the device's tensor cores add | - | `k`, the device's sums | yes |
//! | [`convolution`](crate::convolution), forward and input gradient | products over (tap, channel) | blocked, each block from +0 | reads +0 | taps, channels of a group | yes |
//! | [`convolution`](crate::convolution), weight gradient | products over (sample, position) | blocked, each block from +0 | reads +0 | samples, positions | sums over the batch |
//! | [`convolution::tensor_cores`](crate::convolution::tensor_cores), forward and input gradient | products over (tap, channel), zeros up to a vector of channels | as `matmul::tensor_cores` | reads +0 | taps, channels of a group, the device's sums | yes |
//! | [`convolution::tensor_cores`](crate::convolution::tensor_cores), weight gradient | products over (sample, position) | as `matmul::tensor_cores` | reads +0 | samples, positions, the device's sums | sums over the batch |
//! | [`deform_convolution`](crate::deform_convolution), forward | products over (channel, tap) | blocked, each block from +0 | reads +0 | taps, channels of a group | yes |
//! | [`deform_convolution`](crate::deform_convolution), weight gradient | products over the positions of a sample, then the samples' products | blocked; the products columns | reads +0 | positions, samples | sums over the batch |
//! | [`deform_convolution`](crate::deform_convolution), input gradient | values that samples around one element add to it, one corner after the other | blocked by source position | is left out | source positions (tap, position) | yes |
//! | [`deform_convolution`](crate::deform_convolution), offset and mask gradient | products over the channels of an offset group | chain from +0 | - | channels | yes |
//! | [`reduce`](crate::reduce) sums, products, means | elements of the reduced axes | columns | - | `n` | yes, unless the batch is reduced |
//! | [`rows`](crate::rows) sums, products, means | elements along the last axis | columns | - | `n` | yes |
//! | [`scan`](crate::scan) sums, products | elements up to each one | blocked; each prefix is that of its own length | - | the element's position | yes |
//! | [`scatter`](crate::scatter) updates | values of one destination | blocked by source position | is left out | source positions | yes along an axis of the sample; not `scatter_nd` |
//! | attention, composed by the caller | scores, exponentials, values | `matmul`'s, `reduce`'s, `matmul`'s | - | width, keys | yes |
//! | [`grid_sample`](crate::grid_sample) | products over the filter's taps | a chain over rows of chains over columns | reads +0 | the filter | yes |
//! | [`interpolation`](crate::interpolation), the gradient | products over the outputs that read an input | a chain along the height, then one along the width | is left out | the lengths of the axis | yes |
//! | [`pool`](crate::pool) averages, and the gradients of all | pixels of a window, windows that have a pixel | chain from +0 | is left out | the window, the lengths of the axes | yes |
//! | [`ctc`](crate::ctc) gradient | labels of one class | blocked | is left out | labels | yes |
//! | [`fourier`](crate::fourier) | values of one signal | radix-2 butterflies (Stockham) | reads +0 | `n` | yes |
//!
//! The last column says whether a result is a function of one sample, whatever its batch; which operations of Burn
//! promise that is listed in `docs/operations.md`, and so is what is forwarded to Burn's own kernels
//! (`interpolate`), which add in Burn's order. Element-wise operations, comparisons, sorts, gathers and
//! random numbers have no order to choose.
//!
//! An order is a function of logical shapes, parameters and dtype and, where operands select the terms (indices, labels,
//! offsets), of those: never of the memory layout, the launch or the values that are summed, and never of the device, but for
//! [`matmul::tensor_cores`](crate::matmul::tensor_cores) and [`convolution::tensor_cores`](crate::convolution::tensor_cores), which have two orders. A plan may change none of it. Half types accumulate in f32 and are rounded once an operation, but in `deform_convolution` and
//! attention, which round between their steps; integers wrap. A mean is the sum, then one division by `n`.

pub(crate) mod parts;
pub mod reference;

/// Terms of one chain of the blocked order.
pub const BLOCK: usize = 1024;

/// [`BLOCK`] as kernels count.
pub(crate) const BLOCK_TERMS: u32 = BLOCK as u32;

/// Columns of a block of the columns order, and rows of a full one.
pub const COLUMNS: u32 = 64;

/// Terms of a full block of the columns order.
pub const COLUMNS_BLOCK: u32 = COLUMNS * COLUMNS;
