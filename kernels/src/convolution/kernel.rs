//! The device side.
//!
//! Tensors arrive as views of fixed rank, with the groups as an axis of their own: activations are
//! `[batch, groups, channels of a group, d, h, w]`, weights `[groups, target channels, source channels, d, h, w]`.
//! Only strides differ between layouts, so every layout runs the same code.

use crate::arithmetic::multiply_add;
use cubecl::prelude::*;

/// Spatial axes of a view start here.
const SPATIAL: usize = 3;

/// The position a tap that does not exist would meet.
const MISSING: u32 = u32::MAX;

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

/// The source position that meets `target` at `tap`, or [`MISSING`] where none does.
///
/// The source is the convolution's input in a forward pass; when `transposed`, it is the output.
#[cube]
fn source_position(target: u32, tap: u32, step: &Step, length: u32, #[comptime] transposed: bool) -> u32 {
    let mut position = MISSING.runtime();
    if comptime!(transposed) {
        let ahead = target + step.padding;
        let back = tap * step.dilation;
        if ahead >= back {
            let distance = ahead - back;
            let candidate = distance / step.stride;
            if candidate < length && candidate * step.stride == distance {
                position = candidate;
            }
        }
    } else {
        let ahead = target * step.stride + tap * step.dilation;
        if ahead >= step.padding && ahead - step.padding < length {
            position = ahead - step.padding;
        }
    }
    position
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
    step_d: Step,
    step_h: Step,
    step_w: Step,
    units: u32,
    #[comptime] tile_channels: usize,
    #[comptime] tile_batch: usize,
    #[comptime] transposed: bool,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let batch = output.shape(0) as u32;
    let groups = output.shape(1) as u32;
    let channels = output.shape(2) as u32;
    let height = output.shape(SPATIAL + 1) as u32;
    let width = output.shape(SPATIAL + 2) as u32;
    let plane = height * width;
    let positions = output.shape(SPATIAL) as u32 * plane;
    let tiles = channels.div_ceil(comptime!(tile_channels as u32));

    let position = unit % positions;
    let rest = unit / positions;
    let first_channel = rest % tiles * comptime!(tile_channels as u32);
    let rest = rest / tiles;
    let group = rest % groups;
    let first_batch = rest / groups * comptime!(tile_batch as u32);
    let d = position / plane;
    let h = position % plane / width;
    let w = position % width;

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

    let source_channels = weight.shape(2) as u32;
    let source_step = source.stride(2) as u32;
    let weight_step = weight.stride(2) as u32;
    for tap_d in 0..weight.shape(SPATIAL) as u32 {
        let source_d = source_position(d, tap_d, &step_d, source.shape(SPATIAL) as u32, transposed);
        if source_d != MISSING {
            for tap_h in 0..weight.shape(SPATIAL + 1) as u32 {
                let source_h = source_position(h, tap_h, &step_h, source.shape(SPATIAL + 1) as u32, transposed);
                if source_h != MISSING {
                    for tap_w in 0..weight.shape(SPATIAL + 2) as u32 {
                        let source_w = source_position(w, tap_w, &step_w, source.shape(SPATIAL + 2) as u32, transposed);
                        if source_w != MISSING {
                            let mut source_at = source_d * source.stride(SPATIAL) as u32
                                + source_h * source.stride(SPATIAL + 1) as u32
                                + source_w * source.stride(SPATIAL + 2) as u32;
                            let mut weight_at = tap_d * weight.stride(SPATIAL) as u32
                                + tap_h * weight.stride(SPATIAL + 1) as u32
                                + tap_w * weight.stride(SPATIAL + 2) as u32;
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
                        }
                    }
                }
            }
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
    let taps_h = blocks.shape(SPATIAL + 2) as u32;
    let taps_w = blocks.shape(SPATIAL + 3) as u32;
    let taps = blocks.shape(SPATIAL + 1) as u32 * taps_h * taps_w;
    let input_tiles = inputs.div_ceil(comptime!(tile_inputs as u32));
    let output_tiles = outputs.div_ceil(comptime!(tile_outputs as u32));

    let tap = unit % taps;
    let rest = unit / taps;
    let first_input = rest % input_tiles * comptime!(tile_inputs as u32);
    let rest = rest / input_tiles;
    let first_output = rest % output_tiles * comptime!(tile_outputs as u32);
    let rest = rest / output_tiles;
    let group = rest % groups;
    let block = rest / groups;
    let tap_d = tap / (taps_h * taps_w);
    let tap_h = tap / taps_w % taps_h;
    let tap_w = tap % taps_w;

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

    let depth = gradient.shape(SPATIAL) as u32;
    let height = gradient.shape(SPATIAL + 1) as u32;
    let width = gradient.shape(SPATIAL + 2) as u32;
    let terms = gradient.shape(0) as u32 * depth * height * width;
    let begin = block * block_terms;
    let end = min(begin + block_terms, terms);
    // Along a row the positions this tap meets are contiguous: `first..last`.
    let reach = tap_w * step_w.dilation;
    let mut first = u32::new(0);
    let mut last = u32::new(0);
    if reach < step_w.padding {
        first = (step_w.padding - reach).div_ceil(step_w.stride);
    }
    let limit = input.shape(SPATIAL + 2) as u32 + step_w.padding;
    if limit > reach {
        last = min((limit - reach).div_ceil(step_w.stride), width);
    }
    for row in begin / width..end.div_ceil(width) {
        let h = row % height;
        let rest = row / height;
        let d = rest % depth;
        let entry = rest / depth;
        let input_d = source_position(d, tap_d, &step_d, input.shape(SPATIAL) as u32, false);
        let input_h = source_position(h, tap_h, &step_h, input.shape(SPATIAL + 1) as u32, false);
        if input_d != MISSING && input_h != MISSING {
            let row_begin = row * width;
            let from = max(max(begin, row_begin) - row_begin, first);
            let to = min(min(end, row_begin + width) - row_begin, last);
            let mut gradient_at = entry * gradient.stride(0) as u32
                + d * gradient.stride(SPATIAL) as u32
                + h * gradient.stride(SPATIAL + 1) as u32
                + from * gradient.stride(SPATIAL + 2) as u32;
            // The first term's column: `from` is at least `first`, so this does not wrap when the loop runs.
            let mut input_at = entry * input.stride(0) as u32
                + input_d * input.stride(SPATIAL) as u32
                + input_h * input.stride(SPATIAL + 1) as u32
                + (from * step_w.stride + reach - step_w.padding) * input.stride(SPATIAL + 2) as u32;
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
                gradient_at += gradient.stride(SPATIAL + 2) as u32;
                input_at += step_w.stride * input.stride(SPATIAL + 2) as u32;
            }
        }
    }

    #[unroll]
    for j in 0..tile_outputs {
        let output = first_output + j as u32;
        #[unroll]
        for i in 0..tile_inputs {
            let channel = first_input + i as u32;
            if output < outputs && channel < inputs {
                let at = (((block * groups + group) * outputs + output) * inputs + channel) * taps + tap;
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
