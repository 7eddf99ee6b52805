//! The kernels of a scan along the last axis for a GPU: a cube reads stretches of several blocks side by side, so that
//! neighbours read neighbours, and a unit a block goes along its row in shared memory. Chains are those of
//! [`kernel`](super::kernel).
//!
//! `input[outer, length]` is read through its strides; `output[outer, length]` and `totals[outer, blocks]` are
//! contiguous.

use super::kernel::{AHEAD, Extents, after, combine};
use super::operation::Operation;
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use crate::view::Strides;
use cubecl::prelude::*;

/// Units of a cube.
pub(super) const UNITS: u32 = 64;

/// Blocks of a cube, a row each.
pub(super) const ROWS: u32 = 8;

/// Elements of each block that are staged at a time.
pub(super) const COLUMNS: u32 = 128;

/// Four more elements a row: units that go along eight rows meet eight groups of shared-memory banks.
const PITCH: u32 = COLUMNS + 4;

/// Elements that are staged at a time.
pub(super) const STAGED: u32 = ROWS * PITCH;

/// Elements of a row that a unit reads at a time, `UNITS` apart.
const OF_ROW: u32 = COLUMNS / UNITS;

/// The blocks of a cube: row `r` is block `first + r` of all lines, and rows past the last one repeat it.
#[derive(CubeType)]
struct Rows {
    first: u32,
    blocks: u32,
    of_line: u32,
    length: u32,
}

#[cube]
impl Rows {
    fn new(cube: u32, blocks: u32, extents: &Extents) -> Rows {
        Rows { first: cube * ROWS, blocks, of_line: extents.blocks(), length: extents.length }
    }

    /// The line of a row, and the first element of its block.
    fn place(&self, row: u32) -> (u32, u32) {
        let number = min(self.first + row, self.blocks - 1);
        let outer = number / self.of_line;
        (outer, (number - outer * self.of_line) * BLOCK_TERMS)
    }

    /// Stretches of [`COLUMNS`] elements of the longest block.
    fn stretches(&self) -> u32 {
        min(self.length, BLOCK_TERMS).div_ceil(COLUMNS)
    }
}

/// Reads the share of a unit: of each row the elements from `from` on. Elements past the end of a line repeat the last
/// one.
#[cube]
fn fetch<F: Numeric, A: Numeric>(input: &[F], next: &mut Array<A>, strides: &Strides, rows: &Rows, from: u32) {
    #[unroll]
    for row in 0..ROWS {
        let (outer, start) = rows.place(row);
        #[unroll]
        for i in 0..OF_ROW {
            let at = min(start + from + i * UNITS + UNIT_POS, rows.length - 1);
            next[comptime!((row * OF_ROW + i) as usize)] = A::cast_from(input[strides.offset(outer, at, 0u32)]);
        }
    }
}

/// Puts the share of a unit in shared memory.
#[cube]
fn put<A: Numeric>(stage: &mut Shared<[A]>, next: &Array<A>) {
    #[unroll]
    for row in 0..ROWS {
        #[unroll]
        for i in 0..OF_ROW {
            stage[(row * PITCH + i * UNITS + UNIT_POS) as usize] = next[comptime!((row * OF_ROW + i) as usize)];
        }
    }
}

/// The chain of a block over one stretch of it, from `local` on; where the results are wanted (`keeps`) they take the
/// place of the elements.
#[cube]
fn along<A: Numeric, K: Numeric>(
    stage: &mut Shared<[A]>,
    local: A,
    before: A,
    is_first_block: bool,
    from: u32,
    count: u32,
    #[comptime] operation: Operation,
    #[comptime] keeps: bool,
) -> A {
    let row = UNIT_POS * PITCH;
    let end = min(count - min(from, count), COLUMNS);
    let mut local = local;
    let mut at = 0u32;
    if from == 0 {
        local = stage[row as usize];
        if comptime!(keeps) {
            stage[row as usize] = after::<A, K>(before, local, is_first_block, operation);
        }
        at = 1u32;
    }
    let mut ahead = Array::<A>::new(comptime!(AHEAD as usize));
    // A stretch past the end of a short block has no element.
    for _ in 0..(max(end, at) - at) / AHEAD {
        #[unroll]
        for nth in 0..AHEAD {
            ahead[comptime!(nth as usize)] = stage[(row + at + nth) as usize];
        }
        #[unroll]
        for nth in 0..AHEAD {
            local = combine::<A, K>(local, ahead[comptime!(nth as usize)], operation);
            if comptime!(keeps) {
                stage[(row + at + nth) as usize] = after::<A, K>(before, local, is_first_block, operation);
            }
        }
        at += AHEAD;
    }
    for at in at..max(end, at) {
        local = combine::<A, K>(local, stage[(row + at) as usize], operation);
        if comptime!(keeps) {
            stage[(row + at) as usize] = after::<A, K>(before, local, is_first_block, operation);
        }
    }
    local
}

