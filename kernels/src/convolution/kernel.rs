//! The device side.
//!
//! Tensors arrive as views of fixed rank, with the groups as an axis of their own: activations are
//! `[batch, groups, channels of a group, d, h, w]`, weights `[groups, target channels, source channels, d, h, w]`.
//! Only strides differ between layouts, so every layout runs the same code.

use crate::arithmetic::multiply_add;
use cubecl::prelude::*;

/// Spatial axes of a view start here.
const SPATIAL: usize = 3;

/// One number a spatial axis.
#[derive(CubeType, Clone, Copy)]
struct Spatial {
    d: u32,
    h: u32,
    w: u32,
}

#[cube]
impl Spatial {
    /// The spatial sizes of a view.
    fn shape<E: Float>(view: &Tensor<E>) -> Spatial {
        Spatial { d: view.shape(SPATIAL) as u32, h: view.shape(SPATIAL + 1) as u32, w: view.shape(SPATIAL + 2) as u32 }
    }

    /// The spatial strides of a view.
    fn strides<E: Float>(view: &Tensor<E>) -> Spatial {
        Spatial {
            d: view.stride(SPATIAL) as u32,
            h: view.stride(SPATIAL + 1) as u32,
            w: view.stride(SPATIAL + 2) as u32,
        }
    }

    /// `value` split into places of these sizes.
    fn split(&self, value: u32) -> Spatial {
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
    /// Where `target` meets tap 0. Only a divisor of 1 meets negative numbers.
    fn first(target: u32, walk: &Walk) -> Place {
        let distance = target as i32 * walk.scale + walk.offset;
        let position = distance / walk.divisor;
        Place { position, rest: distance - position * walk.divisor }
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

/// How taps step along one spatial axis.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Step {
    /// Input positions between neighbouring output positions.
    pub stride: u32,
    /// Zeros before the first input position.
    pub padding: u32,
    /// Input positions between neighbouring taps.
    pub dilation: u32,
}

/// One chain an output element, over taps row-major ascending, then source channels ascending.
///
/// A unit owns one spatial position of `tile_channels` target channels of `tile_batch` batch entries: all of them meet
/// the same taps, so a tap that does not exist is skipped once for the whole tile.
#[cube(launch_unchecked)]
pub fn convolve<E: Float, A: Float>(
    source: &Tensor<E>,
    weight: &Tensor<E>,
    bias: ComptimeOption<&[E]>,
    output: &mut Tensor<E>,
    walk_d: Walk,
    walk_h: Walk,
    walk_w: Walk,
    units: u32,
    #[comptime] tile_channels: usize,
    #[comptime] tile_batch: usize,
    #[define(E, A)] _dtypes: [ElemType; 2],
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

    let rest = unit / positions;
    let position = unit - rest * positions;
    let tile = rest / tiles;
    let first_channel = (rest - tile * tiles) * comptime!(tile_channels as u32);
    let batch_tile = tile / groups;
    let group = tile - batch_tile * groups;
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
        }
    }

    // Sizes and strides are read before the loops: drivers for a CPU gather them again at each use.
    let channels_of_source = weight.shape(2) as u32;
    let source_step = source.stride(2) as u32;
    let weight_step = weight.stride(2) as u32;
    let lengths = Spatial::shape::<E>(source);
    let source_strides = Spatial::strides::<E>(source);
    let weight_strides = Spatial::strides::<E>(weight);
    let taps = Spatial::shape::<E>(weight);
    let start_h = Place::first(target_at.h, &walk_h);
    let start_w = Place::first(target_at.w, &walk_w);
    let mut place_d = Place::first(target_at.d, &walk_d);
    let mut place_h = Place::first(target_at.h, &walk_h);
    let mut place_w = Place::first(target_at.w, &walk_w);
    let mut tap_d = u32::new(0);
    let mut tap_h = u32::new(0);
    let mut tap_w = u32::new(0);
    // Two loops and no branch: drivers for a CPU blend every accumulator under a mask at each level of nesting.
    for _ in 0..taps.d * taps.h * taps.w {
        let exists = place_d.exists(lengths.d) && place_h.exists(lengths.h) && place_w.exists(lengths.w);
        let source_channels = select(exists, channels_of_source, 0);
        let mut source_at = place_d.position as u32 * source_strides.d
            + place_h.position as u32 * source_strides.h
            + place_w.position as u32 * source_strides.w;
        let mut weight_at = tap_d * weight_strides.d + tap_h * weight_strides.h + tap_w * weight_strides.w;
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
                output[at as usize] = E::cast_from(value);
            }
        }
    }
}

