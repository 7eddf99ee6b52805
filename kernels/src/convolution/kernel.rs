//! The device side of the passes between activations.
//!
//! Tensors arrive as views of fixed rank, with the groups as an axis of their own: activations are
//! `[batch, groups, channels of a group, d, h, w]`, weights `[groups, target channels, source channels, d, h, w]`.
//! Only strides differ between layouts, so every layout runs the same code.

use crate::arithmetic::multiply_add;
use cubecl::prelude::*;

/// Spatial axes of a view start here.
pub(super) const SPATIAL: usize = 3;

/// One number a spatial axis.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Spatial {
    pub d: u32,
    pub h: u32,
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
}

/// How the source position that a target position meets moves from tap to tap, along one spatial axis.
///
/// Tap 0 meets `(target * scale + offset) / divisor`, if the division is exact; each tap adds `step` to the quotient and
/// `step_rest` to the remainder. A forward pass divides by 1, an input gradient by the stride: the one kernel needs no
/// division inside its loop, where drivers for a CPU take one lane at a time.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Walk {
    /// Source positions an advance of the target is worth, before the division.
    pub scale: i32,
    /// Where target position 0 meets tap 0, before the division.
    pub offset: i32,
    /// What source positions are multiples of.
    pub divisor: i32,
    /// What a tap adds to the quotient.
    pub step: i32,
    /// What a tap adds to the remainder: zero, or less.
    pub step_rest: i32,
}

/// A place along a [`Walk`].
#[derive(CubeType, Clone, Copy)]
struct Place {
    position: i32,
    rest: i32,
}

#[cube]
impl Place {
    /// Where `target` meets `tap`.
    fn at(target: u32, tap: u32, walk: &Walk) -> Place {
        let distance =
            target as i32 * walk.scale + walk.offset + tap as i32 * (walk.step * walk.divisor + walk.step_rest);
        // The division rounds towards zero, the place is to be the one below.
        let position = distance / walk.divisor;
        let rest = distance - position * walk.divisor;
        let borrow = rest < 0;
        Place { position: select(borrow, position - 1, position), rest: select(borrow, rest + walk.divisor, rest) }
    }

    /// Moves to where the next tap is met.
    fn advance(&mut self, walk: &Walk) {
        let rest = self.rest + walk.step_rest;
        let position = self.position + walk.step;
        let borrow = rest < 0;
        self.position = select(borrow, position - 1, position);
        self.rest = select(borrow, rest + walk.divisor, rest);
    }

    /// Moves to another place.
    fn set(&mut self, other: &Place) {
        self.position = other.position;
        self.rest = other.rest;
    }

    /// Whether there is a source position here.
    fn exists(&self, length: u32) -> bool {
        self.rest == 0 && self.position >= 0 && self.position < length as i32
    }
}

/// The part of each chain that one launch computes: of some taps some source channels.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Span {
    /// Taps, numbered row-major.
    pub first_tap: u32,
    /// The tap after the last one.
    pub end_tap: u32,
    /// Source channels.
    pub first_channel: u32,
    /// How many of them.
    pub channels: u32,
}

