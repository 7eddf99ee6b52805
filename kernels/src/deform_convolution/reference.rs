//! The same orders in plain Rust: the specification.
//!
//! Operands are contiguous and row-major, shaped as [`Geometry`] says.

use super::shape::Geometry;
use crate::arithmetic::MultiplyAdd;
use crate::{matmul, reduce, scatter};

/// What a deformable convolution reads.
pub struct Operands<'a> {
    /// The image.
    pub input: &'a [f32],
    /// The offsets.
    pub offset: &'a [f32],
    /// The weight.
    pub weight: &'a [f32],
    /// The mask.
    pub mask: Option<&'a [f32]>,
}

/// The gradients of the operands.
pub struct Gradients {
    /// Of the image.
    pub input: Vec<f32>,
    /// Of the offsets.
    pub offset: Vec<f32>,
    /// Of the weight.
    pub weight: Vec<f32>,
    /// Of the mask, or of one that is one everywhere.
    pub mask: Vec<f32>,
}

/// Where a tap of an output position samples.
struct Place {
    low: [f32; 2],
    l: [f32; 2],
    inside: bool,
    near: bool,
}

impl Place {
    fn of(g: &Geometry, x: &Operands, b: usize, group: usize, k: usize, o: usize) -> Self {
        let at = [k / g.taps[1], k % g.taps[1]];
        let position = [o / g.positions[1], o % g.positions[1]];
        let places = g.params.offset_groups * g.kernel_size();
        let coordinate = |axis: usize| {
            let step = position[axis] * g.params.stride[axis] + at[axis] * g.params.dilation[axis];
            let channel = (group * g.kernel_size() + k) * 2 + axis;
            let offset = x.offset[(b * places * 2 + channel) * g.area() + o];
            (step as f32 - g.params.padding[axis] as f32) + offset
        };
        let c = [coordinate(0), coordinate(1)];
        let near = (0..2).all(|axis| c[axis] >= -1.0 && c[axis] < g.image[axis] as f32);
        let low = if near { c.map(f32::floor) } else { [-2.0; 2] };
        let l = if near { [c[0] - low[0], c[1] - low[1]] } else { [0.0; 2] };
        Self { low, l, inside: near && c.iter().all(|&c| c > -1.0), near }
    }

    /// The position of a corner in the image.
    fn corner(&self, g: &Geometry, corner: usize) -> Option<usize> {
        let at = [self.low[0] as i64 + (corner / 2) as i64, self.low[1] as i64 + (corner % 2) as i64];
        let inside = (0..2).all(|axis| at[axis] >= 0 && at[axis] < g.image[axis] as i64);
        inside.then(|| at[0] as usize * g.image[1] + at[1] as usize)
    }

    fn weight(&self, corner: usize) -> f32 {
        let part = |axis: usize, far: bool| if far { self.l[axis] } else { 1.0 - self.l[axis] };
        part(0, corner / 2 == 1) * part(1, corner % 2 == 1)
    }

    fn corners(&self, g: &Geometry, channel: &[f32]) -> [f32; 4] {
        std::array::from_fn(|n| self.corner(g, n).map_or(0.0, |at| channel[at]))
    }

    fn sample(&self, v: [f32; 4]) -> f32 {
        match self.inside {
            true => (0..4).fold(0.0, |acc, n| self.weight(n) * v[n] + acc),
            false => 0.0,
        }
    }

    fn slopes(&self, v: [f32; 4]) -> [f32; 2] {
        let [down, right] = self.l;
        match self.near {
            true => [
                right * (v[3] - v[1]) + ((1.0 - right) * (v[2] - v[0])),
                down * (v[3] - v[2]) + ((1.0 - down) * (v[1] - v[0])),
            ],
            false => [0.0; 2],
        }
    }
}

fn channel<'a>(g: &Geometry, input: &'a [f32], b: usize, c: usize) -> &'a [f32] {
    let image = g.image[0] * g.image[1];
    &input[(b * g.channels + c) * image..][..image]
}

fn mask_of(g: &Geometry, x: &Operands, b: usize, group: usize, k: usize, o: usize) -> Option<f32> {
    let places = g.params.offset_groups * g.kernel_size();
    x.mask.map(|mask| mask[(b * places + group * g.kernel_size() + k) * g.area() + o])
}

/// `[batch, channels, taps, positions]`.
pub fn columns(g: &Geometry, x: &Operands) -> Vec<f32> {
    let mut columns = Vec::new();
    for at in 0..g.batch * g.channels * g.kernel_size() * g.area() {
        let (rest, o) = (at / g.area(), at % g.area());
        let (rest, k) = (rest / g.kernel_size(), rest % g.kernel_size());
        let (b, c) = (rest / g.channels, rest % g.channels);
        let group = c / g.group_channels();
        let place = Place::of(g, x, b, group, k, o);
        let sample = place.sample(place.corners(g, channel(g, x.input, b, c)));
        columns.push(mask_of(g, x, b, group, k, o).map_or(sample, |mask| mask * sample));
    }
    columns
}

