//! The device side of the pass to a weight, on the views of [`kernel`](super::kernel).

use super::kernel::{IndexMaps, SPATIAL, Spatial};
use super::plan::UnitTile;
use crate::arithmetic::{Products, accumulate};
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// The blocks of a weight gradient that one launch computes.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Round {
    /// Its first block.
    pub first: u32,
    /// Where the first block goes in the scratch memory; the others follow.
    pub slot: u32,
}

/// The extents of a weight's gradient, and of what it is summed over.
#[derive(CubeType)]
pub(super) struct Extents {
    pub groups: u32,
    /// Input channels and output channels of a group.
    pub inputs: u32,
    pub outputs: u32,
    pub taps: Spatial,
    pub tap_count: u32,
    /// Output positions.
    pub positions: Spatial,
    /// Batch entries times output positions.
    pub terms: u32,
}

#[cube]
impl Extents {
    /// `blocks` is `[slots, groups, output channels, input channels, taps]`.
    pub fn of<E: Float, O: Float>(input: &Tensor<E>, gradient: &Tensor<E>, blocks: &mut Tensor<O>) -> Extents {
        let taps = Spatial {
            d: blocks.shape(SPATIAL + 1) as u32,
            h: blocks.shape(SPATIAL + 2) as u32,
            w: blocks.shape(SPATIAL + 3) as u32,
        };
        let positions = Spatial::shape::<E>(gradient);
        Extents {
            groups: input.shape(1) as u32,
            inputs: input.shape(2) as u32,
            outputs: gradient.shape(2) as u32,
            taps,
            tap_count: taps.d * taps.h * taps.w,
            positions,
            terms: gradient.shape(0) as u32 * positions.d * positions.h * positions.w,
        }
    }
}

