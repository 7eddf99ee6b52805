//! The place of an extreme along one axis.

use super::Geometry;
use super::key::float_key;
use crate::reduce::Operation;
use cubecl::prelude::*;

/// What is compared: integers as they are, floats by a key in which the zeros tie.
#[cube]
fn key<I: Numeric, K: Numeric>(value: I, #[comptime] operation: Operation) -> K {
    let elem = elem_type_of::<I>();
    if comptime!(elem.is_float()) { float_key::<I, K>(value, operation, true) } else { K::cast_from(value) }
}

/// Whether `key` is further out than `best`.
#[cube]
fn beyond<K: Numeric>(key: K, best: K, #[comptime] operation: Operation) -> bool {
    match comptime!(operation) {
        Operation::Min => key < best,
        _ => key > best,
    }
}

/// The lowest index of an extreme of output `out`, in the units with `UNIT_POS_Y == 0`.
///
/// Each of `groups` units walks every `groups`-th element; the lower index wins a tie, here and between the units.
#[cube]
fn place<I: Numeric, K: Numeric>(
    input: &[I],
    out: u32,
    geometry: &Geometry,
    #[comptime] width: u32,
    #[comptime] groups: u32,
    #[comptime] operation: Operation,
) -> u32 {
    let mut index = UNIT_POS_Y;
    let mut best = K::from_int(0);
    if out < geometry.outputs && index < geometry.axis {
        let mut at = geometry.base(out) + index * geometry.axis_stride;
        let at_step = groups * geometry.axis_stride;
        best = key::<I, K>(input[at as usize], operation);
        let mut k = index + groups;
        while k < geometry.axis {
            at += at_step;
            let next = key::<I, K>(input[at as usize], operation);
            let wins = beyond::<K>(next, best, operation);
            best = select(wins, next, best);
            index = select(wins, k, index);
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
            for group in 1..min(groups, geometry.axis) {
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

/// Writes the index of each output's extreme.
#[cube(launch_unchecked)]
pub fn index_of_extreme<I: Numeric, K: Numeric, X: Int>(
    input: &[I],
    indices: &mut [X],
    geometry: Geometry,
    #[comptime] width: u32,
    #[comptime] groups: u32,
    #[comptime] operation: Operation,
    #[define(I, K, X)] _dtypes: [ElemType; 3],
) {
    let out = CUBE_POS as u32 * width + UNIT_POS_X;
    let index = place::<I, K>(input, out, &geometry, width, groups, operation);
    if UNIT_POS_Y == 0 && out < geometry.outputs {
        indices[out as usize] = X::cast_from(index);
    }
}

/// Writes the index of each output's extreme and the element there.
#[cube(launch_unchecked)]
pub fn extreme_with_index<I: Numeric, K: Numeric, X: Int>(
    input: &[I],
    values: &mut [I],
    indices: &mut [X],
    geometry: Geometry,
    #[comptime] width: u32,
    #[comptime] groups: u32,
    #[comptime] operation: Operation,
    #[define(I, K, X)] _dtypes: [ElemType; 3],
) {
    let out = CUBE_POS as u32 * width + UNIT_POS_X;
    let index = place::<I, K>(input, out, &geometry, width, groups, operation);
    if UNIT_POS_Y == 0 && out < geometry.outputs {
        values[out as usize] = input[(geometry.base(out) + index * geometry.axis_stride) as usize];
        indices[out as usize] = X::cast_from(index);
    }
}
