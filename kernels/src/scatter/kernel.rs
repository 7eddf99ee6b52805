//! The device side of updates: walking and folding. Folds take vectors of neighbours along the inner axis, which the
//! extent and the strides then count in.

use crate::scatter::Update;
use cubecl::prelude::*;

/// Distances between neighbours along the outer, the scattered and the inner axis.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
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
#[expand(derive(Clone, Copy))]
pub(crate) struct Extent {
    pub outer: u32,
    pub rows: u32,
    pub sources: u32,
    pub inner: u32,
}

/// How a cube's units cover `[outer, axis, inner]`: `2^inner_bits` neighbours along the inner axis, then
/// `2^axis_bits` along the axis, the rest along the outer one. Cubes tile these along X, Y and Z from the first element
/// of the launch on. No unit divides to find its element, which software drivers do slowly; all units are along X, since
/// some vectorise that axis alone.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Tile {
    inner_bits: u32,
    axis_bits: u32,
    outer_bits: u32,
    first_inner: u32,
    first_axis: u32,
    first_outer: u32,
}

#[cube]
impl Tile {
    /// The unit's place along the inner axis.
    pub(crate) fn inner(&self) -> u32 {
        self.first_inner + (CUBE_POS_X << self.inner_bits) + (UNIT_POS_X & ((1u32 << self.inner_bits) - 1))
    }

    /// The unit's place along the axis.
    pub(crate) fn axis(&self) -> u32 {
        let within = (UNIT_POS_X >> self.inner_bits) & ((1u32 << self.axis_bits) - 1);
        self.first_axis + (CUBE_POS_Y << self.axis_bits) + within
    }

    /// The unit's place along the outer axis.
    pub(crate) fn outer(&self) -> u32 {
        self.first_outer + (CUBE_POS_Z << self.outer_bits) + (UNIT_POS_X >> (self.inner_bits + self.axis_bits))
    }
}

/// The row an index names, or `rows` if it names none.
#[cube]
pub(crate) fn row_of<I: Int>(index: I, rows: u32) -> u32 {
    let row = u32::cast_from(index);
    // The cast may drop bits: an index is a row only if it survives the way back.
    let (positive, survives, fits) = (index >= I::from_int(0), I::cast_from(row) == index, row < rows);
    // Of values, not of calls, which would be branches: some compilers take minutes for a kernel that looks at many.
    select(positive && survives && fits, row, rows)
}

#[cube]
fn is_nan<A: Numeric>(value: A) -> bool {
    // Compared as bits, since shader compilers may assume that no float is NaN.
    (u32::reinterpret(f32::cast_from(value)) & 0x7fff_ffffu32) > 0x7f80_0000u32
}

