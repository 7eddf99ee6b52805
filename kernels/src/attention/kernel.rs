//! The device side: a unit computes [`Plan::rows`] queries of one head, from scores to results.
//!
//! Its scores, then their exponentials, then the probabilities are in a workspace of f32
//! `[cubes, keys / 4 rounded up, rows, Plan::UNITS, 4]`, so that the units of a cube access adjacent vectors. A unit
//! reads only what it has written: there is no barrier.

use super::plan::Plan;
use crate::arithmetic::{multiply_add, multiply_rounded, opaque};
use crate::order::{BLOCK, COLUMNS, COLUMNS_BLOCK};
use cubecl::prelude::*;

/// What is known of a launch when its kernel is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// Whether scores are capped.
    pub softcap: bool,
    /// Whether query `i` is masked from the keys after `i + keys - queries`.
    pub causal: bool,
    /// Whether all keys are one block.
    pub single: bool,
    /// Elements of a vector of Q and K.
    pub qk_lanes: u32,
    /// Elements of a vector of V.
    pub value_lanes: u32,
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

/// The parameters of a score.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Scoring {
    /// The factor of `Q K^T`.
    pub scale: f32,
    /// The cap, where there is one.
    pub softcap: f32,
    /// The score of a masked key: minus infinity, which WGSL has no literal for.
    pub masked: f32,
    /// 0, for the barrier of [`opaque`].
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
    /// The offset of an element of the place's head.
    fn at(&self, place: &Place, row: u32, column: u32) -> u32 {
        place.batch * self.batch + place.head * self.head + row * self.row + column * self.column
    }
}

/// The place in the workspace of the unit's query `r` and the four keys from `4 * four` on.
#[cube]
fn scores_at(place: &Place, four: u32, r: u32, #[comptime] rows: u32) -> usize {
    (place.scores + (four * rows + r) * comptime!(Plan::UNITS)) as usize
}

/// The score of a query and a key, of their inner product.
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
        ComptimeOption::Some(mask) => select(mask[mask_at as usize] != B::from_int(0), scoring.masked, score),
        ComptimeOption::None => score,
    };
    let seen = if comptime!(form.causal) { select(hidden, scoring.masked, masked) } else { masked };
    #[comptime]
    let biased = match bias {
        ComptimeOption::Some(bias) => opaque(seen + bias[bias_at as usize], scoring.zero),
        ComptimeOption::None => seen,
    };
    biased
}

/// Scores: writes `Q K^T scale + bias` of the unit's queries, masked, and keeps the maximum of each.
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
    let qk_lanes = comptime!(form.qk_lanes);
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
        let mut steps = extents.width / qk_lanes;
        if comptime!(form.causal) {
            // The first of these keys is masked from the last of the unit's queries, and so are the others.
            if first + extents.queries > place.row + comptime!(rows - 1) + extents.keys {
                steps = 0u32;
            }
        }
        for step in 0..steps {
            #[unroll]
            for r in 0..rows {
                let at = query_at[r as usize] + step * qk_lanes * layout.query.column;
                q[r as usize] = query[(at / qk_lanes) as usize];
            }
            #[unroll]
            for c in 0..tile {
                let at = layout.key.at(place, min(first + c, extents.keys - 1), step * qk_lanes);
                let k = key[(at / qk_lanes) as usize];
                #[unroll]
                for i in 0..qk_lanes {
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
                        // Beyond the last key the exponential is zero.
                        let scored = select(column < extents.keys, scored, scoring.masked);
                        largest[r as usize] = select(scored > largest[r as usize], scored, largest[r as usize]);
                        four.insert(comptime!(i as usize), scored);
                    }
                    scores[scores_at(place, first / 4 + f, r, rows)] = four;
                }
            }
        }
    }
}

/// Exponentials: replaces each score by `exp(score - maximum)`, and sums those of each query in the columns order.
#[cube]
fn exponentiate(
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
                    let mut exps = Vector::<f32, Const<4>>::empty();
                    let mut next = Vector::<f32, Const<4>>::empty();
                    #[unroll]
                    for i in 0..4usize {
                        let exponent = opaque(four.extract(i) - largest[r as usize], scoring.zero);
                        let exponential = opaque(exponent.exp(), scoring.zero);
                        exps.insert(i, exponential);
                        next.insert(i, chains[r as usize].extract(i) + exponential);
                    }
                    scores[at] = exps;
                    chains[r as usize] = next;
                }
            }
            // No exponential is negative: adding the zeros before and after a chain changes no bit.
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

