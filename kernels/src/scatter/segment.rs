//! Sorts sources by destination row, stably: integer work only, so its geometry cannot change a result.

use crate::launch::{cubes, grid};
use crate::scatter::kernel::{Extent, Strides, Tile, row_of};
use crate::scatter::plan::{Radix, padded_runs, scan_block, touches_few};
use cubecl::ir::UIntKind;
use cubecl::prelude::*;
use cubecl::server::Handle;

/// The type of keys, places and counters.
pub(crate) const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Units in a cube of the kernels in which a unit walks a run: few, so that the few runs spread over the cores.
const RUN_UNITS: u32 = 32;

/// What names a row for each source: indices as they came, or keys made of them. One outside `0..rows` names none.
pub(crate) struct Keys {
    pub(super) handle: Handle,
    /// Elements from one source's to the next.
    pub(super) stride: u32,
    pub(super) dtype: ElemType,
}

impl Keys {
    /// Keys made by a kernel of this module.
    pub(crate) fn made(handle: Handle) -> Self {
        Self { handle, stride: 1, dtype: U32 }
    }

    /// How many neighbouring keys a unit reads at once, in runs of `run`.
    pub(super) fn width(&self, sources: usize, run: usize) -> usize {
        let fours = self.stride == 1 && self.dtype.size() == 4 && sources.is_multiple_of(4) && run.is_multiple_of(4);
        if fours { 4 } else { 1 }
    }

    pub(super) fn arg(&self, sources: usize) -> BufferArg {
        // SAFETY: the handle holds a key for each source at this stride; kernels address no others.
        unsafe { BufferArg::from_raw_parts(self.handle.clone(), sources) }
    }
}

/// Sources in the order of their destination rows.
pub(super) struct Segments {
    /// `keys[p]`: the row of the p-th source in sorted order, or the number of rows for sources that name none.
    pub(super) keys: Handle,
    /// `places[p]`: which source that is; ascending within a row.
    pub(super) places: Handle,
    /// Where the sorted sources of a row begin and end: at `[r]` and `[r + 1]` for row `r`, or, if there are many more
    /// rows than sources, at `[2 * p]` and `[2 * p + 1]` for the row of the p-th sorted source.
    pub(super) bounds: Handle,
    /// The length of `bounds`.
    pub(super) bounds_length: usize,
    /// Whether `bounds` goes by sorted source.
    pub(super) by_source: bool,
}

/// A buffer of `length` 32-bit words.
pub(crate) fn words(client: &Client, length: usize) -> Handle {
    client.empty(length * size_of::<u32>())
}

/// The argument for a buffer made by [`words`].
pub(crate) fn words_arg(buffer: &Handle, length: usize) -> BufferArg {
    // SAFETY: callers pass the length the buffer was made with.
    unsafe { BufferArg::from_raw_parts(buffer.clone(), length) }
}

pub(super) fn run_grid(units: usize) -> (CubeCount, CubeDim) {
    (cubes(units.div_ceil(RUN_UNITS as usize)), CubeDim::new_1d(RUN_UNITS))
}

/// For each index of `[outer, sources, inner]`: the destination element it names in `[outer, rows, inner]`, or the
/// number of destination elements if it names none.
#[cube(launch_unchecked)]
pub(super) fn axis_keys<I: Int>(
    indices: &[I],
    keys: &mut [u32],
    extent: Extent,
    tile: Tile,
    index_strides: Strides,
    #[define(I)] _dtype: ElemType,
) {
    let (outer, source, inner) = (tile.outer(), tile.axis(), tile.inner());
    if outer >= extent.outer || source >= extent.sources || inner >= extent.inner {
        terminate!();
    }
    let row = row_of::<I>(indices[index_strides.offset(outer, source, inner)], extent.rows);
    let named = (outer * extent.rows + row) * extent.inner + inner;
    let none = extent.outer * extent.rows * extent.inner;
    keys[((outer * extent.sources + source) * extent.inner + inner) as usize] = select(row < extent.rows, named, none);
}

