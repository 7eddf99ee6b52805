//! Updates without a sort: few units link the sources of each row to a list in their order, and each destination element takes
//! the values of its row's. Where few rows of many have sources, the tensor is copied first, and the elements are those of each
//! row's first source.

use crate::launch::{MAX_ITERATIONS, core_grid};
use crate::scatter::accepts::Types;
use crate::scatter::kernel::{Extent, Strides, Tile, cast_each, combine_each, row_of};
use crate::scatter::plan::{Problem, axis_grids, touches_few};
use crate::scatter::segment::{Keys, words, words_arg};
use crate::scatter::tree::levels;
use crate::scatter::update::{Operands, extent};
use crate::scatter::{CHUNK, Update};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;

/// What stands for no source.
const NONE: u32 = u32::MAX;

/// Rows of a block, and sources that a unit looks at together: a bit of a word each.
const BITS: usize = 32;

/// Words that a unit clears in one iteration.
const CLEARED: usize = 8;

/// Units that link: each looks at all sources, and few are enough for a processor's cores.
const LINKERS: usize = 64;

/// Rows whose words one iteration of all units that link clears.
pub(super) const CLEARED_ROWS: usize = BITS * LINKERS * CLEARED;

/// Sources up to which one iteration takes one, which is less work where rows have few.
const MOST_TAKEN_SINGLY: usize = 25_000;

/// Sources that an iteration takes where they are more.
const STEP: usize = 8;

/// Loop iterations that clear the words of the blocks a unit links.
pub(super) fn clearing(rows: usize) -> usize {
    rows.div_ceil(CLEARED_ROWS)
}

/// Loop iterations, at most, of a unit that takes all of so many sources: the loop over those of one row, with another in
/// it that is left or skipped, and entered once a chunk.
pub(super) fn iterations(sources: usize) -> usize {
    2 * sources.div_ceil(step(sources)) + sources.div_ceil(CHUNK) + 4
}

/// Sources that one iteration takes.
fn step(sources: usize) -> usize {
    if sources <= MOST_TAKEN_SINGLY { 1 } else { STEP }
}

/// How a unit goes through a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Form {
    /// Neighbouring elements it does so for.
    together: usize,
    /// Sources that it takes in an iteration.
    step: usize,
    /// Levels above the chunks of values.
    levels: u32,
    /// Values, or chunks, of a chunk.
    chunk_length: u32,
    /// What ends a list.
    none: u32,
}

/// One unit for every so many blocks of rows: links their sources, the last one first.
///
/// A bit of `touched[block]` tells whether a row has a source, `first[row]` is its first one then, and `next[source]` the
/// next one of the same row.
#[cube(launch_unchecked)]
fn link<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    single_keys: &[I],
    touched: &mut [u32],
    first: &mut [u32],
    next: &mut [u32],
    stride: u32,
    rows: u32,
    sources: u32,
    begin: u32,
    glances: u32,
    units: u32,
    clearing: u32,
    #[comptime] bits: u32,
    #[comptime] cleared: u32,
    #[comptime] none: u32,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    for group in 0..clearing {
        #[unroll]
        for within in 0..cleared {
            touched[((group * cleared + within) * units + unit) as usize] = 0;
        }
    }
    let width = N::value();
    let width = comptime!(width as u32);
    let vectors = comptime!(bits / width);
    for back in 0..glances {
        let start = begin + (glances - 1 - back) * bits;
        let mut mine = 0u32;
        #[unroll]
        for vector in 0..vectors {
            let at = start + vector * width;
            let key = keys[(min(at, sources - width) / width * stride) as usize];
            #[unroll]
            for lane in 0..width {
                let row = row_of::<I>(key.extract(comptime!(lane as usize)), rows);
                let is_mine = (row / bits) & (units - 1) == unit && row < rows && at + lane < sources;
                mine |= u32::cast_from(is_mine) << comptime!(vector * width + lane);
            }
        }
        while mine != 0 {
            let within = 31 - mine.leading_zeros();
            mine ^= 1u32 << within;
            let source = start + within;
            let row = row_of::<I>(single_keys[(source * stride) as usize], rows);
            let block = touched[(row / bits) as usize];
            let bit = 1u32 << (row % bits);
            next[source as usize] = select(block & bit != 0, first[row as usize], none);
            first[row as usize] = source;
            touched[(row / bits) as usize] = block | bit;
        }
    }
}

