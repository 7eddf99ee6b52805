//! The device side of the pass to a weight for a GPU: a product in shared memory, on the views of
//! [`kernel`](super::kernel).

use super::kernel::{IndexMaps, Spatial};
use super::plan::CubeTile;
use super::weight_kernel::{Extents, Round};
use crate::arithmetic::Products;
use crate::order::BLOCK_TERMS;
use crate::outer_product::{Tiles, multiply};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Steps of a chain that a cube stages at a time.
const DEPTH: u32 = CubeTile::DEPTH;

/// Four neighbouring channels at one position, the last one repeated beyond the end of the axis.
#[cube]
fn fetch<E: Float, A: Float>(
    tensor: &Tensor<E>,
    at: u32,
    first: u32,
    channels: u32,
    stride: u32,
    #[comptime] whole: bool,
) -> Vector<A, Const<4>> {
    let mut four = Vector::<A, Const<4>>::new(A::new(0.0));
    #[unroll]
    for i in 0..4u32 {
        let channel = if comptime!(whole) { first + i } else { min(first + i, channels - 1) };
        four.insert(comptime!(i as usize), A::cast_from(tensor[(at + channel * stride) as usize]));
    }
    four
}

/// The chains of [`weight_gradient_blocks`](super::weight_kernel::weight_gradient_blocks), of a tile of output channels
/// and input channels at one tap a cube.
///
/// `blocks` is `[slots, groups, output channels, input channels, taps]`, contiguous. A cube stages [`DEPTH`] positions
/// at a time; consecutive units fetch consecutive positions, four channels each. The next positions are fetched to
/// registers while the staged ones are multiplied.
#[cube(launch_unchecked)]
pub fn weight_gradient_tiled<E: Float, A: Float, O: Float>(
    input: &Tensor<E>,
    gradient: &Tensor<E>,
    blocks: &mut Tensor<O>,
    maps: IndexMaps,
    round: Round,
    cubes: u32,
    #[comptime] tile: CubeTile,
    #[comptime] inside: bool,
    #[comptime] whole: bool,
    #[comptime] products: Products,
    #[define(E, A, O)] _dtypes: [ElemType; 3],
) {
    if CUBE_POS as u32 >= cubes {
        terminate!();
    }
    let edge = comptime!(tile.vectors * 4);
    let rows = comptime!(tile.side_rows * edge);
    let columns = comptime!(tile.side_columns * edge);
    let units = comptime!(tile.side_rows * tile.side_columns);
    // One more slot a row keeps stores along the positions off each other's shared-memory banks.
    let row_pitch = comptime!(rows / 4 + 1);
    let column_pitch = comptime!(columns / 4 + 1);
    let row_fetches = comptime!(rows / 4 * DEPTH / units);
    let column_fetches = comptime!(columns / 4 * DEPTH / units);
    // Groups of four channels between two fetches of a unit.
    let apart = comptime!(units / DEPTH);

    let extents = Extents::of::<E, O>(input, gradient, blocks);
    let (groups, inputs, outputs, tap_count) = (extents.groups, extents.inputs, extents.outputs, extents.tap_count);
    let input_tiles = inputs.div_ceil(columns);
    let output_tiles = outputs.div_ceil(rows);

    // Tiles and taps first: cubes that follow each other share positions of both operands while they are in the cache.
    let cube = CUBE_POS as u32;
    let of_inputs = cube / input_tiles;
    let first_input = (cube - of_inputs * input_tiles) * columns;
    let of_outputs = of_inputs / output_tiles;
    let first_output = (of_inputs - of_outputs * output_tiles) * rows;
    let of_taps = of_outputs / tap_count;
    let tap = of_outputs - of_taps * tap_count;
    let of_round = of_taps / groups;
    let group = of_taps - of_round * groups;
    let tap_at = extents.taps.split(tap);

    let positions = extents.positions;
    let lengths = Spatial::shape::<E>(input);
    let input_strides = Spatial::strides::<E>(input);
    let gradient_strides = Spatial::strides::<E>(gradient);
    let input_channel = input.stride(2) as u32;
    let gradient_channel = gradient.stride(2) as u32;
    let begin = (round.first + of_round) * BLOCK_TERMS;
    let end = min(begin + BLOCK_TERMS, extents.terms);
    // Where a sum with one of these wraps below zero no input position exists.
    let (ahead_d, ahead_h, ahead_w) = (maps.d.ahead(tap_at.d), maps.h.ahead(tap_at.h), maps.w.ahead(tap_at.w));

    // What this unit fetches: a position of each stage, and every `apart`th group of four channels.
    let fetch_step = UNIT_POS % DEPTH;
    let fetch_four = UNIT_POS / DEPTH;
    // Remainders that change nothing tell the compiler that addresses in shared memory do not wrap.
    let unit_row = UNIT_POS / comptime!(tile.side_columns) % comptime!(tile.side_rows);
    let unit_column = UNIT_POS % comptime!(tile.side_columns);
    let mut gradient_stage = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((row_pitch * DEPTH) as usize));
    let mut input_stage = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((column_pitch * DEPTH) as usize));
    let mut gradient_next = Array::<Vector<A, Const<4>>>::new(comptime!(row_fetches as usize));
    let mut input_next = Array::<Vector<A, Const<4>>>::new(comptime!(column_fetches as usize));
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
        let ahead = begin + index * DEPTH;
        if index > 0 {
            sync_cube();
            #[unroll]
            for f in 0..row_fetches {
                let slot = fetch_step * row_pitch + f * apart + fetch_four;
                gradient_stage[slot as usize] = gradient_next[f as usize];
            }
            #[unroll]
            for f in 0..column_fetches {
                let slot = fetch_step * column_pitch + f * apart + fetch_four;
                input_stage[slot as usize] = input_next[f as usize];
            }
            sync_cube();
        }
        if ahead < end {
            let term = min(ahead + fetch_step, end - 1);
            let row = term / positions.w;
            let slab = row / positions.h;
            let entry = slab / positions.d;
            let (d, h, w) = (slab - entry * positions.d, row - slab * positions.h, term - row * positions.w);
            let input_d = d * maps.d.stride + ahead_d;
            let input_h = h * maps.h.stride + ahead_h;
            let input_w = w * maps.w.stride + ahead_w;
            let gradient_at = entry * gradient.stride(0) as u32
                + group * gradient.stride(1) as u32
                + d * gradient_strides.d
                + h * gradient_strides.h
                + w * gradient_strides.w;
            let input_at = entry * input.stride(0) as u32
                + group * input.stride(1) as u32
                + input_d * input_strides.d
                + input_h * input_strides.h
                + input_w * input_strides.w;
            #[unroll]
            for f in 0..row_fetches {
                let first = first_output + (f * apart + fetch_four) * 4;
                gradient_next[f as usize] =
                    fetch::<E, A>(gradient, gradient_at, first, outputs, gradient_channel, whole);
            }
            let exists = if comptime!(inside) {
                true.runtime()
            } else {
                input_d < lengths.d && input_h < lengths.h && input_w < lengths.w
            };
            #[unroll]
            for f in 0..column_fetches {
                input_next[f as usize] = Vector::<A, Const<4>>::new(A::new(0.0));
            }
            if exists {
                #[unroll]
                for f in 0..column_fetches {
                    let first = first_input + (f * apart + fetch_four) * 4;
                    input_next[f as usize] = fetch::<E, A>(input, input_at, first, inputs, input_channel, whole);
                }
            }
        }
        if index > 0 {
            let left = end + DEPTH - ahead;
            multiply::<A>(&gradient_stage, &input_stage, &mut acc, unit_row, unit_column, left, DEPTH, staged);
        }
    }

    let part = (round.slot + of_round) * groups + group;
    #[unroll]
    for i in 0..edge {
        let output = first_output + (i / 4 * comptime!(tile.side_rows) + unit_row) * 4 + i % 4;
        #[unroll]
        for j in 0..edge {
            let channel = first_input + (j / 4 * comptime!(tile.side_columns) + unit_column) * 4 + j % 4;
            if output < outputs && channel < inputs {
                let at = ((part * outputs + output) * inputs + channel) * tap_count + tap;
                blocks[at as usize] = O::cast_from(acc[comptime!((i * edge + j) as usize)]);
            }
        }
    }
    keep_subnormals();
}