/// One unit per index tuple: the row-major row it names in a tensor of leading `sizes`, or their product if it names
/// none. The tuple `t` is `indices[t * tuple_stride + j * part_stride]` for `j` ascending.
#[cube(launch_unchecked)]
pub(super) fn tuple_keys<I: Int>(
    indices: &[I],
    keys: &mut [u32],
    tuples: u32,
    tuple_stride: u32,
    part_stride: u32,
    sizes: Sequence<u32>,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= tuples {
        terminate!();
    }
    let mut row = 0u32;
    let mut rows = 1u32;
    let mut inside = true;
    #[unroll]
    for part in 0..sizes.len() {
        let size = sizes[part];
        let offset = unit * tuple_stride + comptime!(part as u32) * part_stride;
        let at = row_of::<I>(indices[offset as usize], size);
        inside = inside && at < size;
        row = row * size + at;
        rows *= size;
    }
    keys[unit as usize] = select(inside, row, rows);
}

/// One unit per source: its place in the stable order is the number of sources that come before it.
#[cube(launch_unchecked)]
fn place_by_rank<I: Int>(
    keys: &[I],
    sorted: &mut [u32],
    places: &mut [u32],
    stride: u32,
    rows: u32,
    sources: u32,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= sources {
        terminate!();
    }
    let key = row_of::<I>(keys[(unit * stride) as usize], rows);
    let mut rank = 0u32;
    for other in 0..sources {
        let theirs = row_of::<I>(keys[(other * stride) as usize], rows);
        rank += u32::cast_from(theirs < key || (theirs == key && other < unit));
    }
    sorted[rank as usize] = key;
    places[rank as usize] = unit;
}

/// Which bits of the keys a pass sorts by, in which runs.
#[derive(Clone, Copy)]
pub(super) struct Digits {
    pub(super) shift: u32,
    pub(super) bins: usize,
    /// Neighbouring sources that one unit counts and places.
    pub(super) run: usize,
}

/// One unit per run: counts the digits of its run in its column of `counters[bins, runs]`. Runs past the last source pad the
/// others, and count nothing.
#[cube(launch_unchecked)]
fn count_digits<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    counters: &mut [u32],
    stride: u32,
    rows: u32,
    sources: u32,
    run: u32,
    runs: u32,
    shift: u32,
    bins: u32,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= runs {
        terminate!();
    }
    for digit in 0..bins {
        counters[(digit * runs + unit) as usize] = 0;
    }
    let width = N::value();
    for at in unit * run / comptime!(width as u32)..min((unit + 1) * run, sources) / comptime!(width as u32) {
        let keys = keys[(at * stride) as usize];
        #[unroll]
        for lane in 0..width {
            let digit = (row_of::<I>(keys.extract(lane), rows) >> shift) & (bins - 1);
            counters[(digit * runs + unit) as usize] += 1;
        }
    }
}

/// One unit per block of counters: their sum.
#[cube(launch_unchecked)]
fn sum_blocks(counters: &[u32], sums: &mut [u32], length: u32, block: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= length.div_ceil(block) {
        terminate!();
    }
    let mut sum = 0u32;
    for at in unit * block..min((unit + 1) * block, length) {
        sum += counters[at as usize];
    }
    sums[unit as usize] = sum;
}

/// One unit per block of counters: replaces each by the sum of all before it.
#[cube(launch_unchecked)]
fn scan_blocks(counters: &mut [u32], sums: &[u32], length: u32, block: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= length.div_ceil(block) {
        terminate!();
    }
    let mut before = 0u32;
    for other in 0..unit {
        before += sums[other as usize];
    }
    for at in unit * block..min((unit + 1) * block, length) {
        let count = counters[at as usize];
        counters[at as usize] = before;
        before += count;
    }
}

