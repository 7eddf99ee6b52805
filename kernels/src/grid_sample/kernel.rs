//! The device side: one unit a point of up to `span` channels.

use super::params::{Filter, PEAK, Padding, SINE, SampleParams};
use crate::arithmetic::{held, multiply_add, multiply_rounded, positive_zero};
use crate::dtype::F32;
use crate::grid::UnitPlace;
use crate::quotient::{Quotients, divide};
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

/// The coordinate of a grid's number along an axis of `length` pixels.
#[cube]
fn coordinate<A: Float>(number: A, length: A, #[comptime] align_corners: bool) -> A {
    let from_edge = number + A::new(1.0);
    if comptime!(align_corners) {
        multiply_rounded::<A>(multiply_rounded::<A>(from_edge, length - A::new(1.0)), A::new(0.5))
    } else {
        multiply_add::<A>(multiply_rounded::<A>(from_edge, length), A::new(0.5), A::new(-0.5))
    }
}

/// The coordinate within the image of which `p` is a mirror image.
#[cube]
fn reflected<A: Float>(p: A, length: A, #[comptime] align_corners: bool, #[comptime] quotients: Quotients) -> A {
    let low = A::new(comptime!(if align_corners { 0.0 } else { -0.5 }));
    let span = if comptime!(align_corners) { length - A::new(1.0) } else { length };
    let is_point = span <= A::new(0.0);
    let span = select(is_point, A::new(1.0), span);
    let period = span + span;
    // A coordinate ends with a sum, which a compiler may not join with this one.
    let elem = elem_type_of::<A>();
    let p = if comptime!(elem == F32) { A::cast_from(held(f32::cast_from(p))) } else { p };
    let distance = (p - low).abs();
    let turns = divide::<A>(distance, period, quotients).floor();
    let rest = multiply_add::<A>(A::new(0.0) - turns, period, distance);
    let mirrored = (span - (rest - span).abs()) + low;
    // A NaN stays a NaN.
    select(is_point, select(bool::cast_from(p.is_nan()), p, low), mirrored)
}

/// An index of the image for one that may be outside it: the mirrored one, or the nearest.
#[cube]
fn inside(index: i32, length: i32, #[comptime] params: SampleParams) -> i32 {
    let last = length - 1;
    let mut at = index;
    if comptime!(params.padding == Padding::Reflection) {
        let period = if comptime!(params.align_corners) { max(last * 2, 1) } else { length * 2 };
        // Taps reach a few pixels past an image that may have one: some periods on, no index is negative.
        let turn = (index + period * 16) % period;
        let mirror = if comptime!(params.align_corners) { period - turn } else { period - 1 - turn };
        at = min(turn, mirror);
    }
    clamp(at, 0, last)
}

/// Keys' cubic for distances up to one.
#[cube]
fn near<A: Float>(x: A) -> A {
    let slope = multiply_add::<A>(A::new(1.25), x, A::new(-2.25));
    multiply_add::<A>(slope, multiply_rounded::<A>(x, x), A::new(1.0))
}

/// Keys' cubic for distances from one to two.
#[cube]
fn far<A: Float>(x: A) -> A {
    let slope = multiply_add::<A>(multiply_add::<A>(A::new(-0.75), x, A::new(3.75)), x, A::new(-6.0));
    multiply_add::<A>(slope, x, A::new(3.0))
}

/// The Lanczos function of three lobes, times a constant, for distances up to three.
///
/// `sin(3 a) sin(a) / a^2 = s^2 (3 - 4 s^2) / a^2` with `s = sin(a)`, `a = pi x / 3`: the sine is its series.
// An iterator does not exist in a kernel.
#[allow(clippy::needless_range_loop)]
#[cube]
fn lobes<A: Float>(x: A, #[comptime] quotients: Quotients) -> A {
    let turn = multiply_rounded::<A>(x, A::new(comptime!(1.0f32 / 3.0)));
    let u = max(min(turn, A::new(1.0) - turn), A::new(0.0));
    let v = multiply_rounded::<A>(u, u);
    let mut series = A::new(comptime!(SINE[0]));
    #[unroll]
    for n in 1..comptime!(SINE.len()) {
        series = multiply_add::<A>(series, v, A::new(comptime!(SINE[n])));
    }
    let sine = multiply_rounded::<A>(series, u);
    let square = multiply_rounded::<A>(sine, sine);
    let product = multiply_rounded::<A>(square, multiply_add::<A>(A::new(-4.0), square, A::new(3.0)));
    let is_zero = turn < A::new(1e-6);
    let turn = select(is_zero, A::new(1.0), turn);
    let ratio = divide::<A>(product, multiply_rounded::<A>(turn, turn), quotients);
    select(is_zero, A::new(comptime!(PEAK)), ratio)
}

