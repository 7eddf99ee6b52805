//! [`Pass::Single`](crate::reduce::plan::Pass::Single) and [`Pass::FourOutputs`](crate::reduce::plan::Pass::FourOutputs): units
//! read one element of one output at a time, or vectors of one element of each of four, a few of them before they are added.

use super::accumulator::{lower, step_lanes};
use super::source::{Source, elements};
use crate::elementwise::{Inputs, Outputs};
use crate::order::{COLUMNS, COLUMNS_BLOCK};
use crate::quotient::{Quotients, divide};
use crate::reduce::operation::Operation;
use crate::reduce::plan::Cube;
use crate::reduce::view::View;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Vectors of four outputs that a unit reads before it adds them. On an H100 sums of columns took 37 us in place of 43; of single
/// elements, eight at a time, rows took as long as before.
const READS: u32 = 4;

/// What the kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    pub cube: Cube,
    /// Whether the axis is two nested loops, not one.
    pub split: bool,
    pub operation: Operation,
    pub quotients: Quotients,
    pub source: Source,
}

/// Where an element of a column is, and the way to the next one.
#[derive(CubeType)]
struct Place {
    at: u32,
    at_step: u32,
    /// Along the inner of two loops.
    rest: u32,
    rest_step: u32,
    /// From the end of the inner loop to the next turn of the outer one.
    carry: u32,
}

#[cube]
impl Place {
    /// Of element `first` of the axis, in columns that are [`COLUMNS`] apart.
    fn of(base: u32, first: u32, view: &View, #[comptime] split: bool) -> Place {
        // Wraps where the outer stride is the smaller one; unsigned arithmetic makes it right again.
        let carry = view.axis_outer_stride - view.axis_inner * view.axis_stride;
        if comptime!(split) {
            let rest = first % view.axis_inner;
            let rest_step = COLUMNS % view.axis_inner;
            Place {
                at: base + (first / view.axis_inner) * view.axis_outer_stride + rest * view.axis_stride,
                at_step: (COLUMNS / view.axis_inner) * view.axis_outer_stride + rest_step * view.axis_stride,
                rest,
                rest_step,
                carry,
            }
        } else {
            Place {
                at: base + first * view.axis_stride,
                at_step: COLUMNS * view.axis_stride,
                rest: 0u32.runtime(),
                rest_step: 0u32.runtime(),
                carry,
            }
        }
    }

    fn advance(&mut self, view: &View, #[comptime] split: bool) {
        self.at += self.at_step;
        if comptime!(split) {
            self.rest += self.rest_step;
            if self.rest >= view.axis_inner {
                self.rest -= view.axis_inner;
                self.at += self.carry;
            }
        }
    }
}

/// The ascending chains over one column: elements `first`, `first + 64`, .. of the axis, `rows` of them.
#[cube]
pub(super) fn column<I: Numeric, A: Numeric, B: Int, N: Size>(
    stored: &[Vector<I, N>],
    inputs: &Inputs<B, f32, N>,
    outputs: &mut Outputs<B, f32, N>,
    base: u32,
    first: u32,
    rows: u32,
    view: &View,
    #[comptime] form: Form,
) -> Vector<A, N> {
    let operation = comptime!(form.operation);
    let split = comptime!(form.split);
    let source = comptime!(form.source.clone());
    let mut place = Place::of(base, first, view, split);
    let mut chains = elements::<I, A, B, N>(stored, inputs, outputs, place.at, operation, comptime!(source.clone()));
    let mut left = rows - 1;
    let lanes = N::value();
    if comptime!(lanes == 4 && source == Source::Stored) {
        // Reads that wait for none of the additions.
        let mut next = Array::<Vector<A, N>>::new(comptime!(READS as usize));
        while left >= READS {
            #[unroll]
            for i in 0..READS {
                place.advance(view, split);
                next[i as usize] =
                    elements::<I, A, B, N>(stored, inputs, outputs, place.at, operation, comptime!(source.clone()));
            }
            #[unroll]
            for i in 0..READS {
                chains = step_lanes::<A, N>(chains, next[i as usize], operation);
            }
            left -= READS;
        }
    }
    for _ in 0..left {
        place.advance(view, split);
        let next = elements::<I, A, B, N>(stored, inputs, outputs, place.at, operation, comptime!(source.clone()));
        chains = step_lanes::<A, N>(chains, next, operation);
    }
    chains
}

/// Reduces each block of each output's elements to one value, by `groups` units a block of `N` outputs and `width` such blocks a
/// cube.
///
/// `view` counts vectors of `N` neighbouring outputs. `stored` is what it addresses, or `inputs` and `outputs` are a program's;
/// `output` is `[outputs, blocks]`.
#[cube(launch_unchecked)]
pub fn reduce_single<I: Numeric, A: Numeric, O: Numeric, B: Int, N: Size>(
    stored: &[Vector<I, N>],
    inputs: &Inputs<B, f32, N>,
    outputs: &mut Outputs<B, f32, N>,
    output: &mut [O],
    view: View,
    blocks: u32,
    divisor: InputScalar,
    #[comptime] form: Form,
    #[define(I, A, O, B)] _dtypes: [ElemType; 4],
) {
    let divisor = divisor.get::<A>();
    cube::<I, A, O, B, N>(stored, inputs, outputs, output, CUBE_POS as u32, &view, blocks, divisor, form);
    keep_subnormals();
}

