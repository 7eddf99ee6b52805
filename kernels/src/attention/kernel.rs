//! The device side: a unit takes a few queries of one head from their scores to their results.
//!
//! Scores lie in a workspace of fours of keys: those that the units of a cube read together lie side by side. A unit
//! reads only what it has written, so that there is no barrier.

use super::plan::Plan;
use crate::arithmetic::{multiply_add, multiply_rounded, opaque};
use crate::order::{BLOCK, COLUMNS, COLUMNS_BLOCK};
use cubecl::prelude::*;

/// What is known of a launch when its kernel is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// Whether scores are capped.
    pub softcap: bool,
    /// Whether a query sees only the keys up to its own place.
    pub causal: bool,
    /// Whether all keys are one chain.
    pub single: bool,
    /// Elements of a vector of queries and keys.
    pub narrow: u32,
    /// Elements of a vector of values.
    pub wide: u32,
}

/// The extents of the operands.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Extents {
    /// Units that have queries.
    pub units: u32,
    /// Heads of a batch.
    pub heads: u32,
    /// Queries of a head.
    pub queries: u32,
    /// Keys of a head.
    pub keys: u32,
    /// Elements of a query and of a key.
    pub width: u32,
    /// Elements of a value.
    pub columns: u32,
}

/// Strides of an operand, in elements.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Steps {
    pub batch: u32,
    pub head: u32,
    pub row: u32,
    pub column: u32,
}

/// Strides of all operands.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Layout {
    pub query: Steps,
    pub key: Steps,
    pub value: Steps,
    pub mask: Steps,
    pub bias: Steps,
}

/// The numbers that make a score of a product.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Scoring {
    /// What a product is multiplied by.
    pub scale: f32,
    /// The cap, where there is one.
    pub softcap: f32,
    /// The score of a key that is not seen: minus infinity, which WGSL has no literal for.
    pub hidden: f32,
    /// 0, for [`opaque`].
    pub zero: u32,
}

/// The queries of a unit.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Place {
    batch: u32,
    head: u32,
    /// The first of them.
    row: u32,
    /// Where the unit's scores begin.
    scores: u32,
}

#[cube]
impl Steps {
    /// Where an element of the place's head lies.
    fn at(&self, place: &Place, row: u32, column: u32) -> u32 {
        place.batch * self.batch + place.head * self.head + row * self.row + column * self.column
    }
}

/// Where a unit keeps the scores of a query and of the `four`-th four keys.
#[cube]
fn scores_at(place: &Place, four: u32, r: u32, #[comptime] rows: u32) -> usize {
    (place.scores + (four * rows + r) * comptime!(Plan::UNITS)) as usize
}

/// The score that an inner product becomes.
// The last `match` is decided when the kernel is compiled, as a `let` has to say.
#[allow(clippy::let_and_return)]
#[cube]
fn score<B: Int>(
    product: f32,
    hidden: bool,
    mask: ComptimeOption<&[B]>,
    mask_at: u32,
    bias: ComptimeOption<&[f32]>,
    bias_at: u32,
    scoring: &Scoring,
    #[comptime] form: Form,
) -> f32 {
    let mut score = opaque(multiply_rounded::<f32>(product, scoring.scale), scoring.zero);
    if comptime!(form.softcap) {
        score = opaque(score / scoring.softcap, scoring.zero);
        score = opaque(score.tanh(), scoring.zero);
        score = opaque(multiply_rounded::<f32>(score, scoring.softcap), scoring.zero);
    }
    #[comptime]
    let masked = match mask {
        ComptimeOption::Some(mask) => select(mask[mask_at as usize] != B::from_int(0), scoring.hidden, score),
        ComptimeOption::None => score,
    };
    let seen = if comptime!(form.causal) { select(hidden, scoring.hidden, masked) } else { masked };
    #[comptime]
    let biased = match bias {
        ComptimeOption::Some(bias) => opaque(seen + bias[bias_at as usize], scoring.zero),
        ComptimeOption::None => seen,
    };
    biased
}

