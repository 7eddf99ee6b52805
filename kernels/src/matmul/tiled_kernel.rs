//! The device side of tiles in shared memory: one block of each chain, in a launch or part of its own. Shapes are those
//! of [`kernel`](super::kernel).

use super::kernel::{Blocks, place_of_tensors, store};
use super::plan::CubeTile;
use crate::arithmetic::Products;
use crate::order::BLOCK_TERMS;
use crate::outer_product::{Tiles, multiply_ahead, read, unit_place};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Copies of the staged steps.
const STAGES: u32 = CubeTile::STAGES;

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

/// Where the share of a unit begins: unit `nth` of the `groups * depth / 4` that fetch an operand has 4 x 4 elements,
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
    #[comptime] depth: u32,
    #[comptime] along_k: bool,
) -> (u32, u32) {
    let elements = W::value();
    let width = comptime!(elements as u32);
    let (four, quad) = if comptime!(along_k) {
        (nth / comptime!(depth / 4), nth % comptime!(depth / 4))
    } else {
        (nth % groups, nth / groups)
    };
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

/// Fetches the share of a unit from step `at` on, as it lies in memory: vectors of four steps at each of the four places
/// (`along_k`), vectors of the four places at each of four steps, or single elements, step by step. Steps past the end of
/// `k` repeat the last ones, and are not multiplied.
#[cube]
fn fetch<I: Numeric, W: Size>(
    matrix: &Tensor<Vector<I, W>>,
    starts: &Array<u32>,
    next: &mut Array<Vector<I, W>>,
    at: u32,
    k: u32,
    k_stride: u32,
    #[comptime] along_k: bool,
) {
    let width = W::value();
    if comptime!(along_k && width == 4) {
        #[unroll]
        for i in 0..4usize {
            next[i] = matrix[(starts[i] + min(at, k - 4) / 4) as usize];
        }
    } else {
        #[unroll]
        for s in 0..4usize {
            let offset = min(at + comptime!(s as u32), k - 1) * k_stride;
            #[unroll]
            for v in 0..comptime!(4 / width) {
                next[comptime!(s * (4 / width) + v)] = matrix[(starts[v] + offset) as usize];
            }
        }
    }
}

/// Stages what a unit has [fetched](fetch), the four places at the first step in the vector at `at`.
///
/// Elements are converted and transposed here, and not where they are fetched: that would wait for them, which products are to
/// hide.
#[cube]
fn stage<I: Numeric, A: Numeric, W: Size>(
    tile: &mut Shared<[Vector<A, Const<4>>]>,
    next: &Array<Vector<I, W>>,
    at: u32,
    #[comptime] pitch: u32,
    #[comptime] along_k: bool,
) {
    let width = W::value();
    #[unroll]
    for s in 0..4usize {
        let mut four = Vector::<A, Const<4>>::new(A::from_int(0));
        #[unroll]
        for i in 0..4usize {
            let element = if comptime!(along_k && width == 4) {
                next[i].extract(s)
            } else {
                next[comptime!((s * 4 + i) / width)].extract(comptime!((s * 4 + i) % width))
            };
            four.insert(i, A::cast_from(element));
        }
        tile[(at % SLOTS + comptime!(s as u32 * pitch)) as usize] = four;
    }
}

/// Tiles of both operands staged in shared memory, of `sides[0] x sides[1]` units, each owning `vectors[0] x vectors[1]`
/// blocks of 4 x 4.
///
/// The next `depth` steps are fetched to registers while the staged ones are multiplied, and staged beside them: those of
/// `lhs` by the first `sides[0] vectors[0] depth / 4` units, those of `rhs` by the `sides[1] vectors[1] depth / 4` after
/// them. Fewer than `depth` last steps end their loop early: no padding enters a chain. Vectors of an operand are along
/// its contiguous axis, those of the output along its columns. A part has one block: a loop over blocks would keep the
/// places of all outputs in registers.
#[cube(launch_unchecked)]
pub fn tiled<I: Numeric, A: Numeric, O: Numeric, L: Size, R: Size, S: Size>(
    lhs: &Tensor<Vector<I, L>>,
    rhs: &Tensor<Vector<I, R>>,
    output: &mut [Vector<O, S>],
    tiles: u32,
    spans: Blocks,
    sizes: Sizes,
    #[comptime] sides: [u32; 2],
    #[comptime] vectors: [u32; 2],
    #[comptime] depth: u32,
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
    let [rows, columns] = comptime!(vectors.map(|vectors| vectors * 4));
    let [side_rows, side_columns] = comptime!(sides);
    let (tile_rows, tile_columns) = (comptime!(side_rows * rows), comptime!(side_columns * columns));
    let (lhs_groups, rhs_groups) = (comptime!(tile_rows / 4), comptime!(tile_columns / 4));
    let (lhs_units, rhs_units) = (comptime!(lhs_groups * depth / 4), comptime!(rhs_groups * depth / 4));
    // One more slot a step keeps stores along `k` off each other's shared-memory banks.
    let (lhs_pitch, rhs_pitch) = (comptime!(lhs_groups + 1), comptime!(rhs_groups + 1));
    let (lhs_stage, rhs_stage) = (comptime!(lhs_pitch * depth), comptime!(rhs_pitch * depth));
    let (m, k, n) = (sizes.m, sizes.k, sizes.n);
    let tile = CUBE_POS as u32;
    let (place, lhs_offset, rhs_offset) =
        place_of_tensors::<Vector<I, L>, Vector<I, R>>(lhs, rhs, tile, &spans, m, k, n, tile_rows, tile_columns);
    let row = place.row * tile_rows;
    let column = place.column * tile_columns;
    let (unit_row, unit_column) = unit_place(sides);
    let tiles_of_unit = comptime!(Tiles { vectors, apart: sides, pitches: [lhs_pitch, rhs_pitch], products });

    let mut lhs_tiles = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((lhs_stage * STAGES) as usize));
    let mut rhs_tiles = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((rhs_stage * STAGES) as usize));
    let mut lhs_next = Array::<Vector<I, L>>::new(comptime!(16 / lhs_elements));
    let mut rhs_next = Array::<Vector<I, R>>::new(comptime!(16 / rhs_elements));
    let mut starts = Array::<u32>::new(4usize);
    let mut slot = 0u32;
    let mut ahead = place.first * BLOCK_TERMS;
    let mut a = Array::<Vector<A, Const<4>>>::new(comptime!(vectors[0] as usize));
    let mut b = Array::<Vector<A, Const<4>>>::new(comptime!(vectors[1] as usize));
    let mut acc = Array::<A>::new(comptime!((rows * columns) as usize));
    #[unroll]
    for i in 0..rows * columns {
        acc[i as usize] = A::from_int(0);
    }

    let stop = min(ahead + BLOCK_TERMS, k);
    let rounds = (stop - ahead).div_ceil(depth);
    let mut left = stop - ahead;
    let fetches_lhs = UNIT_POS < lhs_units;
    let fetches_rhs = UNIT_POS >= lhs_units && UNIT_POS < comptime!(lhs_units + rhs_units);
    let lhs_k = sizes.lhs_k / lhs_width;
    let rhs_k = sizes.rhs_k / rhs_width;
    if fetches_lhs {
        let (four, first) =
            share::<L>(&mut starts, UNIT_POS, lhs_offset, row, m, sizes.lhs_row, lhs_groups, depth, lhs_along_k);
        slot = first * lhs_pitch + four;
        ahead += first;
        fetch::<I, L>(lhs, &starts, &mut lhs_next, ahead, k, lhs_k, lhs_along_k);
        stage::<I, A, L>(&mut lhs_tiles, &lhs_next, slot, lhs_pitch, lhs_along_k);
    } else if fetches_rhs {
        let nth = UNIT_POS - lhs_units;
        let (four, first) =
            share::<R>(&mut starts, nth, rhs_offset, column, n, sizes.rhs_column, rhs_groups, depth, rhs_along_k);
        slot = first * rhs_pitch + four;
        ahead += first;
        fetch::<I, R>(rhs, &starts, &mut rhs_next, ahead, k, rhs_k, rhs_along_k);
        stage::<I, A, R>(&mut rhs_tiles, &rhs_next, slot, rhs_pitch, rhs_along_k);
    }
    sync_cube();
    for round in 0..rounds {
        let staged = round % STAGES;
        let (lhs_at, rhs_at) = (staged * lhs_stage + unit_row, staged * rhs_stage + unit_column);
        read::<A, Const<4>>(&lhs_tiles, &rhs_tiles, &mut a, &mut b, lhs_at % SLOTS, rhs_at % SLOTS, tiles_of_unit);
        ahead += depth;
        if fetches_lhs {
            fetch::<I, L>(lhs, &starts, &mut lhs_next, ahead, k, lhs_k, lhs_along_k);
        } else if fetches_rhs {
            fetch::<I, R>(rhs, &starts, &mut rhs_next, ahead, k, rhs_k, rhs_along_k);
        }
        multiply_ahead::<A, Const<4>>(
            &lhs_tiles,
            &rhs_tiles,
            &mut a,
            &mut b,
            &mut acc,
            lhs_at % SLOTS,
            rhs_at % SLOTS,
            left,
            depth,
            tiles_of_unit,
        );
        left -= min(left, depth);
        // Nobody reads the other stage: what was in it was multiplied before the last barrier.
        let free = (round + 1) % STAGES;
        if fetches_lhs {
            stage::<I, A, L>(&mut lhs_tiles, &lhs_next, slot + free * lhs_stage, lhs_pitch, lhs_along_k);
        } else if fetches_rhs {
            stage::<I, A, R>(&mut rhs_tiles, &rhs_next, slot + free * rhs_stage, rhs_pitch, rhs_along_k);
        }
        sync_cube();
    }

    #[unroll]
    for r in 0..rows {
        let i = row + (r / 4 * side_rows + unit_row) * 4 + r % 4;
        #[unroll]
        for v in 0..comptime!(columns / output_width) {
            let c = comptime!(v * output_width);
            let j = column + (c / 4 * side_columns + unit_column) * 4 + c % 4;
            if i < m && j < n {
                let mut chains = Vector::<A, S>::empty();
                #[unroll]
                for s in 0..output_elements {
                    chains.insert(s, acc[comptime!((r * columns + c) as usize + s)]);
                }
                let at = (place.output + i * sizes.output_row + j * sizes.output_column) / output_width;
                store::<A, O, S>(output, at, chains, place.first == place.opening, single);
            }
        }
    }
    keep_subnormals();
}