/// One chain an output element, over taps row-major ascending, then source channels ascending. A launch that `continues`
/// takes up the chains where the launch before left them in `output`.
///
/// A unit owns one spatial position of `tile_channels` target channels of `tile_batch` batch entries: all of them meet
/// the same taps, so a tap that does not exist is skipped once for the whole tile.
#[cube(launch_unchecked)]
pub fn convolve<E: Float, A: Float, O: Float>(
    source: &Tensor<E>,
    weight: &Tensor<E>,
    bias: ComptimeOption<&[E]>,
    output: &mut Tensor<O>,
    span: Span,
    walk_d: Walk,
    walk_h: Walk,
    walk_w: Walk,
    units: u32,
    #[comptime] tile_channels: usize,
    #[comptime] tile_batch: usize,
    #[comptime] continues: bool,
    #[define(E, A, O)] _dtypes: [ElemType; 3],
) {
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

    let tile = unit / positions;
    let position = unit - tile * positions;
    let tile_row = tile / tiles;
    let first_channel = (tile - tile_row * tiles) * comptime!(tile_channels as u32);
    let batch_tile = tile_row / groups;
    let group = tile_row - batch_tile * groups;
    let first_batch = batch_tile * comptime!(tile_batch as u32);
    let target_at = target.split(position);

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
        #[unroll]
        for i in 0..tile_batch {
            acc[j * tile_batch + i] = A::new(0.0);
            if comptime!(continues) {
                let entry = min(first_batch + i as u32, batch - 1);
                let at = ((entry * groups + group) * channels + channel) * positions + position;
                acc[j * tile_batch + i] = A::cast_from(output[at as usize]);
            }
        }
    }

    // Sizes and strides are read before the loops: drivers for a CPU gather them again at each use.
    let source_step = source.stride(2) as u32;
    let weight_step = weight.stride(2) as u32;
    let lengths = Spatial::shape::<E>(source);
    let source_strides = Spatial::strides::<E>(source);
    let weight_strides = Spatial::strides::<E>(weight);
    let taps = Spatial::shape::<E>(weight);
    let first_tap = taps.split(span.first_tap);
    let start_h = Place::at(target_at.h, 0, &walk_h);
    let start_w = Place::at(target_at.w, 0, &walk_w);
    let mut place_d = Place::at(target_at.d, first_tap.d, &walk_d);
    let mut place_h = Place::at(target_at.h, first_tap.h, &walk_h);
    let mut place_w = Place::at(target_at.w, first_tap.w, &walk_w);
    let mut tap_d = first_tap.d;
    let mut tap_h = first_tap.h;
    let mut tap_w = first_tap.w;
    // Two loops and no branch: drivers for a CPU blend every accumulator under a mask at each level of nesting.
    for _ in span.first_tap..span.end_tap {
        let exists = place_d.exists(lengths.d) && place_h.exists(lengths.h) && place_w.exists(lengths.w);
        let source_channels = select(exists, span.channels, 0);
        let mut source_at = span.first_channel * source_step
            + place_d.position as u32 * source_strides.d
            + place_h.position as u32 * source_strides.h
            + place_w.position as u32 * source_strides.w;
        let mut weight_at = span.first_channel * weight_step
            + tap_d * weight_strides.d
            + tap_h * weight_strides.h
            + tap_w * weight_strides.w;
        for _ in 0..source_channels {
            let mut x = Array::<A>::new(tile_batch);
            #[unroll]
            for i in 0..tile_batch {
                x[i] = A::cast_from(source[(source_base[i] + source_at) as usize]);
            }
            #[unroll]
            for j in 0..tile_channels {
                let y = A::cast_from(weight[(weight_base[j] + weight_at) as usize]);
                #[unroll]
                for i in 0..tile_batch {
                    let k = comptime!(j * tile_batch + i);
                    acc[k] = multiply_add::<A>(x[i], y, acc[k]);
                }
            }
            source_at += source_step;
            weight_at += weight_step;
        }
        tap_w += 1;
        place_w.advance(&walk_w);
        if tap_w == taps.w {
            tap_w = 0;
            place_w.set(&start_w);
            tap_h += 1;
            place_h.advance(&walk_h);
        }
        if tap_h == taps.h {
            tap_h = 0;
            place_h.set(&start_h);
            tap_d += 1;
            place_d.advance(&walk_d);
        }
    }

    #[unroll]
    for j in 0..tile_channels {
        let channel = first_channel + j as u32;
        #[unroll]
        for i in 0..tile_batch {
            let entry = first_batch + i as u32;
            if channel < channels && entry < batch {
                let sum = acc[j * tile_batch + i];
                #[comptime]
                let value = match bias {
                    ComptimeOption::Some(bias) => sum + A::cast_from(bias[(group * channels + channel) as usize]),
                    ComptimeOption::None => sum,
                };
                let at = ((entry * groups + group) * channels + channel) * positions + position;
                output[at as usize] = O::cast_from(value);
            }
        }
    }
}
