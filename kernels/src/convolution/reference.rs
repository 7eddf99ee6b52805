//! The same orders in plain Rust: the specification.
//!
//! Operands are contiguous and row-major, shaped as [`Geometry`] says.

use super::shape::Geometry;
use crate::arithmetic::MultiplyAdd;

/// `[batch, output channels, positions]` from an input, a weight and a bias of one value an output channel.
pub fn forward(g: &Geometry, fma: MultiplyAdd, input: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let [inside, outside, taps] = extents(g);
    let mut result = Vec::new();
    for (b, channel) in pairs(g.batch, g.groups * g.outputs) {
        let group = channel / g.outputs;
        for o in positions(outside) {
            let mut acc = 0.0;
            for k in positions(taps) {
                let Some(i) = each(|n| g.axes[n].input_of(o[n], k[n])) else { continue };
                for c in 0..g.inputs {
                    let x = input[at(b * g.groups * g.inputs + group * g.inputs + c, i, inside)];
                    acc = fma.apply(x, weight[at(channel * g.inputs + c, k, taps)], acc);
                }
            }
            result.push(bias.map_or(acc, |bias| acc + bias[channel]));
        }
    }
    result
}

/// `[batch, input channels, positions]` from an output's gradient and a weight; a bias makes it a transposed forward.
pub fn input_gradient(
    g: &Geometry,
    fma: MultiplyAdd,
    gradient: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let [inside, outside, taps] = extents(g);
    let mut result = Vec::new();
    for (b, channel) in pairs(g.batch, g.groups * g.inputs) {
        let (group, within) = (channel / g.inputs, channel % g.inputs);
        for i in positions(inside) {
            let mut acc = 0.0;
            for k in positions(taps) {
                let Some(o) = each(|n| g.axes[n].output_of(i[n], k[n])) else { continue };
                for c in group * g.outputs..(group + 1) * g.outputs {
                    let y = gradient[at(b * g.groups * g.outputs + c, o, outside)];
                    acc = fma.apply(y, weight[at(c * g.inputs + within, k, taps)], acc);
                }
            }
            result.push(bias.map_or(acc, |bias| acc + bias[channel]));
        }
    }
    result
}

/// `[output channels, input channels of a group, taps]` from an input and an output's gradient.
pub fn weight_gradient(g: &Geometry, fma: MultiplyAdd, input: &[f32], gradient: &[f32]) -> Vec<f32> {
    let [inside, outside, taps] = extents(g);
    let mut result = Vec::new();
    for (channel, within) in pairs(g.groups * g.outputs, g.inputs) {
        let source = channel / g.outputs * g.inputs + within;
        for k in positions(taps) {
            let mut blocks = vec![0.0; g.blocks()];
            let terms = (0..g.batch).flat_map(|b| positions(outside).map(move |o| (b, o)));
            for (term, (b, o)) in terms.enumerate() {
                let Some(i) = each(|n| g.axes[n].input_of(o[n], k[n])) else { continue };
                let acc = &mut blocks[term / g.block()];
                let x = input[at(b * g.groups * g.inputs + source, i, inside)];
                *acc = fma.apply(x, gradient[at(b * g.groups * g.outputs + channel, o, outside)], *acc);
            }
            result.push(blocks[1..].iter().fold(blocks[0], |total, block| total + block));
        }
    }
    result
}

/// Input, output and kernel sizes.
fn extents(g: &Geometry) -> [[usize; 3]; 3] {
    [g.axes.map(|axis| axis.input), g.axes.map(|axis| axis.output), g.axes.map(|axis| axis.taps)]
}

/// Row-major ascending positions.
fn positions([d, h, w]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..d * h * w).map(move |n| [n / w / h, n / w % h, n % w])
}

/// Row-major ascending pairs.
fn pairs(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows * columns).map(move |n| (n / columns, n % columns))
}

/// Applies `position` to each axis; nothing if one axis has nothing.
fn each(position: impl Fn(usize) -> Option<usize>) -> Option<[usize; 3]> {
    Some([position(0)?, position(1)?, position(2)?])
}

/// The row-major index of a position of a plane.
fn at(plane: usize, [d, h, w]: [usize; 3], [depth, height, width]: [usize; 3]) -> usize {
    ((plane * depth + d) * height + h) * width + w
}
