//! The device side: tiles in shared memory, multiplied by tensor cores. One block of each chain, in a launch or part of its own.
//!
//! Shapes are those of [`kernel`](super::super::kernel), unless `rhs` is [gathered](super::gathered).

use super::super::kernel::{Blocks, Place, place_of_tensors, store};
use super::super::tiled_kernel::Sizes;
use super::gathered::{Gathered, Places, find, gather};
use super::plan::{Stage, Tile, WARP};
use super::stage::{OperandTile, fetch, put, vector_at};
use crate::order::BLOCK_TERMS;
use crate::subnormals::keep_subnormals;
use cubecl::cmma::{self, Matrix, MatrixIdent, MatrixLayout};
use cubecl::prelude::*;

/// Rows and columns of a fragment.
const SIDE: u32 = Tile::SIDE;

/// Copies of the staged steps.
const STAGES: u32 = Tile::STAGES;

/// Fragments are loaded from, and stored at, multiples of so many bytes.
const ALIGNMENT: usize = 32;

/// [Fetches](fetch) a unit's vectors of `rhs`, which may be gathered.
#[cube]
fn fetch_rhs<I: Numeric, W: Size>(
    matrix: &Tensor<Vector<I, W>>,
    next: &mut Array<Vector<I, W>>,
    operand: &OperandTile,
    places: &ComptimeOption<Places>,
    at: u32,
    #[comptime] stage: Stage,
) {
    #[comptime]
    match places {
        ComptimeOption::Some(places) => gather::<I, W>(matrix, next, places, at, stage),
        ComptimeOption::None => fetch::<I, W>(matrix, next, operand, at, stage),
    }
}

/// Where the output of a row and a column is, and whether it is stored.
#[cube]
fn output_of(place: &Place, gathered: ComptimeOption<Gathered>, sizes: &Sizes, row: u32, column: u32) -> (u32, bool) {
    let exists = row < sizes.m && column < sizes.n;
    #[comptime]
    match gathered {
        ComptimeOption::Some(gathered) => {
            (gathered.output(place, row * sizes.output_row, column), exists && gathered.is_stored(column))
        }
        ComptimeOption::None => (place.output + row * sizes.output_row + column, exists),
    }
}