/// Writes the scores of the unit's queries, and keeps the largest of each.
#[cube]
fn write_scores<N: Size, B: Int>(
    query: &[Vector<f32, N>],
    key: &[Vector<f32, N>],
    mask: ComptimeOption<&[B]>,
    bias: ComptimeOption<&[f32]>,
    scores: &mut [Vector<f32, Const<4>>],
    largest: &mut Array<f32>,
    place: &Place,
    extents: &Extents,
    layout: &Layout,
    scoring: &Scoring,
    #[comptime] plan: Plan,
    #[comptime] form: Form,
) {
    let rows = comptime!(plan.rows);
    let tile = comptime!(plan.keys);
    let narrow = comptime!(form.narrow);
    let mut query_at = Array::<u32>::new(comptime!(rows as usize));
    #[unroll]
    for r in 0..rows {
        query_at[r as usize] = layout.query.at(place, min(place.row + r, extents.queries - 1), 0u32);
    }
    let mut products = Array::<f32>::new(comptime!((rows * tile) as usize));
    let mut q = Array::<Vector<f32, N>>::new(comptime!(rows as usize));
    for block in 0..extents.keys.div_ceil(tile) {
        let first = block * tile;
        #[unroll]
        for i in 0..rows * tile {
            products[i as usize] = f32::new(0.0);
        }
        let mut steps = extents.width / narrow;
        if comptime!(form.causal) {
            // The last of the unit's queries does not see the first of these keys.
            if first + extents.queries > place.row + comptime!(rows - 1) + extents.keys {
                steps = 0u32;
            }
        }
        for step in 0..steps {
            #[unroll]
            for r in 0..rows {
                let at = query_at[r as usize] + step * narrow * layout.query.column;
                q[r as usize] = query[(at / narrow) as usize];
            }
            #[unroll]
            for c in 0..tile {
                let at = layout.key.at(place, min(first + c, extents.keys - 1), step * narrow);
                let k = key[(at / narrow) as usize];
                #[unroll]
                for i in 0..narrow {
                    #[unroll]
                    for r in 0..rows {
                        let at = comptime!((r * tile + c) as usize);
                        let x = q[r as usize].extract(comptime!(i as usize));
                        products[at] = multiply_add::<f32>(x, k.extract(comptime!(i as usize)), products[at]);
                    }
                }
            }
        }
        #[unroll]
        for f in 0..tile / 4 {
            if first + f * 4 < extents.keys {
                #[unroll]
                for r in 0..rows {
                    let row = min(place.row + r, extents.queries - 1);
                    let mut four = Vector::<f32, Const<4>>::empty();
                    #[unroll]
                    for i in 0..4u32 {
                        let column = first + f * 4 + i;
                        let within = min(column, extents.keys - 1);
                        let scored = score::<B>(
                            products[comptime!((r * tile + f * 4 + i) as usize)],
                            column + extents.queries > row + extents.keys,
                            mask,
                            layout.mask.at(place, row, within),
                            bias,
                            layout.bias.at(place, row, within),
                            scoring,
                            form,
                        );
                        // Beyond the last key the power is zero.
                        let scored = select(column < extents.keys, scored, scoring.hidden);
                        largest[r as usize] = select(scored > largest[r as usize], scored, largest[r as usize]);
                        four.insert(comptime!(i as usize), scored);
                    }
                    scores[scores_at(place, first / 4 + f, r, rows)] = four;
                }
            }
        }
    }
}