/// Several reductions, each as [`reduce_single`] with one unit a column: the cubes of one, then those of the next. None is a mean. Of a sum
/// in its last pass `means` may have a place: there `mean_targets` has its mean, which is the sum divided once by the number that
/// `divisors` has there.
#[cube(launch_unchecked)]
pub fn reduce_single_each<B: Int>(
    stored: &Sequence<Box<[Vector<f32, Const<1>>]>>,
    inputs: &Sequence<Inputs<B, f32, Const<1>>>,
    outputs: &mut Sequence<Outputs<B, f32, Const<1>>>,
    targets: &mut Sequence<Box<[f32]>>,
    mean_targets: &mut Sequence<Box<[f32]>>,
    divisors: &Sequence<f32>,
    views: &Sequence<View>,
    #[comptime] forms: Vec<Form>,
    #[comptime] means: Vec<Option<usize>>,
    #[comptime] quotients: Quotients,
    #[define(B)] _condition_dtype: ElemType,
) {
    // Counted from the first cube of a reduction. Before that it wraps, beyond the cubes of any.
    let mut nth = CUBE_POS as u32;
    #[unroll]
    for i in 0..comptime!(forms.len()) {
        let view = &views[i];
        let blocks = view.axis.div_ceil(COLUMNS_BLOCK);
        let cubes = view.outputs * blocks;
        if nth < cubes {
            let results = outputs.index_mut(i);
            let target = targets.index_mut(i);
            let form = comptime!(forms[i].clone());
            cube::<f32, f32, f32, B, Const<1>>(
                &stored[i], &inputs[i], results, target, nth, view, blocks, 1.0f32, form,
            );
            if comptime!(means[i].is_some()) {
                let mean = comptime!(means[i].unwrap_or(0));
                divided(&targets[i], mean_targets.index_mut(mean), nth, divisors[mean], quotients);
            }
        }
        nth -= cubes;
    }
    keep_subnormals();
}

/// Divides the sum that the cube's first unit has written: that of its number, since a cube has one output of one block.
#[cube]
fn divided(sums: &[f32], means: &mut [f32], nth: u32, divisor: f32, #[comptime] quotients: Quotients) {
    if UNIT_POS_Y == 0 {
        means[nth as usize] = divide::<f32>(sums[nth as usize], divisor, quotients);
    }
}

/// What cube `nth` of a reduction does. One unit adds its columns in order; several units put theirs into shared memory,
/// `[COLUMNS, width]`, where the first adds them.
#[cube]
fn cube<I: Numeric, A: Numeric, O: Numeric, B: Int, N: Size>(
    stored: &[Vector<I, N>],
    inputs: &Inputs<B, f32, N>,
    outputs: &mut Outputs<B, f32, N>,
    output: &mut [O],
    nth: u32,
    view: &View,
    blocks: u32,
    divisor: A,
    #[comptime] form: Form,
) {
    let operation = comptime!(form.operation);
    let quotients = comptime!(form.quotients);
    let width = comptime!(form.cube.width);
    let groups = comptime!(form.cube.groups);
    // Units are numbered output first, then block.
    let at = nth * width + UNIT_POS_X;
    let out = at % view.outputs;
    let block = at / view.outputs;
    let first = block * COLUMNS_BLOCK;
    // The grid may number more blocks than there are.
    let inside = block < blocks;

    let base = view.base(out);
    let length = min(view.axis - first, COLUMNS_BLOCK);
    let columns = min(length, COLUMNS);

    if comptime!(groups == 1) {
        if inside {
            let rows = length.div_ceil(COLUMNS);
            let mut totals =
                column::<I, A, B, N>(stored, inputs, outputs, base, first, rows, view, comptime!(form.clone()));
            for c in 1..columns {
                let rows = (length - c).div_ceil(COLUMNS);
                let next =
                    column::<I, A, B, N>(stored, inputs, outputs, base, first + c, rows, view, comptime!(form.clone()));
                totals = step_lanes::<A, N>(totals, next, operation);
            }
            write::<A, O, N>(output, totals, out, block, blocks, divisor, operation, quotients);
        }
    } else {
        let mut shared = Shared::<[Vector<A, N>]>::new_slice(comptime!((COLUMNS * width) as usize));
        if inside {
            let mut c = UNIT_POS_Y;
            while c < columns {
                let rows = (length - c).div_ceil(COLUMNS);
                shared[(c * width + UNIT_POS_X) as usize] =
                    column::<I, A, B, N>(stored, inputs, outputs, base, first + c, rows, view, comptime!(form.clone()));
                c += groups;
            }
        }
        sync_cube();
        if inside && UNIT_POS_Y == 0 {
            let mut totals = shared[UNIT_POS_X as usize];
            for c in 1..columns {
                totals = step_lanes::<A, N>(totals, shared[(c * width + UNIT_POS_X) as usize], operation);
            }
            write::<A, O, N>(output, totals, out, block, blocks, divisor, operation, quotients);
        }
    }
}

/// Writes the values of a block of `N` outputs.
#[cube]
pub(super) fn write<A: Numeric, O: Numeric, N: Size>(
    output: &mut [O],
    totals: Vector<A, N>,
    out: u32,
    block: u32,
    blocks: u32,
    divisor: A,
    #[comptime] operation: Operation,
    #[comptime] quotients: Quotients,
) {
    let lanes = N::value();
    #[unroll]
    for lane in 0..lanes {
        let place = (out * comptime!(lanes as u32) + comptime!(lane as u32)) * blocks + block;
        output[place as usize] = lower::<A, O>(totals.extract(lane), divisor, operation, quotients);
    }
}
