//! Updates of rows of several elements without a full sort: one stable pass puts the sources that are for one bin of rows
//! side by side, one unit a bin numbers those of each row, and one for each bin and column folds them.
//!
//! What a row's sources come to is kept at the place of the first of them, so that rows without any need no more than to be
//! known as such.

use crate::launch::cubes;
use crate::scatter::accepts::Types;
use crate::scatter::bins::{Geometry, LINE, STEP};
use crate::scatter::kernel::{Extent, Strides, Tile, cast_each, combine_each};
use crate::scatter::lines::CORE_UNITS;
use crate::scatter::plan::{Bins, Problem, axis_grids};
use crate::scatter::segment::{Digits, Keys, count, place, words, words_arg};
use crate::scatter::tree::levels;
use crate::scatter::update::{Operands, extent};
use crate::scatter::{CHUNK, Update};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// Of a row: the number of its sources, and the place of the first. Of a source: how many of its row come before it, and the
/// place of the row's first.
type Numbers = Vector<u32, Const<2>>;

/// One unit per bin: numbers its sources.
#[cube(launch_unchecked)]
fn number(
    ends: &[u32],
    keys: &[u32],
    rows: &mut [Numbers],
    sources: &mut [Numbers],
    geometry: Geometry,
    #[comptime] step: u32,
    #[comptime] line: u32,
) {
    let bin = ABSOLUTE_POS as u32;
    if bin >= geometry.bins() {
        terminate!();
    }
    for first in 0..geometry.places / line {
        #[unroll]
        for within in 0..line {
            rows[(bin * geometry.places + first * line + within) as usize] = Numbers::new(0u32);
        }
    }
    let (start, end) = geometry.range(ends, bin);
    for group in 0..(end - start).div_ceil(step) {
        #[unroll]
        for within in 0..step {
            let at = start + group * step + within;
            if at < end {
                let place = geometry.place(keys[at as usize]) as usize;
                let row = rows[place];
                let before = row.extract(0usize);
                let mut after = Numbers::empty();
                let first = select(before == 0, at, row.extract(1usize));
                after.insert(0usize, before + 1);
                after.insert(1usize, first);
                rows[place] = after;
                after.insert(0usize, before);
                sources[at as usize] = after;
            }
        }
    }
}

/// One unit per bin and column: folds the rows of the bin, each into the first of its places in `totals[level, source, column]`.
// The outer condition is decided when the kernel is compiled.
#[allow(clippy::collapsible_if)]
#[cube(launch_unchecked)]
fn fold<F: Numeric, A: Numeric, N: Size>(
    ends: &[u32],
    keys: &[u32],
    sorted: &[u32],
    rows: &[Numbers],
    sources: &[Numbers],
    values: &[Vector<F, N>],
    totals: &mut [Vector<A, N>],
    extent: Extent,
    value_strides: Strides,
    geometry: Geometry,
    #[comptime] step: u32,
    #[comptime] levels: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let columns = extent.outer * extent.inner;
    let unit = ABSOLUTE_POS as u32;
    let bin = unit / columns;
    if bin >= geometry.bins() {
        terminate!();
    }
    let column = unit - bin * columns;
    let (outer, inner) = (column / extent.inner, column % extent.inner);
    let (start, end) = geometry.range(ends, bin);
    for group in 0..(end - start).div_ceil(step) {
        #[unroll]
        for within in 0..step {
            let at = start + group * step + within;
            if at < end {
                let numbers = sources[at as usize];
                let before = numbers.extract(0usize);
                let kept = (numbers.extract(1usize) * columns + column) as usize;
                let value = values[value_strides.offset(outer, sorted[at as usize], inner)];
                let mut term = cast_each::<F, A, N>(value);
                let opens = before & (chunk_length - 1) == 0;
                if opens {
                    if before != 0 {
                        // The chunk below is complete: the next term of the chunk on this level.
                        let mut terms = before;
                        let mut ends = true;
                        let mut complete = totals[kept];
                        #[unroll]
                        for level in 1..levels + 1 {
                            if ends {
                                terms /= chunk_length;
                                let above = (extent.sources * columns * level) as usize + kept;
                                if (terms - 1) & (chunk_length - 1) != 0 {
                                    complete = combine_each::<A, N>(totals[above], complete, update, is_float);
                                }
                                totals[above] = complete;
                                ends = terms & (chunk_length - 1) == 0;
                            }
                        }
                    }
                } else {
                    term = combine_each::<A, N>(totals[kept], term, update, is_float);
                }
                totals[kept] = term;
                if comptime!(levels > 0) {
                    if before >= chunk_length {
                        let place = geometry.place(keys[at as usize]);
                        if before + 1 == rows[place as usize].extract(0usize) {
                            // The row's last: what is left on each level.
                            let mut terms = before / chunk_length;
                            #[unroll]
                            for level in 1..levels + 1 {
                                if terms & (chunk_length - 1) != 0 {
                                    let above = (extent.sources * columns * level) as usize + kept;
                                    term = combine_each::<A, N>(totals[above], term, update, is_float);
                                }
                                terms /= chunk_length;
                            }
                            totals[kept] = term;
                        }
                    }
                }
            }
        }
    }
}

