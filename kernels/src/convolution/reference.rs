//! The same orders in plain Rust: the specification.
//!
//! Operands are contiguous and row-major, shaped as [`Geometry`] says.

use super::shape::Geometry;
use crate::arithmetic::MultiplyAdd;
use crate::matmul::tensor_cores::plan::VECTOR;
use crate::matmul::tensor_cores::{Sums, reference as tensor_cores};
use crate::order::reference::dot;
use cubecl::ir::ElemType;

/// How the terms of an element are added.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// In chains.
    Chains(MultiplyAdd),
    /// As [tensor cores](super::tensor_cores) add numbers of a type.
    TensorCores(ElemType, Sums),
}

impl From<MultiplyAdd> for Order {
    fn from(multiply_add: MultiplyAdd) -> Self {
        Self::Chains(multiply_add)
    }
}

impl Order {
    fn dot(self, terms: Vec<(f32, f32)>) -> f32 {
        match self {
            Self::Chains(multiply_add) => dot(terms, multiply_add),
            Self::TensorCores(dtype, sums) => tensor_cores::dot(terms, dtype, sums),
        }
    }

    /// Appends the zeros that follow the channels of a tap.
    fn end_tap(self, terms: &mut Vec<(f32, f32)>) {
        if let Self::TensorCores(dtype, _) = self {
            terms.resize(terms.len().next_multiple_of(VECTOR as usize / dtype.size()), (0.0, 0.0));
        }
    }
}

/// `[batch, output channels, positions]` from an input, a weight and a bias of one value an output channel.
pub fn forward(g: &Geometry, order: impl Into<Order>, input: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let order = order.into();
    let [inside, outside, taps] = extents(g);
    let mut result = Vec::new();
    for (b, channel) in pairs(g.batch, g.groups * g.outputs) {
        let group = channel / g.outputs;
        for o in positions(outside) {
            let mut terms = Vec::new();
            for k in positions(taps) {
                let i = each(|n| g.axes[n].input_of(o[n], k[n]));
                for c in 0..g.inputs {
                    let plane = (b * g.groups + group) * g.inputs + c;
                    let x = i.map_or(0.0, |i| input[at(plane, i, inside)]);
                    terms.push((x, weight[at(channel * g.inputs + c, k, taps)]));
                }
                order.end_tap(&mut terms);
            }
            let total = order.dot(terms);
            result.push(bias.map_or(total, |bias| total + bias[channel]));
        }
    }
    result
}

/// `[batch, input channels, positions]` from an output's gradient and a weight; a bias makes it a transposed forward.
pub fn input_gradient(
    g: &Geometry,
    order: impl Into<Order>,
    gradient: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let order = order.into();
    let [inside, outside, taps] = extents(g);
    let mut result = Vec::new();
    for (b, channel) in pairs(g.batch, g.groups * g.inputs) {
        let (group, within) = (channel / g.inputs, channel % g.inputs);
        for i in positions(inside) {
            let mut terms = Vec::new();
            for k in positions(taps).filter(|k| (0..3).all(|n| g.axes[n].in_phase(i[n], k[n]))) {
                let o = each(|n| g.axes[n].output_of(i[n], k[n]));
                for c in group * g.outputs..(group + 1) * g.outputs {
                    let y = o.map_or(0.0, |o| gradient[at(b * g.groups * g.outputs + c, o, outside)]);
                    terms.push((y, weight[at(c * g.inputs + within, k, taps)]));
                }
                order.end_tap(&mut terms);
            }
            let total = order.dot(terms);
            result.push(bias.map_or(total, |bias| total + bias[channel]));
        }
    }
    result
}

/// `[output channels, input channels of a group, taps]` from an input and an output's gradient.
pub fn weight_gradient(g: &Geometry, order: impl Into<Order>, input: &[f32], gradient: &[f32]) -> Vec<f32> {
    let order = order.into();
    let [inside, outside, taps] = extents(g);
    let mut result = Vec::new();
    for (channel, within) in pairs(g.groups * g.outputs, g.inputs) {
        let source = channel / g.outputs * g.inputs + within;
        for k in positions(taps) {
            let mut terms = Vec::with_capacity(g.terms());
            for (b, o) in (0..g.batch).flat_map(|b| positions(outside).map(move |o| (b, o))) {
                let i = each(|n| g.axes[n].input_of(o[n], k[n]));
                let x = i.map_or(0.0, |i| input[at(b * g.groups * g.inputs + source, i, inside)]);
                terms.push((x, gradient[at(b * g.groups * g.outputs + channel, o, outside)]));
            }
            result.push(order.dot(terms));
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
