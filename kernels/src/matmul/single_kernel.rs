//! The device side of products with few outputs: a unit owns one output, and every unit of a cube stages a share of both
//! operands. Shapes are those of [`kernel`](super::kernel). Products of equal sizes may share a launch.
//!
//! A tile of 4 x 4 outputs a unit would leave most of a GPU without a cube, and a cube without enough reads at work.

use super::kernel::{Blocks, place, store};
use super::plan::CubeTile;
use crate::arithmetic::Products;
use crate::order::BLOCK_TERMS;
use crate::outer_product::step;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// Units of a cube.
const UNITS: u32 = CubeTile::SINGLE_UNITS;

/// How an operand is staged: `[places, depth / 4 + 1]` in vectors of four steps of `k`, of which the last of a place is not
/// used and keeps the places off each other's shared-memory banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stage {
    /// Rows of `lhs`, or columns of `rhs`.
    places: u32,
    /// Steps of `k`.
    depth: u32,
    /// Whether `k` is the contiguous axis.
    along_k: bool,
}

impl Stage {
    /// Vectors of a place.
    fn fours(self) -> u32 {
        self.depth / 4
    }

    /// Vectors from place to place.
    fn pitch(self) -> u32 {
        self.fours() + 1
    }

    /// Vectors of all places.
    fn total(self) -> u32 {
        self.places * self.fours()
    }

    /// Vectors of a unit.
    fn shares(self) -> u32 {
        self.total().div_ceil(UNITS)
    }
}

/// The place and the vector of share `nth`. Units that follow each other read along `k` where that is the contiguous axis,
/// across the places otherwise.
#[cube]
fn share(nth: u32, #[comptime] stage: Stage) -> (u32, u32) {
    if comptime!(stage.along_k) {
        (nth / comptime!(stage.fours()), nth % comptime!(stage.fours()))
    } else {
        (nth % comptime!(stage.places), nth / comptime!(stage.places))
    }
}

/// Fetches a unit's shares of the places from `across` on, and of the steps from `at` on. Places beyond the edge repeat the
/// last one, whose results are not stored; steps past the end of `k` repeat the last ones, and are not multiplied.
#[cube]
fn fetch<I: Numeric, A: Numeric, W: Size>(
    matrix: &[Vector<I, W>],
    next: &mut Array<Vector<A, Const<4>>>,
    offset: u32,
    across: u32,
    extent: u32,
    stride: u32,
    at: u32,
    k: u32,
    k_stride: u32,
    #[comptime] stage: Stage,
) {
    let width = W::value();
    #[unroll]
    for i in 0..comptime!(stage.shares()) {
        let nth = UNIT_POS + comptime!(i * UNITS);
        if comptime!((i + 1) * UNITS <= stage.total()) || nth < comptime!(stage.total()) {
            let (nth_place, nth_four) = share(nth, stage);
            let start = offset + min(across + nth_place, extent - 1) * stride;
            let first = at + nth_four * 4;
            let mut four = Vector::<A, Const<4>>::new(A::from_int(0));
            if comptime!(width == 4) {
                let vector = matrix[((start + min(first, k - 4)) / 4) as usize];
                #[unroll]
                for s in 0..4usize {
                    four.insert(s, A::cast_from(vector.extract(s)));
                }
            } else {
                #[unroll]
                for s in 0..4usize {
                    let step = min(first + comptime!(s as u32), k - 1);
                    four.insert(s, A::cast_from(matrix[(start + step * k_stride) as usize].extract(0usize)));
                }
            }
            next[i as usize] = four;
        }
    }
}

/// Writes a unit's shares to shared memory.
#[cube]
fn put<A: Numeric>(
    staged: &mut Shared<[Vector<A, Const<4>>]>,
    next: &Array<Vector<A, Const<4>>>,
    #[comptime] stage: Stage,
) {
    #[unroll]
    for i in 0..comptime!(stage.shares()) {
        let nth = UNIT_POS + comptime!(i * UNITS);
        if comptime!((i + 1) * UNITS <= stage.total()) || nth < comptime!(stage.total()) {
            let (nth_place, nth_four) = share(nth, stage);
            staged[(nth_place * comptime!(stage.pitch()) + nth_four) as usize] = next[i as usize];
        }
    }
}