/// Probabilities: divides each exponential by the sum of its query.
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
            let exps = scores[at];
            let mut probabilities = Vector::<f32, Const<4>>::empty();
            #[unroll]
            for i in 0..4usize {
                probabilities.insert(i, opaque(exps.extract(i) / sums[r as usize], scoring.zero));
            }
            scores[at] = probabilities;
        }
    }
}

/// `PV`: the chains of `fma(probability, value, acc)` over the keys `from .. to`, for the columns from `first` on.
#[cube]
fn multiply_values<M: Size>(
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
    #[comptime] value_lanes: u32,
) {
    let rows = comptime!(plan.rows);
    let across = comptime!(plan.columns);
    #[unroll]
    for i in 0..rows * across {
        chains[i as usize] = f32::new(0.0);
    }
    let mut probabilities = Array::<Vector<f32, Const<4>>>::new(comptime!(rows as usize));
    for four in from / 4..to / 4 {
        #[unroll]
        for r in 0..rows {
            probabilities[r as usize] = scores[scores_at(place, four, r, rows)];
        }
        #[unroll]
        for i in 0..4u32 {
            #[unroll]
            for c in 0..across / value_lanes {
                let column = min(first + c * value_lanes, extents.columns - value_lanes);
                let v = value[(layout.value.at(place, four * 4 + i, column) / value_lanes) as usize];
                #[unroll]
                for j in 0..value_lanes {
                    #[unroll]
                    for r in 0..rows {
                        let at = comptime!((r * across + c * value_lanes + j) as usize);
                        let probability = probabilities[r as usize].extract(comptime!(i as usize));
                        chains[at] = multiply_add::<f32>(probability, v.extract(comptime!(j as usize)), chains[at]);
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
            let probability = select(key % 4 == 0, four.extract(0usize), later);
            #[unroll]
            for c in 0..across / value_lanes {
                let column = min(first + c * value_lanes, extents.columns - value_lanes);
                let v = value[(layout.value.at(place, key, column) / value_lanes) as usize];
                #[unroll]
                for j in 0..value_lanes {
                    let at = comptime!((r * across + c * value_lanes + j) as usize);
                    chains[at] = multiply_add::<f32>(probability, v.extract(comptime!(j as usize)), chains[at]);
                }
            }
        }
    }
}

/// Attention as [the module](super) states it. Shapes are those of [`Operands`](super::Operands), each read through its
/// strides; `output` is `[batch, heads, queries, columns]`, dense.
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
    let value_lanes = comptime!(form.value_lanes);
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
    exponentiate(scores, &largest, &mut sums, &place, &extents, &scoring, rows);
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
            multiply_values::<M>(
                value,
                scores,
                &mut totals,
                &place,
                &extents,
                &layout,
                first,
                0u32,
                extents.keys,
                plan,
                value_lanes,
            );
        } else {
            let chain = comptime!(BLOCK as u32);
            for block in 0..extents.keys.div_ceil(chain) {
                let from = block * chain;
                let to = min(from + chain, extents.keys);
                multiply_values::<M>(
                    value,
                    scores,
                    &mut chains,
                    &place,
                    &extents,
                    &layout,
                    first,
                    from,
                    to,
                    plan,
                    value_lanes,
                );
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
                for c in 0..across / value_lanes {
                    if first + c * value_lanes < extents.columns {
                        let mut part = Vector::<f32, M>::empty();
                        #[unroll]
                        for j in 0..value_lanes {
                            part.insert(
                                comptime!(j as usize),
                                totals[comptime!((r * across + c * value_lanes + j) as usize)],
                            );
                        }
                        let line = (place.batch * extents.heads + place.head) * extents.queries + place.row + r;
                        output[((line * extents.columns + first + c * value_lanes) / value_lanes) as usize] = part;
                    }
                }
            }
        }
    }
}
