//! The products of a pass: where their operands and outputs are.

use super::super::plan::{Pass, Problem};
use super::super::shape::{Axis, Geometry};
use super::pack::Positions;
use crate::matmul::plan as matmul;
use crate::matmul::tensor_cores::gathered::{GatheredFactor, Layout};
use crate::matmul::tensor_cores::plan::VECTOR;
use std::ops::Range;

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

/// How an axis of a product maps a column and a tap to positions: `first + column * scale + tap * step` of the source, and of the result
/// `output + column * output_step`. In a weight gradient columns are output positions, which no result has.
#[derive(Clone, Copy, Debug)]
struct AxisMap {
    taps: Taps,
    columns: usize,
    scale: i64,
    first: i64,
    step: i64,
    output: usize,
    output_step: usize,
}

impl AxisMap {
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

/// What an axis of the products is, by the phases along it.
fn axis_maps(problem: &Problem, axis: &Axis) -> Vec<AxisMap> {
    match problem.pass {
        Pass::ToInput => (0..phases(problem, axis)).map(|phase| AxisMap::to_input(axis, phase)).collect(),
        Pass::ToOutput | Pass::ToWeight => vec![AxisMap::to_output(axis)],
    }
}

/// The positions of the packed source, which has all that any product meets.
pub(super) fn positions(problem: &Problem) -> Positions {
    let axes = problem.geometry.axes.map(|axis| {
        let ranges: Vec<_> = axis_maps(problem, &axis).iter().filter_map(AxisMap::range).collect();
        let least = ranges.iter().map(|[least, _]| *least).min().unwrap_or(0);
        let largest = ranges.iter().map(|[_, largest]| *largest).max().unwrap_or(0);
        let lead = -least.min(0);
        [lead as usize, (lead + largest.max(0) + 1) as usize]
    });
    Positions { lead: axes.map(|[lead, _]| lead), lengths: axes.map(|[_, length]| length) }
}

/// Elements of the packed source of so many samples, in vectors of `width`, if they can be counted.
pub(super) fn copied(problem: &Problem, samples: usize, width: usize) -> Option<usize> {
    let channels = problem.source_channels().next_multiple_of(width);
    let factors = [samples, problem.geometry.groups, channels].into_iter().chain(positions(problem).lengths);
    factors.into_iter().try_fold(1, usize::checked_mul)
}

/// The products of these samples of a pass, whose copy holds no others, of elements in vectors of `width`.
pub(super) fn products(problem: &Problem, samples: Range<usize>, width: usize) -> Vec<Product> {
    let positions = positions(problem);
    let [d, h, w] = problem.geometry.axes.map(|axis| axis_maps(problem, &axis));
    let rows = d.iter().flat_map(|&d| h.iter().map(move |&h| [d, h]));
    let axes = rows.flat_map(|[d, h]| w.iter().map(move |&w| [d, h, w]));
    axes.map(|axes| product(problem, &axes, &positions, samples.clone(), width)).collect()
}

fn product(
    problem: &Problem,
    axes: &[AxisMap; 3],
    positions: &Positions,
    samples: Range<usize>,
    width: usize,
) -> Product {
    let Geometry { batch, groups, inputs, .. } = problem.geometry;
    let to_weight = problem.pass == Pass::ToWeight;
    let vectors = problem.source_channels().div_ceil(width);
    // Of the packed source, in vectors.
    let strides = row_major(positions.lengths).map(|stride| (stride * vectors) as i64);
    let of_group = positions.lengths.iter().product::<usize>() * vectors;
    let offset = (0..3).map(|n| (axes[n].first + positions.lead[n] as i64) * strides[n]).sum();
    let place = Layout {
        offset,
        shape: [samples.len(), axes[0].columns, axes[1].columns, axes[2].columns],
        strides: with_front((groups * of_group) as i64, [0, 1, 2].map(|n| axes[n].scale * strides[n])),
    };
    let taps = axes.map(|axis| axis.taps);
    let [d, h, w] = taps.map(|taps| taps.count);
    let term = Layout {
        offset: 0,
        shape: [d, h, w, vectors],
        strides: [axes[0].step * strides[0], axes[1].step * strides[1], axes[2].step * strides[2], 1],
    };
    let rows = problem.channels();
    let result = problem.geometry.axes.map(|axis| if problem.pass == Pass::ToInput { axis.input } else { axis.output });
    let (columns, steps, outputs, stored, row) = match to_weight {
        true => {
            let row_of_taps = row_major([d, h, w]).map(|stride| stride as i64);
            let outputs = Layout {
                offset: 0,
                shape: [d, h, w, vectors * width],
                strides: [row_of_taps[0], row_of_taps[1], row_of_taps[2], (d * h * w) as i64],
            };
            (term, place, outputs, inputs, inputs * d * h * w)
        }
        false => {
            let row = result.iter().product::<usize>();
            let of_result = row_major(result).map(|stride| stride as i64);
            let of_sample = (groups * rows * row) as i64;
            let first = (0..3).map(|n| axes[n].output as i64 * of_result[n]).sum::<i64>();
            let outputs = Layout {
                offset: samples.start as i64 * of_sample + first,
                shape: place.shape,
                strides: with_front(of_sample, [0, 1, 2].map(|n| axes[n].output_step as i64 * of_result[n])),
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
        element: VECTOR as usize / width,
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
            output_batch: rows * row,
            output_part: parts,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::Products;
    use std::collections::BTreeMap;

    /// The index of an element, along each axis.
    fn index(layout: &Layout, element: usize) -> [usize; 4] {
        let [_, b, c, d] = layout.shape;
        [element / d / c / b, element / d / c % b, element / d % c, element % d]
    }

    fn offset(layout: &Layout, element: usize) -> i64 {
        let index = index(layout, element);
        layout.offset + (0..4).map(|axis| index[axis] as i64 * layout.strides[axis]).sum::<i64>()
    }

    /// The position along an axis that meets another one at a tap.
    fn met(problem: &Problem, axis: usize, at: usize, tap: usize) -> Option<usize> {
        let axis = &problem.geometry.axes[axis];
        if problem.pass == Pass::ToInput { axis.output_of(at, tap) } else { axis.input_of(at, tap) }
    }

    /// Every place of the packed source that a product reads is in it, and holds the element that its column and step meet, or zero where
    /// they meet none; every element of the result is written once, and vectors of four are whole.
    fn check(problem: &Problem, width: usize) {
        let Geometry { batch, groups, inputs, .. } = problem.geometry;
        let Positions { lengths, lead } = positions(problem);
        let to_weight = problem.pass == Pass::ToWeight;
        let vectors = problem.source_channels().div_ceil(width);
        let of_sample = (groups * lengths.iter().product::<usize>() * vectors) as i64;
        let source =
            problem.geometry.axes.map(|axis| if problem.pass == Pass::ToInput { axis.output } else { axis.input });
        let result =
            problem.geometry.axes.map(|axis| if problem.pass == Pass::ToInput { axis.input } else { axis.output });
        let mut written: BTreeMap<i64, usize> = BTreeMap::new();
        let of_run = if to_weight { batch } else { 1 };
        for first in (0..batch).step_by(of_run) {
            let samples = first..first + of_run;
            for product in products(problem, samples.clone(), width) {
                let factor = &product.factor;
                for column in 0..factor.columns.count() {
                    for step in 0..factor.steps.count() {
                        let at = offset(&factor.columns, column) + offset(&factor.steps, step);
                        assert!((0..samples.len() as i64 * of_sample).contains(&at), "{problem:?}");
                        // Of the first group, sample, position and vector of channels.
                        let (sample, within) = ((at / of_sample) as usize, (at % of_sample) as usize);
                        let [_, h, w] = lengths;
                        let (place, vector) = (within / vectors, within % vectors);
                        let position = [place / w / h, place / w % h, place % w];
                        let (column, step) = (index(&factor.columns, column), index(&factor.steps, step));
                        let (at, taps) = if to_weight { (step, column) } else { (column, step) };
                        assert_eq!((sample, vector), (at[0], taps[3]), "{problem:?}");
                        for axis in 0..3 {
                            let Taps { first, step, .. } = product.taps[axis];
                            let of_result =
                                if to_weight { at[axis + 1] } else { output(problem, &product, axis, at[axis + 1]) };
                            let met = met(problem, axis, of_result, first + taps[axis] * step);
                            let held = position[axis].checked_sub(lead[axis]).filter(|&held| held < source[axis]);
                            assert_eq!(held, met, "{problem:?}");
                        }
                    }
                }
                for column in 0..factor.outputs.count() {
                    if index(&factor.outputs, column)[3] >= factor.stored {
                        continue;
                    }
                    let at = offset(&factor.outputs, column);
                    *written.entry(at).or_default() += 1;
                    assert!(
                        !product.has_fours
                            || column % 4 > 0
                            || at % 4 == 0 && at + 3 == offset(&factor.outputs, column + 3)
                    );
                }
            }
        }
        // The first row of the first group.
        let row = if to_weight { inputs * problem.geometry.taps() } else { result.iter().product() };
        let of_sample = groups * problem.channels() * row;
        let rows = if to_weight { 1 } else { batch };
        let want: BTreeMap<i64, usize> =
            (0..rows).flat_map(|sample| (0..row).map(move |at| ((sample * of_sample + at) as i64, 1))).collect();
        assert_eq!(written, want, "{problem:?}");
    }

    /// The position of the result along an axis that a column is.
    fn output(problem: &Problem, product: &Product, axis: usize, column: usize) -> usize {
        if problem.pass == Pass::ToOutput {
            return column;
        }
        let of = &problem.geometry.axes[axis];
        let phases = phases(problem, of);
        let position = (0..phases).find(|&phase| {
            let taps = AxisMap::to_input(of, phase);
            let result = row_major(problem.geometry.axes.map(|axis| axis.input))[axis] as i64;
            let length = of.input as i64;
            product.factor.outputs.offset / result % length == phase as i64 && taps.taps == product.taps[axis]
        });
        position.expect("a phase") + column * of.stride
    }

    #[test]
    fn products_read_what_they_meet_and_write_each_result_once() {
        let axis = |(input, taps, stride, padding, dilation): (usize, usize, usize, usize, usize)| {
            let room = input + 2 * padding;
            let output = room.checked_sub(dilation * (taps - 1) + 1).map_or(0, |room| room / stride + 1);
            Axis { input, output, taps, stride, padding, dilation }
        };
        let one = axis((1, 1, 1, 0, 1));
        let axes = [
            (5, 3, 1, 1, 1),
            (6, 3, 2, 1, 1),
            (4, 1, 2, 0, 1),
            (7, 2, 3, 2, 2),
            (3, 2, 4, 3, 6),
            (2, 3, 5, 4, 1),
            (8, 3, 1, 5, 2),
            (8, 2, 4, 0, 2),
            (6, 4, 2, 0, 3),
        ];
        for (first, second) in axes.into_iter().flat_map(|first| axes.map(|second| (first, second))) {
            for (groups, inputs, outputs) in [(1, 3, 5), (2, 8, 4)] {
                let geometry = Geometry { batch: 2, groups, inputs, outputs, axes: [one, axis(first), axis(second)] };
                for pass in [Pass::ToOutput, Pass::ToInput, Pass::ToWeight] {
                    check(&Problem { pass, rank: 2, geometry, products: Products::Native }, 4);
                }
            }
        }
        // Transposed, with positions that are cut, and with some added.
        for (output, input) in [(4, 3), (4, 12)] {
            let cut = Axis { input, output, taps: 3, stride: 2, padding: 2, dilation: 1 };
            let geometry = Geometry { batch: 1, groups: 1, inputs: 2, outputs: 3, axes: [one, one, cut] };
            check(&Problem { pass: Pass::ToInput, rank: 1, geometry, products: Products::Native }, 8);
        }
    }
}
