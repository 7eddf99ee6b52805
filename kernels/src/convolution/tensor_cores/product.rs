//! The products of a pass: where their operands and outputs are.

use super::super::plan::{Pass, Problem};
use super::super::shape::{Axis, Geometry};
use super::pack::Positions;
use crate::matmul::plan as matmul;
use crate::matmul::tensor_cores::gathered::{Digits, GatheredFactor};

/// A product of a pass. An input gradient with a stride has one for each phase.
pub(super) struct Product {
    /// A matrix a group: channels to compute, steps, columns.
    pub size: matmul::Problem,
    /// Where its weights are, in a pass between activations.
    pub taps: [Taps; 3],
    /// The right factor, of the packed source.
    pub factor: GatheredFactor,
    /// Whether outputs of neighbouring columns are neighbours, in vectors of four.
    pub has_fours: bool,
}

/// The taps of a product along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taps {
    /// The first one, how many there are, and from each to the next.
    pub first: usize,
    pub count: usize,
    pub step: usize,
}

/// What an axis of a product is: the source's position `first + column * scale + tap * step` meets a column of the axis at each of its taps,
/// and the column is position `output + column * output_step` of the result.
#[derive(Clone, Copy, Debug)]
struct Steps {
    taps: Taps,
    columns: usize,
    scale: i64,
    first: i64,
    step: i64,
    output: usize,
    output_step: usize,
}

impl Steps {
    /// Of output positions.
    fn to_output(axis: &Axis) -> Self {
        let taps = Taps { first: 0, count: axis.taps, step: 1 };
        let (scale, first, step) = (axis.stride as i64, -(axis.padding as i64), axis.dilation as i64);
        Self { taps, columns: axis.output, scale, first, step, output: 0, output_step: 1 }
    }

    /// Of the input positions of a phase.
    fn to_input(axis: &Axis, phase: usize) -> Self {
        let step = axis.tap_step();
        let first = (0..axis.taps).find(|&tap| axis.in_phase(phase, tap)).unwrap_or(axis.taps);
        let taps = Taps { first, count: (axis.taps - first).div_ceil(step), step };
        let first = ((phase + axis.padding) as i64 - (first * axis.dilation) as i64).div_euclid(axis.stride as i64);
        let columns = (axis.input - phase).div_ceil(axis.stride);
        let step = -((axis.dilation / axis.common()) as i64);
        Self { taps, columns, scale: 1, first, step, output: phase, output_step: axis.stride }
    }

    /// The least and the largest position of the source that it meets, if it meets one.
    fn range(&self) -> Option<[i64; 2]> {
        let last_tap = self.taps.count.checked_sub(1)? as i64 * self.step;
        let last_column = self.columns.checked_sub(1)? as i64 * self.scale;
        Some([self.first + last_tap.min(0), self.first + last_column + last_tap.max(0)])
    }
}

/// Phases of the input positions along an axis.
fn phases(problem: &Problem, axis: &Axis) -> usize {
    if problem.pass == Pass::ToInput { axis.stride.min(axis.input) } else { 1 }
}

/// Products of a pass.
pub(super) fn count(problem: &Problem) -> usize {
    problem.geometry.axes.iter().map(|axis| phases(problem, axis)).product()
}

/// What each axis of each product is, by the phases.
fn steps(problem: &Problem) -> Vec<[Steps; 3]> {
    let axes = problem.geometry.axes;
    let of = |axis: Axis| -> Vec<Steps> {
        match problem.pass {
            Pass::ToInput => (0..phases(problem, &axis)).map(|phase| Steps::to_input(&axis, phase)).collect(),
            Pass::ToOutput | Pass::ToWeight => vec![Steps::to_output(&axis)],
        }
    };
    let [d, h, w] = axes.map(of);
    let rows = d.iter().flat_map(|&d| h.iter().map(move |&h| [d, h]));
    rows.flat_map(|[d, h]| w.iter().map(move |&w| [d, h, w])).collect()
}

