//! The tree of the order contract as a row's values come, one by one: how many there were, the total of the chunk in the
//! making, and above it, on each level, the total of the chunk of complete chunks in the making.

use crate::scatter::kernel::combine;
use crate::scatter::{CHUNK, Update};
use cubecl::prelude::*;

/// The number of a row's values, and the bits of the total of the last chunk.
pub(super) type State = Vector<u32, Const<2>>;

/// Most levels above the chunks of values: enough for `CHUNK` to the power of one more.
pub(super) const MOST_LEVELS: u32 = 3;

/// Levels above the chunks that rows of as many values may need.
pub(super) fn levels(values: usize) -> u32 {
    (1..=MOST_LEVELS).filter(|&level| values > CHUNK.pow(level)).count() as u32
}

/// Takes a value into the row at `place`. If it begins a further chunk, the full one before it becomes a term of the next
/// level's, and so on up.
///
/// `totals` has `places` for each level.
// The outer condition is decided when the kernel is compiled.
#[allow(clippy::collapsible_if)]
#[cube]
pub(super) fn take<A: Numeric>(
    states: &mut [State],
    totals: &mut [A],
    place: u32,
    value: A,
    places: u32,
    #[comptime] levels: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
) {
    let (count, total) = kept::<A>(&*states, place);
    if comptime!(levels > 0) {
        if count != 0 && count & (chunk_length - 1) == 0 {
            let mut terms = count / chunk_length;
            let mut term = total;
            let mut full = true;
            #[unroll]
            for level in 0..levels {
                if full {
                    let kept = (places * level + place) as usize;
                    if (terms - 1) & (chunk_length - 1) != 0 {
                        term = combine::<A>(totals[kept], term, update, is_float);
                    }
                    totals[kept] = term;
                    full = terms & (chunk_length - 1) == 0;
                    terms /= chunk_length;
                }
            }
        }
    }
    keep::<A>(states, place, count, total, value, chunk_length, update, is_float);
}

/// As [`take`], unless the value begins a further chunk: whether it does.
#[cube]
pub(super) fn take_into_chunk<A: Numeric>(
    states: &mut [State],
    place: u32,
    value: A,
    #[comptime] levels: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
) -> bool {
    let (count, total) = kept::<A>(&*states, place);
    let mut begins = false;
    if comptime!(levels > 0) {
        begins = count != 0 && count & (chunk_length - 1) == 0;
    }
    if !begins {
        keep::<A>(states, place, count, total, value, chunk_length, update, is_float);
    }
    begins
}

/// How many values the row at `place` has had, and the total of its last chunk.
#[cube]
fn kept<A: Numeric>(states: &[State], place: u32) -> (u32, A) {
    let state = states[place as usize];
    (state.extract(0usize), A::reinterpret(state.extract(1usize)))
}

/// Keeps one value more in the last chunk of the row at `place`, or in a new one after a full chunk.
#[cube]
fn keep<A: Numeric>(
    states: &mut [State],
    place: u32,
    count: u32,
    total: A,
    value: A,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
) {
    let opens = count & (chunk_length - 1) == 0;
    let total = select(opens, value, combine::<A>(total, value, update, is_float));
    let mut state = State::empty();
    state.insert(0usize, count + 1);
    state.insert(1usize, u32::reinterpret(total));
    states[place as usize] = state;
}

/// The element that the values of the row at `place` make of `before`.
#[cube]
pub(super) fn updated<F: Numeric, A: Numeric>(
    before: F,
    states: &[State],
    totals: &[A],
    place: u32,
    places: u32,
    #[comptime] levels: u32,
    #[comptime] chunk_length: u32,
    #[comptime] update: Update,
    #[comptime] is_float: bool,
) -> F {
    let (count, last) = kept::<A>(states, place);
    let mut total = last;
    if comptime!(levels > 0) {
        // The last chunk is not a term of the next level's yet, even if complete.
        let mut terms = select(count == 0, 0u32, (count - 1) / chunk_length);
        #[unroll]
        for level in 0..levels {
            if terms & (chunk_length - 1) != 0 {
                total = combine::<A>(totals[(places * level + place) as usize], total, update, is_float);
            }
            terms /= chunk_length;
        }
    }
    select(count == 0, before, F::cast_from(combine::<A>(A::cast_from(before), total, update, is_float)))
}
