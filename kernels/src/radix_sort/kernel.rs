//! The device side: integers only.

use crate::index::row_of;
use cubecl::prelude::*;

/// One unit per source: its place in the stable order is the number of sources that come before it.
#[cube(launch_unchecked)]
pub(super) fn place_by_rank<I: Int>(
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

/// One unit per chunk: counts the digits of its chunk in its column of `counters[bins, chunks]`. Chunks past the last source pad the
/// others, and count nothing.
#[cube(launch_unchecked)]
pub(super) fn count_digits<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    counters: &mut [u32],
    stride: u32,
    rows: u32,
    sources: u32,
    chunk: u32,
    chunks: u32,
    shift: u32,
    bins: u32,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= chunks {
        terminate!();
    }
    for digit in 0..bins {
        counters[(digit * chunks + unit) as usize] = 0;
    }
    let width = N::value();
    for at in unit * chunk / comptime!(width as u32)..min((unit + 1) * chunk, sources) / comptime!(width as u32) {
        let keys = keys[(at * stride) as usize];
        #[unroll]
        for lane in 0..width {
            let digit = (row_of::<I>(keys.extract(lane), rows) >> shift) & (bins - 1);
            counters[(digit * chunks + unit) as usize] += 1;
        }
    }
}

/// One unit per block of counters: their sum.
#[cube(launch_unchecked)]
pub(super) fn sum_blocks(counters: &[u32], sums: &mut [u32], length: u32, block: u32) {
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
pub(super) fn scan_blocks(counters: &mut [u32], sums: &[u32], length: u32, block: u32) {
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

/// One unit per chunk: moves each source of its chunk, in order, to the next place of its digit.
#[cube(launch_unchecked)]
pub(super) fn place_by_digit<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    places: &[Vector<u32, N>],
    counters: &mut [u32],
    sorted_keys: &mut [u32],
    sorted_places: &mut [u32],
    stride: u32,
    rows: u32,
    sources: u32,
    chunk: u32,
    chunks: u32,
    shift: u32,
    bins: u32,
    #[comptime] moved: bool,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= chunks {
        terminate!();
    }
    let width = N::value();
    for at in unit * chunk / comptime!(width as u32)..min((unit + 1) * chunk, sources) / comptime!(width as u32) {
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
            let counter = ((key >> shift) & (bins - 1)) * chunks + unit;
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

/// One unit per row, and one past the last: its CSR row offset, which is where its sources begin.
#[cube(launch_unchecked)]
pub(super) fn offsets_of_rows(keys: &[u32], offsets: &mut [u32], rows: u32, sources: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit > rows {
        terminate!();
    }
    offsets[unit as usize] = first_from(keys, sources, unit);
}
