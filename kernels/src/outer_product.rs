//! The core of products in shared memory: steps of the chains of a unit's results, from staged tiles of both operands.
//!
//! A tile is `[steps, fours]` in vectors of four neighbours, with a pitch of so many vectors from step to step. Memory of `rhs` has
//! vectors of four, or their elements where units stage one place each. A unit owns `vectors[0] x vectors[1]` blocks of 4 x 4
//! results, so many vectors apart along each edge; result `(i, j)` is at `i * 4 vectors[1] + j`.

use crate::arithmetic::{Products, accumulate};
use cubecl::prelude::*;

/// Steps of [`multiply`] whose code follows each other, with constants for their addresses in shared memory. Of more, NVIDIA's
/// compiler reads so many ahead that a unit with 8 x 8 results takes more registers, and a multiprocessor holds fewer units.
const UNROLLED: u32 = 2;

/// `acc + a * b`: the step of every chain.
///
/// Integers have no `products`; they wrap, so their order cannot show.
#[cube]
pub(crate) fn step<A: Numeric>(a: A, b: A, acc: A, #[comptime] products: Option<Products>) -> A {
    match products {
        None => acc + a * b,
        Some(products) => accumulate::<A>(a, b, acc, products),
    }
}

/// The staged tiles as a unit reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tiles {
    /// Blocks of 4 results of a unit along the rows and along the columns.
    pub vectors: [u32; 2],
    /// Vectors between two blocks of a unit, along the rows and along the columns.
    pub apart: [u32; 2],
    /// Vectors from step to step of `lhs` and of `rhs`.
    pub pitches: [u32; 2],
    /// How products are added.
    pub products: Option<Products>,
}

/// Whether each of `sides[0] x sides[1]` units has a [place](unit_place) of its own.
pub(crate) const fn has_places([rows, columns]: [u32; 2]) -> bool {
    rows.is_multiple_of(4) && columns.is_multiple_of(8)
}

/// Row and column of this unit among `sides[0] x sides[1]` units, which [have places](has_places).
///
/// Of 32 units that follow each other 4 are along the rows and 8 along the columns: they read few vectors. Of 8 of them, whose
/// reads a multiprocessor does at once, 2 are along the rows and 4 along the columns.
#[cube]
pub(crate) fn unit_place(#[comptime] sides: [u32; 2]) -> (u32, u32) {
    let [rows, columns] = comptime!(sides);
    let (of_units, unit) = (UNIT_POS / 32, UNIT_POS % 32);
    let (in_rows, in_columns) = (unit / 16 * 2 + unit % 2, unit / 2 % 8);
    // Remainders that change nothing tell the compiler that addresses in shared memory do not wrap.
    let row = (of_units / comptime!(columns / 8) * 4 + in_rows) % rows;
    let column = (of_units % comptime!(columns / 8) * 8 + in_columns) % columns;
    (row, column)
}

/// Reads the vectors of a unit for one step, from its first ones at `lhs_at` and `rhs_at` on, which count vectors of four also
/// where `rhs` has elements.
#[cube]
pub(crate) fn read<A: Numeric, R: Size>(
    lhs: &[Vector<A, Const<4>>],
    rhs: &[Vector<A, R>],
    a: &mut Array<Vector<A, Const<4>>>,
    b: &mut Array<Vector<A, Const<4>>>,
    lhs_at: u32,
    rhs_at: u32,
    #[comptime] tiles: Tiles,
) {
    let width = R::value();
    #[unroll]
    for v in 0..tiles.vectors[0] {
        a[v as usize] = lhs[(lhs_at + v * comptime!(tiles.apart[0])) as usize];
    }
    #[unroll]
    for v in 0..tiles.vectors[1] {
        let at = (rhs_at + v * comptime!(tiles.apart[1])) * comptime!(4 / width as u32);
        let mut four = Vector::<A, Const<4>>::new(A::from_int(0));
        #[unroll]
        for part in 0..comptime!(4 / width as u32) {
            let read = rhs[(at + part) as usize];
            #[unroll]
            for j in 0..width {
                four.insert(comptime!(part as usize * width + j), read.extract(j));
            }
        }
        b[v as usize] = four;
    }
}

/// One step of every chain of a unit, row by row, every other one backwards.
///
/// Counters of an H100 are explained by a scheduler that reads two registers a cycle, one with an even and one with an odd number,
/// where a multiply-add has three operands. A factor that two multiply-adds in a row share is not read again, and the registers of
/// the others are even and odd in turn.
#[cube]
fn one_step<A: Numeric>(
    a: &Array<Vector<A, Const<4>>>,
    b: &Array<Vector<A, Const<4>>>,
    acc: &mut Array<A>,
    #[comptime] tiles: Tiles,
) {
    let [rows, columns] = comptime!(tiles.vectors.map(|vectors| vectors * 4));
    #[unroll]
    for i in 0..rows {
        #[unroll]
        for nth in 0..columns {
            let j = comptime!(if i % 2 == 0 { nth } else { columns - 1 - nth });
            let at = comptime!((i * columns + j) as usize);
            let x = a[comptime!((i / 4) as usize)].extract(comptime!((i % 4) as usize));
            let y = b[comptime!((j / 4) as usize)].extract(comptime!((j % 4) as usize));
            acc[at] = step::<A>(x, y, acc[at], comptime!(tiles.products));
        }
    }
}

