//! Sorts sources by destination row, stably: integer work only, so its geometry cannot change a result.

use crate::launch::grid;
use crate::scatter::kernel::{Strides, row_of};
use crate::scatter::plan::Radix;
use cubecl::ir::UIntKind;
use cubecl::prelude::*;
use cubecl::server::Handle;

/// The type of keys, places and counters.
pub(super) const U32: ElemType = ElemType::UInt(UIntKind::U32);

/// Units in a cube of the kernels in which a unit walks a run: few, so that the few runs spread over the cores.
const RUN_UNITS: u32 = 32;

/// Sources in the order of their destination rows.
pub(super) struct Segments {
    /// `keys[p]`: the row of the p-th source in sorted order.
    pub(super) keys: Handle,
    /// `places[p]`: which source that is; ascending within a row.
    pub(super) places: Handle,
    /// `starts[r]..starts[r + 1]`: the sorted sources of row `r`.
    pub(super) starts: Handle,
}

/// A buffer of `length` 32-bit words.
pub(super) fn words(client: &Client, length: usize) -> Handle {
    client.empty(length * size_of::<u32>())
}

/// The argument for a buffer made by [`words`].
pub(super) fn words_arg(buffer: &Handle, length: usize) -> BufferArg {
    // SAFETY: callers pass the length the buffer was made with.
    unsafe { BufferArg::from_raw_parts(buffer.clone(), length) }
}

fn run_grid(units: usize) -> (CubeCount, CubeDim) {
    (CubeCount::Static(units.div_ceil(RUN_UNITS as usize) as u32, 1, 1), CubeDim::new_1d(RUN_UNITS))
}

