//! The device side: one unit an element of the result. A unit walks over a box of the source in row-major order, of which
//! a launch takes a piece.

use super::axis::{Axis, Span, Windows};
use crate::arithmetic::{held, negative_infinity, positive_zero};
use crate::dtype::F32;
use crate::dtype::key::{KeyFor, float_key};
use crate::grid::UnitPlace;
use crate::index::row_of;
use crate::quotient::{Quotients, divide};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Where the elements of `[entries, channels, planes, rows, columns]` are. An image is a channel of an entry.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(super) struct Layout {
    channels: u32,
    entry: u32,
    channel: u32,
    plane: u32,
    row: u32,
    column: u32,
}

#[cube]
impl Layout {
    /// The offset of an image.
    fn image(&self, image: u32) -> u32 {
        let entry = image / self.channels;
        entry * self.entry + (image - entry * self.channels) * self.channel
    }

    /// The offset of an element from its image.
    fn element(&self, plane: u32, row: u32, column: u32) -> u32 {
        plane * self.plane + row * self.row + column * self.column
    }
}

/// The piece of a walk that a launch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    /// Whether the walk begins in this launch.
    pub(super) first: bool,
    /// Whether it ends in this launch.
    pub(super) last: bool,
}

/// What [`averages`] computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub(super) windows: Windows,
    /// Whether an image has several planes, and windows of them.
    pub(super) in_planes: bool,
    /// Whether the result are the gradients of pixels, by windows, and not the averages of windows, by pixels.
    pub(super) gradient: bool,
    pub(super) piece: Piece,
    pub(super) quotients: Quotients,
}

/// `a / n`, rounded before it is added.
#[cube]
fn divided<A: Float>(a: A, n: u32, #[comptime] quotients: Quotients) -> A {
    let quotient = divide::<A>(a, A::cast_from(n as i32), quotients);
    let elem = elem_type_of::<A>();
    if comptime!(elem == F32) { A::cast_from(held(f32::cast_from(quotient))) } else { quotient }
}

/// What the unit at a place of the result reads along an axis.
#[cube]
fn read(axis: &Axis, at: u32, table: &[u32], #[comptime] form: Form) -> Span {
    if comptime!(form.gradient) {
        axis.windows_of(at, table, form.windows)
    } else {
        axis.pixels_of(at, table, form.windows)
    }
}

/// The averages of windows of `source`, or the gradients of their pixels: terms `from..to` of each sum.
///
/// `sums` has the sums of the pieces before, where there are several. Units are placed in `[images and planes, rows,
/// columns]` of the result.
#[allow(clippy::collapsible_if, reason = "the outer condition is decided when the kernel is compiled")]
#[cube(launch_unchecked)]
pub(super) fn averages<E: Float, A: Float>(
    source: &[E],
    table: &[u32],
    sums: &mut [A],
    output: &mut [E],
    layout: Layout,
    depth: Axis,
    height: Axis,
    width: Axis,
    unit: UnitPlace,
    from: u32,
    to: u32,
    #[comptime] form: Form,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    if !unit.exists() {
        terminate!();
    }
    let mut image = unit.outer();
    let mut at_plane = 0u32;
    if comptime!(form.in_planes) {
        let planes = if comptime!(form.gradient) { depth.pixels() } else { depth.windows() };
        image = unit.outer() / planes;
        at_plane = unit.outer() - image * planes;
    }
    let down = read(&height, unit.axis(), table, form);
    let across = read(&width, unit.inner(), table, form);
    let mut first_plane = 0u32;
    let mut planes = 1u32;
    if comptime!(form.in_planes) {
        let through = read(&depth, at_plane, table, form);
        first_plane = through.first;
        planes = through.length;
    }
    let terms = planes * down.length * across.length;

    let mut acc = positive_zero::<A>();
    let mut plane = 0u32;
    let mut row = 0u32;
    let mut column = 0u32;
    if comptime!(!form.piece.first) {
        acc = sums[unit.index()];
        let rows = from / max(across.length, 1u32);
        column = from - rows * across.length;
        plane = rows / max(down.length, 1u32);
        row = rows - plane * down.length;
    }
    let base = layout.image(image);
    for _ in from..min(to, terms) {
        let at = base + layout.element(first_plane + plane, down.first + row, across.first + column);
        let value = A::cast_from(source[at as usize]);
        if comptime!(form.gradient) {
            let mut count = height.counted(down.first + row, table, form.windows)
                * width.counted(across.first + column, table, form.windows);
            if comptime!(form.in_planes) {
                count *= depth.counted(first_plane + plane, table, form.windows);
            }
            acc += divided::<A>(value, count, form.quotients);
        } else {
            acc += value;
        }
        column += 1;
        if column == across.length {
            column = 0u32;
            row += 1;
            if comptime!(form.in_planes) {
                if row == down.length {
                    row = 0u32;
                    plane += 1;
                }
            }
        }
    }
    if comptime!(!form.piece.last) {
        sums[unit.index()] = acc;
    } else if comptime!(form.gradient) {
        output[unit.index()] = E::cast_from(acc);
    } else {
        let mut count =
            height.counted(unit.axis(), table, form.windows) * width.counted(unit.inner(), table, form.windows);
        if comptime!(form.in_planes) {
            count *= depth.counted(at_plane, table, form.windows);
        }
        output[unit.index()] = E::cast_from(divided::<A>(acc, count, form.quotients));
    }
    keep_subnormals();
}