/// The first `left` staged steps, each read as it is multiplied.
#[cube]
fn few_steps<A: Numeric, R: Size>(
    lhs: &[Vector<A, Const<4>>],
    rhs: &[Vector<A, R>],
    acc: &mut Array<A>,
    lhs_at: u32,
    rhs_at: u32,
    left: u32,
    #[comptime] tiles: Tiles,
) {
    let [lhs_pitch, rhs_pitch] = comptime!(tiles.pitches);
    let mut a = Array::<Vector<A, Const<4>>>::new(comptime!(tiles.vectors[0] as usize));
    let mut b = Array::<Vector<A, Const<4>>>::new(comptime!(tiles.vectors[1] as usize));
    for p in 0..left {
        read::<A, R>(lhs, rhs, &mut a, &mut b, lhs_at + p * lhs_pitch, rhs_at + p * rhs_pitch, tiles);
        one_step::<A>(&a, &b, acc, tiles);
    }
}

/// The first `left` of `depth` staged steps, or all of them, from the unit's first vectors `lhs_at` and `rhs_at` on. `depth` is a
/// multiple of [`UNROLLED`]. Reads a step's vectors, then multiplies them: several warps are needed to hide the reads.
#[cube]
pub(crate) fn multiply<A: Numeric, R: Size>(
    lhs: &[Vector<A, Const<4>>],
    rhs: &[Vector<A, R>],
    acc: &mut Array<A>,
    lhs_at: u32,
    rhs_at: u32,
    left: u32,
    #[comptime] depth: u32,
    #[comptime] tiles: Tiles,
) {
    let [lhs_pitch, rhs_pitch] = comptime!(tiles.pitches);
    let mut a = Array::<Vector<A, Const<4>>>::new(comptime!(tiles.vectors[0] as usize));
    let mut b = Array::<Vector<A, Const<4>>>::new(comptime!(tiles.vectors[1] as usize));
    if left >= depth {
        for part in 0..comptime!(depth / UNROLLED) {
            let lhs_part = lhs_at + part * comptime!(UNROLLED * lhs_pitch);
            let rhs_part = rhs_at + part * comptime!(UNROLLED * rhs_pitch);
            #[unroll]
            for p in 0..UNROLLED {
                read::<A, R>(lhs, rhs, &mut a, &mut b, lhs_part + p * lhs_pitch, rhs_part + p * rhs_pitch, tiles);
                one_step::<A>(&a, &b, acc, tiles);
            }
        }
    } else {
        few_steps::<A, R>(lhs, rhs, acc, lhs_at, rhs_at, left, tiles);
    }
}

/// The same, of an even `depth`, where the vectors of the first step were [read](read) to `a` and `b` before the next fetch. The
/// vectors of a step are read while the one before is multiplied: the products of one warp hide how long the reads take, so
/// that few warps with many results each fill a multiprocessor. Fewer than `depth` steps are read as they are multiplied.
#[cube]
pub(crate) fn multiply_ahead<A: Numeric, R: Size>(
    lhs: &[Vector<A, Const<4>>],
    rhs: &[Vector<A, R>],
    a: &mut Array<Vector<A, Const<4>>>,
    b: &mut Array<Vector<A, Const<4>>>,
    acc: &mut Array<A>,
    lhs_at: u32,
    rhs_at: u32,
    left: u32,
    #[comptime] depth: u32,
    #[comptime] tiles: Tiles,
) {
    let [lhs_pitch, rhs_pitch] = comptime!(tiles.pitches);
    let mut next_a = Array::<Vector<A, Const<4>>>::new(comptime!(tiles.vectors[0] as usize));
    let mut next_b = Array::<Vector<A, Const<4>>>::new(comptime!(tiles.vectors[1] as usize));
    if left >= depth {
        #[unroll]
        for pair in 0..comptime!(depth / 2) {
            let (odd, even) = (comptime!(2 * pair + 1), comptime!(2 * pair + 2));
            let (lhs_odd, rhs_odd) = (lhs_at + comptime!(odd * lhs_pitch), rhs_at + comptime!(odd * rhs_pitch));
            read::<A, R>(lhs, rhs, &mut next_a, &mut next_b, lhs_odd, rhs_odd, tiles);
            one_step::<A>(&*a, &*b, acc, tiles);
            if comptime!(even < depth) {
                let (lhs_even, rhs_even) = (lhs_at + comptime!(even * lhs_pitch), rhs_at + comptime!(even * rhs_pitch));
                read::<A, R>(lhs, rhs, a, b, lhs_even, rhs_even, tiles);
            }
            one_step::<A>(&next_a, &next_b, acc, tiles);
        }
    } else {
        few_steps::<A, R>(lhs, rhs, acc, lhs_at, rhs_at, left, tiles);
    }
}