/// Takes the values of one row, the first of which is `first`, into its `elements`.
#[cube]
fn take_list<F: Numeric, A: Numeric, N: Size>(
    elements: &mut Array<Vector<F, N>>,
    first: u32,
    next: &[u32],
    values: &[Vector<F, N>],
    outer: u32,
    column: u32,
    value_strides: Strides,
    #[comptime] form: Form,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
) {
    let Form { together, step, levels, chunk_length, none } = comptime!(form);
    let mut source = first;
    let mut count = 0u32;
    let mut totals = Array::<Vector<A, N>>::new(together);
    let mut above = Array::<Vector<A, N>>::new(comptime!(if levels == 0 { 1 } else { levels as usize * together }));
    while source != none {
        if comptime!(levels > 0) {
            // A complete chunk is the next term of the chunk on the level above, and so on up.
            let mut terms = select(count & (chunk_length - 1) == 0, count / chunk_length, 0u32);
            while terms != 0 {
                let mut ends = true;
                #[unroll]
                for level in 0..levels {
                    if ends {
                        let opens = (terms - 1) & (chunk_length - 1) == 0;
                        #[unroll]
                        for within in 0..together {
                            let kept = comptime!(level as usize * together + within);
                            if !opens {
                                totals[within] = combine_each::<A, N>(above[kept], totals[within], update, is_float);
                            }
                            above[kept] = totals[within];
                        }
                        ends = terms & (chunk_length - 1) == 0;
                        terms /= chunk_length;
                    }
                }
                terms = 0u32;
            }
        }
        // A chunk is whole steps, so only the first source of a step may open one.
        #[unroll]
        for place in 0..step {
            if source != none {
                let value = value_strides.offset(outer, source, column);
                source = next[source as usize];
                #[unroll]
                for within in 0..together {
                    let value = values[value + value_strides.offset(0u32, 0u32, comptime!(within as u32))];
                    let term = cast_each::<F, A, N>(value);
                    if comptime!(place == 0) {
                        if count & (chunk_length - 1) == 0 {
                            totals[within] = term;
                        } else {
                            totals[within] = combine_each::<A, N>(totals[within], term, update, is_float);
                        }
                    } else {
                        totals[within] = combine_each::<A, N>(totals[within], term, update, is_float);
                    }
                }
                count += 1;
            }
        }
    }
    if comptime!(levels > 0) {
        // What is left on each level.
        let mut terms = (count - 1) / chunk_length;
        while terms != 0 {
            #[unroll]
            for level in 0..levels {
                if terms & (chunk_length - 1) != 0 {
                    #[unroll]
                    for within in 0..together {
                        let kept = comptime!(level as usize * together + within);
                        totals[within] = combine_each::<A, N>(above[kept], totals[within], update, is_float);
                    }
                }
                terms /= chunk_length;
            }
            terms = 0u32;
        }
    }
    #[unroll]
    for within in 0..together {
        let before = cast_each::<F, A, N>(elements[within]);
        let updated = combine_each::<A, N>(before, totals[within], update, is_float);
        elements[within] = cast_each::<A, F, N>(updated);
    }
}

/// For each `together` neighbouring destination elements: takes the values of their row.
#[cube(launch_unchecked)]
fn take_lists<F: Numeric, A: Numeric, N: Size>(
    tensor: &[Vector<F, N>],
    touched: &[u32],
    first: &[u32],
    next: &[u32],
    values: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    extent: Extent,
    tile: Tile,
    tensor_strides: Strides,
    value_strides: Strides,
    #[comptime] bits: u32,
    #[comptime] form: Form,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let together = comptime!(form.together);
    let (outer, row, column) = (tile.outer(), tile.axis(), tile.inner() * comptime!(together as u32));
    if outer >= extent.outer || row >= extent.rows || column >= extent.inner {
        terminate!();
    }
    let from = tensor_strides.offset(outer, row, column);
    let to = ((outer * extent.rows + row) * extent.inner + column) as usize;
    let mut elements = Array::<Vector<F, N>>::new(together);
    #[unroll]
    for within in 0..together {
        elements[within] = tensor[from + tensor_strides.offset(0u32, 0u32, comptime!(within as u32))];
    }
    // Software drivers execute both sides of every branch, but leave loops.
    let mut is_touched = (touched[(row / bits) as usize] >> (row % bits)) & 1 != 0;
    while is_touched {
        let source = first[row as usize];
        take_list::<F, A, N>(&mut elements, source, next, values, outer, column, value_strides, form, update, is_float);
        is_touched = false;
    }
    #[unroll]
    for within in 0..together {
        output[to + within] = elements[within];
    }
}

