//! The device side: one unit an element. The only sums are those over the channels of an offset group.
//!
//! `input` is `[batch, channels, height, width]`, `offset` `[batch, groups * taps * 2, rows, columns]` and `mask`
//! `[batch, groups * taps, rows, columns]`, read through their strides; the others are dense.

use crate::arithmetic::{multiply_add, multiply_rounded, positive_zero};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// The sizes of a [`Geometry`](super::Geometry) as kernels read them.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Sizes {
    /// Rows of the image.
    pub height: u32,
    /// Columns of the image.
    pub width: u32,
    /// Taps across.
    pub across: u32,
    /// Taps.
    pub taps: u32,
    /// Columns of the output.
    pub columns: u32,
    /// Output positions.
    pub area: u32,
    /// From one output position to the next, down and across.
    pub stride_y: u32,
    /// As above.
    pub stride_x: u32,
    /// Positions above the image.
    pub padding_y: u32,
    /// Positions to the left of the image.
    pub padding_x: u32,
    /// From one tap to the next, down.
    pub dilation_y: u32,
    /// From one tap to the next, across.
    pub dilation_x: u32,
    /// Channels of an offset group.
    pub group_channels: u32,
    /// Offset groups.
    pub groups: u32,
}

/// A tap of an output position of an offset group of an image.
#[derive(CubeType, Clone, Copy)]
struct Source {
    batch: u32,
    group: u32,
    tap: u32,
    y: u32,
    x: u32,
}

#[cube]
impl Source {
    /// The `at`-th of `[batch, groups, taps, positions]`.
    fn numbered(at: u32, sizes: &Sizes) -> Source {
        let places = at / sizes.area;
        let position = at - places * sizes.area;
        let groups = places / sizes.taps;
        let batch = groups / sizes.groups;
        let y = position / sizes.columns;
        Source {
            batch,
            group: groups - batch * sizes.groups,
            tap: places - groups * sizes.taps,
            y,
            x: position - y * sizes.columns,
        }
    }

    /// The element of a tensor `[batch, groups * taps * parts, rows, columns]` for this.
    fn element<E: Float>(&self, tensor: &Tensor<E>, sizes: &Sizes, part: u32, #[comptime] parts: u32) -> E {
        let channel = (self.group * sizes.taps + self.tap) * parts + part;
        let at = self.batch * tensor.stride(0) as u32
            + channel * tensor.stride(1) as u32
            + self.y * tensor.stride(2) as u32
            + self.x * tensor.stride(3) as u32;
        tensor[at as usize]
    }
}

/// The point at which an image is sampled.
#[derive(CubeType, Clone, Copy)]
struct Place<A: Float> {
    /// The row and the column of the corner above and to the left. Far outside if the place is not `near`.
    row: i32,
    column: i32,
    /// The distance from that corner, down and to the right.
    down: A,
    right: A,
    /// Whether a sample is taken.
    inside: bool,
    /// Whether the sample changes with the place.
    near: bool,
}

/// The point that `source` samples at.
#[cube]
fn place<E: Float, A: Float>(offset: &Tensor<E>, source: &Source, sizes: &Sizes) -> Place<A> {
    let tap_y = source.tap / sizes.across;
    let tap_x = source.tap - tap_y * sizes.across;
    let base_y = (source.y * sizes.stride_y + tap_y * sizes.dilation_y) as i32 - sizes.padding_y as i32;
    let base_x = (source.x * sizes.stride_x + tap_x * sizes.dilation_x) as i32 - sizes.padding_x as i32;
    let y = A::cast_from(base_y) + A::cast_from(source.element::<E>(offset, sizes, 0u32, 2u32));
    let x = A::cast_from(base_x) + A::cast_from(source.element::<E>(offset, sizes, 1u32, 2u32));
    let height = A::cast_from(sizes.height);
    let width = A::cast_from(sizes.width);
    let before = A::new(-1.0);
    let zero = A::new(0.0);
    let near = y >= before && y < height && x >= before && x < width;
    let inside = near && y > before && x > before;
    let floor_y = y.floor();
    let floor_x = x.floor();
    Place::<A> {
        row: select(near, i32::cast_from(floor_y), -2),
        column: select(near, i32::cast_from(floor_x), -2),
        down: select(near, y - floor_y, zero),
        right: select(near, x - floor_x, zero),
        inside,
        near,
    }
}

/// Whether a row and a column are in the image.
#[cube]
fn exists(row: i32, column: i32, sizes: &Sizes) -> bool {
    row >= 0 && row < sizes.height as i32 && column >= 0 && column < sizes.width as i32
}

/// The corners around a place.
#[derive(CubeType, Clone, Copy)]
struct Corners<A: Float> {
    v00: A,
    v01: A,
    v10: A,
    v11: A,
}

