//! The index of an extreme along one axis.
//!
//! The first pass compares the elements of the axis; each pass finds the index of the extreme of each block of 4096 positions.
//! These are the candidates that the next pass compares, `candidates[outputs, positions]`.

use crate::dtype::key::float_key;
use crate::order::COLUMNS_BLOCK as BLOCK;
use crate::reduce::operation::Operation;
use crate::reduce::plan::Cube;
use crate::reduce::view::View;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// The form of one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    pub cube: Cube,
    /// Whether the positions are the axis, and not the candidates of the pass before.
    pub first: bool,
    /// Whether a unit reads vectors of four elements; then it is the first pass, one unit has a block, and the view has
    /// its [elements in vectors](View::has_elements_in_vectors).
    pub in_vectors: bool,
    /// Whether the elements are written too, of outputs with one block.
    pub with_values: bool,
}

/// What is compared: integers as they are, floats by a key in which the zeros tie.
#[cube]
fn key<I: Numeric, K: Numeric>(value: I, #[comptime] operation: Operation) -> K {
    let elem = elem_type_of::<I>();
    if comptime!(elem.is_float()) {
        float_key::<I, K>(value, comptime!(operation.key()), true)
    } else {
        K::cast_from(value)
    }
}

/// Whether `key` is further out than `best`.
#[cube]
fn beyond<K: Numeric>(key: K, best: K, #[comptime] operation: Operation) -> bool {
    match comptime!(operation) {
        Operation::Min => key < best,
        _ => key > best,
    }
}

/// The index of the element at `position` of this pass: the position itself, or the candidate there.
#[cube]
fn index_at(candidates: &[u32], out: u32, position: u32, positions: u32, #[comptime] first: bool) -> u32 {
    if comptime!(first) { position } else { candidates[(out * positions + position) as usize] }
}

/// The lowest place of an extreme among `length` adjacent elements from the vector `first` on.
#[cube]
fn winner_in_vectors<I: Numeric, K: Numeric>(
    vectors: &[Vector<I, Const<4>>],
    first: u32,
    length: u32,
    #[comptime] operation: Operation,
) -> u32 {
    let mut bests = Vector::<K, Const<4>>::empty();
    let mut rows = Vector::<u32, Const<4>>::empty();
    let vector = vectors[first as usize];
    #[unroll]
    for lane in 0..4usize {
        bests.insert(lane, key::<I, K>(vector.extract(lane), operation));
        rows.insert(lane, 0u32);
    }
    for row in 1..length / 4 {
        let vector = vectors[(first + row) as usize];
        #[unroll]
        for lane in 0..4usize {
            let next = key::<I, K>(vector.extract(lane), operation);
            let wins = beyond::<K>(next, bests.extract(lane), operation);
            bests.insert(lane, select(wins, next, bests.extract(lane)));
            rows.insert(lane, select(wins, row, rows.extract(lane)));
        }
    }
    let mut best = bests.extract(0usize);
    let mut place = rows.extract(0usize) * 4;
    #[unroll]
    for lane in 1..4usize {
        let next = bests.extract(lane);
        let next_place = rows.extract(lane) * 4 + comptime!(lane as u32);
        let wins = beyond::<K>(next, best, operation) || (next == best && next_place < place);
        best = select(wins, next, best);
        place = select(wins, next_place, place);
    }
    place
}

/// The lowest index of an extreme of a block of positions, in the units with `UNIT_POS_Y == 0`.
///
/// Each of `groups` units compares every `groups`-th position; the lower index wins a tie, here and between the units.
#[cube]
fn winner<I: Numeric, K: Numeric>(
    input: &[I],
    vectors: &[Vector<I, Const<4>>],
    candidates: &[u32],
    view: &View,
    blocks: u32,
    positions: u32,
    #[comptime] form: Form,
    #[comptime] operation: Operation,
) -> u32 {
    let width = comptime!(form.cube.width);
    let groups = comptime!(form.cube.groups);
    let at = CUBE_POS as u32 * width + UNIT_POS_X;
    let out = at % view.outputs;
    let block = at / view.outputs;
    let start = block * BLOCK;
    let base = view.base(out);
    // A larger grid may number blocks that do not exist: those have no length.
    let length = select(block < blocks, min(positions - start, BLOCK), 0);
    let mut index = 0u32;
    let mut best = K::from_int(0);
    let mut k = UNIT_POS_Y;
    if comptime!(form.in_vectors) {
        if length > 0 {
            index = start + winner_in_vectors::<I, K>(vectors, (base + start) / 4, length, operation);
        }
    } else if k < length {
        index = index_at(candidates, out, start + k, positions, form.first);
        best = key::<I, K>(input[(base + index * view.axis_stride) as usize], operation);
        k += groups;
        while k < length {
            let next_index = index_at(candidates, out, start + k, positions, form.first);
            let next = key::<I, K>(input[(base + next_index * view.axis_stride) as usize], operation);
            let wins = beyond::<K>(next, best, operation);
            best = select(wins, next, best);
            index = select(wins, next_index, index);
            k += groups;
        }
    }
    if comptime!(groups > 1) {
        let mut keys = Shared::<[K]>::new_slice(comptime!((groups * width) as usize));
        let mut indices = Shared::<[u32]>::new_slice(comptime!((groups * width) as usize));
        let slot = (UNIT_POS_Y * width + UNIT_POS_X) as usize;
        keys[slot] = best;
        indices[slot] = index;
        sync_cube();
        if UNIT_POS_Y == 0 {
            for group in 1..min(groups, length) {
                let slot = (group * width + UNIT_POS_X) as usize;
                let next = keys[slot];
                let next_index = indices[slot];
                let wins = beyond::<K>(next, best, operation) || (next == best && next_index < index);
                best = select(wins, next, best);
                index = select(wins, next_index, index);
            }
        }
    }
    index
}

/// Writes the index of the extreme of each block of positions to `indices[outputs, blocks]`, and `with_values`, where there
/// is one block, the element there to `values[outputs]`. `vectors` is `input` in vectors, where it is read in them.
#[cube(launch_unchecked)]
pub fn find_extremes<I: Numeric, K: Numeric, X: Int>(
    input: &[I],
    vectors: &[Vector<I, Const<4>>],
    candidates: &[u32],
    values: &mut [I],
    indices: &mut [X],
    view: View,
    blocks: u32,
    positions: u32,
    #[comptime] form: Form,
    #[comptime] operation: Operation,
    #[define(I, K, X)] _dtypes: [ElemType; 3],
) {
    let index = winner::<I, K>(input, vectors, candidates, &view, blocks, positions, form, operation);
    let at = CUBE_POS as u32 * comptime!(form.cube.width) + UNIT_POS_X;
    let out = at % view.outputs;
    let block = at / view.outputs;
    if UNIT_POS_Y == 0 && block < blocks {
        indices[(out * blocks + block) as usize] = X::cast_from(index);
        if comptime!(form.with_values) {
            values[out as usize] = input[(view.base(out) + index * view.axis_stride) as usize];
        }
    }
    keep_subnormals();
}