/// One unit per index of `[outer, sources, inner]`: the destination element it names in `[outer, rows, inner]`, or the
/// number of destination elements if it names none.
#[cube(launch_unchecked)]
pub(super) fn axis_keys<I: Int>(
    indices: &[I],
    keys: &mut [u32],
    outer: u32,
    rows: u32,
    sources: u32,
    inner: u32,
    index_strides: Strides,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= outer * sources * inner {
        terminate!();
    }
    let lane = unit % inner;
    let source = unit / inner % sources;
    let line = unit / inner / sources;
    let row = row_of::<I>(indices[index_strides.offset(line, source, lane)], rows);
    keys[unit as usize] = select(row < rows, (line * rows + row) * inner + lane, outer * rows * inner);
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
fn place_by_rank(keys: &[u32], sorted: &mut [u32], places: &mut [u32], sources: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= sources {
        terminate!();
    }
    let key = keys[unit as usize];
    let mut rank = 0u32;
    for other in 0..sources {
        let theirs = keys[other as usize];
        rank += u32::cast_from(theirs < key || (theirs == key && other < unit));
    }
    sorted[rank as usize] = key;
    places[rank as usize] = unit;
}

/// One unit per run: counts the digits of its run in its column of `counters[bins, runs]`.
#[cube(launch_unchecked)]
fn count_digits(keys: &[u32], counters: &mut [u32], sources: u32, run: u32, runs: u32, shift: u32, bins: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= runs {
        terminate!();
    }
    for digit in 0..bins {
        counters[(digit * runs + unit) as usize] = 0;
    }
    for source in unit * run..min((unit + 1) * run, sources) {
        let digit = (keys[source as usize] >> shift) & (bins - 1);
        counters[(digit * runs + unit) as usize] += 1;
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
fn place_by_digit(
    keys: &[u32],
    places: &[u32],
    counters: &mut [u32],
    sorted_keys: &mut [u32],
    sorted_places: &mut [u32],
    sources: u32,
    run: u32,
    runs: u32,
    shift: u32,
    bins: u32,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= runs {
        terminate!();
    }
    for source in unit * run..min((unit + 1) * run, sources) {
        let key = keys[source as usize];
        let counter = ((key >> shift) & (bins - 1)) * runs + unit;
        let to = counters[counter as usize];
        counters[counter as usize] = to + 1;
        sorted_keys[to as usize] = key;
        // The first pass has nothing moved before it.
        sorted_places[to as usize] = if shift == 0 { source } else { places[source as usize] };
    }
}

/// One unit per row, and one past the last: the first sorted source whose key is not below it.
#[cube(launch_unchecked)]
fn find_starts(keys: &[u32], starts: &mut [u32], rows: u32, sources: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit > rows {
        terminate!();
    }
    let mut low = 0u32;
    let mut high = sources;
    while low < high {
        let middle = low + (high - low) / 2;
        if keys[middle as usize] < unit {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    starts[unit as usize] = low;
}

/// Sorts `sources` keys in `0..=rows`, by radix passes or, without a geometry for them, by rank.
pub(super) fn segment(client: &Client, keys: Handle, rows: usize, sources: usize, radix: Option<Radix>) -> Segments {
    let (keys, places) = match radix {
        Some(radix) => sort_by_radix(client, keys, sources, radix),
        None => sort_by_rank(client, keys, sources),
    };
    let starts = words(client, rows + 1);
    let (count, dim) = grid(rows + 1);
    // SAFETY: units stop at `rows`; `starts` holds `rows + 1` words and the search stays within `sources` keys.
    unsafe {
        find_starts::launch_unchecked(
            client,
            count,
            dim,
            words_arg(&keys, sources),
            words_arg(&starts, rows + 1),
            rows as u32,
            sources as u32,
        );
    }
    Segments { keys, places, starts }
}

fn sort_by_rank(client: &Client, keys: Handle, sources: usize) -> (Handle, Handle) {
    let (sorted, places) = (words(client, sources), words(client, sources));
    let (count, dim) = run_grid(sources);
    // SAFETY: units stop at `sources`, the ranks are a permutation of `0..sources`, and each buffer holds as many.
    unsafe {
        place_by_rank::launch_unchecked(
            client,
            count,
            dim,
            words_arg(&keys, sources),
            words_arg(&sorted, sources),
            words_arg(&places, sources),
            sources as u32,
        );
    }
    (sorted, places)
}

fn sort_by_radix(client: &Client, keys: Handle, sources: usize, radix: Radix) -> (Handle, Handle) {
    let bins = radix.bins();
    let runs = sources.div_ceil(radix.run);
    let length = bins * runs;
    // Blocks as many as they are long, to the next power of two: the scan's two loops then cost the same.
    let block = 1usize << length.ilog2().div_ceil(2).max(6);
    let blocks = length.div_ceil(block);
    let (counters, sums) = (words(client, length), words(client, blocks));
    let mut from = (keys, words(client, sources));
    let mut to = (words(client, sources), words(client, sources));
    for pass in 0..radix.passes {
        let shift = pass * radix.digit_bits;
        // SAFETY: units stop at the number of runs or blocks; runs cover the sources and blocks the counters, whose
        // buffers have these lengths; places are a permutation of `0..sources`.
        unsafe {
            let (count, dim) = run_grid(runs);
            count_digits::launch_unchecked(
                client,
                count.clone(),
                dim,
                words_arg(&from.0, sources),
                words_arg(&counters, length),
                sources as u32,
                radix.run as u32,
                runs as u32,
                shift,
                bins as u32,
            );
            let (block_count, block_dim) = run_grid(blocks);
            sum_blocks::launch_unchecked(
                client,
                block_count.clone(),
                block_dim,
                words_arg(&counters, length),
                words_arg(&sums, blocks),
                length as u32,
                block as u32,
            );
            scan_blocks::launch_unchecked(
                client,
                block_count,
                block_dim,
                words_arg(&counters, length),
                words_arg(&sums, blocks),
                length as u32,
                block as u32,
            );
            place_by_digit::launch_unchecked(
                client,
                count,
                dim,
                words_arg(&from.0, sources),
                words_arg(&from.1, sources),
                words_arg(&counters, length),
                words_arg(&to.0, sources),
                words_arg(&to.1, sources),
                sources as u32,
                radix.run as u32,
                runs as u32,
                shift,
                bins as u32,
            );
        }
        std::mem::swap(&mut from, &mut to);
    }
    from
}
