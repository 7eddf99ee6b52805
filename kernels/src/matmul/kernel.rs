//! The device side: what the kernels have in common, and the one without shared memory.
//!
//! `lhs` is `[.., m, k]`, `rhs` `[.., k, n]` and the output `[parts, .., m, n]`, dense, with a part for each block of
//! `k` or one for all; `output_row` and `output_column` are the strides of its last two axes.

use super::plan::CubeTile;
use crate::arithmetic::Products;
use crate::order::BLOCK_TERMS;
use crate::outer_product::step;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Units of a direct cube.
const UNITS: u32 = CubeTile::DIRECT_UNITS;

/// The blocks of `k` of a launch: part `p` has `span` of them, from `first + p * span` on.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Blocks {
    /// First block of the first part.
    pub first: u32,
    /// Blocks of a part; the last part may have fewer.
    pub span: u32,
}

/// Which tile of which matrix is computed, and over which blocks of `k`.
#[derive(CubeType)]
pub(super) struct Place {
    /// Tile row and tile column.
    pub row: u32,
    pub column: u32,
    /// The part, and the matrix of those of a part.
    pub part: u32,
    pub batch: u32,
    /// Offset of the output matrix.
    pub output: u32,
    /// Blocks `first .. end` of `k`.
    pub first: u32,
    pub end: u32,
    /// The block whose chain opens the sum in the output; the others continue it.
    pub opening: u32,
}

/// Tiles are numbered tile row first, then tile column, batch, part; each part has an output of its own. Tiles that
/// follow each other share a stripe of `rhs`, the larger of a direct cube's two stripes, while it is in the cache.
#[cube]
pub(super) fn place(
    tile: u32,
    spans: &Blocks,
    batches: u32,
    m: u32,
    k: u32,
    n: u32,
    #[comptime] tile_m: u32,
    #[comptime] tile_n: u32,
) -> Place {
    let tiles_m = m.div_ceil(tile_m);
    let tiles_n = n.div_ceil(tile_n);
    let blocks = k.div_ceil(BLOCK_TERMS);
    let rest = tile / tiles_m;
    let matrix = rest / tiles_n;
    let part = matrix / batches;
    let first = spans.first + part * spans.span;
    Place {
        row: tile % tiles_m,
        column: rest % tiles_n,
        part,
        batch: matrix % batches,
        output: matrix * m * n,
        first,
        end: min(first + spans.span, blocks),
        opening: part * spans.span,
    }
}

/// The [place] of tile `tile` of operands that are tensors, and the offsets of their matrices.
#[cube]
pub(super) fn place_of_tensors<L: CubePrimitive, R: CubePrimitive>(
    lhs: &Tensor<L>,
    rhs: &Tensor<R>,
    tile: u32,
    spans: &Blocks,
    m: u32,
    k: u32,
    n: u32,
    #[comptime] tile_m: u32,
    #[comptime] tile_n: u32,
) -> (Place, u32, u32) {
    let rank = lhs.rank();
    let mut batches = 1u32;
    for axis in 0..rank - 2 {
        batches *= lhs.shape(axis) as u32;
    }
    let place = place(tile, spans, batches, m, k, n, tile_m, tile_n);
    let mut lhs_offset = 0u32;
    let mut rhs_offset = 0u32;
    let mut left = place.batch;
    for i in 0..rank - 2 {
        let axis = rank - 3 - i;
        let extent = lhs.shape(axis) as u32;
        lhs_offset += left % extent * lhs.stride(axis) as u32;
        rhs_offset += left % extent * rhs.stride(axis) as u32;
        left /= extent;
    }
    (place, lhs_offset, rhs_offset)
}

/// Adds a block's chains of neighbouring outputs, a vector of them, to the sums of the blocks before it, which are kept
/// in the output.
///
/// Where each part has a `single` block nothing is read back: a driver for a CPU reads even what a branch skips.
#[allow(
    clippy::if_same_then_else,
    reason = "the first condition is known when the kernel is compiled, the second when it runs"
)]
#[cube]
pub(super) fn store<A: Numeric, O: Numeric, N: Size>(
    output: &mut [Vector<O, N>],
    at: u32,
    chains: Vector<A, N>,
    is_first: bool,
    #[comptime] single: bool,
) {
    if comptime!(single) {
        output[at as usize] = Vector::cast_from(chains);
    } else if is_first {
        output[at as usize] = Vector::cast_from(chains);
    } else {
        let width = N::value();
        let before = output[at as usize];
        let mut after = Vector::<O, N>::empty();
        #[unroll]
        for i in 0..width {
            after.insert(i, O::cast_from(A::cast_from(before.extract(i)) + chains.extract(i)));
        }
        output[at as usize] = after;
    }
}