/// An element of the channel that starts at `base`, or zero.
#[cube]
fn corner<E: Float, A: Float>(input: &Tensor<E>, base: u32, row: i32, column: i32, sizes: &Sizes) -> A {
    let mut value = A::new(0.0);
    if exists(row, column, sizes) {
        let at = base + row as u32 * input.stride(2) as u32 + column as u32 * input.stride(3) as u32;
        value = A::cast_from(input[at as usize]);
    }
    value
}

/// The corners around a place in the channel that starts at `base`.
#[cube]
fn corners<E: Float, A: Float>(input: &Tensor<E>, base: u32, place: &Place<A>, sizes: &Sizes) -> Corners<A> {
    Corners::<A> {
        v00: corner::<E, A>(input, base, place.row, place.column, sizes),
        v01: corner::<E, A>(input, base, place.row, place.column + 1, sizes),
        v10: corner::<E, A>(input, base, place.row + 1, place.column, sizes),
        v11: corner::<E, A>(input, base, place.row + 1, place.column + 1, sizes),
    }
}

/// The image at a place.
#[cube]
fn sample<A: Float>(corners: &Corners<A>, place: &Place<A>) -> A {
    let up = A::new(1.0) - place.down;
    let left = A::new(1.0) - place.right;
    let mut acc = multiply_add::<A>(multiply_rounded::<A>(up, left), corners.v00, positive_zero::<A>());
    acc = multiply_add::<A>(multiply_rounded::<A>(up, place.right), corners.v01, acc);
    acc = multiply_add::<A>(multiply_rounded::<A>(place.down, left), corners.v10, acc);
    acc = multiply_add::<A>(multiply_rounded::<A>(place.down, place.right), corners.v11, acc);
    select(place.inside, acc, A::new(0.0))
}

/// The offset of a channel of an image.
#[cube]
fn channel_base<E: Float>(input: &Tensor<E>, source: &Source, within: u32, sizes: &Sizes) -> u32 {
    let channel = source.group * sizes.group_channels + within;
    source.batch * input.stride(0) as u32 + channel * input.stride(1) as u32
}

/// One unit a point of up to `span` channels of `output[batch, channels, taps, positions]`, one channel after the
/// other.
#[cube(launch_unchecked)]
pub fn columns<E: Float, A: Float>(
    input: &Tensor<E>,
    offset: &Tensor<E>,
    mask: ComptimeOption<&Tensor<E>>,
    output: &mut [E],
    sizes: Sizes,
    units: u32,
    span: u32,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let points = sizes.taps * sizes.area;
    let chunk = unit / points;
    let within = unit - chunk * points;
    let chunks = sizes.group_channels.div_ceil(span);
    let group = chunk / chunks;
    let first = (chunk - group * chunks) * span;
    let source = Source::numbered(group * points + within, &sizes);
    let place = place::<E, A>(offset, &source, &sizes);
    #[comptime]
    let factor = match mask {
        ComptimeOption::Some(mask) => A::cast_from(source.element::<E>(mask, &sizes, 0u32, 1u32)),
        ComptimeOption::None => A::new(1.0),
    };
    for channel in first..min(first + span, sizes.group_channels) {
        let base = channel_base::<E>(input, &source, channel, &sizes);
        let corners = corners::<E, A>(input, base, &place, &sizes);
        let sample = sample::<A>(&corners, &place);
        let at = (group * sizes.group_channels + channel) * points + within;
        // A product with 1 is exact.
        output[at as usize] = E::cast_from(multiply_rounded::<A>(factor, sample));
    }
    keep_subnormals();
}

/// One unit a point `[batch, groups, taps, positions]`: the gradients of both its offsets, of `offset_gradient[batch,
/// groups, taps, 2, positions]`, and of its mask, of `mask_gradient[batch, groups, taps, positions]`. `column_gradient`
/// is `[batch, channels, taps, positions]`.
#[cube(launch_unchecked)]
pub fn place_gradients<E: Float, A: Float>(
    input: &Tensor<E>,
    offset: &Tensor<E>,
    mask: ComptimeOption<&Tensor<E>>,
    column_gradient: &[E],
    offset_gradient: &mut [E],
    mask_gradient: &mut [E],
    sizes: Sizes,
    units: u32,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let points = sizes.taps * sizes.area;
    let group = unit / points;
    let within = unit - group * points;
    let source = Source::numbered(unit, &sizes);
    let place = place::<E, A>(offset, &source, &sizes);
    let up = A::new(1.0) - place.down;
    let left = A::new(1.0) - place.right;
    let mut by_y = A::new(0.0);
    let mut by_x = A::new(0.0);
    let mut by_mask = A::new(0.0);
    for channel in 0..sizes.group_channels {
        let base = channel_base::<E>(input, &source, channel, &sizes);
        let c = corners::<E, A>(input, base, &place, &sizes);
        let at = (group * sizes.group_channels + channel) * points + within;
        let gradient = A::cast_from(column_gradient[at as usize]);
        let slope_y = multiply_add::<A>(place.right, c.v11 - c.v01, multiply_rounded::<A>(left, c.v10 - c.v00));
        let slope_x = multiply_add::<A>(place.down, c.v11 - c.v10, multiply_rounded::<A>(up, c.v01 - c.v00));
        by_y = multiply_add::<A>(select(place.near, slope_y, A::new(0.0)), gradient, by_y);
        by_x = multiply_add::<A>(select(place.near, slope_x, A::new(0.0)), gradient, by_x);
        by_mask = multiply_add::<A>(sample::<A>(&c, &place), gradient, by_mask);
    }
    #[comptime]
    if let ComptimeOption::Some(mask) = mask {
        let factor = A::cast_from(source.element::<E>(mask, &sizes, 0u32, 1u32));
        by_y = multiply_rounded::<A>(factor, by_y);
        by_x = multiply_rounded::<A>(factor, by_x);
    }
    let places = unit / sizes.area;
    let first = places * 2 * sizes.area + (unit - places * sizes.area);
    offset_gradient[first as usize] = E::cast_from(by_y);
    offset_gradient[(first + sizes.area) as usize] = E::cast_from(by_x);
    mask_gradient[unit as usize] = E::cast_from(by_mask);
    keep_subnormals();
}

