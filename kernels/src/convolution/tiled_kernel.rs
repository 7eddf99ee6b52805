//! The device side of the passes between activations for a GPU: a product in shared memory, over terms that are never
//! written down (implicit GEMM), on the views of [`kernel`](super::kernel).

use super::kernel::{IndexMaps, SPATIAL, Spatial, Taps, phases_of, store};
use super::plan::{CubeTile, PACKED, SHARE, STAGES, WINDOW};
use super::terms::{Block, Column, Terms, WeightSteps, fetch};
use crate::arithmetic::Products;
use crate::order::BLOCK_TERMS;
use crate::outer_product::{Tiles, multiply_ahead, read, unit_place};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// More than any tile has. A remainder that changes nothing tells the compiler that addresses in shared memory do not
/// wrap, so that it adds constants to one of them.
const SLOTS: u32 = 1 << 16;

/// Bytes that staged sources are aligned to: those of the widest read.
const ALIGNMENT: usize = 16;

/// What [`convolve_tiled`] is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TiledVariant {
    /// The results of a cube.
    pub tile: CubeTile,
    /// Whether target positions meet other taps by their phase: in an input gradient with a stride.
    pub phased: bool,
    /// Whether no tap lies outside the source, along depth, height and width.
    pub inside: [bool; 3],
    /// Whether every tap has a multiple of [`SHARE`] terms.
    pub whole: bool,
    /// Whether the weight is [packed](pack_weight).
    pub packed: bool,
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

/// Fetches what a unit stages of the weight: four channels at term `nth` of the block, and at as many terms after it as a stage needs.
/// They are the vector `four` of the `fours` of a row of a packed weight; or the elements of these `channels`, which are converted when
/// they are staged.
#[cube]
fn fetch_weights<W: Float, N: Size>(
    weight: &[Vector<W, N>],
    next: &mut Array<Vector<W, Const<4>>>,
    terms: &Terms,
    nth: u32,
    four: u32,
    fours: u32,
    channels: &Array<u32>,
    #[comptime] packed: bool,
    #[comptime] tile: CubeTile,
) {
    #[unroll]
    for f in 0..comptime!(tile.weight_fetches()) {
        let at = terms.weights(nth + f * comptime!(tile.units() / tile.fours()[0]));
        if comptime!(packed) {
            next[f as usize] = Vector::cast_from(weight[(at * fours + four) as usize]);
        } else {
            let mut weights = Vector::<W, Const<4>>::empty();
            #[unroll]
            for i in 0..4usize {
                weights.insert(i, weight[(at + channels[i]) as usize].extract(0usize));
            }
            next[f as usize] = weights;
        }
    }
}

/// Stages what a unit has fetched, in a stage of each operand that begins at these vectors.
#[cube]
fn stage<E: Float, A: Float, W: Float>(
    weights: &mut Shared<[Vector<A, Const<4>>]>,
    sources: &mut Shared<[Vector<A, Const<1>>]>,
    weight_next: &Array<Vector<W, Const<4>>>,
    source_next: &Array<E>,
    weights_at: u32,
    sources_at: u32,
    #[comptime] tile: CubeTile,
) {
    #[unroll]
    for f in 0..comptime!(tile.weight_fetches()) {
        weights[(weights_at % SLOTS + f * comptime!(tile.units())) as usize] =
            Vector::cast_from(weight_next[f as usize]);
    }
    #[unroll]
    for i in 0..SHARE {
        sources[(sources_at % SLOTS + i * comptime!(tile.fours()[1] * 4)) as usize] =
            Vector::cast_from(source_next[i as usize]);
    }
}