/// Makes powers of the scores, and adds those of each query in the order of a sum along an axis.
#[cube]
fn sum_powers(
    scores: &mut [Vector<f32, Const<4>>],
    largest: &Array<f32>,
    sums: &mut Array<f32>,
    place: &Place,
    extents: &Extents,
    scoring: &Scoring,
    #[comptime] rows: u32,
) {
    let across = comptime!(COLUMNS / 4);
    let fours = extents.keys.div_ceil(4u32);
    let mut chains = Array::<Vector<f32, Const<4>>>::new(comptime!(rows as usize));
    let mut totals = Array::<f32>::new(comptime!(rows as usize));
    for block in 0..extents.keys.div_ceil(COLUMNS_BLOCK) {
        let first = block * comptime!(COLUMNS_BLOCK / 4);
        let length = min(fours - first, comptime!(COLUMNS_BLOCK / 4));
        #[unroll]
        for r in 0..rows {
            totals[r as usize] = f32::new(0.0);
        }
        for column in 0..min(length, across) {
            #[unroll]
            for r in 0..rows {
                chains[r as usize] = Vector::<f32, Const<4>>::new(f32::new(0.0));
            }
            for line in 0..(length - column).div_ceil(across) {
                #[unroll]
                for r in 0..rows {
                    let at = scores_at(place, first + line * across + column, r, rows);
                    let four = scores[at];
                    let mut powers = Vector::<f32, Const<4>>::empty();
                    let mut next = Vector::<f32, Const<4>>::empty();
                    #[unroll]
                    for i in 0..4usize {
                        let exponent = opaque(four.extract(i) - largest[r as usize], scoring.zero);
                        let power = opaque(exponent.exp(), scoring.zero);
                        powers.insert(i, power);
                        next.insert(i, chains[r as usize].extract(i) + power);
                    }
                    scores[at] = powers;
                    chains[r as usize] = next;
                }
            }
            // No power is negative, so that zeros before and after a chain do not show.
            #[unroll]
            for r in 0..rows {
                #[unroll]
                for i in 0..4usize {
                    totals[r as usize] += chains[r as usize].extract(i);
                }
            }
        }
        #[unroll]
        for r in 0..rows {
            sums[r as usize] += totals[r as usize];
        }
    }
}

/// Makes shares of the powers.
#[cube]
fn divide(
    scores: &mut [Vector<f32, Const<4>>],
    sums: &Array<f32>,
    place: &Place,
    extents: &Extents,
    scoring: &Scoring,
    #[comptime] rows: u32,
) {
    for four in 0..extents.keys.div_ceil(4u32) {
        #[unroll]
        for r in 0..rows {
            let at = scores_at(place, four, r, rows);
            let powers = scores[at];
            let mut shares = Vector::<f32, Const<4>>::empty();
            #[unroll]
            for i in 0..4usize {
                shares.insert(i, opaque(powers.extract(i) / sums[r as usize], scoring.zero));
            }
            scores[at] = shares;
        }
    }
}

/// The chains of shares and values over the keys `from .. to`, for the columns from `first` on.
#[cube]
fn weigh<M: Size>(
    value: &[Vector<f32, M>],
    scores: &mut [Vector<f32, Const<4>>],
    chains: &mut Array<f32>,
    place: &Place,
    extents: &Extents,
    layout: &Layout,
    first: u32,
    from: u32,
    to: u32,
    #[comptime] plan: Plan,
    #[comptime] wide: u32,
) {
    let rows = comptime!(plan.rows);
    let across = comptime!(plan.columns);
    #[unroll]
    for i in 0..rows * across {
        chains[i as usize] = f32::new(0.0);
    }
    let mut shares = Array::<Vector<f32, Const<4>>>::new(comptime!(rows as usize));
    for four in from / 4..to / 4 {
        #[unroll]
        for r in 0..rows {
            shares[r as usize] = scores[scores_at(place, four, r, rows)];
        }
        #[unroll]
        for i in 0..4u32 {
            #[unroll]
            for c in 0..across / wide {
                let column = min(first + c * wide, extents.columns - wide);
                let v = value[(layout.value.at(place, four * 4 + i, column) / wide) as usize];
                #[unroll]
                for j in 0..wide {
                    #[unroll]
                    for r in 0..rows {
                        let at = comptime!((r * across + c * wide + j) as usize);
                        let share = shares[r as usize].extract(comptime!(i as usize));
                        chains[at] = multiply_add::<f32>(share, v.extract(comptime!(j as usize)), chains[at]);
                    }
                }
            }
        }
    }
    for key in to / 4 * 4..to {
        #[unroll]
        for r in 0..rows {
            let four = scores[scores_at(place, key / 4, r, rows)];
            let later = select(key % 4 == 1, four.extract(1usize), four.extract(2usize));
            let share = select(key % 4 == 0, four.extract(0usize), later);
            #[unroll]
            for c in 0..across / wide {
                let column = min(first + c * wide, extents.columns - wide);
                let v = value[(layout.value.at(place, key, column) / wide) as usize];
                #[unroll]
                for j in 0..wide {
                    let at = comptime!((r * across + c * wide + j) as usize);
                    chains[at] = multiply_add::<f32>(share, v.extract(comptime!(j as usize)), chains[at]);
                }
            }
        }
    }
}

