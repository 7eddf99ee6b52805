//! The device side of the pass to a weight for a GPU: a product in shared memory, on the views of
//! [`kernel`](super::kernel).

use super::kernel::{IndexMaps, Spatial};
use super::plan::{CubeTile, WeightColumns};
use super::weight_kernel::{Extents, Round};
use crate::arithmetic::Products;
use crate::order::BLOCK_TERMS;
use crate::outer_product::{Tiles, multiply, unit_place};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Steps of a chain that a cube stages at a time.
const DEPTH: u32 = CubeTile::WEIGHT_DEPTH;

/// What [`weight_gradient_tiled`] is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TiledWeightVariant {
    /// The results of a cube.
    pub tile: CubeTile,
    /// What its columns are.
    pub columns: WeightColumns,
    /// Along which axes no tap lies outside the input.
    pub inside: [bool; 3],
    /// Whether no tile hangs over the edge of the channels that are fetched. Pairs are clamped before.
    pub whole: bool,
    /// How products are added.
    pub products: Products,
}

/// The input position that a tap reads at output position 0. Where a sum with one of these wraps below zero no input
/// position exists.
#[cube]
fn ahead_of(tap: u32, taps: &Spatial, maps: &IndexMaps) -> Spatial {
    let at = taps.split(tap);
    Spatial { d: maps.d.ahead(at.d), h: maps.h.ahead(at.h), w: maps.w.ahead(at.w) }
}

/// Fetches four neighbouring channels at one position, the last one repeated beyond the end of the axis, to the `nth`
/// four of `next`.
#[cube]
fn fetch_channels<E: Float>(
    tensor: &Tensor<E>,
    next: &mut Array<E>,
    at: u32,
    first: u32,
    channels: u32,
    stride: u32,
    #[comptime] nth: u32,
    #[comptime] whole: bool,
) {
    #[unroll]
    for i in 0..4u32 {
        let channel = if comptime!(whole) { first + i } else { min(first + i, channels - 1) };
        next[comptime!((nth * 4 + i) as usize)] = tensor[(at + channel * stride) as usize];
    }
}

/// Fetches four neighbouring pairs of a channel and a tap at one output position, from the `first` of the table on, to
/// the `nth` four of `next`.
///
/// `start` is the input position that a tap with an offset of zero reads, and `at` its place in memory.
#[cube]
fn fetch_pairs<E: Float>(
    input: &Tensor<E>,
    next: &mut Array<E>,
    pairs: &Shared<[Vector<u32, Const<4>>]>,
    first: u32,
    at: u32,
    start: &Spatial,
    lengths: &Spatial,
    #[comptime] nth: u32,
    #[comptime] inside: [bool; 3],
) {
    #[unroll]
    for i in 0..4u32 {
        let pair = pairs[(first + i) as usize];
        let read = Spatial {
            d: start.d + pair.extract(1usize),
            h: start.h + pair.extract(2usize),
            w: start.w + pair.extract(3usize),
        };
        let slot = comptime!((nth * 4 + i) as usize);
        next[slot] = E::new(0.0);
        if read.exists(lengths, inside) {
            next[slot] = input[(at + pair.extract(0usize)) as usize];
        }
    }
}

/// Stages what a unit has fetched, its first four at `at`, the others `apart`.
///
/// Elements are converted here, and not where they are fetched: that would wait for them, which products are to hide.
#[cube]
fn stage<E: Float, A: Float>(
    staged: &mut Shared<[Vector<A, Const<4>>]>,
    next: &Array<E>,
    at: u32,
    #[comptime] fetches: u32,
    #[comptime] apart: u32,
) {
    #[unroll]
    for f in 0..fetches {
        let mut four = Vector::<A, Const<4>>::new(A::new(0.0));
        #[unroll]
        for i in 0..4u32 {
            four.insert(comptime!(i as usize), A::cast_from(next[comptime!((f * 4 + i) as usize)]));
        }
        staged[(at + f * apart) as usize] = four;
    }
}