/// One unit per run: moves each source of its run, in order, to the next place of its digit.
#[cube(launch_unchecked)]
fn place_by_digit<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    places: &[Vector<u32, N>],
    counters: &mut [u32],
    sorted_keys: &mut [u32],
    sorted_places: &mut [u32],
    stride: u32,
    rows: u32,
    sources: u32,
    run: u32,
    runs: u32,
    shift: u32,
    bins: u32,
    #[comptime] moved: bool,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= runs {
        terminate!();
    }
    let width = N::value();
    for at in unit * run / comptime!(width as u32)..min((unit + 1) * run, sources) / comptime!(width as u32) {
        let keys = keys[(at * stride) as usize];
        let mut moving = Vector::<u32, N>::empty();
        if comptime!(moved) {
            moving = places[at as usize];
        } else {
            #[unroll]
            for lane in 0..width {
                moving.insert(lane, at * comptime!(width as u32) + comptime!(lane as u32));
            }
        }
        #[unroll]
        for lane in 0..width {
            let key = row_of::<I>(keys.extract(lane), rows);
            let counter = ((key >> shift) & (bins - 1)) * runs + unit;
            let to = counters[counter as usize];
            counters[counter as usize] = to + 1;
            sorted_keys[to as usize] = key;
            sorted_places[to as usize] = moving.extract(lane);
        }
    }
}

