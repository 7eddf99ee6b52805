//! The device side of the passes between activations.
//!
//! Tensors arrive as views of fixed rank, with the groups as an axis of their own: activations are
//! `[batch, groups, channels of a group, d, h, w]`, weights `[groups, target channels, source channels, d, h, w]`.
//! Only strides differ between layouts, so every layout runs the same code.

use super::plan::UnitTile;
use crate::arithmetic::{Products, accumulate};
use crate::order::BLOCK;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Spatial axes of a view start here.
pub(super) const SPATIAL: usize = 3;

/// One number a spatial axis.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Spatial {
    /// Along depth.
    pub d: u32,
    /// Along height.
    pub h: u32,
    /// Along width.
    pub w: u32,
}

#[cube]
impl Spatial {
    /// The spatial sizes of a view.
    pub fn shape<E: Float>(view: &Tensor<E>) -> Spatial {
        Spatial { d: view.shape(SPATIAL) as u32, h: view.shape(SPATIAL + 1) as u32, w: view.shape(SPATIAL + 2) as u32 }
    }

    /// The spatial strides of a view.
    pub fn strides<E: Float>(view: &Tensor<E>) -> Spatial {
        Spatial {
            d: view.stride(SPATIAL) as u32,
            h: view.stride(SPATIAL + 1) as u32,
            w: view.stride(SPATIAL + 2) as u32,
        }
    }

    /// `value` split into places of these sizes.
    pub fn split(&self, value: u32) -> Spatial {
        let rows = value / self.w;
        let d = rows / self.h;
        Spatial { d, h: rows - d * self.h, w: value - rows * self.w }
    }

    /// Whether a tensor of these `lengths` has this position. Along the axes that are `inside` it has every position that is
    /// read. A position before the first has wrapped.
    pub fn exists(&self, lengths: &Spatial, #[comptime] inside: [bool; 3]) -> bool {
        let [d, h, w] = comptime!(inside);
        let mut exists = true.runtime();
        if comptime!(!d) {
            exists = self.d < lengths.d;
        }
        if comptime!(!h) {
            exists = exists && self.h < lengths.h;
        }
        if comptime!(!w) {
            exists = exists && self.w < lengths.w;
        }
        exists
    }

    /// The next place, row-major, of those with these sizes.
    pub fn advance(&mut self, sizes: &Spatial) {
        self.w += 1;
        if self.w == sizes.w {
            self.w = 0u32.runtime();
            self.h += 1;
        }
        if self.h == sizes.h {
            self.h = 0u32.runtime();
            self.d += 1;
        }
    }
}

/// The affine map from a target position `i` and a tap `k` to the source position that is read, along one spatial axis:
///
/// ```text
/// i * scale + offset + k * step
/// ```
///
/// In a `phased` pass, an input gradient with a stride other than 1, it is
///
/// ```text
/// (i + offset - k * dilation) / stride      for k = first(i), first(i) + stride / common, ..
/// ```
///
/// These are the taps for which it is a whole number; others read nothing. From each of them to the next one the source
/// position moves by `step`, which is `-dilation / common`.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct IndexMap {
    /// Source positions between neighbouring target positions.
    pub scale: i32,
    /// Where target position 0 meets tap 0, before any division.
    pub offset: i32,
    /// Source positions from a tap to the next one that is met.
    pub step: i32,
    /// What source positions are divided by.
    pub stride: u32,
    /// The greatest common divisor of stride and dilation.
    pub common: u32,
    /// The inverse of `dilation / common` modulo `stride / common`.
    pub inverse: u32,
}

#[cube]
impl IndexMap {
    /// The source position that a tap reads at target position 0. One before the source's begin wraps.
    pub fn ahead(&self, tap: u32) -> u32 {
        u32::reinterpret(tap as i32 * self.step + self.offset)
    }
}