/// The maxima of windows of `input`, and `with_indices` where they are: taps `from..to` of each window.
///
/// `found` has the indices of the pieces before, where there are several. Units are placed in `[images, rows, columns]`
/// of windows.
#[cube(launch_unchecked)]
pub(super) fn maxima<E: Float, K: Numeric, I: Numeric>(
    input: &[E],
    found: &mut [u32],
    output: &mut [E],
    indices: &mut [I],
    layout: Layout,
    height: Axis,
    width: Axis,
    unit: UnitPlace,
    taps_across: u32,
    from: u32,
    to: u32,
    #[comptime] piece: Piece,
    #[comptime] with_indices: bool,
    #[define(E, K, I)] _dtypes: [ElemType; 3],
) {
    if !unit.exists() {
        terminate!();
    }
    let base = layout.image(unit.outer());
    let pixels = height.pixels() * width.pixels();
    // No pixel so far.
    let mut index = pixels;
    let mut value = E::cast_from(negative_infinity());
    let mut best = K::min_value();
    let mut tap_down = 0u32;
    let mut tap_across = 0u32;
    if comptime!(!piece.first) {
        tap_down = from / taps_across;
        tap_across = from - tap_down * taps_across;
        index = found[unit.index()];
        if index < pixels {
            let row = index / width.pixels();
            value = input[(base + layout.element(0u32, row, index - row * width.pixels())) as usize];
            best = float_key::<E, K>(value, KeyFor::Maximum, true);
        }
    }
    for _ in from..to {
        let row = height.pixel(unit.axis(), tap_down);
        let column = width.pixel(unit.inner(), tap_across);
        if row < height.pixels() && column < width.pixels() {
            let next = input[(base + layout.element(0u32, row, column)) as usize];
            let key = float_key::<E, K>(next, KeyFor::Maximum, true);
            let above = key > best;
            best = select(above, key, best);
            value = select(above, next, value);
            index = select(above, row * width.pixels() + column, index);
        }
        tap_across += 1;
        if tap_across == taps_across {
            tap_across = 0u32;
            tap_down += 1;
        }
    }
    if comptime!(!piece.last) {
        found[unit.index()] = index;
    } else {
        output[unit.index()] = value;
        if comptime!(with_indices) {
            indices[unit.index()] = I::cast_from(select(index < pixels, index, 0u32));
        }
    }
    keep_subnormals();
}

/// The gradients of pixels by maxima: terms `from..to` of each sum, of the windows that reach over the pixel.
///
/// `sums` has the sums of the pieces before, where there are several. Units are placed in `[images, rows, columns]` of
/// pixels.
#[cube(launch_unchecked)]
pub(super) fn maximum_gradients<E: Float, I: Int, A: Float>(
    gradient: &[E],
    indices: &[I],
    sums: &mut [A],
    output: &mut [E],
    gradient_layout: Layout,
    index_layout: Layout,
    height: Axis,
    width: Axis,
    unit: UnitPlace,
    from: u32,
    to: u32,
    #[comptime] piece: Piece,
    #[define(E, I, A)] _dtypes: [ElemType; 3],
) {
    if !unit.exists() {
        terminate!();
    }
    let image = unit.outer();
    let pixels = height.pixels() * width.pixels();
    let pixel = unit.axis() * width.pixels() + unit.inner();
    let down = height.strided_windows_of(unit.axis());
    let across = width.strided_windows_of(unit.inner());
    let mut acc = positive_zero::<A>();
    let mut row = 0u32;
    let mut column = 0u32;
    if comptime!(!piece.first) {
        acc = sums[unit.index()];
        row = from / max(across.length, 1u32);
        column = from - row * across.length;
    }
    let gradient_base = gradient_layout.image(image);
    let index_base = index_layout.image(image);
    for _ in from..min(to, down.length * across.length) {
        let (window_row, window_column) = (down.first + row, across.first + column);
        let index = indices[(index_base + index_layout.element(0u32, window_row, window_column)) as usize];
        let value = gradient[(gradient_base + gradient_layout.element(0u32, window_row, window_column)) as usize];
        let is_this = row_of::<I>(index, pixels) == pixel;
        acc = select(is_this, acc + A::cast_from(value), acc);
        column += 1;
        if column == across.length {
            column = 0u32;
            row += 1;
        }
    }
    if comptime!(!piece.last) {
        sums[unit.index()] = acc;
    } else {
        output[unit.index()] = E::cast_from(acc);
    }
    keep_subnormals();
}