/// The first sorted source whose key is not below `key`.
#[cube]
fn first_from(keys: &[u32], sources: u32, key: u32) -> u32 {
    let mut low = 0u32;
    let mut high = sources;
    while low < high {
        let middle = low + (high - low) / 2;
        if keys[middle as usize] < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// One unit per row, and one past the last: where its sources begin.
#[cube(launch_unchecked)]
fn bounds_of_rows(keys: &[u32], bounds: &mut [u32], rows: u32, sources: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit > rows {
        terminate!();
    }
    bounds[unit as usize] = first_from(keys, sources, unit);
}

/// One unit per sorted source: where the sources of its row begin and end.
#[cube(launch_unchecked)]
fn bounds_of_sources(keys: &[u32], bounds: &mut [u32], sources: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= sources {
        terminate!();
    }
    let key = keys[unit as usize];
    bounds[(unit * 2) as usize] = first_from(keys, sources, key);
    bounds[(unit * 2 + 1) as usize] = first_from(keys, sources, key + 1);
}

/// Sorts `sources` keys, by radix passes or, without a geometry for them, by rank.
pub(super) fn segment(client: &Client, keys: Keys, rows: usize, sources: usize, radix: Option<Radix>) -> Segments {
    let (keys, places) = match radix {
        Some(radix) => sort_by_radix(client, keys, None, rows, sources, radix),
        None => sort_by_rank(client, &keys, rows, sources),
    };
    let by_source = touches_few(rows, sources);
    let (units, bounds_length) = if by_source { (sources, sources * 2) } else { (rows + 1, rows + 1) };
    let bounds = words(client, bounds_length);
    let (count, dim) = grid(units);
    let (keys_arg, bounds_arg) = (words_arg(&keys, sources), words_arg(&bounds, bounds_length));
    // SAFETY: units stop at `rows` or `sources`; `bounds` holds a word for each row and one more, or two for each
    // source; the search stays within `sources` keys.
    unsafe {
        if by_source {
            bounds_of_sources::launch_unchecked(client, count, dim, keys_arg, bounds_arg, sources as u32);
        } else {
            bounds_of_rows::launch_unchecked(client, count, dim, keys_arg, bounds_arg, rows as u32, sources as u32);
        }
    }
    Segments { keys, places, bounds, bounds_length, by_source }
}

fn sort_by_rank(client: &Client, keys: &Keys, rows: usize, sources: usize) -> (Handle, Handle) {
    let (sorted, places) = (words(client, sources), words(client, sources));
    let (count, dim) = run_grid(sources);
    // SAFETY: units stop at `sources`, the ranks are a permutation of `0..sources`, and each buffer holds as many.
    unsafe {
        place_by_rank::launch_unchecked(
            client,
            count,
            dim,
            keys.arg(sources),
            words_arg(&sorted, sources),
            words_arg(&places, sources),
            keys.stride,
            rows as u32,
            sources as u32,
            keys.dtype,
        );
    }
    (sorted, places)
}

/// The keys in `0..=rows` in order, and which source each one is, equal ones in ascending order. With `places`, key `p`
/// is that of source `places[p]`, and equal keys keep the order they have.
pub(crate) fn sort_by_radix(
    client: &Client,
    keys: Keys,
    places: Option<Handle>,
    rows: usize,
    sources: usize,
    radix: Radix,
) -> (Handle, Handle) {
    let counters = words(client, radix.counters(sources));
    let given = places.is_some();
    // A first pass that reads no places takes any buffer for them.
    let mut from = (places.unwrap_or_else(|| keys.handle.clone()), keys);
    let mut spare: Option<(Handle, Handle)> = None;
    for pass in 0..radix.passes {
        let digits = Digits { shift: pass * radix.digit_bits, bins: radix.bins(), run: radix.run };
        let to = spare.take().unwrap_or_else(|| (words(client, sources), words(client, sources)));
        let (places, keys) = &from;
        count(client, keys, digits, rows, sources, &counters);
        place(client, (places, keys), digits, rows, sources, &counters, (&to.0, &to.1), given || pass > 0);
        let (sorted, sorted_places) = to;
        let (places, keys) = std::mem::replace(&mut from, (sorted_places, Keys::made(sorted)));
        // The buffers of the first pass are the caller's.
        spare = (pass > 0).then_some((keys.handle, places));
    }
    (from.1.handle, from.0)
}

/// Moves sources `from` where they are, as places and keys, `to` where the scanned `counters` say, as keys and places. The
/// counters then say where those of each digit and run end. Sources that were not `moved` before are in their own places.
#[expect(clippy::too_many_arguments, reason = "what a pass moves, how, and where to")]
pub(super) fn place(
    client: &Client,
    from: (&Handle, &Keys),
    digits: Digits,
    rows: usize,
    sources: usize,
    counters: &Handle,
    to: (&Handle, &Handle),
    moved: bool,
) {
    let (places, keys) = from;
    let runs = padded_runs(sources, digits.run);
    let (count, dim) = run_grid(runs);
    // SAFETY: units stop at the number of runs, which cover the sources, those that pad them having none; the scanned
    // counters number the sources, so that places are a permutation of them.
    unsafe {
        place_by_digit::launch_unchecked(
            client,
            count,
            dim,
            keys.width(sources, digits.run),
            keys.arg(sources),
            words_arg(places, sources),
            words_arg(counters, digits.bins * runs),
            words_arg(to.0, sources),
            words_arg(to.1, sources),
            keys.stride,
            rows as u32,
            sources as u32,
            digits.run as u32,
            runs as u32,
            digits.shift,
            digits.bins as u32,
            moved,
            keys.dtype,
        );
    }
}

/// Writes to `counters[bins, runs]` where the sources of each digit and run begin among all sorted ones.
pub(super) fn count(client: &Client, keys: &Keys, digits: Digits, rows: usize, sources: usize, counters: &Handle) {
    let runs = padded_runs(sources, digits.run);
    let length = digits.bins * runs;
    let (count, dim) = run_grid(runs);
    // SAFETY: units stop at the number of runs, of which each has a column of the counters, and read sources only.
    unsafe {
        count_digits::launch_unchecked(
            client,
            count,
            dim,
            keys.width(sources, digits.run),
            keys.arg(sources),
            words_arg(counters, length),
            keys.stride,
            rows as u32,
            sources as u32,
            digits.run as u32,
            runs as u32,
            digits.shift,
            digits.bins as u32,
            keys.dtype,
        );
    }
    scan(client, counters, length);
}

/// Replaces each counter by the sum of all before it.
pub(super) fn scan(client: &Client, counters: &Handle, length: usize) {
    let block = scan_block(length);
    let blocks = length.div_ceil(block);
    let sums = words(client, blocks);
    let (count, dim) = run_grid(blocks);
    // SAFETY: units stop at the number of blocks, which cover the counters.
    unsafe {
        sum_blocks::launch_unchecked(
            client,
            count.clone(),
            dim,
            words_arg(counters, length),
            words_arg(&sums, blocks),
            length as u32,
            block as u32,
        );
        scan_blocks::launch_unchecked(
            client,
            count,
            dim,
            words_arg(counters, length),
            words_arg(&sums, blocks),
            length as u32,
            block as u32,
        );
    }
}