/// [`IndexMap`] along depth, height and width.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct IndexMaps {
    pub d: IndexMap,
    pub h: IndexMap,
    pub w: IndexMap,
}

/// The blocks `first .. end` of each chain, which one launch computes.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Blocks {
    pub first: u32,
    pub end: u32,
}

/// What [`convolve`] is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The channels and batch entries of one unit.
    pub tile: UnitTile,
    /// Whether target positions meet other taps by their phase: in an input gradient with a stride.
    pub phased: bool,
    /// Whether no tap lies outside the source.
    pub inside: bool,
    /// Whether every chain is one block.
    pub single: bool,
    /// How products are added.
    pub products: Products,
}

/// The taps that one target position meets, along one spatial axis.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Taps {
    /// The first tap, and how far apart the taps lie.
    first: u32,
    apart: u32,
    /// How many they are.
    pub count: u32,
    /// The source positions of the first tap, and from each tap to the next.
    position: i32,
    step: i32,
}

#[cube]
impl Taps {
    pub fn of(target: u32, taps: u32, map: &IndexMap, #[comptime] phased: bool) -> Taps {
        let at = target as i32 * map.scale + map.offset;
        if comptime!(phased) {
            let quotient = at as u32 / map.common;
            let apart = map.stride / map.common;
            let first = quotient % apart * map.inverse % apart;
            let meets = quotient * map.common == at as u32 && first < taps;
            let position = (at + first as i32 * map.step * map.common as i32) / map.stride as i32;
            Taps { first, apart, count: select(meets, (taps - first).div_ceil(apart), 0), position, step: map.step }
        } else {
            Taps { first: 0u32, apart: 1u32, count: taps, position: at, step: map.step }
        }
    }

    /// The tap at a place among them.
    pub fn tap(&self, place: u32) -> u32 {
        self.first + place * self.apart
    }

    /// How far from the first tap's source position that of the tap at a place among them lies, modulo 2^32.
    pub fn ahead(&self, place: u32) -> u32 {
        u32::reinterpret(place as i32 * self.step)
    }

    /// The source position of the tap at a place among them.
    pub fn source(&self, place: u32) -> i32 {
        self.position + place as i32 * self.step
    }
}

/// Phases of target positions along each axis: those that lie a multiple of the stride apart meet the same taps.
#[cube]
pub(super) fn phases_of(target: &Spatial, maps: &IndexMaps, #[comptime] phased: bool) -> Spatial {
    if comptime!(phased) {
        Spatial { d: min(maps.d.stride, target.d), h: min(maps.h.stride, target.h), w: min(maps.w.stride, target.w) }
    } else {
        Spatial { d: 1u32.runtime(), h: 1u32.runtime(), w: 1u32.runtime() }
    }
}

/// The target position of a unit, and what is left of its number: which tile of channels and batch entries it owns.
///
/// In a phased pass, units that follow each other have positions of one phase, `phase + stride * n`, which meet equally many
/// taps. The last positions of a phase may lie beyond the target.
#[cube]
fn target_of(unit: u32, target: &Spatial, maps: &IndexMaps, #[comptime] phased: bool) -> (Spatial, u32) {
    if comptime!(phased) {
        let phases = phases_of(target, maps, phased);
        let of_phase =
            Spatial { d: target.d.div_ceil(phases.d), h: target.h.div_ceil(phases.h), w: target.w.div_ceil(phases.w) };
        let positions = of_phase.d * of_phase.h * of_phase.w;
        let row = unit / positions;
        let within = of_phase.split(unit - row * positions);
        let all_phases = phases.d * phases.h * phases.w;
        let tile = row / all_phases;
        let phase = phases.split(row - tile * all_phases);
        let at = Spatial {
            d: within.d * phases.d + phase.d,
            h: within.h * phases.h + phase.h,
            w: within.w * phases.w + phase.w,
        };
        (at, tile)
    } else {
        let positions = target.d * target.h * target.w;
        let tile = unit / positions;
        (target.split(unit - tile * positions), tile)
    }
}