/// The positions of the packed source, which has all that any product meets.
pub(super) fn positions(problem: &Problem) -> Positions {
    let steps = steps(problem);
    let range = |axis: usize| {
        let ranges = || steps.iter().filter_map(move |steps| steps[axis].range());
        let (least, largest) = (ranges().map(|[least, _]| least).min(), ranges().map(|[_, largest]| largest).max());
        let lead = -least.unwrap_or(0).min(0);
        [lead as usize, (lead + largest.unwrap_or(0).max(0) + 1) as usize]
    };
    let axes = [0, 1, 2].map(range);
    Positions { lead: axes.map(|[lead, _]| lead), lengths: axes.map(|[_, length]| length) }
}

/// The products of a pass, of elements in vectors of `width`.
pub(super) fn products(problem: &Problem, width: usize) -> Vec<Product> {
    let positions = positions(problem);
    steps(problem).into_iter().map(|axes| product(problem, &axes, &positions, width)).collect()
}

fn product(problem: &Problem, axes: &[Steps; 3], positions: &Positions, width: usize) -> Product {
    let Geometry { batch, groups, inputs, .. } = problem.geometry;
    let to_weight = problem.pass == Pass::ToWeight;
    let vectors = problem.source_channels().div_ceil(width);
    // Of the packed source, in vectors.
    let strides = row_major(positions.lengths).map(|stride| (stride * vectors) as i64);
    let of_group = positions.lengths.iter().product::<usize>() * vectors;
    let first = (0..3).map(|n| (axes[n].first + positions.lead[n] as i64) * strides[n]).sum();
    let place = Digits {
        first,
        lengths: [batch, axes[0].columns, axes[1].columns, axes[2].columns],
        strides: with_front((groups * of_group) as i64, [0, 1, 2].map(|n| axes[n].scale * strides[n])),
    };
    let taps = axes.map(|axis| axis.taps);
    let [d, h, w] = taps.map(|taps| taps.count);
    let term = Digits {
        first: 0,
        lengths: [d, h, w, vectors],
        strides: [axes[0].step * strides[0], axes[1].step * strides[1], axes[2].step * strides[2], 1],
    };
    let rows = problem.channels();
    let result = problem.geometry.axes.map(|axis| if problem.pass == Pass::ToInput { axis.input } else { axis.output });
    let (columns, steps, outputs, stored, row) = match to_weight {
        true => {
            let row_of_taps = row_major([d, h, w]).map(|stride| stride as i64);
            let outputs = Digits {
                first: 0,
                lengths: [d, h, w, vectors * width],
                strides: [row_of_taps[0], row_of_taps[1], row_of_taps[2], (d * h * w) as i64],
            };
            (term, place, outputs, inputs, inputs * d * h * w)
        }
        false => {
            let row = result.iter().product::<usize>();
            let of_result = row_major(result).map(|stride| stride as i64);
            let outputs = Digits {
                first: (0..3).map(|n| axes[n].output as i64 * of_result[n]).sum(),
                lengths: place.lengths,
                strides: with_front(
                    (groups * rows * row) as i64,
                    [0, 1, 2].map(|n| axes[n].output_step as i64 * of_result[n]),
                ),
            };
            (place, term, outputs, usize::MAX, row)
        }
    };
    let (n, k) =
        if to_weight { (columns.count() * width, steps.count()) } else { (columns.count(), steps.count() * width) };
    let parts = if to_weight { groups * rows * row } else { batch * groups * rows * row };
    let size = matmul::Problem {
        batch: groups,
        m: rows,
        k,
        n,
        element: 16 / width,
        accumulator: 4,
        vectors: matmul::Vectors::None,
        swapped_vectors: matmul::Vectors::None,
    };
    Product {
        size,
        taps,
        factor: GatheredFactor {
            columns,
            steps,
            outputs,
            stored,
            output_row: row,
            output_strides: [rows * row, parts],
        },
        has_fours: !to_weight && row.is_multiple_of(4) && axes.iter().all(|axis| axis.output_step == 1),
    }
}

/// From each position to the next along each axis.
fn row_major([_, h, w]: [usize; 3]) -> [usize; 3] {
    [h * w, w, 1]
}

fn with_front(front: i64, [d, h, w]: [i64; 3]) -> [i64; 4] {
    [front, d, h, w]
}
