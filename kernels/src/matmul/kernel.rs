//! The device side: two ways to hold the accumulators, one chain.
//!
//! `lhs` is `[.., m, k]`, `rhs` `[.., k, n]` and the output `[parts, .., m, n]`, dense, with a part for each block of
//! `k` or one for all; `output_row` and `output_column` are the strides of its last two axes.

use super::plan::CubeTile;
use crate::arithmetic::{Products, accumulate};
use crate::order::BLOCK_TERMS;
use cubecl::prelude::*;

/// Units of a direct cube.
const UNITS: u32 = CubeTile::DIRECT_UNITS;

/// Steps of `k` that a tiled cube stages.
const DEPTH: u32 = CubeTile::DEPTH;

/// `acc + a * b`: the step of every chain.
///
/// Integers have no `products`; they wrap, so their order cannot show.
#[cube]
fn step<A: Numeric>(a: A, b: A, acc: A, #[comptime] products: Option<Products>) -> A {
    match products {
        None => acc + a * b,
        Some(products) => accumulate::<A>(a, b, acc, products),
    }
}

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
struct Place {
    /// Tile row and tile column.
    row: u32,
    column: u32,
    /// Offset of the output matrix.
    output: u32,
    /// Blocks `first .. end` of `k`.
    first: u32,
    end: u32,
    /// The block whose chain opens the sum in the output; the others continue it.
    opening: u32,
    /// Offsets of the operands' matrices.
    lhs: u32,
    rhs: u32,
}

/// Tiles are numbered tile row first, then tile column, batch, part; each part has an output of its own. Tiles that
/// follow each other share a stripe of `rhs`, the larger of a direct cube's two stripes, while it is in the cache.
#[cube]
fn place<L: CubePrimitive, R: CubePrimitive>(
    lhs: &Tensor<L>,
    rhs: &Tensor<R>,
    tile: u32,
    spans: &Blocks,
    #[comptime] tile_m: u32,
    #[comptime] tile_n: u32,
) -> Place {
    let rank = lhs.rank();
    let m = lhs.shape(rank - 2) as u32;
    let n = rhs.shape(rank - 1) as u32;
    let tiles_m = m.div_ceil(tile_m);
    let tiles_n = n.div_ceil(tile_n);
    let blocks = (lhs.shape(rank - 1) as u32).div_ceil(BLOCK_TERMS);
    let mut batches = 1u32;
    for axis in 0..rank - 2 {
        batches *= lhs.shape(axis) as u32;
    }

    let rest = tile / tiles_m;
    let matrix = rest / tiles_n;
    let batch = matrix % batches;
    let part = matrix / batches;
    let first = spans.first + part * spans.span;

    let mut lhs_offset = 0u32;
    let mut rhs_offset = 0u32;
    let mut left = batch;
    for i in 0..rank - 2 {
        let axis = rank - 3 - i;
        let extent = lhs.shape(axis) as u32;
        lhs_offset += left % extent * lhs.stride(axis) as u32;
        rhs_offset += left % extent * rhs.stride(axis) as u32;
        left /= extent;
    }
    Place {
        row: tile % tiles_m,
        column: rest % tiles_n,
        output: matrix * m * n,
        first,
        end: min(first + spans.span, blocks),
        opening: part * spans.span,
        lhs: lhs_offset,
        rhs: rhs_offset,
    }
}