/// For each `together` neighbouring destination elements: updates them with what their row's sources came to.
#[cube(launch_unchecked)]
fn update_rows<F: Numeric, A: Numeric, N: Size>(
    tensor: &[Vector<F, N>],
    rows: &[Numbers],
    totals: &[Vector<A, N>],
    output: &mut [Vector<F, N>],
    extent: Extent,
    tile: Tile,
    tensor_strides: Strides,
    geometry: Geometry,
    #[comptime] together: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let (outer, row, first) = (tile.outer(), tile.axis(), tile.inner() * together);
    if outer >= extent.outer || row >= extent.rows || first >= extent.inner {
        terminate!();
    }
    let numbers = rows[geometry.place(row) as usize];
    let named = numbers.extract(0usize) != 0;
    let total = (numbers.extract(1usize) * extent.outer + outer) * extent.inner + first;
    let element = (outer * extent.rows + row) * extent.inner + first;
    #[unroll]
    for within in 0..together {
        let mut value = tensor[tensor_strides.offset(outer, row, first + within)];
        if named {
            let total = totals[(total + within) as usize];
            let updated = combine_each::<A, N>(cast_each::<F, A, N>(value), total, update, is_float);
            value = cast_each::<A, F, N>(updated);
        }
        output[(element + within) as usize] = value;
    }
}

/// Updates rows of several elements.
pub(super) fn update(
    client: &Client,
    operands: &Operands,
    keys: &Keys,
    problem: &Problem,
    bins: Bins,
    types: Types,
    update: Update,
) -> TensorHandle {
    let Problem { rows, sources, .. } = *problem;
    let width = operands.vector_width(problem, types);
    let problem = &Problem { inner: problem.inner / width, ..*problem };
    let columns = problem.columns();

    let counters = words(client, bins.counters(sources));
    let (sorted_keys, sorted) = (words(client, sources), words(client, sources));
    let digits = Digits { shift: 0, bins: bins.bins(), run: bins.run };
    count(client, keys, digits, rows, sources, &counters);
    place(client, (&keys.handle, keys), digits, rows, sources, &counters, (&sorted_keys, &sorted), false);

    let all = bins.bins() * bins.places(rows);
    let geometry = || bins.geometry(problem);
    let (of_rows, of_sources) = (words(client, 2 * all), words(client, 2 * sources));
    let levels = levels(sources);
    let length = (levels as usize + 1) * sources * columns;
    let totals = client.empty(length * width * types.accumulator.size());
    let ends_arg = || words_arg(&counters, bins.counters(sources));
    // SAFETY: `of_rows` and `of_sources` are made with two words each, `totals` with this length.
    let (rows_arg, sources_arg, totals_arg) = unsafe {
        (
            || BufferArg::from_raw_parts(of_rows.clone(), all),
            || BufferArg::from_raw_parts(of_sources.clone(), sources),
            || BufferArg::from_raw_parts(totals.clone(), length),
        )
    };
    let core_grid = |units: usize| (cubes(units.div_ceil(CORE_UNITS as usize)), CubeDim::new_1d(CORE_UNITS));
    let (units, dim) = core_grid(bins.bins());
    // SAFETY: units stop at the number of bins; the sources of a bin and the places of its rows are the unit's own.
    unsafe {
        number::launch_unchecked(
            client,
            units,
            dim,
            ends_arg(),
            words_arg(&sorted_keys, sources),
            rows_arg(),
            sources_arg(),
            geometry(),
            STEP as u32,
            LINE as u32,
        );
    }
    let (units, dim) = core_grid(bins.bins() * columns);
    // SAFETY: units stop at the number of bins; the rows' first places are those of sources of the bin.
    unsafe {
        fold::launch_unchecked(
            client,
            units,
            dim,
            width,
            ends_arg(),
            words_arg(&sorted_keys, sources),
            words_arg(&sorted, sources),
            rows_arg(),
            sources_arg(),
            operands.values.buffer(),
            totals_arg(),
            extent(problem),
            operands.values.vector_strides(width as u32),
            geometry(),
            STEP as u32,
            levels,
            CHUNK as u32,
            update,
            types.is_float(),
            [types.storage, types.accumulator],
        );
    }
    let output = operands.output(client);
    // A unit of several elements looks its row up once.
    let together = [4, 2, 1].into_iter().find(|&together| problem.inner.is_multiple_of(together)).unwrap_or(1);
    for (count, dim, tile) in axis_grids(problem.outer, problem.rows, problem.inner / together) {
        // SAFETY: units stop at the number of destination elements, which the view covers; each row has a place, and the
        // first source of a row with any has totals.
        unsafe {
            update_rows::launch_unchecked(
                client,
                count,
                dim,
                width,
                operands.tensor.buffer(),
                rows_arg(),
                totals_arg(),
                output.clone().into_arg().into_buffer_arg(),
                extent(problem),
                tile,
                operands.tensor.vector_strides(width as u32),
                geometry(),
                together as u32,
                update,
                types.is_float(),
                [types.storage, types.accumulator],
            );
        }
    }
    output
}