/// `combine(left, right)` of the order contract.
#[cube]
pub(super) fn combine<A: Numeric>(left: A, right: A, #[comptime] update: Update, #[comptime] is_float: bool) -> A {
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

/// Each element in another type.
#[cube]
pub(super) fn cast_each<F: Numeric, T: Numeric, N: Size>(from: Vector<F, N>) -> Vector<T, N> {
    let mut to = Vector::<T, N>::empty();
    #[unroll]
    for lane in 0..N::value() {
        to.insert(lane, T::cast_from(from.extract(lane)));
    }
    to
}

/// [`combine`] of each element.
#[cube]
pub(super) fn combine_each<A: Numeric, N: Size>(
    left: Vector<A, N>,
    right: Vector<A, N>,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
) -> Vector<A, N> {
    let mut combined = Vector::<A, N>::empty();
    #[unroll]
    for lane in 0..N::value() {
        combined.insert(lane, combine::<A>(left.extract(lane), right.extract(lane), update, is_float));
    }
    combined
}

/// What the sources of one line give one row of it.
#[derive(CubeType)]
pub(super) struct Walked<A: Numeric> {
    /// How many there are.
    pub(super) found: u32,
    /// The first of them.
    pub(super) first: u32,
    /// The tree of their values.
    pub(super) total: A,
}

/// Walks the sources of a line for those of `row`, and keeps a running two-level tree.
#[cube]
pub(super) fn walked<F: Numeric, A: Numeric, I: Int>(
    indices: &[I],
    values: &[F],
    outer: u32,
    row: u32,
    inner: u32,
    extent: Extent,
    index_strides: Strides,
    value_strides: Strides,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
) -> Walked<A> {
    let mut found = 0u32;
    let mut first = 0u32;
    let mut chunk = A::from_int(0);
    let mut whole = A::from_int(0);
    for source in 0..extent.sources {
        let index = indices[index_strides.offset(outer, source, inner)];
        if row_of::<I>(index, extent.rows) == row {
            let value = A::cast_from(values[value_strides.offset(outer, source, inner)]);
            if found & (chunk_length - 1) == 0 {
                if found == chunk_length {
                    whole = chunk;
                } else if found > chunk_length {
                    whole = combine::<A>(whole, chunk, update, is_float);
                }
                chunk = value;
            } else {
                chunk = combine::<A>(chunk, value, update, is_float);
            }
            if found == 0 {
                first = source;
            }
            found += 1;
        }
    }
    if found > chunk_length {
        chunk = combine::<A>(whole, chunk, update, is_float);
    }
    Walked::<A> { found, first, total: chunk }
}

/// For each destination element: walks the sources of its line.
#[cube(launch_unchecked)]
pub(crate) fn walk<F: Numeric, A: Numeric, I: Int>(
    tensor: &[F],
    indices: &[I],
    values: &[F],
    output: &mut [F],
    extent: Extent,
    tile: Tile,
    tensor_strides: Strides,
    index_strides: Strides,
    value_strides: Strides,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A, I)] _dtypes: [ElemType; 3],
) {
    let (outer, row, inner) = (tile.outer(), tile.axis(), tile.inner());
    if outer >= extent.outer || row >= extent.rows || inner >= extent.inner {
        terminate!();
    }
    let walked = walked::<F, A, I>(
        indices,
        values,
        outer,
        row,
        inner,
        extent,
        index_strides,
        value_strides,
        chunk_length,
        update,
        is_float,
    );
    let before = tensor[tensor_strides.offset(outer, row, inner)];
    let element = ((outer * extent.rows + row) * extent.inner + inner) as usize;
    if walked.found == 0 {
        output[element] = before;
    } else {
        output[element] = F::cast_from(combine::<A>(A::cast_from(before), walked.total, update, is_float));
    }
}