/// Adds a block's chain of an element to the sum of the blocks before it, which is kept in the output, unless it is the `first`
/// or `single`, and to the `last` block's sum the bias of the element's channel.
#[allow(clippy::collapsible_if, reason = "the outer condition is decided when the kernel is compiled")]
#[cube]
pub(super) fn store<E: Float, A: Float, O: Float>(
    output: &mut Tensor<O>,
    at: u32,
    chain: A,
    first: bool,
    last: bool,
    bias: ComptimeOption<&[E]>,
    channel: u32,
    #[comptime] single: bool,
) {
    let mut total = chain;
    if comptime!(!single) {
        if !first {
            total += A::cast_from(output[at as usize]);
        }
    }
    #[comptime]
    let value = match bias {
        ComptimeOption::Some(bias) => select(last, total + A::cast_from(bias[channel as usize]), total),
        ComptimeOption::None => total,
    };
    output[at as usize] = O::cast_from(value);
}

/// One chain of blocks of [`BLOCK`] terms an output element, over the taps it meets row-major ascending, then source
/// channels ascending; a tap outside the source reads +0. A launch computes some of the `blocks` and adds them, one by
/// one, to what the launch before left in `output`; after its last block an element gets its bias.
///
/// `output` is `[batch, groups, target channels, d, h, w]`, contiguous. A unit owns one spatial position of `tile.rows`
/// target channels of `tile.columns` batch entries: all of them meet the same taps.
#[cube(launch_unchecked)]
pub fn convolve<E: Float, A: Float, O: Float>(
    source: &Tensor<E>,
    weight: &Tensor<E>,
    bias: ComptimeOption<&[E]>,
    output: &mut Tensor<O>,
    blocks: Blocks,
    maps: IndexMaps,
    units: u32,
    #[comptime] variant: Variant,
    #[define(E, A, O)] _dtypes: [ElemType; 3],
) {
    let phased = comptime!(variant.phased);
    let inside = comptime!(variant.inside);
    let single = comptime!(variant.single);
    let products = comptime!(variant.products);
    let tile_channels = comptime!(variant.tile.rows);
    let tile_batch = comptime!(variant.tile.columns);
    let block = comptime!(BLOCK as u32);
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let batch = output.shape(0) as u32;
    let groups = output.shape(1) as u32;
    let channels = output.shape(2) as u32;
    let target = Spatial {
        d: output.shape(SPATIAL) as u32,
        h: output.shape(SPATIAL + 1) as u32,
        w: output.shape(SPATIAL + 2) as u32,
    };
    let positions = target.d * target.h * target.w;
    let tiles = channels.div_ceil(comptime!(tile_channels as u32));
    let (target_at, owner) = target_of(unit, &target, &maps, phased);
    let stored = target_at.d < target.d && target_at.h < target.h && target_at.w < target.w;
    let position = (target_at.d * target.h + target_at.h) * target.w + target_at.w;
    let tile_row = owner / tiles;
    let first_channel = (owner - tile_row * tiles) * comptime!(tile_channels as u32);
    let batch_tile = tile_row / groups;
    let group = tile_row - batch_tile * groups;
    let first_batch = batch_tile * comptime!(tile_batch as u32);

    // A tile that hangs over the edge repeats the last channel or batch entry and does not store it.
    let mut source_base = Array::<u32>::new(tile_batch);
    let mut weight_base = Array::<u32>::new(tile_channels);
    let mut acc = Array::<A>::new(comptime!(tile_channels * tile_batch));
    #[unroll]
    for i in 0..tile_batch {
        let entry = min(first_batch + i as u32, batch - 1);
        source_base[i] = entry * source.stride(0) as u32 + group * source.stride(1) as u32;
    }
    #[unroll]
    for j in 0..tile_channels {
        let channel = min(first_channel + j as u32, channels - 1);
        weight_base[j] = group * weight.stride(0) as u32 + channel * weight.stride(1) as u32;
    }

    // Sizes and strides are read before the loops: drivers for a CPU gather them again at each use.
    let source_channels = source.shape(2) as u32;
    let source_step = source.stride(2) as u32;
    let weight_step = weight.stride(2) as u32;
    let lengths = Spatial::shape::<E>(source);
    let source_strides = Spatial::strides::<E>(source);
    let weight_strides = Spatial::strides::<E>(weight);
    let taps = Spatial::shape::<E>(weight);
    let taps_d = Taps::of(target_at.d, taps.d, &maps.d, phased);
    let taps_h = Taps::of(target_at.h, taps.h, &maps.h, phased);
    let taps_w = Taps::of(target_at.w, taps.w, &maps.w, phased);
    let met = Spatial { d: taps_d.count, h: taps_h.count, w: taps_w.count };
    let met_taps = met.d * met.h * met.w;
    let terms = met_taps * source_channels;
    let end_block = max(terms.div_ceil(block), 1);
    let divisor = max(source_channels, 1);
    for index in blocks.first..min(blocks.end, end_block) {
        #[unroll]
        for k in 0..comptime!(tile_channels * tile_batch) {
            acc[k] = A::new(0.0);
        }
        let begin = index * block;
        let end = min(begin + block, terms);
        let first_tap = if comptime!(single) { 0u32.runtime() } else { begin / divisor };
        let end_tap = if comptime!(single) { met_taps } else { end.div_ceil(divisor) };
        let mut at = if comptime!(single) {
            Spatial { d: 0u32.runtime(), h: 0u32.runtime(), w: 0u32.runtime() }
        } else {
            Spatial { d: met.d, h: max(met.h, 1), w: max(met.w, 1) }.split(first_tap)
        };
        let mut from = begin - first_tap * source_channels;
        let mut left = end - begin;
        for _ in first_tap..end_tap {
            let to = if comptime!(single) { source_channels } else { min(source_channels, from + left) };
            let position =
                Spatial { d: taps_d.source(at.d) as u32, h: taps_h.source(at.h) as u32, w: taps_w.source(at.w) as u32 };
            let exists = position.exists(&lengths, comptime!([inside; 3]));
            let mut source_at = from * source_step
                + position.d * source_strides.d
                + position.h * source_strides.h
                + position.w * source_strides.w;
            let mut weight_at = from * weight_step
                + taps_d.tap(at.d) * weight_strides.d
                + taps_h.tap(at.h) * weight_strides.h
                + taps_w.tap(at.w) * weight_strides.w;
            for _ in from..to {
                let mut x = Array::<A>::new(tile_batch);
                #[unroll]
                for i in 0..tile_batch {
                    x[i] = A::new(0.0);
                }
                if exists {
                    #[unroll]
                    for i in 0..tile_batch {
                        x[i] = A::cast_from(source[(source_base[i] + source_at) as usize]);
                    }
                }
                #[unroll]
                for j in 0..tile_channels {
                    let y = A::cast_from(weight[(weight_base[j] + weight_at) as usize]);
                    #[unroll]
                    for i in 0..tile_batch {
                        let k = comptime!(j * tile_batch + i);
                        acc[k] = accumulate::<A>(x[i], y, acc[k], products);
                    }
                }
                source_at += source_step;
                weight_at += weight_step;
            }
            if comptime!(!single) {
                left -= to - from;
                from = 0u32.runtime();
            }
            at.advance(&met);
        }

        #[unroll]
        for j in 0..tile_channels {
            let channel = first_channel + j as u32;
            #[unroll]
            for i in 0..tile_batch {
                let entry = first_batch + i as u32;
                if stored && channel < channels && entry < batch {
                    let at = ((entry * groups + group) * channels + channel) * positions + position;
                    let chain = acc[j * tile_batch + i];
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
    }
    keep_subnormals();
}