/// A batch axis of a product: its length, and the strides of the operands along it.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct BatchAxis {
    size: u32,
    lhs_stride: u32,
    rhs_stride: u32,
}

/// The factors of a product. Buffers, with their strides: the host takes twice as long to bind a tensor.
#[derive(CubeType, CubeLaunch)]
pub struct Factors<I: Numeric, L: Size, R: Size> {
    lhs: Box<[Vector<I, L>]>,
    rhs: Box<[Vector<I, R>]>,
    /// From row to row of `lhs`, and from step to step.
    lhs_row: u32,
    lhs_k: u32,
    /// From step to step of `rhs`, and from column to column.
    rhs_k: u32,
    rhs_column: u32,
    /// Batch axes, the innermost first.
    axes: Sequence<BatchAxis>,
}

/// What the products of a launch have in common.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub struct Common {
    /// Tiles of a product.
    tiles: u32,
    /// Matrices of a part.
    batches: u32,
    m: u32,
    k: u32,
    n: u32,
    /// From row to row of the output, and from column to column.
    output_row: u32,
    output_column: u32,
}

/// How a product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// Outputs of a cube.
    pub sides: [u32; 2],
    /// Steps of `k` staged at a time.
    pub depth: u32,
    /// Whether `k` is the contiguous axis of `lhs`, and of `rhs`.
    pub along_k: [bool; 2],
    /// Whether a part has a single block.
    pub single: bool,
    pub products: Option<Products>,
}

impl Form {
    fn lhs(self) -> Stage {
        Stage { places: self.sides[0], depth: self.depth, along_k: self.along_k[0] }
    }

    fn rhs(self) -> Stage {
        Stage { places: self.sides[1], depth: self.depth, along_k: self.along_k[1] }
    }
}

/// Products of equal sizes: the cubes of the tiles of one product, then those of the next. A cube computes [one tile](one) of one product.
#[cube(launch_unchecked)]
pub fn single<I: Numeric, A: Numeric, O: Numeric, L: Size, R: Size>(
    factors: &Sequence<Factors<I, L, R>>,
    outputs: &mut Sequence<Box<[Vector<O, Const<1>>]>>,
    common: Common,
    spans: Blocks,
    #[comptime] form: Form,
    #[define(I, A, O)] _dtypes: [ElemType; 3],
) {
    let nth = CUBE_POS as u32 / common.tiles;
    let tile = CUBE_POS as u32 % common.tiles;
    let (of_lhs, of_rhs) = (comptime!(form.lhs()), comptime!(form.rhs()));
    let mut lhs_stage =
        Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((of_lhs.places * of_lhs.pitch()) as usize));
    let mut rhs_stage =
        Shared::<[Vector<A, Const<4>>]>::new_slice(comptime!((of_rhs.places * of_rhs.pitch()) as usize));
    let count = factors.len();
    // Of one product only the cubes beyond its tiles have another way.
    if comptime!(count == 1) && nth > 0 {
        terminate!();
    }
    #[unroll]
    for i in 0..count {
        if comptime!(count == 1) || nth == comptime!(i as u32) {
            let output = outputs.index_mut(i);
            one::<I, A, O, L, R>(&factors[i], output, &mut lhs_stage, &mut rhs_stage, tile, &common, &spans, form);
        }
    }
    keep_subnormals();
}

