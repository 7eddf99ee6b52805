//! What the units of a cube fetch and put in shared memory.

use super::plan::Stage;
use cubecl::prelude::*;

/// An operand's part of a tile.
#[derive(CubeType, Clone, Copy)]
pub(super) struct OperandTile {
    /// Offset of the matrix.
    pub matrix: u32,
    /// The first place across the tile, and the places of the matrix.
    pub first: u32,
    pub extent: u32,
    /// From place to place, and from step to step.
    pub stride: u32,
    pub k_stride: u32,
    /// Steps of the matrix.
    pub k: u32,
}

/// The place across the tile and the step at which vector `nth` of this unit begins in a stage. Units that follow each other read along
/// `k` where that is the contiguous axis of the operand, across it otherwise.
#[cube]
pub(super) fn begin(nth: u32, #[comptime] stage: Stage) -> (u32, u32) {
    let vector = comptime!(stage.vector());
    let at = nth * comptime!(stage.units) + UNIT_POS;
    if comptime!(stage.along_k) {
        let vectors = comptime!(stage.depth() / vector);
        (at / vectors, at % vectors * vector)
    } else {
        let vectors = comptime!(stage.side / vector);
        (at % vectors * vector, at / vectors)
    }
}

/// Where the element of a place and a step is in a stage, in vectors: the first one of a vector.
#[cube]
pub(super) fn vector_at(place: u32, step: u32, #[comptime] stage: Stage) -> u32 {
    let pitch = comptime!(stage.pitch());
    let element = if comptime!(stage.along_k) { place * pitch + step } else { step * pitch + place };
    element / comptime!(stage.vector())
}

/// Fetches a unit's vectors of the stage that begins at step `at`, as they lie in memory. Places and steps beyond the edge repeat the
/// last ones.
#[cube]
pub(super) fn fetch<I: Numeric, W: Size>(
    matrix: &Tensor<Vector<I, W>>,
    next: &mut Array<Vector<I, W>>,
    operand: &OperandTile,
    at: u32,
    #[comptime] stage: Stage,
) {
    let elements = W::value();
    let width = comptime!(elements as u32);
    let pieces = comptime!(stage.vector() / width);
    #[unroll]
    for nth in 0..comptime!(stage.vectors_of_unit()) {
        let (place, step) = begin(nth, stage);
        #[unroll]
        for piece in 0..pieces {
            let offset = if comptime!(stage.along_k) {
                let step = min(at + step + piece * width, operand.k - width);
                min(operand.first + place, operand.extent - 1) * operand.stride + step * operand.k_stride
            } else {
                let place = min(operand.first + place + piece * width, operand.extent - width);
                place * operand.stride + min(at + step, operand.k - 1) * operand.k_stride
            };
            next[comptime!((nth * pieces + piece) as usize)] = matrix[((operand.matrix + offset) / width) as usize];
        }
    }
}

/// Stages what a unit has [fetched](fetch), from vector `base` of the shared memory on. Steps from `k` on are zero, and are
/// terms of sums like any other.
///
/// Not where it is fetched: that would wait for it, which products are to hide.
#[cube]
pub(super) fn put<I: Numeric, T: Numeric, V: Size, W: Size>(
    staged: &mut Shared<[Vector<T, V>]>,
    next: &Array<Vector<I, W>>,
    operand: &OperandTile,
    base: u32,
    at: u32,
    #[comptime] stage: Stage,
) {
    // The same for all units, and true but for the last stage of a matrix: whole vectors of halves are stored as they were read, where
    // a condition would choose each half by itself.
    if at + comptime!(stage.depth()) <= operand.k {
        put_steps::<I, T, V, W>(staged, next, base, at, operand.k, stage, true);
    } else {
        put_steps::<I, T, V, W>(staged, next, base, at, operand.k, stage, false);
    }
}

/// The same, of a stage that is below `k` as a `whole`, or of those of its steps that are.
#[cube]
fn put_steps<I: Numeric, T: Numeric, V: Size, W: Size>(
    staged: &mut Shared<[Vector<T, V>]>,
    next: &Array<Vector<I, W>>,
    base: u32,
    at: u32,
    k: u32,
    #[comptime] stage: Stage,
    #[comptime] whole: bool,
) {
    let elements = W::value();
    let width = comptime!(elements as u32);
    let pieces = comptime!(stage.vector() / width);
    #[unroll]
    for nth in 0..comptime!(stage.vectors_of_unit()) {
        let (place, step) = begin(nth, stage);
        let to = (base + vector_at(place, step, stage)) as usize;
        if comptime!(whole && pieces == 1) {
            staged[to] = Vector::cast_from(next[comptime!(nth as usize)]);
        } else {
            let mut vector = Vector::<T, V>::new(T::from_int(0));
            #[unroll]
            for piece in 0..pieces {
                // Vectors along `k` are whole in it.
                let first = if comptime!(stage.along_k) { step + piece * width } else { step };
                if comptime!(whole) || at + first < k {
                    let fetched = next[comptime!((nth * pieces + piece) as usize)];
                    #[unroll]
                    for i in 0..elements {
                        vector.insert(comptime!((piece * width) as usize + i), T::cast_from(fetched.extract(i)));
                    }
                }
            }
            staged[to] = vector;
        }
    }
}