/// Adds a block's chains of neighbouring outputs, a vector of them, to the sums of the blocks before it, which are kept in the
/// output.
///
/// Where each part has a `single` block nothing is read back: a driver for a CPU reads even what a branch skips.
#[allow(
    clippy::if_same_then_else,
    reason = "the first condition is known when the kernel is compiled, the second when it runs"
)]
#[cube]
fn store<A: Numeric, O: Numeric, N: Size>(
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

/// Register tiles without shared memory: each unit owns `rows x columns` outputs, side by side along the columns with those of
/// its cube's other units, or `separate` from them.
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

    let place = place::<Vector<I, L>, Vector<I, R>>(lhs, rhs, tile, &spans, rows, comptime!(columns * units));
    let rank = lhs.rank();
    let m = lhs.shape(rank - 2) as u32;
    let k = lhs.shape(rank - 1) as u32;
    let n = rhs.shape(rank - 1) as u32;
    let lhs_step = lhs.stride(rank - 1) as u32 * depth / lhs_width;
    let rhs_step = rhs.stride(rank - 2) as u32 * depth / rhs_width;
    let row = place.row * rows;
    let column = place.column * comptime!(columns * units) + unit * group;

    let mut lhs_at = Array::<u32>::new(comptime!(rows as usize));
    let mut rhs_at = Array::<u32>::new(comptime!(groups as usize));
    #[unroll]
    for r in 0..rows {
        lhs_at[r as usize] = (place.lhs + min(row + r, m - 1) * lhs.stride(rank - 2) as u32) / lhs_width;
    }
    #[unroll]
    for g in 0..groups {
        let first = min(column + g * units * group, n - group);
        rhs_at[g as usize] = (place.rhs + first * rhs.stride(rank - 1) as u32) / rhs_width;
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
}

/// Four neighbours across a tile, at one `k`. Those beyond the edge repeat the last one and are never stored.
#[cube]
fn fetch<I: Numeric, A: Numeric>(
    matrix: &Tensor<I>,
    offset: u32,
    across: u32,
    across_extent: u32,
    across_stride: u32,
) -> Vector<A, Const<4>> {
    let mut four = Vector::<A, Const<4>>::new(A::from_int(0));
    #[unroll]
    for i in 0..4u32 {
        let at = offset + min(across + i, across_extent - 1) * across_stride;
        four.insert(comptime!(i as usize), A::cast_from(matrix[at as usize]));
    }
    four
}

/// The place of `slot` in a staged tile: (group of four across the tile, step along `k`).
///
/// Consecutive units read along `k` where `k` is the contiguous axis of the operand, across it otherwise.
#[cube]
fn slot_at(slot: u32, #[comptime] groups: u32, #[comptime] k_first: bool) -> (u32, u32) {
    if comptime!(k_first) { (slot / DEPTH, slot % DEPTH) } else { (slot % groups, slot / groups) }
}

/// One step of `k` for the outputs of a unit, from the staged tiles.
#[cube]
fn outer_product<A: Numeric>(
    lhs_stage: &Shared<[Vector<A, Const<4>>]>,
    rhs_stage: &Shared<[Vector<A, Const<4>>]>,
    acc: &mut Array<A>,
    stage_row: u32,
    unit_row: u32,
    unit_column: u32,
    #[comptime] side: u32,
    #[comptime] vectors: u32,
    #[comptime] products: Option<Products>,
) {
    let mut b = Array::<Vector<A, Const<4>>>::new(comptime!(vectors as usize));
    #[unroll]
    for w in 0..vectors {
        b[w as usize] = rhs_stage[(stage_row + w * side + unit_column) as usize];
    }
    #[unroll]
    for v in 0..vectors {
        let a = lhs_stage[(stage_row + v * side + unit_row) as usize];
        #[unroll]
        for i in 0..4u32 {
            #[unroll]
            for w in 0..vectors {
                #[unroll]
                for j in 0..4u32 {
                    let at = comptime!((((v * 4 + i) * vectors + w) * 4 + j) as usize);
                    let x = a.extract(comptime!(i as usize));
                    let y = b[w as usize].extract(comptime!(j as usize));
                    acc[at] = step::<A>(x, y, acc[at], products);
                }
            }
        }
    }
}

/// Tiles of both operands staged in shared memory, `side x side` units, each owning `vectors x vectors` blocks of 4 x 4.
///
/// The next tiles are fetched to registers while the staged ones are multiplied. A last tile shorter than [`DEPTH`]
/// ends its loop early: no padding enters a chain.
#[cube(launch_unchecked)]
pub fn tiled<I: Numeric, A: Numeric, O: Numeric>(
    lhs: &Tensor<I>,
    rhs: &Tensor<I>,
    output: &mut [Vector<O, Const<1>>],
    tiles: u32,
    spans: Blocks,
    output_row: u32,
    output_column: u32,
    #[comptime] side: u32,
    #[comptime] vectors: u32,
    #[comptime] lhs_k_first: bool,
    #[comptime] rhs_k_first: bool,
    #[comptime] single: bool,
    #[comptime] products: Option<Products>,
    #[define(I, A, O)] _dtypes: [ElemType; 3],
) {
    if CUBE_POS as u32 >= tiles {
        terminate!();
    }
    let tile = comptime!(side * vectors * 4);
    let groups = comptime!(side * vectors);
    // One more slot a row keeps stores along `k` off each other's shared-memory banks.
    let pitch = comptime!(side * vectors + 1);
    let fetches = comptime!(groups * DEPTH / (side * side));
    let place = place::<I, I>(lhs, rhs, CUBE_POS as u32, &spans, tile, tile);
    let rank = lhs.rank();
    let m = lhs.shape(rank - 2) as u32;
    let k = lhs.shape(rank - 1) as u32;
    let n = rhs.shape(rank - 1) as u32;
    let lhs_row = lhs.stride(rank - 2) as u32;
    let lhs_k = lhs.stride(rank - 1) as u32;
    let rhs_k = rhs.stride(rank - 2) as u32;
    let rhs_column = rhs.stride(rank - 1) as u32;
    let unit_row = UNIT_POS / side;
    let unit_column = UNIT_POS % side;
    let row = place.row * tile;
    let column = place.column * tile;

    let mut lhs_stage = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((pitch * DEPTH) as usize));
    let mut rhs_stage = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((pitch * DEPTH) as usize));
    let mut lhs_next = Array::<Vector<A, Const<4>>>::new(comptime!(fetches as usize));
    let mut rhs_next = Array::<Vector<A, Const<4>>>::new(comptime!(fetches as usize));
    let mut acc = Array::<A>::new(comptime!((vectors * vectors * 16) as usize));

    for index in place.first..place.end {
        #[unroll]
        for i in 0..vectors * vectors * 16 {
            acc[i as usize] = A::from_int(0);
        }
        let stop = min((index + 1) * BLOCK_TERMS, k);
        let tiles = (stop - index * BLOCK_TERMS).div_ceil(DEPTH);
        // The first round only fetches; every later one stages what was fetched, fetches ahead and multiplies.
        for round in 0..tiles + 1 {
            let ahead = index * BLOCK_TERMS + round * DEPTH;
            if round > 0 {
                sync_cube();
                #[unroll]
                for f in 0..fetches {
                    let slot = f * (side * side) + UNIT_POS;
                    let (four, p) = slot_at(slot, groups, lhs_k_first);
                    lhs_stage[(p * pitch + four) as usize] = lhs_next[f as usize];
                    let (four, p) = slot_at(slot, groups, rhs_k_first);
                    rhs_stage[(p * pitch + four) as usize] = rhs_next[f as usize];
                }
                sync_cube();
            }
            if ahead < stop {
                #[unroll]
                for f in 0..fetches {
                    let slot = f * (side * side) + UNIT_POS;
                    let (four, p) = slot_at(slot, groups, lhs_k_first);
                    let offset = place.lhs + min(ahead + p, k - 1) * lhs_k;
                    lhs_next[f as usize] = fetch::<I, A>(lhs, offset, row + four * 4, m, lhs_row);
                    let (four, p) = slot_at(slot, groups, rhs_k_first);
                    let offset = place.rhs + min(ahead + p, k - 1) * rhs_k;
                    rhs_next[f as usize] = fetch::<I, A>(rhs, offset, column + four * 4, n, rhs_column);
                }
            }
            if round > 0 {
                if ahead <= stop {
                    for p in 0..DEPTH {
                        outer_product::<A>(
                            &lhs_stage,
                            &rhs_stage,
                            &mut acc,
                            p * pitch,
                            unit_row,
                            unit_column,
                            side,
                            vectors,
                            products,
                        );
                    }
                } else {
                    for p in 0..stop + DEPTH - ahead {
                        outer_product::<A>(
                            &lhs_stage,
                            &rhs_stage,
                            &mut acc,
                            p * pitch,
                            unit_row,
                            unit_column,
                            side,
                            vectors,
                            products,
                        );
                    }
                }
            }
        }
        #[unroll]
        for r in 0..vectors * 4 {
            #[unroll]
            for c in 0..vectors * 4 {
                let i = row + (r / 4 * side + unit_row) * 4 + r % 4;
                let j = column + (c / 4 * side + unit_column) * 4 + c % 4;
                if i < m && j < n {
                    let at = place.output + i * output_row + j * output_column;
                    let chain = Vector::<A, Const<1>>::new(acc[comptime!((r * vectors * 4 + c) as usize)]);
                    store::<A, O, Const<1>>(output, at, chain, index == place.opening, single);
                }
            }
        }
    }
}
