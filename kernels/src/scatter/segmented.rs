//! [`Plan::Segmented`](super::Plan::Segmented): sources sorted by destination, CSR row offsets, segmented reduction.
//!
//! In the sorted sources, those of one destination and one block of positions are adjacent: a **run**. Runs of at least
//! `shortest` sources are long runs. Each long run is totalled by a unit of its own, so that a destination with most of the
//! sources is not one unit's work; the destination's unit reads the totals of its long runs, and the values of its other runs.
//!
//! Where a long run is, is stored in a table of windows: window `w` is the places `w * shortest .. (w + 1) * shortest` of the
//! sorted sources. At most one long run begins in a window.

use super::combine::{Accumulator, Form, combine_lanes};
use super::operands::{Layout, Scatter};
use super::plan::Keyed;
use crate::buffer::{unwritten, words, words_arg};
use crate::grid::{UnitPlace, axis_grids, grid};
use crate::index::row_of;
use crate::order::BLOCK_TERMS;
use crate::radix_sort::{self, Keys, Sorted, row_offsets};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// No run begins here.
const NONE: u32 = u32::MAX;

/// The position of a source, which is numbered row-major over the keyed axes and the positions.
#[cube]
fn position_of(source: u32, layout: &Layout, #[comptime] keyed: Keyed) -> u32 {
    let line = if comptime!(keyed.inner) { source / layout.inner } else { source };
    if comptime!(keyed.outer) { line % layout.positions } else { line }
}

/// The block of positions that a source is in.
#[cube]
fn block_of(source: u32, layout: &Layout, #[comptime] keyed: Keyed) -> u32 {
    position_of(source, layout, keyed) / BLOCK_TERMS
}

/// Where the total of a window's run is kept: `totals[windows, outer, inner]`, without the keyed axes.
#[cube]
fn total_of(window: u32, outer: u32, inner: u32, layout: &Layout, #[comptime] keyed: Keyed) -> usize {
    let line = if comptime!(keyed.outer) { window } else { window * layout.outer + outer };
    let total = if comptime!(keyed.inner) { line } else { line * layout.inner + inner };
    total as usize
}

