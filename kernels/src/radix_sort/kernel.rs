//! The kernels of a sort by ranks, of a pass by chunks, and of row offsets: integers only.
//!
//! Keys are `keys[length]`, of which key `p` is element `p * stride` of the buffer, and one outside `0..rows` counts as `rows`;
//! `positions`, `sorted_keys` and `sorted_positions` are u32 `[length]`. `moved` keys have positions, others their own number.

use crate::index::row_of;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// A unit a key: its place in the stable order is the number of keys that come before it.
#[cube(launch_unchecked)]
pub(super) fn place_by_rank<I: Int>(
    keys: &[I],
    sorted_keys: &mut [u32],
    sorted_positions: &mut [u32],
    stride: u32,
    rows: u32,
    length: u32,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= length {
        terminate!();
    }
    let key = row_of::<I>(keys[(unit * stride) as usize], rows);
    let mut rank = 0u32;
    for other in 0..length {
        let theirs = row_of::<I>(keys[(other * stride) as usize], rows);
        rank += u32::cast_from(theirs < key || (theirs == key && other < unit));
    }
    sorted_keys[rank as usize] = key;
    sorted_positions[rank as usize] = unit;
    keep_subnormals();
}

/// A unit a chunk: counts its keys by digit in its column of `counters[digits, chunks]`. Chunks past the last key pad the others,
/// and count nothing.
#[cube(launch_unchecked)]
pub(super) fn count_digits<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    counters: &mut [u32],
    stride: u32,
    rows: u32,
    length: u32,
    chunk: u32,
    chunks: u32,
    shift: u32,
    digits: u32,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= chunks {
        terminate!();
    }
    for digit in 0..digits {
        counters[(digit * chunks + unit) as usize] = 0;
    }
    let width = N::value();
    for at in unit * chunk / comptime!(width as u32)..min((unit + 1) * chunk, length) / comptime!(width as u32) {
        let keys = keys[(at * stride) as usize];
        #[unroll]
        for lane in 0..width {
            let digit = (row_of::<I>(keys.extract(lane), rows) >> shift) & (digits - 1);
            counters[(digit * chunks + unit) as usize] += 1;
        }
    }
    keep_subnormals();
}

/// A unit a block of `counters[length]`: its sum, in `sums[ceil(length / block)]`.
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
    keep_subnormals();
}

/// A unit a block of `counters[length]`: replaces each by the sum of all before it, those of other blocks from
/// `sums[ceil(length / block)]`.
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
    keep_subnormals();
}

/// A unit a chunk: moves each of its keys, in order, to the next place of its digit, which its column of `counters[digits, chunks]`
/// has. Keys and positions are read in vectors where `stride` is 1.
#[cube(launch_unchecked)]
pub(super) fn place_by_digit<I: Int, N: Size>(
    keys: &[Vector<I, N>],
    positions: &[Vector<u32, N>],
    counters: &mut [u32],
    sorted_keys: &mut [u32],
    sorted_positions: &mut [u32],
    stride: u32,
    rows: u32,
    length: u32,
    chunk: u32,
    chunks: u32,
    shift: u32,
    digits: u32,
    #[comptime] moved: bool,
    #[define(I)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= chunks {
        terminate!();
    }
    let width = N::value();
    for at in unit * chunk / comptime!(width as u32)..min((unit + 1) * chunk, length) / comptime!(width as u32) {
        let keys = keys[(at * stride) as usize];
        let mut moving = Vector::<u32, N>::empty();
        if comptime!(moved) {
            moving = positions[at as usize];
        } else {
            #[unroll]
            for lane in 0..width {
                moving.insert(lane, at * comptime!(width as u32) + comptime!(lane as u32));
            }
        }
        #[unroll]
        for lane in 0..width {
            let key = row_of::<I>(keys.extract(lane), rows);
            let counter = ((key >> shift) & (digits - 1)) * chunks + unit;
            let to = counters[counter as usize];
            counters[counter as usize] = to + 1;
            sorted_keys[to as usize] = key;
            sorted_positions[to as usize] = moving.extract(lane);
        }
    }
    keep_subnormals();
}

/// The place of the first of the ascending `keys[length]` that is not below `key`.
#[cube]
fn first_from(keys: &[u32], length: u32, key: u32) -> u32 {
    let mut low = 0u32;
    let mut high = length;
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

/// A unit a row, and one past the last: its CSR row offset, in `offsets[rows + 1]`, is where its keys begin in the ascending
/// `keys[length]`.
#[cube(launch_unchecked)]
pub(super) fn offsets_of_rows(keys: &[u32], offsets: &mut [u32], rows: u32, length: u32) {
    let unit = ABSOLUTE_POS as u32;
    if unit > rows {
        terminate!();
    }
    offsets[unit as usize] = first_from(keys, length, unit);
    keep_subnormals();
}
