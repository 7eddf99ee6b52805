//! The core of products in shared memory: steps of the chains of a unit's results, from staged tiles of both operands.
//!
//! A tile is `[steps, fours]` in vectors of four neighbours, with a pitch of so many vectors from step to step. A unit
//! owns `vectors[0] x vectors[1]` blocks of 4 x 4 results, so many vectors apart along each edge; result `(i, j)` is at
//! `i * 4 vectors[1] + j`.

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

/// Reads the vectors of a unit for one step, from its first ones at `lhs_at` and `rhs_at` on.
#[cube]
pub(crate) fn read<A: Numeric>(
    lhs: &Shared<[Vector<A, Const<4>>]>,
    rhs: &Shared<[Vector<A, Const<4>>]>,
    a: &mut Array<Vector<A, Const<4>>>,
    b: &mut Array<Vector<A, Const<4>>>,
    lhs_at: u32,
    rhs_at: u32,
    #[comptime] tiles: Tiles,
) {
    #[unroll]
    for v in 0..tiles.vectors[0] {
        a[v as usize] = lhs[(lhs_at + v * comptime!(tiles.apart[0])) as usize];
    }
    #[unroll]
    for v in 0..tiles.vectors[1] {
        b[v as usize] = rhs[(rhs_at + v * comptime!(tiles.apart[1])) as usize];
    }
}

/// One step of every chain of a unit.
#[cube]
fn one_step<A: Numeric>(
    a: &Array<Vector<A, Const<4>>>,
    b: &Array<Vector<A, Const<4>>>,
    acc: &mut Array<A>,
    #[comptime] tiles: Tiles,
) {
    let [rows, columns] = comptime!(tiles.vectors);
    #[unroll]
    for v in 0..rows {
        #[unroll]
        for i in 0..4u32 {
            #[unroll]
            for w in 0..columns {
                #[unroll]
                for j in 0..4u32 {
                    let at = comptime!((((v * 4 + i) * columns + w) * 4 + j) as usize);
                    let x = a[v as usize].extract(comptime!(i as usize));
                    let y = b[w as usize].extract(comptime!(j as usize));
                    acc[at] = step::<A>(x, y, acc[at], comptime!(tiles.products));
                }
            }
        }
    }
}

/// The first `left` staged steps, each read as it is multiplied.
#[cube]
fn few_steps<A: Numeric>(
    lhs: &Shared<[Vector<A, Const<4>>]>,
    rhs: &Shared<[Vector<A, Const<4>>]>,
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
        read::<A>(lhs, rhs, &mut a, &mut b, lhs_at + p * lhs_pitch, rhs_at + p * rhs_pitch, tiles);
        one_step::<A>(&a, &b, acc, tiles);
    }
}

/// The first `left` of `depth` staged steps, or all of them, from the unit's first vectors `lhs_at` and `rhs_at` on. `depth` is a
/// multiple of [`UNROLLED`]. Reads a step's vectors, then multiplies them: several warps are needed to hide the reads.
#[cube]
pub(crate) fn multiply<A: Numeric>(
    lhs: &Shared<[Vector<A, Const<4>>]>,
    rhs: &Shared<[Vector<A, Const<4>>]>,
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
                read::<A>(lhs, rhs, &mut a, &mut b, lhs_part + p * lhs_pitch, rhs_part + p * rhs_pitch, tiles);
                one_step::<A>(&a, &b, acc, tiles);
            }
        }
    } else {
        few_steps::<A>(lhs, rhs, acc, lhs_at, rhs_at, left, tiles);
    }
}

/// The same, of an even `depth`, where the vectors of the first step were [read](read) to `a` and `b` before the next fetch. The
/// vectors of a step are read while the one before is multiplied: the products of one warp hide how long the reads take, so
/// that few warps with many results each fill a multiprocessor. Fewer than `depth` steps are read as they are multiplied.
#[cube]
pub(crate) fn multiply_ahead<A: Numeric>(
    lhs: &Shared<[Vector<A, Const<4>>]>,
    rhs: &Shared<[Vector<A, Const<4>>]>,
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
            read::<A>(lhs, rhs, &mut next_a, &mut next_b, lhs_odd, rhs_odd, tiles);
            one_step::<A>(&*a, &*b, acc, tiles);
            if comptime!(even < depth) {
                let (lhs_even, rhs_even) = (lhs_at + comptime!(even * lhs_pitch), rhs_at + comptime!(even * rhs_pitch));
                read::<A>(lhs, rhs, a, b, lhs_even, rhs_even, tiles);
            }
            one_step::<A>(&next_a, &next_b, acc, tiles);
        }
    } else {
        few_steps::<A>(lhs, rhs, acc, lhs_at, rhs_at, left, tiles);
    }
}