/// Eight consecutive sources are adjacent units: their reads of one channel fill a 32-byte sector.
pub(super) const CONTRIBUTION_SOURCES: u32 = 8;

/// One unit an element of `values[batch, groups, taps, positions, channels of a group]`, a source each but for the channels:
/// the term of one corner of its point in the image's gradient. That of the first channel also writes the corner's pixel to `keys[batch, groups,
/// taps, positions]`, or the number of pixels for none.
#[cube(launch_unchecked)]
pub fn contributions<E: Float, A: Float>(
    offset: &Tensor<E>,
    mask: ComptimeOption<&Tensor<E>>,
    column_gradient: &[E],
    keys: &mut [u32],
    values: &mut [A],
    sizes: Sizes,
    sources: u32,
    #[comptime] below: bool,
    #[comptime] beside: bool,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    let slot = unit / CONTRIBUTION_SOURCES;
    let few = slot / sizes.group_channels;
    let channel = slot - few * sizes.group_channels;
    let at = few * CONTRIBUTION_SOURCES + unit % CONTRIBUTION_SOURCES;
    if at >= sources {
        terminate!();
    }
    let points = sizes.taps * sizes.area;
    let group = at / points;
    let source = Source::numbered(at, &sizes);
    let place = place::<E, A>(offset, &source, &sizes);
    let row = place.row + comptime!(i32::from(below));
    let column = place.column + comptime!(i32::from(beside));
    let weight_y = if comptime!(below) { place.down } else { A::new(1.0) - place.down };
    let weight_x = if comptime!(beside) { place.right } else { A::new(1.0) - place.right };
    let weight = multiply_rounded::<A>(weight_y, weight_x);
    #[comptime]
    let weight = match mask {
        ComptimeOption::Some(mask) => {
            multiply_rounded::<A>(weight, A::cast_from(source.element::<E>(mask, &sizes, 0u32, 1u32)))
        }
        ComptimeOption::None => weight,
    };
    let gradient =
        column_gradient[((group * sizes.group_channels + channel) * points + (at - group * points)) as usize];
    values[(at * sizes.group_channels + channel) as usize] = multiply_rounded::<A>(weight, A::cast_from(gradient));
    if channel == 0 {
        let image = sizes.height * sizes.width;
        let pixel = row as u32 * sizes.width + column as u32;
        let taken = place.inside && exists(row, column, &sizes);
        keys[at as usize] = select(taken, pixel, image);
    }
    keep_subnormals();
}

/// One unit an element of `output[groups, channels of a group, positions]`: that of
/// `source[groups, positions, channels of a group]`.
#[cube(launch_unchecked)]
pub fn channels_first<A: Float, E: Float>(
    source: &[A],
    output: &mut [E],
    channels: u32,
    positions: u32,
    units: u32,
    #[define(A, E)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let outer = unit / positions;
    let position = unit - outer * positions;
    let group = outer / channels;
    let channel = outer - group * channels;
    output[unit as usize] = E::cast_from(source[((group * positions + position) * channels + channel) as usize]);
    keep_subnormals();
}

/// One unit an element of `output[batch, channels, positions]`: `product` plus the `bias[channels]` of its channel.
#[cube(launch_unchecked)]
pub fn add_bias<E: Float, A: Float>(
    product: &[E],
    bias: &Tensor<E>,
    output: &mut [E],
    channels: u32,
    positions: u32,
    units: u32,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let channel = (unit / positions) % channels;
    let bias = A::cast_from(bias[(channel * bias.stride(0) as u32) as usize]);
    output[unit as usize] = E::cast_from(A::cast_from(product[unit as usize]) + bias);
    keep_subnormals();
}