/// One chain a block of terms of a weight's gradient, over batch entries and output positions ascending.
///
/// `blocks` is `[blocks, groups, output channels, input channels, taps]`, contiguous. A unit owns one tap and one block
/// of `tile_outputs` output channels and `tile_inputs` input channels: all of them meet the same positions.
#[cube(launch_unchecked)]
pub fn weight_gradient_blocks<E: Float, A: Float, O: Float>(
    input: &Tensor<E>,
    gradient: &Tensor<E>,
    blocks: &mut Tensor<O>,
    step_d: Step,
    step_h: Step,
    step_w: Step,
    units: u32,
    block_terms: u32,
    #[comptime] tile_outputs: usize,
    #[comptime] tile_inputs: usize,
    #[define(E, A, O)] _dtypes: [ElemType; 3],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let groups = input.shape(1) as u32;
    let inputs = input.shape(2) as u32;
    let outputs = gradient.shape(2) as u32;
    let taps = Spatial {
        d: blocks.shape(SPATIAL + 1) as u32,
        h: blocks.shape(SPATIAL + 2) as u32,
        w: blocks.shape(SPATIAL + 3) as u32,
    };
    let tap_count = taps.d * taps.h * taps.w;
    let input_tiles = inputs.div_ceil(comptime!(tile_inputs as u32));
    let output_tiles = outputs.div_ceil(comptime!(tile_outputs as u32));

    let rest = unit / tap_count;
    let tap = unit - rest * tap_count;
    let tile = rest / input_tiles;
    let first_input = (rest - tile * input_tiles) * comptime!(tile_inputs as u32);
    let rest = tile / output_tiles;
    let first_output = (tile - rest * output_tiles) * comptime!(tile_outputs as u32);
    let block = rest / groups;
    let group = rest - block * groups;
    let tap_at = taps.split(tap);

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
    let positions = Spatial::shape::<E>(gradient);
    let lengths = Spatial::shape::<E>(input);
    let input_strides = Spatial::strides::<E>(input);
    let gradient_strides = Spatial::strides::<E>(gradient);
    let input_entry = input.stride(0) as u32;
    let gradient_entry = gradient.stride(0) as u32;
    let (stride_d, stride_h) = (step_d.stride, step_h.stride);
    let terms = gradient.shape(0) as u32 * positions.d * positions.h * positions.w;
    let begin = block * block_terms;
    let end = min(begin + block_terms, terms);
    // Along a row the positions this tap meets are contiguous: `first..last`.
    let reach = tap_at.w * step_w.dilation;
    let mut first = u32::new(0);
    let mut last = u32::new(0);
    if reach < step_w.padding {
        first = (step_w.padding - reach).div_ceil(step_w.stride);
    }
    let limit = lengths.w + step_w.padding;
    if limit > reach {
        last = min((limit - reach).div_ceil(step_w.stride), positions.w);
    }
    // Where a sum with one of these wraps below zero no input position exists.
    let ahead_d = tap_at.d * step_d.dilation - step_d.padding;
    let ahead_h = tap_at.h * step_h.dilation - step_h.padding;
    let ahead_w = reach - step_w.padding;
    let input_step = step_w.stride * input_strides.w;
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
        let exists = input_d < lengths.d && input_h < lengths.h;
        let from = max(max(begin, row_begin) - row_begin, first);
        let to = select(exists, min(min(end, row_begin + positions.w) - row_begin, last), 0);
        let mut gradient_at =
            entry * gradient_entry + d * gradient_strides.d + h * gradient_strides.h + from * gradient_strides.w;
        let mut input_at = entry * input_entry
            + input_d * input_strides.d
            + input_h * input_strides.h
            + from * input_step
            + ahead_w * input_strides.w;
        for _ in from..to {
            let mut x = Array::<A>::new(tile_inputs);
            #[unroll]
            for i in 0..tile_inputs {
                x[i] = A::cast_from(input[(input_base[i] + input_at) as usize]);
            }
            #[unroll]
            for j in 0..tile_outputs {
                let y = A::cast_from(gradient[(gradient_base[j] + gradient_at) as usize]);
                #[unroll]
                for i in 0..tile_inputs {
                    let k = comptime!(j * tile_inputs + i);
                    acc[k] = multiply_add::<A>(x[i], y, acc[k]);
                }
            }
            gradient_at += gradient_strides.w;
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
                let at = (((block * groups + group) * outputs + output) * inputs + channel) * tap_count + tap;
                blocks[at as usize] = O::cast_from(acc[j * tile_inputs + i]);
            }
        }
    }
}

/// Adds the blocks of each weight, ascending.
#[cube(launch_unchecked)]
pub fn add_blocks<A: Float, E: Float>(
    blocks: &[A],
    output: &mut [E],
    count: u32,
    weights: u32,
    #[define(A, E)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= weights {
        terminate!();
    }
    let mut total = blocks[unit as usize];
    let mut at = unit;
    for _ in 1..count {
        at += weights;
        total += blocks[at as usize];
    }
    output[unit as usize] = E::cast_from(total);
}