/// The chains of [`convolve`](super::kernel::convolve), of a tile of channels and columns a cube. A column is a batch entry
/// and a target position, all of one phase, so that the columns of a cube meet the same taps.
///
/// `weight` has `taps`, and is [packed](pack_weight), or has these `steps`. `output` is `[parts, batch, groups,
/// target channels, d, h, w]`, contiguous, seen without its first axis. Part `p` is block `first_block + p` of each chain; a launch
/// of one part continues the sums of the launch before. A loop over blocks would keep the places of all results in registers.
///
/// The next terms are fetched to registers while the staged ones are multiplied, and staged beside them: each unit fetches
/// [`SHARE`] terms of one column. Fewer last terms end their loop early: no padding enters a chain.
#[cube(launch_unchecked)]
pub fn convolve_tiled<E: Float, A: Float, O: Float, W: Float, N: Size>(
    source: &Tensor<E>,
    weight: &[Vector<W, N>],
    steps: WeightSteps,
    bias: ComptimeOption<&[E]>,
    output: &mut Tensor<O>,
    first_block: u32,
    taps: Spatial,
    maps: IndexMaps,
    cubes: u32,
    #[comptime] variant: TiledVariant,
    #[define(E, A, O, W)] _dtypes: [ElemType; 4],
) {
    if CUBE_POS as u32 >= cubes {
        terminate!();
    }
    let tile = comptime!(variant.tile);
    let phased = comptime!(variant.phased);
    let inside = comptime!(variant.inside);
    let whole = comptime!(variant.whole);
    let packed = comptime!(variant.packed);
    let single = comptime!(variant.single);
    let products = comptime!(variant.products);
    let edge = comptime!(tile.vectors * 4);
    let rows = comptime!(tile.side_rows * edge);
    let columns = comptime!(tile.side_columns * edge);
    let units = comptime!(tile.units());
    let depth = comptime!(tile.depth());
    let fours = comptime!(rows / 4);
    let (weight_stage, source_stage) = (comptime!(fours * depth), comptime!(columns / 4 * depth));

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
    let source_channels = source.shape(2) as u32;
    let source_step = source.stride(2) as u32;
    let lengths = Spatial::shape::<E>(source);
    let strides = Spatial::strides::<E>(source);
    let position = Spatial {
        d: Taps::of(within.d * phases.d + phase.d, taps.d, &maps.d, phased).source(0) as u32,
        h: Taps::of(within.h * phases.h + phase.h, taps.h, &maps.h, phased).source(0) as u32,
        w: Taps::of(within.w * phases.w + phase.w, taps.w, &maps.w, phased).source(0) as u32,
    };
    let column = Column {
        base: entry * source.stride(0) as u32
            + group * source.stride(1) as u32
            + position.d * strides.d
            + position.h * strides.h
            + position.w * strides.w,
        position,
    };
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
    let (unit_row, unit_column) = unit_place(comptime!([tile.side_rows, tile.side_columns]));
    let tiles = comptime!(Tiles {
        vectors: [tile.vectors; 2],
        apart: [tile.side_rows, tile.side_columns],
        pitches: tile.fours(),
        products: Some(products),
    });
    let mut found = Terms::new();
    // Elements, since units stage one column each. Their alignment lets NVIDIA's compiler read four at a time.
    let mut sources =
        Shared::<[Vector<A, Const<1>>]>::new_aligned_slice(comptime!((source_stage * 4 * STAGES) as usize), ALIGNMENT);
    let mut weights = Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((weight_stage * STAGES) as usize));
    let mut source_next = Array::<E>::new(comptime!(SHARE as usize));
    let mut weight_next = Array::<Vector<W, Const<4>>>::new(comptime!(tile.weight_fetches() as usize));
    let mut a = Array::<Vector<A, Const<4>>>::new(comptime!(tile.vectors as usize));
    let mut b = Array::<Vector<A, Const<4>>>::new(comptime!(tile.vectors as usize));
    let mut acc = Array::<A>::new(comptime!((edge * edge) as usize));
    #[unroll]
    for k in 0..edge * edge {
        acc[k as usize] = A::new(0.0);
    }

    let mut weight_channels = Array::<u32>::new(4usize);
    if comptime!(!packed) {
        #[unroll]
        for i in 0..4u32 {
            let channel = row_tile * rows + UNIT_POS % fours * 4 + i;
            weight_channels[i as usize] = min(channel, channels - 1) * steps.channel;
        }
    }
    let first_weight =
        if comptime!(packed) { group * taps.d * taps.h * taps.w * source_channels } else { group * steps.group };
    let begin = index * BLOCK_TERMS;
    let block = Block {
        begin,
        terms: min(BLOCK_TERMS, terms - begin),
        d: taps_d,
        h: taps_h,
        w: taps_w,
        channels: source_channels,
        channel_stride: source_step,
        strides,
        first_weight,
        taps,
        steps,
    };
    let rounds = block.terms.div_ceil(depth);
    let mut left = block.terms;
    // Alternates: of `round % STAGES` the compiler would compute an address for each read.
    let mut staged = 0u32.runtime();
    // The terms of a stage that this unit fetches, and the channels: a tile may hang over the packed ones too.
    let source_first = fetch_lane * SHARE;
    let weight_first = UNIT_POS / fours;
    let weight_four = row_begin + min(UNIT_POS % fours, padded_fours - 1 - row_begin);
    let source_slot = fetch_lane * comptime!(SHARE * columns) + fetch_column;
    // The chain of a position that meets no tap is empty.
    if rounds > 0 {
        found.find(&block, 0u32, units, whole, packed);
    }
    sync_cube();
    if rounds > 0 {
        fetch::<E>(&found, source, &mut source_next, &column, source_first, source_step, &lengths, inside, whole);
        fetch_weights::<W, N>(
            weight,
            &mut weight_next,
            &found,
            weight_first,
            weight_four,
            padded_fours,
            &weight_channels,
            packed,
            tile,
        );
        stage::<E, A, W>(&mut weights, &mut sources, &weight_next, &source_next, UNIT_POS, source_slot, tile);
    }
    sync_cube();
    for round in 0..rounds {
        let now = round * depth;
        if now % WINDOW == 0 {
            found.find(&block, now + WINDOW, units, whole, packed);
        }
        let ahead = now + depth;
        let (weights_at, sources_at) =
            ((staged * weight_stage + unit_row) % SLOTS, (staged * source_stage + unit_column) % SLOTS);
        read::<A, Const<1>>(&weights, &sources, &mut a, &mut b, weights_at, sources_at, tiles);
        fetch::<E>(
            &found,
            source,
            &mut source_next,
            &column,
            ahead + source_first,
            source_step,
            &lengths,
            inside,
            whole,
        );
        fetch_weights::<W, N>(
            weight,
            &mut weight_next,
            &found,
            ahead + weight_first,
            weight_four,
            padded_fours,
            &weight_channels,
            packed,
            tile,
        );
        multiply_ahead::<A, Const<1>>(
            &weights, &sources, &mut a, &mut b, &mut acc, weights_at, sources_at, left, depth, tiles,
        );
        left -= min(left, depth);
        // Nobody reads the other stage: what was in it was multiplied before the last barrier.
        staged = STAGES - 1 - staged;
        let weights_to = staged * weight_stage + UNIT_POS;
        let sources_to = staged * comptime!(source_stage * 4) + source_slot;
        stage::<E, A, W>(&mut weights, &mut sources, &weight_next, &source_next, weights_to, sources_to, tile);
        sync_cube();
    }

    #[unroll]
    for j in 0..edge {
        let column = first_column + (j / 4 * comptime!(tile.side_columns) + unit_column) * 4 + j % 4;
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
