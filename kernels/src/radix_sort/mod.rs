//! Stable sort of keys with their positions, shared by sorts, top-k and updates.
//!
//! Integers only: equal keys keep their order, so there is one result, and no plan can change it.
//!
//! # Algorithm
//!
//! Least-significant-digit radix sort (Knuth, "The Art of Computer Programming" 3, 5.2.5) with a histogram for each chunk of
//! consecutive keys (Zagha and Blelloch, "Radix sort for vector multiprocessors", 1991): for each digit, count each chunk's
//! keys by digit, scan the counters exclusively in the order `[digit, chunk]` (two launches), and place each chunk's keys at
//! the counters' positions. Few keys are sorted by enumeration instead (Knuth, 5.2).
//!
//! On GPUs a chunk is a tile of 2048 keys, and a cube sorts it by the digit in shared memory (Satish, Harris and Garland,
//! "Designing efficient sorting algorithms for manycore GPUs", 2009). Keys of one digit are then adjacent in their tile, so
//! that neighbouring units move them to neighbouring places. A pass has three launches, as that of Merrill and Grimshaw ("High
//! performance and scalable radix sorting", 2011): sort each tile, and count its digits; scan each digit's counters over the
//! tiles; move the tiles' keys. One launch a pass (Adinets and Merrill, "Onesweep", 2022) takes cubes that wait for each
//! other, which few devices promise to run side by side.
//!
//! # Cost
//!
//! `n` keys of `b` bits by digits of `d` bits: `ceil(b / d)` passes of four launches, or of three with tiles; 16 bytes of
//! scratch a key, and a byte more with tiles.

mod kernel;
mod keys;
pub mod plan;
mod tile;
mod tiles;

pub(crate) use keys::{Keys, Sorted};
pub use plan::{Chunks, Plan, Problem, Tiles};
pub(crate) use tile::{Stage, UNITS as SORT_UNITS};

use crate::buffer::{words, words_arg};
use crate::grid::{cubes, grid};
use cubecl::prelude::*;
use cubecl::server::Handle;
use plan::{padded_chunks, scan_block};

/// Units in a cube of the kernels in which a unit loops over a chunk: few, so that the few chunks spread over the cores.
const CHUNK_UNITS: u32 = 32;

/// Sorts the keys of `problem` by `plan`, which [applies](Plan::refuses) to it. With `positions[length]`, key `p` is that of
/// `positions[p]`, and equal keys keep the order they have: sorts by several words chain so, the lowest word first.
pub(crate) fn sort(client: &Client, keys: Keys, positions: Option<Handle>, problem: &Problem, plan: Plan) -> Sorted {
    let Problem { length, rows } = *problem;
    let plan = match plan {
        Plan::Rank => {
            assert!(positions.is_none(), "only keys in their own positions are ranked");
            return rank(client, &keys, problem);
        }
        Plan::Tiles(plan) => return tiles::sort(client, keys, positions, problem, plan),
        Plan::Chunks(plan) => plan,
    };
    let given = positions.is_some();
    let chunks = padded_chunks(length, plan.chunk);
    let counters = words(client, plan.counters(length));
    let (count, dim) = chunk_grid(chunks);
    // A first pass that reads no positions takes any buffer for them.
    let mut from = (positions.unwrap_or_else(|| keys.handle.clone()), keys);
    let mut spare: Option<Sorted> = None;
    for nth in 0..plan.passes {
        let (positions, keys) = from;
        let to =
            spare.take().unwrap_or_else(|| Sorted { keys: words(client, length), positions: words(client, length) });
        let width = keys.width(length, plan.chunk);
        let shift = nth * plan.digit_bits;
        // SAFETY: units stop at the number of chunks, which cover the keys, those that pad them having none, and each has a
        // column of the counters `[digits, chunks]`.
        unsafe {
            kernel::count_digits::launch_unchecked(
                client,
                count.clone(),
                dim,
                width,
                keys.arg(length),
                words_arg(&counters, plan.counters(length)),
                keys.stride,
                rows as u32,
                length as u32,
                plan.chunk as u32,
                chunks as u32,
                shift,
                plan.digits() as u32,
                keys.dtype,
            );
        }
        exclusive_scan(client, &counters, plan.counters(length));
        // SAFETY: as above; the scanned counters number the keys, so that the new positions are a permutation.
        unsafe {
            kernel::place_by_digit::launch_unchecked(
                client,
                count.clone(),
                dim,
                width,
                keys.arg(length),
                words_arg(&positions, length),
                words_arg(&counters, plan.counters(length)),
                words_arg(&to.keys, length),
                words_arg(&to.positions, length),
                keys.stride,
                rows as u32,
                length as u32,
                plan.chunk as u32,
                chunks as u32,
                shift,
                plan.digits() as u32,
                given || nth > 0,
                keys.dtype,
            );
        }
        // The buffers of the first pass are the caller's.
        spare = (nth > 0).then_some(Sorted { keys: keys.handle, positions });
        from = (to.positions, Keys::words(to.keys));
    }
    Sorted { keys: from.1.handle, positions: from.0 }
}

/// Rounds of [`Stage::sort`] by which it sorts words of a key in `0..=rows`.
pub(crate) fn sort_rounds(rows: usize) -> u32 {
    plan::key_bits(rows).div_ceil(tile::ROUND_BITS)
}

/// The CSR row offsets of the sorted keys of `problem`: `[rows + 1]` u32, the keys equal to `r` being those at `offsets[r] ..
/// offsets[r + 1]`.
pub(crate) fn row_offsets(client: &Client, keys: &Handle, problem: &Problem) -> Handle {
    let Problem { length, rows } = *problem;
    let offsets = words(client, rows + 1);
    let (count, dim) = grid(rows + 1);
    // SAFETY: units stop at `rows`, the last of `rows + 1` offsets; the search stays within `length` keys.
    unsafe {
        kernel::offsets_of_rows::launch_unchecked(
            client,
            count,
            dim,
            words_arg(keys, length),
            words_arg(&offsets, rows + 1),
            rows as u32,
            length as u32,
        );
    }
    offsets
}

fn chunk_grid(units: usize) -> (CubeCount, CubeDim) {
    (cubes(units.div_ceil(CHUNK_UNITS as usize)), CubeDim::new_1d(CHUNK_UNITS))
}

fn rank(client: &Client, keys: &Keys, problem: &Problem) -> Sorted {
    let Problem { length, rows } = *problem;
    let sorted = Sorted { keys: words(client, length), positions: words(client, length) };
    let (count, dim) = chunk_grid(length);
    // SAFETY: units stop at `length`, the ranks are a permutation of `0..length`, and each buffer holds as many.
    unsafe {
        kernel::place_by_rank::launch_unchecked(
            client,
            count,
            dim,
            keys.arg(length),
            words_arg(&sorted.keys, length),
            words_arg(&sorted.positions, length),
            keys.stride,
            rows as u32,
            length as u32,
            keys.dtype,
        );
    }
    sorted
}

/// Replaces each of `counters[length]` by the sum of all before it.
fn exclusive_scan(client: &Client, counters: &Handle, length: usize) {
    let block = scan_block(length);
    let blocks = length.div_ceil(block);
    let sums = words(client, blocks);
    let (count, dim) = chunk_grid(blocks);
    // SAFETY: units stop at the number of blocks, which cover the counters.
    unsafe {
        kernel::sum_blocks::launch_unchecked(
            client,
            count.clone(),
            dim,
            words_arg(counters, length),
            words_arg(&sums, blocks),
            length as u32,
            block as u32,
        );
        kernel::scan_blocks::launch_unchecked(
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
