//! The device side of tiles in shared memory: one block of each chain, in a launch or part of its own. Shapes are those
//! of [`kernel`](super::kernel).

use super::kernel::{Blocks, place, store};
use super::plan::CubeTile;
use crate::arithmetic::Products;
use crate::order::BLOCK_TERMS;
use crate::outer_product::{Tiles, multiply};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Steps of `k` that a cube stages.
const DEPTH: u32 = CubeTile::DEPTH;

/// More than any tile has. A remainder that changes nothing tells the compiler that addresses in shared memory do not
/// wrap, so that it adds constants to one of them.
const SLOTS: u32 = 1 << 16;

/// Sizes and strides of a product. Arguments of a launch are at hand, where those of a tensor are read from memory and
/// kept in registers.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Sizes {
    /// Rows of the output.
    pub m: u32,
    /// Steps.
    pub k: u32,
    /// Columns of the output.
    pub n: u32,
    /// From row to row of `lhs`, and from step to step.
    pub lhs_row: u32,
    /// See `lhs_row`.
    pub lhs_k: u32,
    /// From step to step of `rhs`, and from column to column.
    pub rhs_k: u32,
    /// See `rhs_k`.
    pub rhs_column: u32,
    /// From row to row of the output, and from column to column.
    pub output_row: u32,
    /// See `output_row`.
    pub output_column: u32,
}

/// Where the share of a unit begins: unit `nth` of the `groups * DEPTH / 4` that fetch an operand has 4 x 4 elements,
/// four places across the tile and four steps of `k`. Returns the first of the places, in fours, and the first of the
/// steps.
///
/// `starts` are the offsets of the four places in vectors. Units that follow each other read along `k` where that is
/// the contiguous axis of the operand (`along_k`), across it otherwise. Places beyond the edge repeat the last ones,
/// whose results are not stored.
#[cube]
fn share<W: Size>(
    starts: &mut Array<u32>,
    nth: u32,
    offset: u32,
    across: u32,
    extent: u32,
    stride: u32,
    #[comptime] groups: u32,
    #[comptime] along_k: bool,
) -> (u32, u32) {
    let elements = W::value();
    let width = comptime!(elements as u32);
    let (four, quad) =
        if comptime!(along_k) { (nth / (DEPTH / 4), nth % (DEPTH / 4)) } else { (nth % groups, nth / groups) };
    #[unroll]
    for i in 0..4u32 {
        // Vectors across hold all four places.
        let place = if comptime!(along_k || width == 1) {
            min(across + four * 4 + i, extent - 1)
        } else {
            min(across + four * 4, extent - width)
        };
        starts[comptime!(i as usize)] = (offset + place * stride) / width;
    }
    (four, quad * 4)
}

/// Fetches the share of a unit from step `at` on: the four places at each of four steps. Steps past the end of `k`
/// repeat the last ones, and are not multiplied.
#[cube]
fn fetch<I: Numeric, A: Numeric, W: Size>(
    matrix: &Tensor<Vector<I, W>>,
    starts: &Array<u32>,
    next: &mut Array<Vector<A, Const<4>>>,
    at: u32,
    k: u32,
    k_stride: u32,
    #[comptime] along_k: bool,
) {
    let width = W::value();
    if comptime!(along_k && width == 4) {
        let mut lines = Array::<Vector<I, W>>::new(4usize);
        #[unroll]
        for i in 0..4usize {
            lines[i] = matrix[(starts[i] + min(at, k - 4) / 4) as usize];
        }
        #[unroll]
        for s in 0..4usize {
            let mut four = Vector::<A, Const<4>>::new(A::from_int(0));
            #[unroll]
            for i in 0..4usize {
                four.insert(i, A::cast_from(lines[i].extract(s)));
            }
            next[s] = four;
        }
    } else {
        #[unroll]
        for s in 0..4usize {
            let offset = min(at + comptime!(s as u32), k - 1) * k_stride;
            let mut four = Vector::<A, Const<4>>::new(A::from_int(0));
            if comptime!(width == 4) {
                let vector = matrix[(starts[0] + offset) as usize];
                #[unroll]
                for i in 0..4usize {
                    four.insert(i, A::cast_from(vector.extract(i)));
                }
            } else {
                #[unroll]
                for i in 0..4usize {
                    four.insert(i, A::cast_from(matrix[(starts[i] + offset) as usize].extract(0usize)));
                }
            }
            next[s] = four;
        }
    }
}

