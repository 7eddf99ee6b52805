//! The device side of the passes between activations for a GPU: a product in shared memory, over terms that are never
//! written down (implicit GEMM), on the views of [`kernel`](super::kernel).

use super::kernel::{IndexMaps, SPATIAL, Spatial, Taps, phases_of, store};
use super::plan::{CubeTile, PACKED};
use crate::arithmetic::{Products, accumulate};
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Steps of a chain that a cube stages at a time.
const DEPTH: u32 = CubeTile::DEPTH;

/// What [`convolve_tiled`] is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TiledVariant {
    /// The results of a cube.
    pub tile: CubeTile,
    /// Whether target positions meet other taps by their phase: in an input gradient with a stride.
    pub phased: bool,
    /// Whether no tap lies outside the source.
    pub inside: bool,
    /// Whether every tap has a multiple of [`DEPTH`] terms.
    pub whole: bool,
    /// Whether a block opens the sum of an element, in place of continuing it.
    pub single: bool,
    /// How products are added.
    pub products: Products,
}

/// Copies `weight`, `[groups, target channels, source channels, d, h, w]`, to `[groups, d, h, w, source channels, rows]`:
/// target channels contiguous, the last of them repeated up to `rows`, a multiple of [`PACKED`].
///
/// A warp copies 32 target channels of one tap, and the next one those of the next tap, from the same cache lines.
#[cube(launch_unchecked)]
pub fn pack_weight<E: Float, A: Float>(
    weight: &Tensor<E>,
    packed: &mut [A],
    rows: u32,
    units: u32,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let channels = weight.shape(1) as u32;
    let sources = weight.shape(2) as u32;
    let taps = Spatial::shape::<E>(weight);
    let tap_count = taps.d * taps.h * taps.w;
    let stripes = rows / PACKED;
    let of_taps = unit / PACKED;
    let of_stripes = of_taps / tap_count;
    let of_sources = of_stripes / stripes;
    let tap = of_taps - of_stripes * tap_count;
    let row = (of_stripes - of_sources * stripes) * PACKED + unit % PACKED;
    let group = of_sources / sources;
    let source = of_sources - group * sources;
    let at = taps.split(tap);
    let from = group * weight.stride(0) as u32
        + min(row, channels - 1) * weight.stride(1) as u32
        + source * weight.stride(2) as u32
        + at.d * weight.stride(SPATIAL) as u32
        + at.h * weight.stride(SPATIAL + 1) as u32
        + at.w * weight.stride(SPATIAL + 2) as u32;
    let to = ((group * tap_count + tap) * sources + source) * rows + row;
    packed[to as usize] = A::cast_from(weight[from as usize]);
    keep_subnormals();
}

/// The steps of four terms for the results of a unit, or of the first `left` of them.
///
/// `weights` is `[step, four channels]`, `sources` `[four steps, column]`.
#[allow(
    clippy::if_same_then_else,
    reason = "the first condition is known when the kernel is compiled, the second when it runs"
)]
#[cube]
fn four_steps<A: Float>(
    weights: &Shared<[Vector<A, Const<4>>]>,
    sources: &Shared<[Vector<A, Const<4>>]>,
    acc: &mut Array<A>,
    quad: u32,
    left: u32,
    unit_row: u32,
    unit_column: u32,
    #[comptime] tile: CubeTile,
    #[comptime] products: Products,
    #[comptime] whole: bool,
) {
    let side_rows = comptime!(tile.side_rows);
    let side_columns = comptime!(tile.side_columns);
    let edge = comptime!(tile.vectors * 4);
    let mut x = Array::<Vector<A, Const<4>>>::new(comptime!(edge as usize));
    #[unroll]
    for j in 0..edge {
        x[j as usize] = sources[(quad * comptime!(side_columns * edge) + j * side_columns + unit_column) as usize];
    }
    #[unroll]
    for s in 0..4u32 {
        let at = (quad * 4 + s) * comptime!(side_rows * tile.vectors) + unit_row;
        if comptime!(whole) {
            one_step::<A>(weights, &x, acc, at, s, tile, products);
        } else if s < left {
            one_step::<A>(weights, &x, acc, at, s, tile, products);
        }
    }
}

/// Step `s` of four.
#[cube]
fn one_step<A: Float>(
    weights: &Shared<[Vector<A, Const<4>>]>,
    x: &Array<Vector<A, Const<4>>>,
    acc: &mut Array<A>,
    weight_at: u32,
    #[comptime] s: u32,
    #[comptime] tile: CubeTile,
    #[comptime] products: Products,
) {
    let edge = comptime!(tile.vectors * 4);
    #[unroll]
    for v in 0..tile.vectors {
        let y = weights[(weight_at + v * comptime!(tile.side_rows)) as usize];
        #[unroll]
        for i in 0..4u32 {
            #[unroll]
            for j in 0..edge {
                let at = comptime!(((v * 4 + i) * edge + j) as usize);
                let value = x[j as usize].extract(comptime!(s as usize));
                acc[at] = accumulate::<A>(value, y.extract(comptime!(i as usize)), acc[at], products);
            }
        }
    }
}

