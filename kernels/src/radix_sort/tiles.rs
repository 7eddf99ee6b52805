//! [`Plan::Tiles`](super::Plan::Tiles): cubes sort tiles in shared memory. Integers only.

use super::keys::{Keys, Sorted};
use super::plan::{Problem, TILE, Tiles};
use super::tile::{MOST_WORDS, ROUND_BITS, Stage, UNITS};
use crate::buffer::{words, words_arg};
use crate::grid::cubes;
use crate::index::row_of;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;
use cubecl::server::Handle;

/// Keys of a tile that each unit has.
const PER_UNIT: u32 = MOST_WORDS;

/// Keys of a tile.
const TILE_KEYS: u32 = TILE as u32;

/// Bits of a place in a tile.
const PLACE_BITS: u32 = TILE.ilog2();

/// One pass.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
struct Pass {
    length: u32,
    tiles: u32,
    shift: u32,
    digits: u32,
}

#[cube]
impl Pass {
    /// The number of keys of this cube's tile; the grid may be larger than there are tiles.
    fn keys(&self) -> u32 {
        let tile = CUBE_POS as u32;
        let mut keys = 0u32;
        if tile < self.tiles {
            keys = min(self.length - tile * TILE_KEYS, TILE_KEYS);
        }
        keys
    }

    fn digit(&self, key: u32) -> u32 {
        (key >> self.shift) & (self.digits - 1)
    }
}

/// A cube a tile: its keys and positions, sorted by digit, `counters[digits, tiles]` of its keys of each digit, and
/// `begins[tiles, digits]`, where each digit begins in the tile.
///
/// Sorted are words of a key's digit and its place in the tile. Places past the last key have the last digit, and so stay behind.
#[cube(launch_unchecked)]
fn sort_tiles<I: Int>(
    keys: &[I],
    positions: &[u32],
    tile_keys: &mut [u32],
    tile_positions: &mut [u32],
    counters: &mut [u32],
    begins: &mut [u32],
    pass: Pass,
    stride: u32,
    rows: u32,
    rounds: u32,
    #[comptime] moved: bool,
    #[define(I)] _dtype: ElemType,
) {
    let (tile, unit) = (CUBE_POS as u32, UNIT_POS_X);
    let count = pass.keys();
    let first = tile * TILE_KEYS;
    let mut stage = Stage::new();
    let mut own = Array::<u32>::new(comptime!(PER_UNIT as usize));
    #[unroll]
    for nth in 0..PER_UNIT {
        let place = nth * UNITS + unit;
        let mut key = u32::MAX.runtime();
        if place < count {
            key = row_of::<I>(keys[((first + place) * stride) as usize], rows);
        }
        own[comptime!(nth as usize)] = key;
        stage.put(place, (pass.digit(key) << PLACE_BITS) | place);
    }
    stage.sort(PLACE_BITS, rounds, PER_UNIT);
    // Where this unit's digit begins, and where the next one does.
    if unit < pass.digits {
        let begin = stage.first_from(unit << PLACE_BITS, PER_UNIT);
        stage.share(unit, begin);
    }
    let mut from = Array::<u32>::new(comptime!(PER_UNIT as usize));
    #[unroll]
    for nth in 0..PER_UNIT {
        from[comptime!(nth as usize)] = stage.word(nth * UNITS + unit) & comptime!(TILE_KEYS - 1);
    }
    sync_cube();
    if tile < pass.tiles && unit < pass.digits {
        let begin = stage.shared(unit);
        let mut end = count;
        if unit + 1 < pass.digits {
            end = stage.shared(unit + 1);
        }
        counters[(unit * pass.tiles + tile) as usize] = end - begin;
        begins[(tile * pass.digits + unit) as usize] = begin;
    }
    #[unroll]
    for nth in 0..PER_UNIT {
        stage.put(nth * UNITS + unit, own[comptime!(nth as usize)]);
    }
    sync_cube();
    #[unroll]
    for nth in 0..PER_UNIT {
        let place = nth * UNITS + unit;
        if place < count {
            tile_keys[(first + place) as usize] = stage.word(from[comptime!(nth as usize)]);
        }
    }
    if comptime!(moved) {
        sync_cube();
        #[unroll]
        for nth in 0..PER_UNIT {
            let place = nth * UNITS + unit;
            if place < count {
                stage.put(place, positions[(first + place) as usize]);
            }
        }
        sync_cube();
    }
    #[unroll]
    for nth in 0..PER_UNIT {
        let place = nth * UNITS + unit;
        if place < count {
            let from = from[comptime!(nth as usize)];
            let mut position = first + from;
            if comptime!(moved) {
                position = stage.word(from);
            }
            tile_positions[(first + place) as usize] = position;
        }
    }
    keep_subnormals();
}

