//! The core of products in shared memory: steps of the chains of a unit's results, from staged tiles of both operands.
//!
//! A tile is `[steps, fours]` in vectors of four neighbours, with a pitch of so many vectors from step to step. A unit
//! owns `vectors x vectors` blocks of 4 x 4 results, so many vectors apart along each edge; result `(i, j)` is at `i *
//! 4 vectors + j`.

use crate::arithmetic::{Products, accumulate};
use cubecl::prelude::*;

/// Steps whose code follows each other, with constants for their addresses in shared memory. Of more, NVIDIA's compiler
/// reads so many ahead that a unit with 8 x 8 results takes more than 128 registers, and a multiprocessor holds half as
/// many units.
pub(crate) const UNROLLED: u32 = 2;

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
    /// Blocks of 4 results of a unit along each edge.
    pub vectors: u32,
    /// Vectors between two blocks of a unit, along the rows and along the columns.
    pub apart: [u32; 2],
    /// Vectors from step to step of `lhs` and of `rhs`.
    pub pitches: [u32; 2],
    /// How products are added.
    pub products: Option<Products>,
}

/// One step, from the vectors at `lhs_at` and at `rhs_at`.
#[cube]
fn one_step<A: Numeric>(
    lhs: &Shared<[Vector<A, Const<4>>]>,
    rhs: &Shared<[Vector<A, Const<4>>]>,
    acc: &mut Array<A>,
    lhs_at: u32,
    rhs_at: u32,
    #[comptime] tiles: Tiles,
) {
    let vectors = comptime!(tiles.vectors);
    let mut b = Array::<Vector<A, Const<4>>>::new(comptime!(vectors as usize));
    #[unroll]
    for w in 0..vectors {
        b[w as usize] = rhs[(rhs_at + w * comptime!(tiles.apart[1])) as usize];
    }
    #[unroll]
    for v in 0..vectors {
        let a = lhs[(lhs_at + v * comptime!(tiles.apart[0])) as usize];
        #[unroll]
        for i in 0..4u32 {
            #[unroll]
            for w in 0..vectors {
                #[unroll]
                for j in 0..4u32 {
                    let at = comptime!((((v * 4 + i) * vectors + w) * 4 + j) as usize);
                    let x = a.extract(comptime!(i as usize));
                    let y = b[w as usize].extract(comptime!(j as usize));
                    acc[at] = step::<A>(x, y, acc[at], comptime!(tiles.products));
                }
            }
        }
    }
}

/// The first `left` of `depth` staged steps, or all of them, from the unit's first vectors `lhs_at` and `rhs_at` on.
/// `depth` is a multiple of [`UNROLLED`].
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
    let lhs_pitch = comptime!(tiles.pitches[0]);
    let rhs_pitch = comptime!(tiles.pitches[1]);
    if left >= depth {
        for part in 0..comptime!(depth / UNROLLED) {
            let lhs_part = lhs_at + part * comptime!(UNROLLED * lhs_pitch);
            let rhs_part = rhs_at + part * comptime!(UNROLLED * rhs_pitch);
            #[unroll]
            for p in 0..UNROLLED {
                one_step::<A>(lhs, rhs, acc, lhs_part + p * lhs_pitch, rhs_part + p * rhs_pitch, tiles);
            }
        }
    } else {
        for p in 0..left {
            one_step::<A>(lhs, rhs, acc, lhs_at + p * lhs_pitch, rhs_at + p * rhs_pitch, tiles);
        }
    }
}
