//! The device side of updates: walking and folding.

use crate::scatter::Update;
use cubecl::prelude::*;

/// Distances between neighbours along the outer, the scattered and the inner axis.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Strides {
    outer: u32,
    axis: u32,
    inner: u32,
}

#[cube]
impl Strides {
    /// The offset of an element.
    pub(crate) fn offset(&self, outer: u32, axis: u32, inner: u32) -> usize {
        (outer * self.outer + axis * self.axis + inner * self.inner) as usize
    }
}

/// `tensor[outer, rows, inner]` and `values[outer, sources, inner]`.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Extent {
    pub outer: u32,
    pub rows: u32,
    pub sources: u32,
    pub inner: u32,
}

/// The row an index names, or `rows` if it names none.
#[cube]
pub(crate) fn row_of<I: Int>(index: I, rows: u32) -> u32 {
    let row = u32::cast_from(index);
    // The cast may drop bits: an index is a row only if it survives the way back.
    let inside = index >= I::from_int(0) && I::cast_from(row) == index && row < rows;
    select(inside, row, rows)
}

#[cube]
fn is_nan<A: Numeric>(value: A) -> bool {
    // Compared as bits, since shader compilers may assume that no float is NaN.
    (u32::reinterpret(f32::cast_from(value)) & 0x7fff_ffffu32) > 0x7f80_0000u32
}

/// `combine(left, right)` of the order contract.
#[cube]
fn combine<A: Numeric>(left: A, right: A, #[comptime] update: Update, #[comptime] is_float: bool) -> A {
    if comptime!(update == Update::Add) {
        left + right
    } else if comptime!(update == Update::Mul) {
        left * right
    } else if comptime!(update == Update::Assign) {
        right
    } else if comptime!(update == Update::Or) {
        let zero = A::from_int(0);
        select(left == zero && right == zero, zero, A::from_int(1))
    } else {
        let beyond = if comptime!(update == Update::Max) { right > left } else { right < left };
        if comptime!(is_float) {
            let takes = is_nan::<A>(right) || (beyond && !is_nan::<A>(left));
            select(takes, right, left)
        } else {
            select(beyond, right, left)
        }
    }
}

/// One unit per destination element: walks the sources of its line and keeps a running two-level tree.
#[cube(launch_unchecked)]
pub(crate) fn walk<F: Numeric, A: Numeric, I: Int>(
    tensor: &[F],
    indices: &[I],
    values: &[F],
    output: &mut [F],
    extent: Extent,
    tensor_strides: Strides,
    index_strides: Strides,
    value_strides: Strides,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A, I)] _dtypes: [ElemType; 3],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= extent.outer * extent.rows * extent.inner {
        terminate!();
    }
    let inner = unit % extent.inner;
    let row = unit / extent.inner % extent.rows;
    let outer = unit / extent.inner / extent.rows;

    let mut found = 0u32;
    let mut chunk = A::from_int(0);
    let mut whole = A::from_int(0);
    for source in 0..extent.sources {
        let index = indices[index_strides.offset(outer, source, inner)];
        if row_of::<I>(index, extent.rows) == row {
            let value = A::cast_from(values[value_strides.offset(outer, source, inner)]);
            if found % chunk_length == 0 {
                if found == chunk_length {
                    whole = chunk;
                } else if found > chunk_length {
                    whole = combine::<A>(whole, chunk, update, is_float);
                }
                chunk = value;
            } else {
                chunk = combine::<A>(chunk, value, update, is_float);
            }
            found += 1;
        }
    }

    let before = tensor[tensor_strides.offset(outer, row, inner)];
    if found == 0 {
        output[unit as usize] = before;
    } else {
        if found > chunk_length {
            chunk = combine::<A>(whole, chunk, update, is_float);
        }
        output[unit as usize] = F::cast_from(combine::<A>(A::cast_from(before), chunk, update, is_float));
    }
}

/// Where the total of the chunk is kept that begins at sorted place `head` of a row that begins at `start`.
///
/// Only rows of more than one chunk keep any. Among them a window of one chunk length holds at most one chunk that is
/// not the first of its row, and at most one that is, so two slots a window tell all of them apart.
#[cube]
fn slot_of(head: u32, start: u32, #[comptime] chunk_length: u32) -> u32 {
    head / chunk_length * 2 + u32::cast_from(head == start)
}