/// `[batch, output channels, positions]`.
pub fn forward(g: &Geometry, fma: MultiplyAdd, x: &Operands, bias: Option<&[f32]>) -> Vec<f32> {
    let columns = columns(g, x);
    let (groups, extents) = product(g);
    let [m, k, n] = extents;
    let mut result = Vec::new();
    for at in 0..g.batch * groups {
        let group = at % groups;
        let weight = &x.weight[group * m * k..][..m * k];
        let part = matmul::reference::matmul(weight, &columns[at * k * n..][..k * n], extents, fma);
        result.extend(part.into_iter().enumerate().map(|(i, y)| bias.map_or(y, |bias| y + bias[group * m + i / n])));
    }
    result
}

/// The gradients from that of the output.
pub fn backward(g: &Geometry, fma: MultiplyAdd, x: &Operands, gradient: &[f32]) -> Gradients {
    let samples = columns(g, x);
    let (groups, [m, k, n]) = product(g);
    let mut products = Vec::new();
    let mut columns = Vec::new();
    for at in 0..g.batch * groups {
        let weight = transposed(&x.weight[at % groups * m * k..][..m * k], m, k);
        let dy = &gradient[at * m * n..][..m * n];
        let sampled = transposed(&samples[at * k * n..][..k * n], k, n);
        products.push(matmul::reference::matmul(dy, &sampled, [m, n, k], fma));
        columns.extend(matmul::reference::matmul(&weight, dy, [k, m, n], fma));
    }
    let weight = (0..groups * m * k).map(|at| {
        let of_images: Vec<f32> = (0..g.batch).map(|b| products[b * groups + at / (m * k)][at % (m * k)]).collect();
        reduce::reference::sum(&of_images)
    });
    let (offset, mask) = place_gradients(g, x, &columns);
    Gradients { input: input_gradient(g, x, &columns), offset, weight: weight.collect(), mask }
}

fn place_gradients(g: &Geometry, x: &Operands, columns: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut offsets, mut masks) = (Vec::new(), Vec::new());
    for at in 0..g.batch * g.params.offset_groups * g.kernel_size() {
        let (rest, k) = (at / g.kernel_size(), at % g.kernel_size());
        let (b, group) = (rest / g.params.offset_groups, rest % g.params.offset_groups);
        let mut of_axes = [Vec::new(), Vec::new()];
        for o in 0..g.area() {
            let place = Place::of(g, x, b, group, k, o);
            let (mut slopes, mut mask) = ([0.0; 2], 0.0);
            for c in group * g.group_channels()..(group + 1) * g.group_channels() {
                let v = place.corners(g, channel(g, x.input, b, c));
                let d = columns[((b * g.channels + c) * g.kernel_size() + k) * g.area() + o];
                let slope = place.slopes(v);
                slopes = [slope[0] * d + slopes[0], slope[1] * d + slopes[1]];
                mask += place.sample(v) * d;
            }
            let factor = mask_of(g, x, b, group, k, o);
            for axis in 0..2 {
                of_axes[axis].push(factor.map_or(slopes[axis], |mask| mask * slopes[axis]));
            }
            masks.push(mask);
        }
        offsets.extend(of_axes.concat());
    }
    (offsets, masks)
}

fn input_gradient(g: &Geometry, x: &Operands, columns: &[f32]) -> Vec<f32> {
    let mut result = Vec::new();
    for (b, c) in (0..g.batch).flat_map(|b| (0..g.channels).map(move |c| (b, c))) {
        let group = c / g.group_channels();
        let mut sum = vec![0.0f32; g.image[0] * g.image[1]];
        for corner in 0..4 {
            let (mut keys, mut values) = (Vec::new(), Vec::new());
            for (k, o) in (0..g.kernel_size()).flat_map(|k| (0..g.area()).map(move |o| (k, o))) {
                let place = Place::of(g, x, b, group, k, o);
                let weight = place.weight(corner);
                let weight = mask_of(g, x, b, group, k, o).map_or(weight, |mask| weight * mask);
                keys.push(place.corner(g, corner).filter(|_| place.inside));
                values.push(weight * columns[((b * g.channels + c) * g.kernel_size() + k) * g.area() + o]);
            }
            let pixels = [1, sum.len(), 1];
            sum = scatter::reference::update(pixels, &sum, &values, |_, p, _| keys[p], |a, b| a + b);
        }
        result.extend(sum);
    }
    result
}

/// The weight groups, and `[m, k, n]` of a group's product.
fn product(g: &Geometry) -> (usize, [usize; 3]) {
    let groups = g.params.weight_groups;
    (groups, [g.outputs / groups, g.channels / groups * g.kernel_size(), g.area()])
}

fn transposed(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|at| matrix[at % rows * columns + at / rows]).collect()
}