/// For each source and `together` neighbouring values of it: if it is the first of its row, takes the row's values into the row's
/// elements. Rows that no source is for are left as they are.
#[cube(launch_unchecked)]
fn take_lists_of_first<F: Numeric, A: Numeric, I: Int, N: Size>(
    keys: &[I],
    first: &[u32],
    next: &[u32],
    values: &[Vector<F, N>],
    output: &mut [Vector<F, N>],
    key_stride: u32,
    extent: Extent,
    tile: Tile,
    value_strides: Strides,
    #[comptime] form: Form,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A, I)] _dtypes: [ElemType; 3],
) {
    let together = comptime!(form.together);
    let (outer, source, column) = (tile.outer(), tile.axis(), tile.inner() * comptime!(together as u32));
    if outer >= extent.outer || source >= extent.sources || column >= extent.inner {
        terminate!();
    }
    let row = row_of::<I>(keys[(source * key_stride) as usize], extent.rows);
    if row >= extent.rows || first[row as usize] != source {
        terminate!();
    }
    let at = ((outer * extent.rows + row) * extent.inner + column) as usize;
    let mut elements = Array::<Vector<F, N>>::new(together);
    #[unroll]
    for within in 0..together {
        elements[within] = output[at + within];
    }
    take_list::<F, A, N>(&mut elements, source, next, values, outer, column, value_strides, form, update, is_float);
    #[unroll]
    for within in 0..together {
        output[at + within] = elements[within];
    }
}

/// Updates the rows of `problem`.
pub(super) fn update(
    client: &Client,
    operands: &Operands,
    keys: &Keys,
    problem: &Problem,
    types: Types,
    update: Update,
) -> TensorHandle {
    let Problem { rows, sources, .. } = *problem;
    let blocks = clearing(rows) * LINKERS * CLEARED;
    let (touched, first, next) = (words(client, blocks), words(client, rows), words(client, sources));
    let glances = sources.div_ceil(BITS);
    // A glance loops once, and once for each source and to leave that loop.
    let most = (MAX_ITERATIONS - clearing(rows)) / (BITS + 2);
    let (count, dim) = core_grid(LINKERS);
    let mut end = glances;
    while end > 0 {
        let begin = end.saturating_sub(most);
        let clears = if end == glances { clearing(rows) } else { 0 };
        // SAFETY: units stop at `LINKERS`, and `touched` has a word for each block, padded to what they clear; what is kept
        // of a row and its sources is the unit's own; a row is compared with `rows` before it addresses anything, and so
        // is a source with `sources`.
        unsafe {
            link::launch_unchecked(
                client,
                count.clone(),
                dim,
                keys.width(sources, BITS),
                keys.arg(sources),
                keys.arg(sources),
                words_arg(&touched, blocks),
                words_arg(&first, rows),
                words_arg(&next, sources),
                keys.stride,
                rows as u32,
                sources as u32,
                (begin * BITS) as u32,
                (end - begin) as u32,
                LINKERS as u32,
                clears as u32,
                BITS as u32,
                CLEARED as u32,
                NONE,
                keys.dtype,
            );
        }
        end = begin;
    }

    let width = operands.vector_width(problem, types);
    let problem = &Problem { inner: problem.inner / width, ..*problem };
    // A unit of two elements goes through its row's list once; one of four copies no faster.
    let together = if problem.inner.is_multiple_of(2) { 2 } else { 1 };
    let columns = problem.inner / together;
    let form = Form { together, step: step(sources), levels: levels(sources), chunk_length: CHUNK as u32, none: NONE };
    let value_strides = || operands.values.vector_strides(width as u32);
    if touches_few(rows, sources) {
        let output = operands.copy(client);
        for (count, dim, tile) in axis_grids(problem.outer, sources, columns) {
            // SAFETY: units stop at the number of values, which the view covers, and where a source names no row; the
            // first source of a row, which alone writes the row's elements, is one, and each one's next.
            unsafe {
                take_lists_of_first::launch_unchecked(
                    client,
                    count,
                    dim,
                    width,
                    keys.arg(sources),
                    words_arg(&first, rows),
                    words_arg(&next, sources),
                    operands.values.buffer(),
                    output.clone().into_arg().into_buffer_arg(),
                    keys.stride,
                    extent(problem),
                    tile,
                    value_strides(),
                    form,
                    update,
                    types.is_float(),
                    [types.storage, types.accumulator, keys.dtype],
                );
            }
        }
        return output;
    }
    let output = operands.output(client);
    for (count, dim, tile) in axis_grids(problem.outer, rows, columns) {
        // SAFETY: units stop at the number of destination elements, which the view covers; the first source of a row with
        // any is one, and each one's next.
        unsafe {
            take_lists::launch_unchecked(
                client,
                count,
                dim,
                width,
                operands.tensor.buffer(),
                words_arg(&touched, blocks),
                words_arg(&first, rows),
                words_arg(&next, sources),
                operands.values.buffer(),
                output.clone().into_arg().into_buffer_arg(),
                extent(problem),
                tile,
                operands.tensor.vector_strides(width as u32),
                value_strides(),
                BITS as u32,
                form,
                update,
                types.is_float(),
                [types.storage, types.accumulator],
            );
        }
    }
    output
}