/// One unit per (slot, column): folds a chunk of sources, or on a further level a chunk of totals in place.
///
/// `level_span` is the number of sources that one term stands for: 1 for sources, then powers of the chunk length.
#[cube(launch_unchecked)]
pub(crate) fn fold_chunks<F: Numeric, A: Numeric>(
    keys: &[u32],
    places: &[u32],
    starts: &[u32],
    values: &[F],
    totals: &mut [A],
    extent: Extent,
    value_strides: Strides,
    level_span: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    let columns = extent.outer * extent.inner;
    let windows = extent.sources.div_ceil(chunk_length);
    if unit >= windows * 2 * columns {
        terminate!();
    }
    let column = unit % columns;
    let slot = unit / columns;
    let first = slot / 2 * chunk_length;
    let limit = min(first + chunk_length, extent.sources);
    let opens_row = slot % 2 == 1;

    let key = select(opens_row, keys[(limit - 1) as usize], keys[first as usize]);
    if key >= extent.rows {
        terminate!();
    }
    let start = starts[key as usize];
    let end = starts[(key + 1) as usize];
    let mut head = start;
    let mut present = start >= first && end - start > chunk_length;
    if !opens_row {
        present = start < first;
        head = start + (first - start).div_ceil(chunk_length) * chunk_length;
        present = present && head < limit && head < end;
    }
    let span = level_span * chunk_length;
    if !present || (head - start) % span != 0 {
        terminate!();
    }

    let terms = (min(head + span, end) - head).div_ceil(level_span);
    let outer = column / extent.inner;
    let inner = column % extent.inner;
    let mut total = A::from_int(0);
    for term in 0..terms {
        let place = head + term * level_span;
        let value = if level_span == 1 {
            A::cast_from(values[value_strides.offset(outer, places[place as usize], inner)])
        } else {
            totals[(slot_of(place, start, chunk_length) * columns + column) as usize]
        };
        total = if term == 0 { value } else { combine::<A>(total, value, update, is_float) };
    }
    totals[unit as usize] = total;
}

/// One unit per destination element: folds what is left of its row, two levels at most, and updates the element.
#[cube(launch_unchecked)]
pub(crate) fn finish<F: Numeric, A: Numeric>(
    tensor: &[F],
    places: &[u32],
    starts: &[u32],
    values: &[F],
    totals: &[A],
    output: &mut [F],
    extent: Extent,
    tensor_strides: Strides,
    value_strides: Strides,
    level_span: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= extent.outer * extent.rows * extent.inner {
        terminate!();
    }
    let inner = unit % extent.inner;
    let row = unit / extent.inner % extent.rows;
    let outer = unit / extent.inner / extent.rows;
    let columns = extent.outer * extent.inner;
    let column = outer * extent.inner + inner;

    let start = starts[row as usize];
    let end = starts[(row + 1) as usize];
    let before = tensor[tensor_strides.offset(outer, row, inner)];
    if start == end {
        output[unit as usize] = before;
    } else {
        // A row of one chunk keeps no totals.
        let span = select(end - start <= chunk_length, 1u32, level_span);
        let terms = (end - start).div_ceil(span);
        let chunks = terms.div_ceil(chunk_length);
        let mut whole = A::from_int(0);
        for chunk in 0..chunks {
            let mut total = A::from_int(0);
            let first = chunk * chunk_length;
            for term in first..min(first + chunk_length, terms) {
                let place = start + term * span;
                let value = if span == 1 {
                    A::cast_from(values[value_strides.offset(outer, places[place as usize], inner)])
                } else {
                    totals[(slot_of(place, start, chunk_length) * columns + column) as usize]
                };
                total = if term == first { value } else { combine::<A>(total, value, update, is_float) };
            }
            whole = if chunk == 0 { total } else { combine::<A>(whole, total, update, is_float) };
        }
        output[unit as usize] = F::cast_from(combine::<A>(A::cast_from(before), whole, update, is_float));
    }
}
