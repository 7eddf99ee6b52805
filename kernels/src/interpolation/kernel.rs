//! The device side. `source` and `output` are `[batch, channels, rows, columns]`.

use crate::arithmetic::multiply_add;
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// One unit an element of `output`: the chain over the elements of `source` along `axis` that have weights for it.
/// `offsets[length + 1]`, `first[length]` and `weights` are those of
/// [`AxisWeights`](super::weights::AxisWeights), `length` being that of `output` along `axis`.
#[cube(launch_unchecked)]
pub fn weighted_sums<E: Float, A: Float, O: Float>(
    source: &Tensor<E>,
    offsets: &[u32],
    first: &[u32],
    weights: &[A],
    output: &mut Tensor<O>,
    units: u32,
    #[comptime] axis: usize,
    #[define(E, A, O)] _dtypes: [ElemType; 3],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let columns = output.shape(3) as u32;
    let rows = output.shape(2) as u32;
    let channels = output.shape(1) as u32;
    let line = unit / columns;
    let column = unit - line * columns;
    let image = line / rows;
    let row = line - image * rows;
    let entry = image / channels;
    let channel = image - entry * channels;
    let place = if comptime!(axis == 2) { row } else { column };
    let start = offsets[place as usize];
    let end = offsets[(place + 1) as usize];
    let window = first[place as usize];
    let across = if comptime!(axis == 2) { column * source.stride(3) as u32 } else { row * source.stride(2) as u32 };
    let step = source.stride(axis) as u32;
    let mut at = entry * source.stride(0) as u32 + channel * source.stride(1) as u32 + across + window * step;
    let mut acc = A::new(0.0);
    for tap in start..end {
        acc = multiply_add::<A>(weights[tap as usize], A::cast_from(source[at as usize]), acc);
        at += step;
    }
    output[unit as usize] = O::cast_from(acc);
    keep_subnormals();
}

/// One unit a row and column of up to `span` images of `output`: both chains, for filters whose weights are all one and
/// whose outputs read one input each. `down[rows + 1]` and `across[columns + 1]` are the offsets of the outputs of an
/// input.
#[cube(launch_unchecked)]
pub fn sums<E: Float, A: Float>(
    source: &Tensor<E>,
    down: &[u32],
    across: &[u32],
    output: &mut Tensor<E>,
    units: u32,
    span: u32,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let columns = output.shape(3) as u32;
    let rows = output.shape(2) as u32;
    let channels = output.shape(1) as u32;
    let images = output.shape(0) as u32 * channels;
    let line = unit / columns;
    let column = unit - line * columns;
    let chunk = line / rows;
    let row = line - chunk * rows;
    let first_row = down[row as usize];
    let end_row = down[(row + 1) as usize];
    let first_column = across[column as usize];
    let end_column = across[(column + 1) as usize];
    let row_step = source.stride(2) as u32;
    let column_step = source.stride(3) as u32;
    let corner = first_row * row_step + first_column * column_step;
    let entry_step = source.stride(0) as u32;
    let channel_step = source.stride(1) as u32;
    let first = chunk * span;
    for image in first..min(first + span, images) {
        let entry = image / channels;
        let mut top = entry * entry_step + (image - entry * channels) * channel_step + corner;
        let mut acc = A::new(0.0);
        for _ in first_column..end_column {
            let mut at = top;
            let mut chain = A::new(0.0);
            for _ in first_row..end_row {
                chain += A::cast_from(source[at as usize]);
                at += row_step;
            }
            acc += chain;
            top += column_step;
        }
        output[((image * rows + row) * columns + column) as usize] = E::cast_from(acc);
    }
    keep_subnormals();
}