/// Tiles of both operands staged in shared memory, of `sides[0] x sides[1]` units, each owning `vectors x vectors`
/// blocks of 4 x 4.
///
/// The next tiles are fetched to registers while the staged ones are multiplied: those of `lhs` by the first `4
/// sides[0] vectors` units, those of `rhs` by the `4 sides[1] vectors` after them. A last tile shorter than [`DEPTH`]
/// ends its loop early: no padding enters a chain. Vectors of an operand are along its contiguous axis, those of the
/// output along its columns. A part has one block: a loop over blocks would keep the places of all outputs in
/// registers.
#[cube(launch_unchecked)]
pub fn tiled<I: Numeric, A: Numeric, O: Numeric, L: Size, R: Size, S: Size>(
    lhs: &Tensor<Vector<I, L>>,
    rhs: &Tensor<Vector<I, R>>,
    output: &mut [Vector<O, S>],
    tiles: u32,
    spans: Blocks,
    sizes: Sizes,
    #[comptime] sides: [u32; 2],
    #[comptime] vectors: u32,
    #[comptime] lhs_along_k: bool,
    #[comptime] rhs_along_k: bool,
    #[comptime] single: bool,
    #[comptime] products: Option<Products>,
    #[define(I, A, O)] _dtypes: [ElemType; 3],
) {
    if CUBE_POS as u32 >= tiles {
        terminate!();
    }
    let (lhs_elements, rhs_elements, output_elements) = (L::value(), R::value(), S::value());
    let lhs_width = comptime!(lhs_elements as u32);
    let rhs_width = comptime!(rhs_elements as u32);
    let output_width = comptime!(output_elements as u32);
    let edge = comptime!(vectors * 4);
    let [side_rows, side_columns] = comptime!(sides);
    let (tile_rows, tile_columns) = (comptime!(side_rows * edge), comptime!(side_columns * edge));
    let (lhs_groups, rhs_groups) = (comptime!(side_rows * vectors), comptime!(side_columns * vectors));
    let (lhs_units, rhs_units) = (comptime!(lhs_groups * DEPTH / 4), comptime!(rhs_groups * DEPTH / 4));
    // One more slot a row keeps stores along `k` off each other's shared-memory banks.
    let (lhs_pitch, rhs_pitch) = (comptime!(lhs_groups + 1), comptime!(rhs_groups + 1));
    let (m, k, n) = (sizes.m, sizes.k, sizes.n);
    let place =
        place::<Vector<I, L>, Vector<I, R>>(lhs, rhs, CUBE_POS as u32, &spans, m, k, n, tile_rows, tile_columns);
    let row = place.row * tile_rows;
    let column = place.column * tile_columns;
    // Of 32 units that follow each other 4 are along the rows and 8 along the columns: they read few vectors.
    let (of_units, unit) = (UNIT_POS / 32, UNIT_POS % 32);
    let unit_row = (of_units / comptime!(side_columns / 8) * 4 + unit / 8) % side_rows;
    let unit_column = (of_units % comptime!(side_columns / 8) * 8 + unit % 8) % side_columns;

    let staged = comptime!(Tiles { vectors, apart: sides, pitches: [lhs_pitch, rhs_pitch], products });

    let mut lhs_stage = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((lhs_pitch * DEPTH) as usize));
    let mut rhs_stage = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((rhs_pitch * DEPTH) as usize));
    let mut next = Array::<Vector<A, Const<4>>>::new(4usize);
    let mut starts = Array::<u32>::new(4usize);
    let mut slot = 0u32;
    let mut ahead = place.first * BLOCK_TERMS;
    let mut acc = Array::<A>::new(comptime!((edge * edge) as usize));
    #[unroll]
    for i in 0..edge * edge {
        acc[i as usize] = A::from_int(0);
    }

    let stop = min(ahead + BLOCK_TERMS, k);
    let rounds = (stop - ahead).div_ceil(DEPTH);
    let mut left = stop - ahead;
    let fetches_lhs = UNIT_POS < lhs_units;
    let fetches_rhs = UNIT_POS >= lhs_units && UNIT_POS < comptime!(lhs_units + rhs_units);
    let lhs_k = sizes.lhs_k / lhs_width;
    let rhs_k = sizes.rhs_k / rhs_width;
    if fetches_lhs {
        let (four, first) =
            share::<L>(&mut starts, UNIT_POS, place.lhs, row, m, sizes.lhs_row, lhs_groups, lhs_along_k);
        slot = first * lhs_pitch + four;
        ahead += first;
        fetch::<I, A, L>(lhs, &starts, &mut next, ahead, k, lhs_k, lhs_along_k);
    } else if fetches_rhs {
        let nth = UNIT_POS - lhs_units;
        let (four, first) =
            share::<R>(&mut starts, nth, place.rhs, column, n, sizes.rhs_column, rhs_groups, rhs_along_k);
        slot = first * rhs_pitch + four;
        ahead += first;
        fetch::<I, A, R>(rhs, &starts, &mut next, ahead, k, rhs_k, rhs_along_k);
    }
    for _ in 0..rounds {
        // What was staged before is multiplied.
        sync_cube();
        if fetches_lhs {
            #[unroll]
            for s in 0..4u32 {
                lhs_stage[(slot % SLOTS + s * lhs_pitch) as usize] = next[s as usize];
            }
        } else if fetches_rhs {
            #[unroll]
            for s in 0..4u32 {
                rhs_stage[(slot % SLOTS + s * rhs_pitch) as usize] = next[s as usize];
            }
        }
        sync_cube();
        ahead += DEPTH;
        if fetches_lhs {
            fetch::<I, A, L>(lhs, &starts, &mut next, ahead, k, lhs_k, lhs_along_k);
        } else if fetches_rhs {
            fetch::<I, A, R>(rhs, &starts, &mut next, ahead, k, rhs_k, rhs_along_k);
        }
        multiply::<A>(&lhs_stage, &rhs_stage, &mut acc, unit_row, unit_column, left, DEPTH, staged);
        left -= min(left, DEPTH);
    }

    #[unroll]
    for r in 0..edge {
        let i = row + (r / 4 * side_rows + unit_row) * 4 + r % 4;
        #[unroll]
        for v in 0..comptime!(edge / output_width) {
            let c = comptime!(v * output_width);
            let j = column + (c / 4 * side_columns + unit_column) * 4 + c % 4;
            if i < m && j < n {
                let mut chains = Vector::<A, S>::empty();
                #[unroll]
                for s in 0..output_elements {
                    chains.insert(s, acc[comptime!((r * edge + c) as usize + s)]);
                }
                let at = (place.output + i * sizes.output_row + j * sizes.output_column) / output_width;
                store::<A, O, S>(output, at, chains, place.first == place.opening, single);
            }
        }
    }
    keep_subnormals();
}