/// The chains of [`convolve`](super::kernel::convolve), of a tile of channels and columns a cube. A column is a batch entry
/// and a target position, all of one phase, so that the columns of a cube meet the same taps.
///
/// `weight` is [packed](pack_weight), of `taps`. `output` is `[parts, batch, groups, target channels, d, h, w]`,
/// contiguous, seen without its first axis. Part `p` is block `first_block + p` of each chain; a launch of one part continues
/// the sums of the launch before. A loop over blocks would keep the places of all results in registers. A cube stages [`DEPTH`] source channels of one tap at a time; each unit fetches
/// those of one column, four in a vector.
#[cube(launch_unchecked)]
pub fn convolve_tiled<E: Float, A: Float, O: Float>(
    source: &Tensor<E>,
    weight: &[Vector<A, Const<4>>],
    bias: ComptimeOption<&[E]>,
    output: &mut Tensor<O>,
    first_block: u32,
    taps: Spatial,
    maps: IndexMaps,
    cubes: u32,
    #[comptime] variant: TiledVariant,
    #[define(E, A, O)] _dtypes: [ElemType; 3],
) {
    if CUBE_POS as u32 >= cubes {
        terminate!();
    }
    let tile = comptime!(variant.tile);
    let phased = comptime!(variant.phased);
    let inside = comptime!(variant.inside);
    let whole = comptime!(variant.whole);
    let single = comptime!(variant.single);
    let products = comptime!(variant.products);
    let edge = comptime!(tile.vectors * 4);
    let rows = comptime!(tile.side_rows * edge);
    let columns = comptime!(tile.side_columns * edge);
    let units = comptime!(tile.side_rows * tile.side_columns);
    let fours = comptime!(rows / 4);
    // Units that fetch for one column.
    let lanes = comptime!(units / columns);

    let batch = output.shape(0) as u32;
    let groups = output.shape(1) as u32;
    let channels = output.shape(2) as u32;
    let target = Spatial {
        d: output.shape(SPATIAL) as u32,
        h: output.shape(SPATIAL + 1) as u32,
        w: output.shape(SPATIAL + 2) as u32,
    };
    let positions = target.d * target.h * target.w;
    let phases = phases_of(&target, &maps, phased);
    let all_phases = phases.d * phases.h * phases.w;
    let of_phase =
        Spatial { d: target.d.div_ceil(phases.d), h: target.h.div_ceil(phases.h), w: target.w.div_ceil(phases.w) };
    let phase_positions = of_phase.d * of_phase.h * of_phase.w;
    let all_columns = batch * phase_positions;
    let row_tiles = channels.div_ceil(rows);
    let column_tiles = all_columns.div_ceil(columns);

    // Row tiles first: cubes that follow each other share a stripe of the source while it is in the cache.
    let cube = CUBE_POS as u32;
    let of_columns = cube / row_tiles;
    let row_tile = cube - of_columns * row_tiles;
    let of_groups = of_columns / column_tiles;
    let first_column = (of_columns - of_groups * column_tiles) * columns;
    let of_phases = of_groups / groups;
    let group = of_groups - of_phases * groups;
    let part = of_phases / all_phases;
    let phase = phases.split(of_phases - part * all_phases);

    // The column for which this unit fetches; beyond the last one it repeats that, and the results are not stored.
    let fetch_column = UNIT_POS % columns;
    let fetch_lane = UNIT_POS / columns;
    let column = min(first_column + fetch_column, all_columns - 1);
    let entry = column / phase_positions;
    let within = of_phase.split(column - entry * phase_positions);
    let source_base = entry * source.stride(0) as u32 + group * source.stride(1) as u32;
    let source_channels = source.shape(2) as u32;
    let source_step = source.stride(2) as u32;
    let lengths = Spatial::shape::<E>(source);
    let source_strides = Spatial::strides::<E>(source);
    let column_d = Taps::of(within.d * phases.d + phase.d, taps.d, &maps.d, phased);
    let column_h = Taps::of(within.h * phases.h + phase.h, taps.h, &maps.h, phased);
    let column_w = Taps::of(within.w * phases.w + phase.w, taps.w, &maps.w, phased);
    // What all columns of the cube meet.
    let taps_d = Taps::of(phase.d, taps.d, &maps.d, phased);
    let taps_h = Taps::of(phase.h, taps.h, &maps.h, phased);
    let taps_w = Taps::of(phase.w, taps.w, &maps.w, phased);
    let met = Spatial { d: taps_d.count, h: taps_h.count, w: taps_w.count };
    let terms = met.d * met.h * met.w * source_channels;
    let end_block = max(terms.div_ceil(BLOCK_TERMS), 1);
    let index = first_block + part;
    if index >= end_block {
        terminate!();
    }

    let padded_fours = channels.div_ceil(PACKED) * comptime!(PACKED / 4);
    let row_begin = row_tile * fours;
    let unit_row = UNIT_POS / comptime!(tile.side_columns);
    let unit_column = UNIT_POS % comptime!(tile.side_columns);
    let mut sources = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((columns * DEPTH / 4) as usize));
    let mut weights = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((fours * DEPTH) as usize));
    let mut acc = Array::<A>::new(comptime!((edge * edge) as usize));

    #[unroll]
    for k in 0..edge * edge {
        acc[k as usize] = A::new(0.0);
    }
    let begin = index * BLOCK_TERMS;
    let end = min(begin + BLOCK_TERMS, terms);
    let first_tap = begin / source_channels;
    let mut at = Spatial { d: met.d, h: max(met.h, 1), w: max(met.w, 1) }.split(first_tap);
    let mut from = begin - first_tap * source_channels;
    let mut left = end - begin;
    for _ in first_tap..end.div_ceil(source_channels) {
        let to = min(source_channels, from + left);
        let source_d = column_d.source(at.d);
        let source_h = column_h.source(at.h);
        let source_w = column_w.source(at.w);
        let exists = if comptime!(inside) {
            true.runtime()
        } else {
            // A position below zero is a large one.
            (source_d as u32) < lengths.d && (source_h as u32) < lengths.h && (source_w as u32) < lengths.w
        };
        let source_at = source_base
            + source_d as u32 * source_strides.d
            + source_h as u32 * source_strides.h
            + source_w as u32 * source_strides.w;
        let tap = (taps_d.tap(at.d) * taps.h + taps_h.tap(at.h)) * taps.w + taps_w.tap(at.w);
        let weight_at = ((group * taps.d * taps.h * taps.w) + tap) * source_channels * padded_fours + row_begin;
        for chunk in 0..(to - from).div_ceil(DEPTH) {
            let first = from + chunk * DEPTH;
            // What was staged before is multiplied.
            sync_cube();
            #[unroll]
            for f in 0..comptime!(DEPTH / 4 / lanes) {
                let quad = f * lanes + fetch_lane;
                let mut four = Vector::<A, Const<4>>::new(A::new(0.0));
                if exists {
                    #[unroll]
                    for i in 0..4u32 {
                        let step = first + quad * 4 + i;
                        let channel = if comptime!(whole) { step } else { min(step, to - 1) };
                        let value = A::cast_from(source[(source_at + channel * source_step) as usize]);
                        four.insert(comptime!(i as usize), value);
                    }
                }
                sources[(quad * columns + fetch_column) as usize] = four;
            }
            #[unroll]
            for f in 0..comptime!(fours * DEPTH / units) {
                let slot = f * units + UNIT_POS;
                let step = first + slot / fours;
                let channel = if comptime!(whole) { step } else { min(step, to - 1) };
                // A tile may hang over the packed channels too.
                let four = min(slot % fours, padded_fours - 1 - row_begin);
                weights[slot as usize] = weight[(weight_at + channel * padded_fours + four) as usize];
            }
            sync_cube();
            if comptime!(whole) {
                for quad in 0..comptime!(DEPTH / 4) {
                    four_steps::<A>(&weights, &sources, &mut acc, quad, 4, unit_row, unit_column, tile, products, true);
                }
            } else {
                let steps = min(to - first, DEPTH);
                let (quads, rest) = (steps / 4, steps % 4);
                for quad in 0..quads {
                    four_steps::<A>(&weights, &sources, &mut acc, quad, 4, unit_row, unit_column, tile, products, true);
                }
                if rest > 0 {
                    four_steps::<A>(
                        &weights,
                        &sources,
                        &mut acc,
                        quads,
                        rest,
                        unit_row,
                        unit_column,
                        tile,
                        products,
                        false,
                    );
                }
            }
        }
        left -= to - from;
        from = 0u32.runtime();
        at.advance(&met);
    }

    #[unroll]
    for j in 0..edge {
        let column = first_column + j * comptime!(tile.side_columns) + unit_column;
        let entry = column / phase_positions;
        let within = of_phase.split(column - entry * phase_positions);
        let target_at = Spatial {
            d: within.d * phases.d + phase.d,
            h: within.h * phases.h + phase.h,
            w: within.w * phases.w + phase.w,
        };
        let stored = column < all_columns && target_at.d < target.d && target_at.h < target.h && target_at.w < target.w;
        let position = (target_at.d * target.h + target_at.h) * target.w + target_at.w;
        let image = (part * batch + entry) * groups + group;
        #[unroll]
        for i in 0..edge {
            let channel = row_tile * rows + (i / 4 * comptime!(tile.side_rows) + unit_row) * 4 + i % 4;
            if stored && channel < channels {
                let at = (image * channels + channel) * positions + position;
                let chain = acc[comptime!((i * edge + j) as usize)];
                store::<E, A, O>(
                    output,
                    at,
                    chain,
                    index == 0,
                    index + 1 == end_block,
                    bias,
                    group * channels + channel,
                    single,
                );
            }
        }
    }
    keep_subnormals();
}