/// For each source: walks the sources of its line for those of its row, and updates that row's element if it is the first of
/// them. Elements that no source is for are left as they are.
#[cube(launch_unchecked)]
pub(crate) fn update_touched<F: Numeric, A: Numeric, I: Int>(
    indices: &[I],
    values: &[F],
    output: &mut [F],
    extent: Extent,
    tile: Tile,
    index_strides: Strides,
    value_strides: Strides,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[define(F, A, I)] _dtypes: [ElemType; 3],
) {
    let (outer, source, inner) = (tile.outer(), tile.axis(), tile.inner());
    if outer >= extent.outer || source >= extent.sources || inner >= extent.inner {
        terminate!();
    }
    let row = row_of::<I>(indices[index_strides.offset(outer, source, inner)], extent.rows);
    let walked = walked::<F, A, I>(
        indices,
        values,
        outer,
        row,
        inner,
        extent,
        index_strides,
        value_strides,
        chunk_length,
        update,
        is_float,
    );
    if row < extent.rows && walked.first == source {
        let element = ((outer * extent.rows + row) * extent.inner + inner) as usize;
        let before = A::cast_from(output[element]);
        output[element] = F::cast_from(combine::<A>(before, walked.total, update, is_float));
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

/// For each slot and column: folds a chunk of sources, or on a further level a chunk of totals in place.
///
/// A term stands for `1 << term_bits` sources: for one at first, then for a power of the chunk length.
#[cube(launch_unchecked)]
pub(crate) fn fold_chunks<F: Numeric, A: Numeric, N: Size>(
    keys: &[u32],
    places: &[u32],
    bounds: &[u32],
    values: &[Vector<F, N>],
    totals: &mut [Vector<A, N>],
    extent: Extent,
    tile: Tile,
    value_strides: Strides,
    term_bits: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[comptime] by_source: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let (outer, slot, inner) = (tile.outer(), tile.axis(), tile.inner());
    let slots = extent.sources.div_ceil(chunk_length) * 2;
    if outer >= extent.outer || slot >= slots || inner >= extent.inner {
        terminate!();
    }
    let columns = extent.outer * extent.inner;
    let column = outer * extent.inner + inner;
    let term_span = 1u32 << term_bits;
    let span = term_span * chunk_length;
    let first = slot / 2 * chunk_length;
    let limit = min(first + chunk_length, extent.sources);
    let opens_row = slot % 2 == 1;
    let within = select(opens_row, limit - 1, first);
    let key = keys[within as usize];
    if key < extent.rows {
        let bound = if comptime!(by_source) { within * 2 } else { key };
        let start = bounds[bound as usize];
        let end = bounds[(bound + 1) as usize];
        let mut head = start;
        let mut present = start >= first && end - start > chunk_length;
        if !opens_row {
            present = start < first;
            // Wraps where the row is not present, and is then not used.
            head = start + (first - start).div_ceil(chunk_length) * chunk_length;
            present = present && head < limit && head < end;
        }
        if present && (head - start) & (span - 1) == 0 {
            let terms = (min(head + span, end) - head + term_span - 1) >> term_bits;
            let mut total = Vector::<A, N>::new(A::from_int(0));
            for term in 0..terms {
                let place = head + (term << term_bits);
                let value = if term_bits == 0 {
                    cast_each::<F, A, N>(values[value_strides.offset(outer, places[place as usize], inner)])
                } else {
                    totals[(slot_of(place, start, chunk_length) * columns + column) as usize]
                };
                total = if term == 0 { value } else { combine_each::<A, N>(total, value, update, is_float) };
            }
            totals[(slot * columns + column) as usize] = total;
        }
    }
}

/// For each destination element: folds what is left of its row, two levels at most, and updates the element.
///
/// By source, it goes through the sorted sources for the first of each row, and leaves other rows alone.
#[cube(launch_unchecked)]
pub(crate) fn finish<F: Numeric, A: Numeric, N: Size>(
    tensor: &[Vector<F, N>],
    keys: &[u32],
    places: &[u32],
    bounds: &[u32],
    values: &[Vector<F, N>],
    totals: &[Vector<A, N>],
    output: &mut [Vector<F, N>],
    extent: Extent,
    tile: Tile,
    tensor_strides: Strides,
    value_strides: Strides,
    term_bits: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
    #[comptime] by_source: bool,
    #[define(F, A)] _dtypes: [ElemType; 2],
) {
    let (outer, at, inner) = (tile.outer(), tile.axis(), tile.inner());
    let limit = if comptime!(by_source) { extent.sources } else { extent.rows };
    if outer >= extent.outer || at >= limit || inner >= extent.inner {
        terminate!();
    }
    let columns = extent.outer * extent.inner;
    let column = outer * extent.inner + inner;
    let row = if comptime!(by_source) { keys[at as usize] } else { at };
    let bound = if comptime!(by_source) { at * 2 } else { at };
    let start = bounds[bound as usize];
    let end = bounds[(bound + 1) as usize];
    let owns = if comptime!(by_source) { row < extent.rows && start == at } else { true.runtime() };
    if owns {
        let before = tensor[tensor_strides.offset(outer, row, inner)];
        let element = ((outer * extent.rows + row) * extent.inner + inner) as usize;
        if start == end {
            output[element] = before;
        } else {
            // A row of one chunk keeps no totals.
            let bits = select(end - start <= chunk_length, 0u32, term_bits);
            let terms = (end - start + (1u32 << bits) - 1) >> bits;
            let mut whole = Vector::<A, N>::new(A::from_int(0));
            for chunk in 0..terms.div_ceil(chunk_length) {
                let mut total = Vector::<A, N>::new(A::from_int(0));
                let first = chunk * chunk_length;
                for term in first..min(first + chunk_length, terms) {
                    let place = start + (term << bits);
                    let value = if bits == 0 {
                        cast_each::<F, A, N>(values[value_strides.offset(outer, places[place as usize], inner)])
                    } else {
                        totals[(slot_of(place, start, chunk_length) * columns + column) as usize]
                    };
                    total = if term == first { value } else { combine_each::<A, N>(total, value, update, is_float) };
                }
                whole = if chunk == 0 { total } else { combine_each::<A, N>(whole, total, update, is_float) };
            }
            let updated = combine_each::<A, N>(cast_each::<F, A, N>(before), whole, update, is_float);
            output[element] = cast_each::<A, F, N>(updated);
        }
    }
}