/// A unit an index: the destination it names, row-major over the keyed axes and the rows, or the number of destinations
/// if it names none. The extents of axes that are not keyed are 1.
#[cube(launch_unchecked)]
fn destinations<I: Int>(
    indices: &[I],
    keys: &mut [u32],
    layout: Layout,
    unit: UnitPlace,
    #[define(I)] _type: ElemType,
) {
    let (outer, position, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let row = row_of::<I>(indices[layout.indices.offset(outer, position, inner)], layout.rows);
    let destination = (outer * layout.rows + row) * layout.inner + inner;
    let none = layout.outer * layout.rows * layout.inner;
    keys[unit.index()] = select(row < layout.rows, destination, none);
    keep_subnormals();
}

/// Where the run of at least `shortest` sources that begins in a window begins and ends, or [`NONE`] twice.
#[cube]
fn run_of(
    keys: &[u32],
    sources: &[u32],
    layout: &Layout,
    window: u32,
    rows: u32,
    length: u32,
    shortest: u32,
    #[comptime] keyed: Keyed,
) -> (u32, u32) {
    let mut begin = NONE.runtime();
    let mut end = NONE.runtime();
    for nth in 0..shortest {
        let place = window * shortest + nth;
        let last = place + shortest - 1;
        // Most places fail the first question, which two loads answer.
        let key = keys[min(place, length - 1) as usize];
        if last < length && keys[min(last, length - 1) as usize] == key && key < rows {
            let block = block_of(sources[place as usize], layout, keyed);
            let before = select(place == 0, 0u32, place - 1);
            let begins = place == 0
                || keys[before as usize] != key
                || block_of(sources[before as usize], layout, keyed) != block;
            if begins && block_of(sources[last as usize], layout, keyed) == block {
                begin = place;
                // The first place after the run, by bisection.
                let mut low = last + 1;
                let mut high = min(place + BLOCK_TERMS, length);
                while low < high {
                    let middle = low + (high - low) / 2;
                    let within =
                        keys[middle as usize] == key && block_of(sources[middle as usize], layout, keyed) == block;
                    low = select(within, middle + 1, low);
                    high = select(within, high, middle);
                }
                end = low;
            }
        }
    }
    (begin, end)
}

/// Writes the total of a window's run, `begin..end`, at a place of the axes that are not keyed.
#[cube]
fn reduce_run<F: Numeric, A: Numeric, N: Size>(
    sources: &[u32],
    values: &[Vector<F, N>],
    totals: &mut [Vector<A, N>],
    layout: &Layout,
    window: u32,
    begin: u32,
    end: u32,
    outer: u32,
    inner: u32,
    #[comptime] form: Form,
    #[comptime] keyed: Keyed,
) {
    let first = sources[begin as usize];
    let mut outer = outer;
    let mut inner = inner;
    if comptime!(keyed.inner) {
        inner = first % layout.inner;
    }
    if comptime!(keyed.outer) {
        let line = if comptime!(keyed.inner) { first / layout.inner } else { first };
        outer = line / layout.positions;
    }
    let position = position_of(first, layout, keyed);
    let mut total = Vector::cast_from(values[layout.values.offset(outer, position, inner)]);
    for place in begin + 1..end {
        let position = position_of(sources[place as usize], layout, keyed);
        let value = Vector::cast_from(values[layout.values.offset(outer, position, inner)]);
        total = combine_lanes::<A, N>(total, value, form);
    }
    totals[total_of(window, outer, inner, layout, keyed)] = total;
}

/// A unit a window of `shortest` sorted places: [its run](run_of), as `runs[2 * window]` and `runs[2 * window + 1]`.
#[cube(launch_unchecked)]
fn find_runs(
    keys: &[u32],
    sources: &[u32],
    runs: &mut [u32],
    layout: Layout,
    rows: u32,
    length: u32,
    shortest: u32,
    #[comptime] keyed: Keyed,
) {
    let window = ABSOLUTE_POS as u32;
    if window >= length.div_ceil(shortest) {
        terminate!();
    }
    let (begin, end) = run_of(keys, sources, &layout, window, rows, length, shortest, keyed);
    runs[(window * 2) as usize] = begin;
    runs[(window * 2 + 1) as usize] = end;
    keep_subnormals();
}

/// A unit a window and column of the axes that are not keyed, along the others 0: the total of the window's run, if it has one.
#[cube(launch_unchecked)]
fn reduce_runs<F: Numeric, A: Numeric, N: Size>(
    sources: &[u32],
    runs: &[u32],
    values: &[Vector<F, N>],
    totals: &mut [Vector<A, N>],
    layout: Layout,
    unit: UnitPlace,
    #[comptime] form: Form,
    #[comptime] keyed: Keyed,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let (outer, window, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let begin = runs[(window * 2) as usize];
    if begin != NONE {
        let end = runs[(window * 2 + 1) as usize];
        reduce_run::<F, A, N>(sources, values, totals, &layout, window, begin, end, outer, inner, form, keyed);
    }
    keep_subnormals();
}

/// [`find_runs`] and [`reduce_runs`] in one, where all axes are keyed or have one element.
#[cube(launch_unchecked)]
fn find_and_reduce_runs<F: Numeric, A: Numeric, N: Size>(
    keys: &[u32],
    sources: &[u32],
    runs: &mut [u32],
    values: &[Vector<F, N>],
    totals: &mut [Vector<A, N>],
    layout: Layout,
    rows: u32,
    length: u32,
    shortest: u32,
    #[comptime] form: Form,
    #[comptime] keyed: Keyed,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let window = ABSOLUTE_POS as u32;
    if window >= length.div_ceil(shortest) {
        terminate!();
    }
    let (begin, end) = run_of(keys, sources, &layout, window, rows, length, shortest, keyed);
    runs[(window * 2) as usize] = begin;
    runs[(window * 2 + 1) as usize] = end;
    if begin != NONE {
        reduce_run::<F, A, N>(sources, values, totals, &layout, window, begin, end, 0u32, 0u32, form, keyed);
    }
    keep_subnormals();
}

/// A unit a destination: reduces the totals of its long runs and the values of its others.
#[cube(launch_unchecked)]
fn reduce_segments<F: Numeric, A: Numeric, N: Size>(
    tensor: &[Vector<F, N>],
    sources: &[u32],
    offsets: &[u32],
    runs: &[u32],
    totals: &[Vector<A, N>],
    values: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    layout: Layout,
    unit: UnitPlace,
    shortest: u32,
    #[comptime] form: Form,
    #[comptime] keyed: Keyed,
    #[define(F, A)] _types: [ElemType; 2],
) {
    let (outer, row, inner) = (unit.outer(), unit.axis(), unit.inner());
    if !unit.exists() {
        terminate!();
    }
    let line = if comptime!(keyed.outer) { outer * layout.rows + row } else { row };
    let segment = if comptime!(keyed.inner) { line * layout.inner + inner } else { line };
    let mut accumulator = Accumulator::<A, N>::new();
    let mut place = offsets[segment as usize];
    let end = offsets[(segment + 1) as usize];
    while place < end {
        let source = sources[place as usize];
        let position = position_of(source, &layout, keyed);
        if comptime!(form.one_block) {
            let value = values[layout.values.offset(outer, position, inner)];
            accumulator.take(0u32, Vector::cast_from(value), form);
            place += 1;
        } else {
            let window = place / shortest;
            let mut is_run = false;
            // What is left of most destinations is shorter than a run.
            if end - place >= shortest {
                is_run = runs[(window * 2) as usize] == place;
            }
            if is_run {
                let total = totals[total_of(window, outer, inner, &layout, keyed)];
                accumulator.take(position / BLOCK_TERMS, total, form);
                place = runs[(window * 2 + 1) as usize];
            } else {
                let value = values[layout.values.offset(outer, position, inner)];
                accumulator.take(position / BLOCK_TERMS, Vector::cast_from(value), form);
                place += 1;
            }
        }
    }
    let before = tensor[layout.tensor.offset(outer, row, inner)];
    output[unit.index()] = accumulator.update::<F>(before, form);
    keep_subnormals();
}

impl Scatter<'_> {
    /// The sources, sorted by destination.
    pub(super) fn sort(&self, plan: radix_sort::Plan) -> Sorted {
        let keyed = self.problem.keyed();
        let indices = &self.indices;
        let keys = match keyed.outer || keyed.inner {
            true => self.destinations(),
            // Without other axes the sort reads the indices themselves.
            false => Keys { handle: indices.handle(), stride: indices.strides[1], dtype: self.types[2] },
        };
        radix_sort::sort(self.client, keys, None, &self.problem.keys(), plan)
    }

    fn destinations(&self) -> Keys {
        let problem = &self.problem;
        let length = problem.keys().length;
        let [outer, inner] = problem.keyed_extents();
        let keys = words(self.client, length);
        for (count, dim, unit) in axis_grids(outer, problem.positions, inner) {
            // SAFETY: units stop at the number of indices, which is the length of `keys`; the view covers its indices.
            unsafe {
                destinations::launch_unchecked(
                    self.client,
                    count,
                    dim,
                    self.indices.buffer(),
                    words_arg(&keys, length),
                    self.layout(outer, inner, 1),
                    unit,
                    self.types[2],
                );
            }
        }
        Keys::words(keys)
    }

    /// The update by sorted sources.
    pub(super) fn reduce(self, sorted: &Sorted) -> TensorHandle {
        let problem = &self.problem;
        let Self { client, types: [storage, accumulator, _], .. } = self;
        let (keyed, form) = (problem.keyed(), self.form());
        let keys = problem.keys();
        let radix_sort::Problem { length, rows } = keys;
        let offsets = row_offsets(client, &sorted.keys, &keys);
        let (output, width) = (self.output(), self.vector_width());
        let (outer, inner) = (problem.outer, problem.inner / width);
        let shortest = problem.shortest_run();
        let windows = problem.windows();
        let (run_outer, run_inner) = (if keyed.outer { 1 } else { outer }, if keyed.inner { 1 } else { inner });
        let columns = run_outer * run_inner;
        let runs = words(client, 2 * windows);
        // Without windows no total is read, but a vector has to be there to bind.
        let totals = unwritten(client, vec![windows.max(1), columns * width], accumulator);
        let together = columns == 1;
        if windows > 0 {
            let (count, dim) = grid(windows);
            // SAFETY: units stop at the number of windows, of which each has two words in `runs`, and, with one column, a
            // total; places stay below `length`, and the sources of a run are positions of values.
            unsafe {
                match together {
                    true => find_and_reduce_runs::launch_unchecked(
                        client,
                        count,
                        dim,
                        width,
                        words_arg(&sorted.keys, length),
                        words_arg(&sorted.positions, length),
                        words_arg(&runs, 2 * windows),
                        self.values.buffer(),
                        totals.clone().into_arg().into_buffer_arg(),
                        self.layout(outer, inner, width),
                        rows as u32,
                        length as u32,
                        shortest as u32,
                        form,
                        keyed,
                        [storage, accumulator],
                    ),
                    false => find_runs::launch_unchecked(
                        client,
                        count,
                        dim,
                        words_arg(&sorted.keys, length),
                        words_arg(&sorted.positions, length),
                        words_arg(&runs, 2 * windows),
                        self.layout(outer, problem.inner, 1),
                        rows as u32,
                        length as u32,
                        shortest as u32,
                        keyed,
                    ),
                }
            }
        }
        for (count, dim, unit) in axis_grids(run_outer, if together { 0 } else { windows }, run_inner) {
            // SAFETY: units stop at the number of windows and columns, of which each has a total; the sources of a run are
            // positions of values.
            unsafe {
                reduce_runs::launch_unchecked(
                    client,
                    count,
                    dim,
                    width,
                    words_arg(&sorted.positions, length),
                    words_arg(&runs, 2 * windows),
                    self.values.buffer(),
                    totals.clone().into_arg().into_buffer_arg(),
                    self.layout(outer, inner, width),
                    unit,
                    form,
                    keyed,
                    [storage, accumulator],
                );
            }
        }
        for (count, dim, unit) in axis_grids(outer, problem.rows, inner) {
            // SAFETY: units stop at the number of destinations, of which each has an offset and the next one. Where there
            // are several blocks, `runs` was written for every window; a total is read only where a run begins at the
            // place, and that run's total was written. With one block neither is read.
            unsafe {
                reduce_segments::launch_unchecked(
                    client,
                    count,
                    dim,
                    width,
                    self.tensor.buffer(),
                    words_arg(&sorted.positions, length),
                    words_arg(&offsets, rows + 1),
                    words_arg(&runs, 2 * windows),
                    totals.clone().into_arg().into_buffer_arg(),
                    self.values.buffer(),
                    output.clone().into_arg().into_buffer_arg(),
                    self.layout(outer, inner, width),
                    unit,
                    shortest as u32,
                    form,
                    keyed,
                    [storage, accumulator],
                );
            }
        }
        output
    }
}