/// Register tiles without shared memory: each unit owns `rows x columns` outputs, side by side along the columns with
/// those of its cube's other units, or `separate` from them.
///
/// Vectors of `rhs` are along the columns (`across`) or else along `k`, as those of `lhs` are; vectors of outputs are
/// along the columns. Consecutive units own consecutive vectors across the columns, or consecutive columns, so a
/// software driver that runs units as SIMD lanes stays in few cache lines. Rows and columns beyond the edge repeat the
/// last one and are not stored.
#[cube(launch_unchecked)]
pub fn direct<I: Numeric, A: Numeric, O: Numeric, L: Size, R: Size, S: Size>(
    lhs: &Tensor<Vector<I, L>>,
    rhs: &Tensor<Vector<I, R>>,
    output: &mut [Vector<O, S>],
    tiles: u32,
    spans: Blocks,
    output_row: u32,
    output_column: u32,
    #[comptime] rows: u32,
    #[comptime] columns: u32,
    #[comptime] separate: bool,
    #[comptime] across: bool,
    #[comptime] single: bool,
    #[comptime] products: Option<Products>,
    #[define(I, A, O)] _dtypes: [ElemType; 3],
) {
    // Its tile, and which of the units that share it.
    let (tile, unit) = if comptime!(separate) {
        (CUBE_POS as u32 * UNITS + UNIT_POS, 0u32.runtime())
    } else {
        (CUBE_POS as u32, UNIT_POS)
    };
    let units = comptime!(if separate { 1 } else { UNITS });
    if tile >= tiles {
        terminate!();
    }
    let (lhs_elements, rhs_elements, output_elements) = (L::value(), R::value(), S::value());
    let lhs_width = comptime!(lhs_elements as u32);
    let rhs_width = comptime!(rhs_elements as u32);
    let output_width = comptime!(output_elements as u32);
    // Steps of `k` that are read at once, and columns that are: one of the two is 1.
    let depth = comptime!(if across { 1 } else { rhs_width });
    let group = comptime!(if across { rhs_width } else { 1 });
    let groups = comptime!(columns / group);

    let rank = lhs.rank();
    let m = lhs.shape(rank - 2) as u32;
    let k = lhs.shape(rank - 1) as u32;
    let n = rhs.shape(rank - 1) as u32;
    let tile_columns = comptime!(columns * units);
    let (place, lhs_offset, rhs_offset) =
        place_of_tensors::<Vector<I, L>, Vector<I, R>>(lhs, rhs, tile, &spans, m, k, n, rows, tile_columns);
    let lhs_step = lhs.stride(rank - 1) as u32 * depth / lhs_width;
    let rhs_step = rhs.stride(rank - 2) as u32 * depth / rhs_width;
    let row = place.row * rows;
    let column = place.column * comptime!(columns * units) + unit * group;

    let mut lhs_at = Array::<u32>::new(comptime!(rows as usize));
    let mut rhs_at = Array::<u32>::new(comptime!(groups as usize));
    #[unroll]
    for r in 0..rows {
        lhs_at[r as usize] = (lhs_offset + min(row + r, m - 1) * lhs.stride(rank - 2) as u32) / lhs_width;
    }
    #[unroll]
    for g in 0..groups {
        let first = min(column + g * units * group, n - group);
        rhs_at[g as usize] = (rhs_offset + first * rhs.stride(rank - 1) as u32) / rhs_width;
    }

    let mut acc = Array::<A>::new(comptime!((rows * columns) as usize));
    // The steps of a column, or of the only step the columns, follow each other.
    let mut b = Array::<A>::new(comptime!((columns * depth) as usize));
    for index in place.first..place.end {
        #[unroll]
        for i in 0..rows * columns {
            acc[i as usize] = A::from_int(0);
        }
        for p in index * BLOCK_TERMS / depth..min((index + 1) * BLOCK_TERMS, k) / depth {
            #[unroll]
            for g in 0..groups {
                let vector = rhs[(rhs_at[g as usize] + p * rhs_step) as usize];
                #[unroll]
                for i in 0..rhs_elements {
                    b[comptime!((g * rhs_width) as usize + i)] = A::cast_from(vector.extract(i));
                }
            }
            #[unroll]
            for r in 0..rows {
                let vector = lhs[(lhs_at[r as usize] + p * lhs_step) as usize];
                #[unroll]
                for s in 0..lhs_elements {
                    let a = A::cast_from(vector.extract(s));
                    #[unroll]
                    for c in 0..columns {
                        let i = comptime!((r * columns + c) as usize);
                        acc[i] = step::<A>(a, b[comptime!((c * depth) as usize + s)], acc[i], products);
                    }
                }
            }
        }
        #[unroll]
        for r in 0..rows {
            #[unroll]
            for v in 0..comptime!(columns / output_width) {
                let c = comptime!(v * output_width);
                let (i, j) = (row + r, column + comptime!(c / group * units * group + c % group));
                if i < m && j < n {
                    let mut chains = Vector::<A, S>::empty();
                    #[unroll]
                    for s in 0..output_elements {
                        chains.insert(s, acc[comptime!((r * columns + c) as usize + s)]);
                    }
                    let at = (place.output + i * output_row + j * output_column) / output_width;
                    store::<A, O, S>(output, at, chains, index == place.opening, single);
                }
            }
        }
    }
    keep_subnormals();
}