/// One chain a block of [`BLOCK_TERMS`] of a weight's gradient, over batch entries and output positions ascending;
/// a tap outside the input reads +0, where not all lie `inside`.
///
/// `blocks` is `[slots, groups, output channels, input channels, taps]`, contiguous. A unit owns one tap and one block
/// of `tile.rows` output channels and `tile.columns` input channels: all of them meet the same positions.
#[cube(launch_unchecked)]
pub fn weight_gradient_blocks<E: Float, A: Float, O: Float>(
    input: &Tensor<E>,
    gradient: &Tensor<E>,
    blocks: &mut Tensor<O>,
    maps: IndexMaps,
    round: Round,
    units: u32,
    #[comptime] tile: UnitTile,
    #[comptime] inside: bool,
    #[comptime] products: Products,
    #[define(E, A, O)] _dtypes: [ElemType; 3],
) {
    let tile_outputs = comptime!(tile.rows);
    let tile_inputs = comptime!(tile.columns);
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let extents = Extents::of::<E, O>(input, gradient, blocks);
    let (groups, inputs, outputs, tap_count) = (extents.groups, extents.inputs, extents.outputs, extents.tap_count);
    let input_tiles = inputs.div_ceil(comptime!(tile_inputs as u32));
    let output_tiles = outputs.div_ceil(comptime!(tile_outputs as u32));

    let owner = unit / tap_count;
    let tap = unit - owner * tap_count;
    let tile_row = owner / input_tiles;
    let first_input = (owner - tile_row * input_tiles) * comptime!(tile_inputs as u32);
    let part = tile_row / output_tiles;
    let first_output = (tile_row - part * output_tiles) * comptime!(tile_outputs as u32);
    let of_round = part / groups;
    let group = part - of_round * groups;
    let block = round.first + of_round;
    let slot = round.slot + of_round;
    let tap_at = extents.taps.split(tap);

    let mut input_base = Array::<u32>::new(tile_inputs);
    let mut gradient_base = Array::<u32>::new(tile_outputs);
    let mut acc = Array::<A>::new(comptime!(tile_outputs * tile_inputs));
    #[unroll]
    for i in 0..tile_inputs {
        let channel = min(first_input + i as u32, inputs - 1);
        input_base[i] = group * input.stride(1) as u32 + channel * input.stride(2) as u32;
    }
    #[unroll]
    for j in 0..tile_outputs {
        let channel = min(first_output + j as u32, outputs - 1);
        gradient_base[j] = group * gradient.stride(1) as u32 + channel * gradient.stride(2) as u32;
        #[unroll]
        for i in 0..tile_inputs {
            acc[j * tile_inputs + i] = A::new(0.0);
        }
    }

    // Sizes and strides are read before the loops, as above.
    let positions = extents.positions;
    let lengths = Spatial::shape::<E>(input);
    let input_strides = Spatial::strides::<E>(input);
    let gradient_strides = Spatial::strides::<E>(gradient);
    let input_entry = input.stride(0) as u32;
    let gradient_entry = gradient.stride(0) as u32;
    let (stride_d, stride_h) = (maps.d.stride, maps.h.stride);
    let begin = block * BLOCK_TERMS;
    let end = min(begin + BLOCK_TERMS, extents.terms);
    // Where a sum with one of these wraps below zero no input position exists.
    let (ahead_d, ahead_h, ahead_w) = (maps.d.ahead(tap_at.d), maps.h.ahead(tap_at.h), maps.w.ahead(tap_at.w));
    let stride_w = maps.w.stride;
    let input_step = stride_w * input_strides.w;
    let begin_row = begin / positions.w;
    let end_row = end.div_ceil(positions.w);
    let slab = begin_row / positions.h;
    let mut row_begin = begin_row * positions.w;
    let mut entry = slab / positions.d;
    let mut d = slab - entry * positions.d;
    let mut h = begin_row - slab * positions.h;
    for _ in begin_row..end_row {
        let input_d = d * stride_d + ahead_d;
        let input_h = h * stride_h + ahead_h;
        let row_exists = input_d < lengths.d && input_h < lengths.h;
        let from = max(begin, row_begin) - row_begin;
        let to = min(end, row_begin + positions.w) - row_begin;
        let mut gradient_at =
            entry * gradient_entry + d * gradient_strides.d + h * gradient_strides.h + from * gradient_strides.w;
        let mut input_w = from * stride_w + ahead_w;
        let mut input_at =
            entry * input_entry + input_d * input_strides.d + input_h * input_strides.h + input_w * input_strides.w;
        for _ in from..to {
            let exists = if comptime!(inside) { true.runtime() } else { row_exists && input_w < lengths.w };
            let mut x = Array::<A>::new(tile_inputs);
            #[unroll]
            for i in 0..tile_inputs {
                x[i] = A::new(0.0);
            }
            if exists {
                #[unroll]
                for i in 0..tile_inputs {
                    x[i] = A::cast_from(input[(input_base[i] + input_at) as usize]);
                }
            }
            #[unroll]
            for j in 0..tile_outputs {
                let y = A::cast_from(gradient[(gradient_base[j] + gradient_at) as usize]);
                #[unroll]
                for i in 0..tile_inputs {
                    let k = comptime!(j * tile_inputs + i);
                    acc[k] = accumulate::<A>(x[i], y, acc[k], products);
                }
            }
            gradient_at += gradient_strides.w;
            input_w += stride_w;
            input_at += input_step;
        }
        row_begin += positions.w;
        h += 1;
        if h == positions.h {
            h = 0;
            d += 1;
        }
        if d == positions.d {
            d = 0;
            entry += 1;
        }
    }

    #[unroll]
    for j in 0..tile_outputs {
        let output = first_output + j as u32;
        #[unroll]
        for i in 0..tile_inputs {
            let channel = first_input + i as u32;
            if output < outputs && channel < inputs {
                let at = (((slot * groups + group) * outputs + output) * inputs + channel) * tap_count + tap;
                blocks[at as usize] = O::cast_from(acc[j * tile_inputs + i]);
            }
        }
    }
    keep_subnormals();
}