/// Tiles of both operands staged in shared memory, of `warps[0] x warps[1]` warps, each owning `fragments[0] x fragments[1]`
/// fragments of 16 x 16 outputs. Elements of type `I` are multiplied as `T`.
///
/// The next steps are fetched to registers while the staged ones are multiplied, and staged beside them. Vectors of an operand are along
/// its contiguous axis, those of the output along its columns. A part has one block. A value of `bias` for each row of each matrix is
/// added to its sums in f32, where chains have a `single` block.
#[cube(launch_unchecked)]
pub fn on_tensor_cores<I: Numeric, T: Numeric, O: Numeric, L: Size, R: Size, S: Size, V: Size>(
    lhs: &Tensor<Vector<I, L>>,
    rhs: &Tensor<Vector<I, R>>,
    output: &mut [Vector<O, S>],
    tiles: u32,
    spans: Blocks,
    sizes: Sizes,
    gathered: ComptimeOption<Gathered>,
    bias: ComptimeOption<&[I]>,
    #[comptime] tile: Tile,
    #[comptime] bytes: u32,
    #[comptime] lhs_along_k: bool,
    #[comptime] rhs_along_k: bool,
    #[comptime] single: bool,
    #[define(I, T, O)] _dtypes: [ElemType; 3],
) {
    if CUBE_POS as u32 >= tiles {
        terminate!();
    }
    let output_elements = S::value();
    let output_width = comptime!(output_elements as u32);
    let (lhs_elements, rhs_elements) = (L::value(), R::value());
    let [side_rows, side_columns] = comptime!(tile.sides());
    let [rows, columns] = comptime!(tile.fragments);
    let units = comptime!(tile.units());
    let lhs_stage = comptime!(Stage { side: side_rows, units, along_k: lhs_along_k, bytes });
    let rhs_stage = comptime!(Stage { side: side_columns, units, along_k: rhs_along_k, bytes });
    let (depth, steps) = (comptime!(lhs_stage.depth()), comptime!(lhs_stage.steps()));
    let (m, k, n) = (sizes.m, sizes.k, sizes.n);
    let nth = CUBE_POS as u32;
    let (place, lhs_offset, rhs_offset) =
        place_of_tensors::<Vector<I, L>, Vector<I, R>>(lhs, rhs, nth, &spans, m, k, n, side_rows, side_columns);
    let row = place.row * side_rows;
    let column = place.column * side_columns;
    let lhs_tile =
        OperandTile { matrix: lhs_offset, first: row, extent: m, stride: sizes.lhs_row, k_stride: sizes.lhs_k, k };
    let rhs_tile = OperandTile {
        matrix: rhs_offset,
        first: column,
        extent: n,
        stride: sizes.rhs_column,
        k_stride: sizes.rhs_k,
        k,
    };
    let (warp, lane) = (UNIT_POS / WARP, UNIT_POS % WARP);
    let first_row = warp / comptime!(tile.warps[1]) * comptime!(rows * SIDE);
    let first_column = warp % comptime!(tile.warps[1]) * comptime!(columns * SIDE);

    let (lhs_vectors, rhs_vectors) = (comptime!(lhs_stage.vectors()), comptime!(rhs_stage.vectors()));
    let mut lhs_tiles =
        Shared::<[Vector<T, V>]>::new_aligned_slice(comptime!((lhs_vectors * STAGES) as usize), ALIGNMENT);
    let mut rhs_tiles =
        Shared::<[Vector<T, V>]>::new_aligned_slice(comptime!((rhs_vectors * STAGES) as usize), ALIGNMENT);
    let mut results = Shared::<[Vector<f32, Const<4>>]>::new_aligned_slice(
        comptime!((units / WARP * SIDE * SIDE / 4) as usize),
        ALIGNMENT,
    );
    let fetched = comptime!((lhs_stage.vectors_of_unit() * lhs_stage.vector()) as usize / lhs_elements);
    let mut lhs_next = Array::<Vector<I, L>>::new(fetched);
    let fetched = comptime!((rhs_stage.vectors_of_unit() * rhs_stage.vector()) as usize / rhs_elements);
    let mut rhs_next = Array::<Vector<I, R>>::new(fetched);

    let (side, fragment_steps) = (comptime!(SIDE as usize), comptime!(steps as usize));
    let mut acc = Sequence::<Matrix<f32>>::new();
    #[unroll]
    for _i in 0..rows * columns {
        let (ident, layout) = (MatrixIdent::Accumulator, MatrixLayout::Undefined);
        acc.push(Matrix::<f32>::from_value(ident, side, side, fragment_steps, layout, f32::new(0.0)));
    }
    let lhs_layout = comptime!(if lhs_along_k { MatrixLayout::RowMajor } else { MatrixLayout::ColMajor });
    let rhs_layout = comptime!(if rhs_along_k { MatrixLayout::ColMajor } else { MatrixLayout::RowMajor });
    let mut a = Sequence::<Matrix<T>>::new();
    #[unroll]
    for _i in 0..rows {
        // SAFETY: it is loaded before it is multiplied.
        a.push(unsafe { Matrix::<T>::uninitialized(MatrixIdent::A, side, side, fragment_steps, lhs_layout) });
    }
    // SAFETY: as above.
    let mut b = unsafe { Matrix::<T>::uninitialized(MatrixIdent::B, side, side, fragment_steps, rhs_layout) };

    let mut ahead = place.first * BLOCK_TERMS;
    let rounds = (min(ahead + BLOCK_TERMS, k) - ahead).div_ceil(depth);
    #[comptime]
    let places = match gathered {
        ComptimeOption::Some(gathered) => ComptimeOption::new_Some(find(&gathered, &rhs_tile, ahead, rhs_stage)),
        ComptimeOption::None => ComptimeOption::new_None(),
    };
    // Of factors that are gathered, chains may have no step, and nothing is read.
    #[comptime]
    let reads = match gathered {
        ComptimeOption::Some(_) => rounds > 0,
        ComptimeOption::None => true.runtime(),
    };
    if reads {
        fetch::<I, L>(lhs, &mut lhs_next, &lhs_tile, ahead, lhs_stage);
        fetch_rhs::<I, R>(rhs, &mut rhs_next, &rhs_tile, &places, ahead, rhs_stage);
        put::<I, T, V, L>(&mut lhs_tiles, &lhs_next, &lhs_tile, 0u32.runtime(), ahead, lhs_stage);
        put::<I, T, V, R>(&mut rhs_tiles, &rhs_next, &rhs_tile, 0u32.runtime(), ahead, rhs_stage);
    }
    sync_cube();
    for round in 0..rounds {
        ahead += depth;
        fetch::<I, L>(lhs, &mut lhs_next, &lhs_tile, ahead, lhs_stage);
        fetch_rhs::<I, R>(rhs, &mut rhs_next, &rhs_tile, &places, ahead, rhs_stage);
        let staged = round % STAGES;
        #[unroll]
        for part in 0..comptime!(depth / steps) {
            let step = comptime!(part * steps).runtime();
            #[unroll]
            for i in 0..rows {
                let at = staged * lhs_vectors + vector_at(first_row + i * SIDE, step, lhs_stage);
                let from = lhs_tiles.slice(at as usize, comptime!((lhs_vectors * STAGES) as usize));
                cmma::load(a.index_mut(comptime!(i as usize)), from, comptime!(lhs_stage.pitch()).runtime());
            }
            #[unroll]
            for j in 0..columns {
                let at = staged * rhs_vectors + vector_at(first_column + j * SIDE, step, rhs_stage);
                let from = rhs_tiles.slice(at as usize, comptime!((rhs_vectors * STAGES) as usize));
                cmma::load(&mut b, from, comptime!(rhs_stage.pitch()).runtime());
                #[unroll]
                for i in 0..rows {
                    let sum = acc.index(comptime!((i * columns + j) as usize));
                    cmma::execute(a.index(comptime!(i as usize)), &b, sum, sum);
                }
            }
        }
        // Nobody reads the other stage: what was in it was multiplied before the last barrier.
        let free = (round + 1) % STAGES;
        put::<I, T, V, L>(&mut lhs_tiles, &lhs_next, &lhs_tile, free * lhs_vectors, ahead, lhs_stage);
        put::<I, T, V, R>(&mut rhs_tiles, &rhs_next, &rhs_tile, free * rhs_vectors, ahead, rhs_stage);
        sync_cube();
    }

    // By way of shared memory: which unit has which elements of a fragment is the device's. A unit reads half a row. Barriers are the
    // cube's, though each warp has memory of its own: no kernel of this crate relies on the units of a warp.
    let own = warp * comptime!(SIDE * SIDE / 4);
    #[unroll]
    for i in 0..rows {
        #[unroll]
        for j in 0..columns {
            let to = results.slice_mut(own as usize, (own + comptime!(SIDE * SIDE / 4)) as usize);
            cmma::store(to, acc.index(comptime!((i * columns + j) as usize)), SIDE.runtime(), MatrixLayout::RowMajor);
            sync_cube();
            let r = row + first_row + i * SIDE + lane / 2;
            let half = column + first_column + j * SIDE + lane % 2 * comptime!(SIDE / 2);
            #[unroll]
            for four in 0..2u32 {
                let sums = results[(own + lane * 2 + four) as usize];
                #[unroll]
                for v in 0..comptime!(4 / output_width) {
                    let c = half + comptime!(four * 4 + v * output_width);
                    let (at, stored) = output_of(&place, gathered, &sizes, r, c);
                    if stored {
                        let mut chains = Vector::<f32, S>::empty();
                        #[unroll]
                        for s in 0..output_elements {
                            chains.insert(s, sums.extract(comptime!((v * output_width) as usize + s)));
                        }
                        #[comptime]
                        let values = match bias {
                            ComptimeOption::Some(bias) => {
                                chains + Vector::cast_from(bias[(place.batch * m + r) as usize])
                            }
                            ComptimeOption::None => chains,
                        };
                        let is_first = place.first == place.opening;
                        store::<f32, O, S>(output, at / output_width, values, is_first, single);
                    }
                }
            }
            sync_cube();
        }
    }
    keep_subnormals();
}