/// `sides[0] x sides[1]` outputs of a cube, `depth` steps of `k` staged at a time.
///
/// The next steps are fetched to registers while the staged ones are multiplied. A last stage shorter than `depth` ends its
/// loop early: no padding enters a chain. A part has one block.
#[cube]
fn one<I: Numeric, A: Numeric, O: Numeric, L: Size, R: Size>(
    factors: &Factors<I, L, R>,
    output: &mut [Vector<O, Const<1>>],
    lhs_stage: &mut Shared<[Vector<A, Const<4>>]>,
    rhs_stage: &mut Shared<[Vector<A, Const<4>>]>,
    tile: u32,
    common: &Common,
    spans: &Blocks,
    #[comptime] form: Form,
) {
    let [rows, columns] = comptime!(form.sides);
    let (of_lhs, of_rhs) = (comptime!(form.lhs()), comptime!(form.rhs()));
    let depth = comptime!(form.depth);
    let (m, k, n) = (common.m, common.k, common.n);
    let place = place(tile, spans, common.batches, m, k, n, rows, columns);
    let (row, column) = (place.row * rows, place.column * columns);
    let (unit_row, unit_column) = (UNIT_POS / columns % rows, UNIT_POS % columns);
    let mut lhs_offset = 0u32;
    let mut rhs_offset = 0u32;
    let mut left_of_batch = place.batch;
    #[unroll]
    for i in 0..factors.axes.len() {
        let axis = &factors.axes[i];
        lhs_offset += left_of_batch % axis.size * axis.lhs_stride;
        rhs_offset += left_of_batch % axis.size * axis.rhs_stride;
        left_of_batch /= axis.size;
    }

    let mut lhs_next = Array::<Vector<A, Const<4>>>::new(comptime!(of_lhs.shares() as usize));
    let mut rhs_next = Array::<Vector<A, Const<4>>>::new(comptime!(of_rhs.shares() as usize));
    let lhs_at = unit_row * comptime!(of_lhs.pitch());
    let rhs_at = unit_column * comptime!(of_rhs.pitch());

    let mut at = place.first * BLOCK_TERMS;
    let mut left = min(at + BLOCK_TERMS, k) - at;
    let mut acc = A::from_int(0);
    let (lhs_row, lhs_k) = (factors.lhs_row, factors.lhs_k);
    let (rhs_column, rhs_k) = (factors.rhs_column, factors.rhs_k);
    fetch::<I, A, L>(&factors.lhs, &mut lhs_next, lhs_offset, row, m, lhs_row, at, k, lhs_k, of_lhs);
    fetch::<I, A, R>(&factors.rhs, &mut rhs_next, rhs_offset, column, n, rhs_column, at, k, rhs_k, of_rhs);
    for _ in 0..left.div_ceil(depth) {
        // What was staged before is multiplied.
        sync_cube();
        put::<A>(lhs_stage, &lhs_next, of_lhs);
        put::<A>(rhs_stage, &rhs_next, of_rhs);
        sync_cube();
        at += depth;
        fetch::<I, A, L>(&factors.lhs, &mut lhs_next, lhs_offset, row, m, lhs_row, at, k, lhs_k, of_lhs);
        fetch::<I, A, R>(&factors.rhs, &mut rhs_next, rhs_offset, column, n, rhs_column, at, k, rhs_k, of_rhs);
        if UNIT_POS < comptime!(rows * columns) {
            let steps = min(left, depth);
            for four in 0..steps / 4 {
                let a = lhs_stage[(lhs_at + four) as usize];
                let b = rhs_stage[(rhs_at + four) as usize];
                #[unroll]
                for s in 0..4usize {
                    acc = step::<A>(a.extract(s), b.extract(s), acc, form.products);
                }
            }
            let rest = steps % 4;
            if rest > 0 {
                let a = lhs_stage[(lhs_at + steps / 4) as usize];
                let b = rhs_stage[(rhs_at + steps / 4) as usize];
                #[unroll]
                for s in 0..3usize {
                    if comptime!(s as u32) < rest {
                        acc = step::<A>(a.extract(s), b.extract(s), acc, form.products);
                    }
                }
            }
        }
        left -= min(left, depth);
    }

    let (i, j) = (row + unit_row, column + unit_column);
    if UNIT_POS < comptime!(rows * columns) && i < m && j < n {
        let at = place.output + i * common.output_row + j * common.output_column;
        let chain = Vector::<A, Const<1>>::new(acc);
        store::<A, O, Const<1>>(output, at, chain, place.first == place.opening, form.single);
    }
}