/// The weights of the taps of a filter at a distance of `u` from the tap at or before the point.
#[cube]
fn weights<A: Float>(u: A, #[comptime] filter: Filter, #[comptime] quotients: Quotients) -> Sequence<A> {
    let mut weights = Sequence::<A>::new();
    let one = A::new(1.0);
    let rest = one - u;
    match comptime!(filter) {
        Filter::Nearest => weights.push(one),
        Filter::Linear => {
            weights.push(rest);
            weights.push(u);
        }
        Filter::Cubic => {
            weights.push(far::<A>(one + u));
            weights.push(near::<A>(u));
            weights.push(near::<A>(rest));
            weights.push(far::<A>(A::new(2.0) - u));
        }
        Filter::Lanczos3 => {
            let two = A::new(2.0);
            let a = lobes::<A>(two + u, quotients);
            let b = lobes::<A>(one + u, quotients);
            let c = lobes::<A>(u, quotients);
            let d = lobes::<A>(rest, quotients);
            let e = lobes::<A>(two - u, quotients);
            let f = lobes::<A>(A::new(3.0) - u, quotients);
            let sum = ((((a + b) + c) + d) + e) + f;
            weights.push(divide::<A>(a, sum, quotients));
            weights.push(divide::<A>(b, sum, quotients));
            weights.push(divide::<A>(c, sum, quotients));
            weights.push(divide::<A>(d, sum, quotients));
            weights.push(divide::<A>(e, sum, quotients));
            weights.push(divide::<A>(f, sum, quotients));
        }
    }
    weights
}

/// The tap at or before a coordinate, or the one nearest to it, and the distance to it.
#[cube]
fn first_tap<A: Float>(p: A, #[comptime] filter: Filter) -> (i32, A) {
    let floor = p.floor();
    let u = p - floor;
    let base = i32::cast_from(floor);
    if comptime!(filter == Filter::Nearest) {
        let half = A::new(0.5);
        let up = u > half || (u == half && base % 2 != 0);
        (select(up, base + 1, base), u)
    } else {
        (base - comptime!(filter.taps() as i32 / 2 - 1), u)
    }
}

/// One unit a place of up to `span` channels of `[batch, channels, places]`, one channel after the other.
///
/// Units are placed in `[batch, spans, places]`.
#[cube(launch_unchecked)]
pub fn sample<E: Float, A: Float>(
    input: &Tensor<E>,
    grid: &[E],
    output: &mut [E],
    places: u32,
    span: u32,
    unit: UnitPlace,
    strides: Strides,
    #[comptime] params: SampleParams,
    #[comptime] quotients: Quotients,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let (entry, nth_span, place) = (unit.outer(), unit.axis(), unit.inner());
    let channels = input.shape(1) as u32;
    let first_channel = nth_span * span;
    if !unit.exists() {
        terminate!();
    }
    let number_x = A::cast_from(grid[strides.offset(entry, place, 0)]);
    let number_y = A::cast_from(grid[strides.offset(entry, place, 1)]);
    let height = input.shape(2) as i32;
    let width = input.shape(3) as i32;
    let length_y = A::cast_from(height);
    let length_x = A::cast_from(width);
    let mut y = coordinate::<A>(number_y, length_y, comptime!(params.align_corners));
    let mut x = coordinate::<A>(number_x, length_x, comptime!(params.align_corners));
    if comptime!(params.padding == Padding::Reflection) {
        y = reflected::<A>(y, length_y, comptime!(params.align_corners), quotients);
        x = reflected::<A>(x, length_x, comptime!(params.align_corners), quotients);
    }
    let not_a_number = bool::cast_from(y.is_nan()) || bool::cast_from(x.is_nan());
    let unplaced = y + x;
    let margin = A::new(8.0);
    y = min(max(y, A::new(-8.0)), length_y + margin);
    x = min(max(x, A::new(-8.0)), length_x + margin);
    let (first_y, u_y) = first_tap::<A>(y, comptime!(params.filter));
    let (first_x, u_x) = first_tap::<A>(x, comptime!(params.filter));
    let weights_y = weights::<A>(u_y, comptime!(params.filter), quotients);
    let weights_x = weights::<A>(u_x, comptime!(params.filter), quotients);

    let mut rows_at = Sequence::<u32>::new();
    let mut columns_at = Sequence::<u32>::new();
    let mut rows_exist = Sequence::<bool>::new();
    let mut columns_exist = Sequence::<bool>::new();
    #[unroll]
    for tap in 0..comptime!(params.filter.taps()) {
        let at_y = first_y + comptime!(tap as i32);
        rows_at.push(inside(at_y, height, params) as u32 * input.stride(2) as u32);
        rows_exist.push(at_y >= 0 && at_y < height);
        let at_x = first_x + comptime!(tap as i32);
        columns_at.push(inside(at_x, width, params) as u32 * input.stride(3) as u32);
        columns_exist.push(at_x >= 0 && at_x < width);
    }
    let input_step = input.stride(1) as u32;
    let mut base = entry * input.stride(0) as u32 + first_channel * input_step;
    let mut target = (entry * channels + first_channel) * places + place;
    for _ in first_channel..min(first_channel + span, channels) {
        let mut acc = positive_zero::<A>();
        #[unroll]
        for tap_y in 0..comptime!(params.filter.taps()) {
            let mut line = positive_zero::<A>();
            #[unroll]
            for tap_x in 0..comptime!(params.filter.taps()) {
                let at = base + *rows_at.index(tap_y) + *columns_at.index(tap_x);
                let mut pixel = A::cast_from(input[at as usize]);
                if comptime!(params.padding == Padding::Zeros) {
                    let exists = *rows_exist.index(tap_y) && *columns_exist.index(tap_x);
                    pixel = select(exists, pixel, A::new(0.0));
                }
                line = multiply_add::<A>(*weights_x.index(tap_x), pixel, line);
            }
            acc = multiply_add::<A>(*weights_y.index(tap_y), line, acc);
        }
        output[target as usize] = E::cast_from(select(not_a_number, unplaced, acc));
        base += input_step;
        target += places;
    }
    keep_subnormals();
}