/// The chains of [`weight_gradient_blocks`](super::weight_kernel::weight_gradient_blocks), of a tile of output channels
/// and [columns](WeightColumns) a cube.
///
/// `blocks` is `[slots, groups, output channels, input channels, taps]`, contiguous. A cube stages [`DEPTH`] positions
/// at a time; consecutive units fetch consecutive positions, four channels or columns each. The next positions are
/// fetched to registers while the staged ones are multiplied.
///
/// Where columns are pairs of a channel and a tap, a cube first writes a table of them to shared memory: for each pair
/// what to add to a place in memory, and to an input position along each axis. Beyond the edge it repeats the last pair,
/// whose results are not stored.
#[cube(launch_unchecked)]
pub fn weight_gradient_tiled<E: Float, A: Float, O: Float>(
    input: &Tensor<E>,
    gradient: &Tensor<E>,
    blocks: &mut Tensor<O>,
    maps: IndexMaps,
    round: Round,
    cubes: u32,
    #[comptime] variant: TiledWeightVariant,
    #[define(E, A, O)] _dtypes: [ElemType; 3],
) {
    if CUBE_POS as u32 >= cubes {
        terminate!();
    }
    let TiledWeightVariant { tile, inside, whole, products, .. } = comptime!(variant);
    let of_pairs = comptime!(variant.columns == WeightColumns::Pairs);
    let edge = comptime!(tile.vectors * 4);
    let rows = comptime!(tile.side_rows * edge);
    let columns = comptime!(tile.side_columns * edge);
    let units = comptime!(tile.side_rows * tile.side_columns);
    // One more slot a row keeps stores along the positions off each other's shared-memory banks.
    let row_pitch = comptime!(rows / 4 + 1);
    let column_pitch = comptime!(columns / 4 + 1);
    let row_fetches = comptime!(rows / 4 * DEPTH / units);
    let column_fetches = comptime!(columns / 4 * DEPTH / units);
    // Groups of four channels or columns between two fetches of a unit.
    let apart = comptime!(units / DEPTH);

    let extents = Extents::of::<E, O>(input, gradient, blocks);
    let (groups, inputs, outputs, tap_count) = (extents.groups, extents.inputs, extents.outputs, extents.tap_count);
    // All columns of a tap that has tiles of its own, and how many taps have.
    let (width, tiled_taps) =
        if comptime!(of_pairs) { (inputs * tap_count, 1u32.runtime()) } else { (inputs, tap_count) };
    let column_tiles = width.div_ceil(columns);
    let output_tiles = outputs.div_ceil(rows);

    // Tiles and taps first: cubes that follow each other share positions of both operands while they are in the cache.
    let cube = CUBE_POS as u32;
    let of_columns = cube / column_tiles;
    let first_column = (cube - of_columns * column_tiles) * columns;
    let of_outputs = of_columns / output_tiles;
    let first_output = (of_columns - of_outputs * output_tiles) * rows;
    let of_taps = of_outputs / tiled_taps;
    let tap = of_outputs - of_taps * tiled_taps;
    let of_round = of_taps / groups;
    let group = of_taps - of_round * groups;

    let positions = extents.positions;
    let lengths = Spatial::shape::<E>(input);
    let input_strides = Spatial::strides::<E>(input);
    let gradient_strides = Spatial::strides::<E>(gradient);
    let input_channel = input.stride(2) as u32;
    let gradient_channel = gradient.stride(2) as u32;
    let (input_entry, input_group) = (input.stride(0) as u32, group * input.stride(1) as u32);
    let (gradient_entry, gradient_group) = (gradient.stride(0) as u32, group * gradient.stride(1) as u32);
    let begin = (round.first + of_round) * BLOCK_TERMS;
    let end = min(begin + BLOCK_TERMS, extents.terms);
    let ahead = if comptime!(of_pairs) {
        Spatial { d: 0u32.runtime(), h: 0u32.runtime(), w: 0u32.runtime() }
    } else {
        ahead_of(tap, &extents.taps, &maps)
    };
    let mut pairs = Shared::<[Vector<u32, Const<4>>]>::new_slice(comptime!(variant.columns.table(tile)));
    if comptime!(of_pairs) {
        if UNIT_POS < columns {
            let column = min(first_column + UNIT_POS, width - 1);
            let channel = column / tap_count;
            let ahead = ahead_of(column - channel * tap_count, &extents.taps, &maps);
            let mut pair = Vector::<u32, Const<4>>::new(0u32);
            pair.insert(
                0usize,
                channel * input_channel
                    + ahead.d * input_strides.d
                    + ahead.h * input_strides.h
                    + ahead.w * input_strides.w,
            );
            pair.insert(1usize, ahead.d);
            pair.insert(2usize, ahead.h);
            pair.insert(3usize, ahead.w);
            pairs[UNIT_POS as usize] = pair;
        }
        sync_cube();
    }

    // What this unit fetches: a position of each stage, and every `apart`th group of four channels or columns.
    let fetch_step = UNIT_POS % DEPTH;
    let fetch_four = UNIT_POS / DEPTH;
    let (unit_row, unit_column) = unit_place(comptime!([tile.side_rows, tile.side_columns]));
    let mut gradient_stage = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((row_pitch * DEPTH) as usize));
    let mut input_stage = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((column_pitch * DEPTH) as usize));
    let mut gradient_next = Array::<E>::new(comptime!((row_fetches * 4) as usize));
    let mut input_next = Array::<E>::new(comptime!((column_fetches * 4) as usize));
    let staged = comptime!(Tiles {
        vectors: [tile.vectors; 2],
        apart: [tile.side_rows, tile.side_columns],
        pitches: [row_pitch, column_pitch],
        products: Some(products),
    });
    let mut acc = Array::<A>::new(comptime!((edge * edge) as usize));
    #[unroll]
    for k in 0..edge * edge {
        acc[k as usize] = A::new(0.0);
    }

    // The first round only fetches; every later one stages what was fetched, fetches ahead and multiplies.
    for index in 0..(end - begin).div_ceil(DEPTH) + 1 {
        let next = begin + index * DEPTH;
        if index > 0 {
            sync_cube();
            let (row_slot, column_slot) = (fetch_step * row_pitch + fetch_four, fetch_step * column_pitch + fetch_four);
            stage::<E, A>(&mut gradient_stage, &gradient_next, row_slot, row_fetches, apart);
            stage::<E, A>(&mut input_stage, &input_next, column_slot, column_fetches, apart);
            sync_cube();
        }
        if next < end {
            let term = min(next + fetch_step, end - 1);
            let row = term / positions.w;
            let slab = row / positions.h;
            let entry = slab / positions.d;
            let (d, h, w) = (slab - entry * positions.d, row - slab * positions.h, term - row * positions.w);
            let start = Spatial {
                d: d * maps.d.stride + ahead.d,
                h: h * maps.h.stride + ahead.h,
                w: w * maps.w.stride + ahead.w,
            };
            let gradient_at = entry * gradient_entry
                + gradient_group
                + d * gradient_strides.d
                + h * gradient_strides.h
                + w * gradient_strides.w;
            let input_at = entry * input_entry
                + input_group
                + start.d * input_strides.d
                + start.h * input_strides.h
                + start.w * input_strides.w;
            #[unroll]
            for f in 0..row_fetches {
                let first = first_output + (f * apart + fetch_four) * 4;
                fetch_channels::<E>(
                    gradient,
                    &mut gradient_next,
                    gradient_at,
                    first,
                    outputs,
                    gradient_channel,
                    f,
                    whole,
                );
            }
            if comptime!(of_pairs) {
                #[unroll]
                for f in 0..column_fetches {
                    let first = (f * apart + fetch_four) * 4;
                    fetch_pairs::<E>(input, &mut input_next, &pairs, first, input_at, &start, &lengths, f, inside);
                }
            } else {
                #[unroll]
                for f in 0..column_fetches * 4 {
                    input_next[f as usize] = E::new(0.0);
                }
                if start.exists(&lengths, inside) {
                    #[unroll]
                    for f in 0..column_fetches {
                        let first = first_column + (f * apart + fetch_four) * 4;
                        fetch_channels::<E>(input, &mut input_next, input_at, first, inputs, input_channel, f, whole);
                    }
                }
            }
        }
        if index > 0 {
            let left = end + DEPTH - next;
            multiply::<A, Const<4>>(
                &gradient_stage,
                &input_stage,
                &mut acc,
                unit_row,
                unit_column,
                left,
                DEPTH,
                staged,
            );
        }
    }

    let part = (round.slot + of_round) * groups + group;
    #[unroll]
    for i in 0..edge {
        let output = first_output + (i / 4 * comptime!(tile.side_rows) + unit_row) * 4 + i % 4;
        #[unroll]
        for j in 0..edge {
            let column = first_column + (j / 4 * comptime!(tile.side_columns) + unit_column) * 4 + j % 4;
            if output < outputs && column < width {
                let result = if comptime!(of_pairs) { column } else { column * tap_count + tap };
                let at = (part * outputs + output) * (inputs * tap_count) + result;
                blocks[at as usize] = O::cast_from(acc[comptime!((i * edge + j) as usize)]);
            }
        }
    }
    keep_subnormals();
}