/// Attention as [the module](super) states it, for [`Plan::rows`] queries a unit.
#[cube(launch_unchecked)]
pub fn attention<N: Size, M: Size, B: Int>(
    query: &[Vector<f32, N>],
    key: &[Vector<f32, N>],
    value: &[Vector<f32, M>],
    mask: ComptimeOption<&[B]>,
    bias: ComptimeOption<&[f32]>,
    scores: &mut [Vector<f32, Const<4>>],
    output: &mut [Vector<f32, M>],
    extents: Extents,
    layout: Layout,
    scoring: Scoring,
    #[comptime] plan: Plan,
    #[comptime] form: Form,
    #[define(B)] _mask_dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= extents.units {
        terminate!();
    }
    let rows = comptime!(plan.rows);
    let across = comptime!(plan.columns);
    let wide = comptime!(form.wide);
    let groups = extents.queries.div_ceil(rows);
    let place = Place {
        batch: unit / groups / extents.heads,
        head: unit / groups % extents.heads,
        row: unit % groups * rows,
        scores: CUBE_POS as u32 * extents.keys.div_ceil(4u32) * (rows * comptime!(Plan::UNITS)) + UNIT_POS,
    };

    let mut largest = Array::<f32>::new(comptime!(rows as usize));
    let mut sums = Array::<f32>::new(comptime!(rows as usize));
    #[unroll]
    for r in 0..rows {
        largest[r as usize] = f32::new(comptime!(f32::MIN));
        sums[r as usize] = f32::new(0.0);
    }
    write_scores::<N, B>(query, key, mask, bias, scores, &mut largest, &place, &extents, &layout, &scoring, plan, form);
    sum_powers(scores, &largest, &mut sums, &place, &extents, &scoring, rows);
    #[unroll]
    for r in 0..rows {
        let least = f32::new(comptime!(f32::MIN_POSITIVE));
        sums[r as usize] = select(sums[r as usize] < least, least, sums[r as usize]);
    }
    divide(scores, &sums, &place, &extents, &scoring, rows);

    let mut chains = Array::<f32>::new(comptime!((rows * across) as usize));
    let mut totals = Array::<f32>::new(comptime!((rows * across) as usize));
    for stretch in 0..extents.columns.div_ceil(across) {
        let first = stretch * across;
        if comptime!(form.single) {
            weigh::<M>(value, scores, &mut totals, &place, &extents, &layout, first, 0u32, extents.keys, plan, wide);
        } else {
            let chain = comptime!(BLOCK as u32);
            for block in 0..extents.keys.div_ceil(chain) {
                let from = block * chain;
                let to = min(from + chain, extents.keys);
                weigh::<M>(value, scores, &mut chains, &place, &extents, &layout, first, from, to, plan, wide);
                #[unroll]
                for i in 0..rows * across {
                    let sum = totals[i as usize] + chains[i as usize];
                    totals[i as usize] = select(block == 0, chains[i as usize], sum);
                }
            }
        }
        #[unroll]
        for r in 0..rows {
            if place.row + r < extents.queries {
                #[unroll]
                for c in 0..across / wide {
                    if first + c * wide < extents.columns {
                        let mut part = Vector::<f32, M>::empty();
                        #[unroll]
                        for j in 0..wide {
                            part.insert(comptime!(j as usize), totals[comptime!((r * across + c * wide + j) as usize)]);
                        }
                        let line = (place.batch * extents.heads + place.head) * extents.queries + place.row + r;
                        output[((line * extents.columns + first + c * wide) / wide) as usize] = part;
                    }
                }
            }
        }
    }
}