/// The last value of the chain of each block, in `totals[blocks]`.
#[cube(launch_unchecked)]
pub(super) fn reduce_staged<F: Numeric, A: Numeric, K: Numeric>(
    input: &[F],
    totals: &mut [A],
    extents: Extents,
    strides: Strides,
    blocks: u32,
    cubes: u32,
    #[comptime] operation: Operation,
    #[define(F, A, K)] _dtypes: [ElemType; 3],
) {
    if CUBE_POS as u32 >= cubes {
        terminate!();
    }
    let rows = Rows::new(CUBE_POS as u32, blocks, &extents);
    let mut stage = Shared::<[A]>::new_slice(comptime!(STAGED as usize));
    let mut next = Array::<A>::new(comptime!((ROWS * OF_ROW) as usize));
    let (_, start) = rows.place(UNIT_POS);
    let count = min(rows.length - start, BLOCK_TERMS);
    let mut local = A::from_int(0);
    fetch::<F, A>(input, &mut next, &strides, &rows, 0u32);
    for stretch in 0..rows.stretches() {
        let from = stretch * COLUMNS;
        sync_cube();
        put::<A>(&mut stage, &next);
        sync_cube();
        if stretch + 1 < rows.stretches() {
            fetch::<F, A>(input, &mut next, &strides, &rows, from + COLUMNS);
        }
        if UNIT_POS < ROWS {
            local = along::<A, K>(&mut stage, local, A::from_int(0), true, from, count, operation, false);
        }
    }
    if UNIT_POS < ROWS && rows.first + UNIT_POS < blocks {
        totals[(rows.first + UNIT_POS) as usize] = local;
    }
    keep_subnormals();
}

/// The results of each block, which goes on from the last result of the block before it.
#[cube(launch_unchecked)]
pub(super) fn scan_staged<F: Numeric, A: Numeric, K: Numeric>(
    input: &[F],
    totals: &[A],
    output: &mut [F],
    extents: Extents,
    strides: Strides,
    blocks: u32,
    cubes: u32,
    #[comptime] operation: Operation,
    #[define(F, A, K)] _dtypes: [ElemType; 3],
) {
    if CUBE_POS as u32 >= cubes {
        terminate!();
    }
    let rows = Rows::new(CUBE_POS as u32, blocks, &extents);
    let mut stage = Shared::<[A]>::new_slice(comptime!(STAGED as usize));
    let mut next = Array::<A>::new(comptime!((ROWS * OF_ROW) as usize));
    let (_, start) = rows.place(UNIT_POS);
    let count = min(rows.length - start, BLOCK_TERMS);
    let mut local = A::from_int(0);
    let mut before = A::from_int(0);
    if UNIT_POS < ROWS && start > 0 {
        before = totals[(min(rows.first + UNIT_POS, blocks - 1) - 1) as usize];
    }
    fetch::<F, A>(input, &mut next, &strides, &rows, 0u32);
    for stretch in 0..rows.stretches() {
        let from = stretch * COLUMNS;
        put::<A>(&mut stage, &next);
        sync_cube();
        if stretch + 1 < rows.stretches() {
            fetch::<F, A>(input, &mut next, &strides, &rows, from + COLUMNS);
        }
        if UNIT_POS < ROWS {
            local = along::<A, K>(&mut stage, local, before, start == 0, from, count, operation, true);
        }
        sync_cube();
        #[unroll]
        for row in 0..ROWS {
            let (outer, first) = rows.place(row);
            #[unroll]
            for i in 0..OF_ROW {
                let column = i * UNITS + UNIT_POS;
                let at = first + from + column;
                if rows.first + row < blocks && at < rows.length {
                    output[(outer * rows.length + at) as usize] = F::cast_from(stage[(row * PITCH + column) as usize]);
                }
            }
        }
        // The unit that wrote an element of the stage out is the one that puts the next there.
    }
    keep_subnormals();
}
