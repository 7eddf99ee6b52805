//! The device side of [`resize`](super::resize). `source` and `output` are `[batch, channels, rows, columns]`; a unit has a row
//! and column of up to `span` images of `output`.

use crate::arithmetic::{multiply_add, positive_zero};
use crate::subnormals::keep_subnormals;
use cubecl::prelude::*;

/// The row and column of a unit, and its images from `first` on.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Place {
    row: u32,
    column: u32,
    first: u32,
    end: u32,
    rows: u32,
    columns: u32,
    channels: u32,
}

#[cube]
impl Place {
    fn new(unit: u32, span: u32, batch: u32, channels: u32, rows: u32, columns: u32) -> Place {
        let line = unit / columns;
        let chunk = line / rows;
        let first = chunk * span;
        Place {
            row: line - chunk * rows,
            column: unit - line * columns,
            first,
            end: min(first + span, batch * channels),
            rows,
            columns,
            channels,
        }
    }

    /// The offset of an image's first element.
    fn image<E: Numeric>(&self, image: u32, source: &Tensor<E>) -> u32 {
        let entry = image / self.channels;
        entry * source.stride(0) as u32 + (image - entry * self.channels) * source.stride(1) as u32
    }

    /// The place of the unit's element of an image.
    fn index(&self, image: u32) -> usize {
        ((image * self.rows + self.row) * self.columns + self.column) as usize
    }
}

/// Both chains of each element. `down[rows, 2]` and `across[columns, 2]` have the first input that an output reads along the axis
/// and how many, `down_weights[rows, taps]` and `across_weights[columns, taps]` their weights.
#[cube(launch_unchecked)]
pub(super) fn weighted_windows<E: Float, A: Float>(
    source: &Tensor<E>,
    down: &[u32],
    down_weights: &[A],
    across: &[u32],
    across_weights: &[A],
    output: &mut Tensor<E>,
    units: u32,
    span: u32,
    #[comptime] taps: u32,
    #[define(E, A)] _dtypes: [ElemType; 2],
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let (batch, channels) = (output.shape(0) as u32, output.shape(1) as u32);
    let (rows, columns) = (output.shape(2) as u32, output.shape(3) as u32);
    let place = Place::new(unit, span, batch, channels, rows, columns);
    let (first_row, count_rows) = (down[(2 * place.row) as usize], down[(2 * place.row + 1) as usize]);
    let (first_column, count_columns) = (across[(2 * place.column) as usize], across[(2 * place.column + 1) as usize]);
    let length = comptime!(taps as usize);
    let mut row_weights = Array::<A>::new(length);
    let mut column_weights = Array::<A>::new(length);
    let mut row_offsets = Array::<u32>::new(length);
    let mut column_offsets = Array::<u32>::new(length);
    #[unroll]
    for tap in 0..length {
        let nth = comptime!(tap as u32);
        row_weights[tap] = down_weights[(place.row * taps + nth) as usize];
        column_weights[tap] = across_weights[(place.column * taps + nth) as usize];
        // A tap after the last one reads that one again, and is left out.
        row_offsets[tap] = (first_row + min(nth, count_rows - 1)) * source.stride(2) as u32;
        column_offsets[tap] = (first_column + min(nth, count_columns - 1)) * source.stride(3) as u32;
    }
    for image in place.first..place.end {
        let corner = place.image::<E>(image, source);
        let mut acc = positive_zero::<A>();
        #[unroll]
        for row in 0..length {
            let line = corner + row_offsets[row];
            let mut sum = positive_zero::<A>();
            #[unroll]
            for column in 0..length {
                let value = A::cast_from(source[(line + column_offsets[column]) as usize]);
                let next = multiply_add::<A>(column_weights[column], value, sum);
                sum = select(count_columns > comptime!(column as u32), next, sum);
            }
            let next = multiply_add::<A>(row_weights[row], sum, acc);
            acc = select(count_rows > comptime!(row as u32), next, acc);
        }
        output[place.index(image)] = E::cast_from(acc);
    }
    keep_subnormals();
}

/// The input that each element reads, moved. `down[rows, 2]` and `across[columns, 2]` as for [`weighted_windows`].
#[cube(launch_unchecked)]
pub(super) fn nearest<E: Numeric>(
    source: &Tensor<E>,
    down: &[u32],
    across: &[u32],
    output: &mut Tensor<E>,
    units: u32,
    span: u32,
    #[define(E)] _dtype: ElemType,
) {
    let unit = ABSOLUTE_POS as u32;
    if unit >= units {
        terminate!();
    }
    let (batch, channels) = (output.shape(0) as u32, output.shape(1) as u32);
    let (rows, columns) = (output.shape(2) as u32, output.shape(3) as u32);
    let place = Place::new(unit, span, batch, channels, rows, columns);
    let row = down[(2 * place.row) as usize] * source.stride(2) as u32;
    let column = across[(2 * place.column) as usize] * source.stride(3) as u32;
    for image in place.first..place.end {
        output[place.index(image)] = source[(place.image::<E>(image, source) + row + column) as usize];
    }
    keep_subnormals();
}