/// A cube a digit: replaces each of its counters by the sum of those before it, and writes the sum of all to `totals[digits]`.
#[cube(launch_unchecked)]
fn scan_tiles(counters: &mut [u32], totals: &mut [u32], tiles: u32) {
    let (digit, unit) = (CUBE_POS as u32, UNIT_POS_X);
    let mut stage = Stage::new();
    let mut carry = 0u32;
    for nth in 0..tiles.div_ceil(UNITS) {
        let tile = nth * UNITS + unit;
        let at = (digit * tiles + tile) as usize;
        let mut count = 0u32;
        if tile < tiles {
            count = counters[at];
        }
        let (before, total) = stage.exclusive_scan(count);
        if tile < tiles {
            counters[at] = carry + before;
        }
        carry += total;
        sync_cube();
    }
    if unit == 0 {
        totals[digit as usize] = carry;
    }
    keep_subnormals();
}

/// A cube a tile: moves its keys, which are sorted by digit, to their places among the keys of all tiles.
#[cube(launch_unchecked)]
fn place_tiles(
    tile_keys: &[u32],
    tile_positions: &[u32],
    counters: &[u32],
    begins: &[u32],
    totals: &[u32],
    sorted_keys: &mut [u32],
    sorted_positions: &mut [u32],
    pass: Pass,
) {
    let (tile, unit) = (CUBE_POS as u32, UNIT_POS_X);
    let count = pass.keys();
    let first = tile * TILE_KEYS;
    let mut stage = Stage::new();
    let mut total = 0u32;
    let mut base = 0u32;
    if tile < pass.tiles && unit < pass.digits {
        total = totals[unit as usize];
        base = counters[(unit * pass.tiles + tile) as usize] - begins[(tile * pass.digits + unit) as usize];
    }
    let (smaller, _) = stage.exclusive_scan(total);
    sync_cube();
    // Wraps modulo 2^32; adding the place of a key of this digit gives a valid index.
    stage.share(unit, smaller + base);
    sync_cube();
    #[unroll]
    for nth in 0..PER_UNIT {
        let place = nth * UNITS + unit;
        if place < count {
            let key = tile_keys[(first + place) as usize];
            let to = (stage.shared(pass.digit(key)) + place) as usize;
            sorted_keys[to] = key;
            sorted_positions[to] = tile_positions[(first + place) as usize];
        }
    }
    keep_subnormals();
}

/// Sorts by tiles: three launches a pass.
pub(super) fn sort(client: &Client, keys: Keys, positions: Option<Handle>, problem: &Problem, plan: Tiles) -> Sorted {
    let Problem { length, rows } = *problem;
    let (tiles, digits) = (length.div_ceil(TILE), plan.digits());
    let dim = CubeDim::new_1d(UNITS);
    let counters = words(client, digits * tiles);
    let begins = words(client, digits * tiles);
    let totals = words(client, digits);
    let pair = || Sorted { keys: words(client, length), positions: words(client, length) };
    let (tile, to) = (pair(), pair());
    let given = positions.is_some();
    // A first pass that reads no positions takes any buffer for them.
    let mut from = (positions.unwrap_or_else(|| keys.handle.clone()), keys);
    for nth in 0..plan.passes {
        let (positions, keys) = from;
        let shift = nth * plan.digit_bits;
        let pass = || PassLaunch::new(length as u32, tiles as u32, shift, digits as u32);
        // SAFETY: cubes past the last tile and units past the last key or digit touch no memory; the places of a tile are a
        // permutation of it, and the scanned counters number the keys, so that the new positions are one of all. The buffers of
        // the caller are only read; those of `to` are read by the first launch and written by the last.
        unsafe {
            sort_tiles::launch_unchecked(
                client,
                cubes(tiles),
                dim,
                keys.arg(length),
                words_arg(&positions, length),
                words_arg(&tile.keys, length),
                words_arg(&tile.positions, length),
                words_arg(&counters, digits * tiles),
                words_arg(&begins, digits * tiles),
                pass(),
                keys.stride,
                rows as u32,
                plan.digit_bits.div_ceil(ROUND_BITS),
                given || nth > 0,
                keys.dtype,
            );
            scan_tiles::launch_unchecked(
                client,
                cubes(digits),
                dim,
                words_arg(&counters, digits * tiles),
                words_arg(&totals, digits),
                tiles as u32,
            );
            place_tiles::launch_unchecked(
                client,
                cubes(tiles),
                dim,
                words_arg(&tile.keys, length),
                words_arg(&tile.positions, length),
                words_arg(&counters, digits * tiles),
                words_arg(&begins, digits * tiles),
                words_arg(&totals, digits),
                words_arg(&to.keys, length),
                words_arg(&to.positions, length),
                pass(),
            );
        }
        from = (to.positions.clone(), Keys::words(to.keys.clone()));
    }
    to
}
