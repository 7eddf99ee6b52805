//! A right factor that is gathered: the offset of an element is the sum of two, one of its column and one of its step.
//!
//! A convolution is such a product: see [`convolution::tensor_cores`](crate::convolution::tensor_cores). Columns and steps are numbers
//! of four digits, as the places of a row-major tensor of four axes are.

use super::super::kernel::Place;
use super::plan::Stage;
use super::stage::{Part, begin};
use crate::order::{BLOCK, BLOCK_TERMS};
use cubecl::prelude::*;

/// Numbers of four digits, the last one the least significant, with an offset for each: `first + sum of digit * stride`, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// The offset of 0.
    pub first: i64,
    /// Values of each digit, most significant first.
    pub lengths: [usize; 4],
    /// What one more of a digit adds.
    pub strides: [i64; 4],
}

impl Digits {
    /// How many numbers there are.
    pub fn count(&self) -> usize {
        self.lengths.iter().product()
    }

    fn launch(&self) -> OffsetsLaunch {
        // Of digits without a value there is no number, and nothing to divide by.
        let [_, second, third, fourth] = self.lengths.map(|length| length.max(1) as u32);
        let [first_stride, second_stride, third_stride, fourth_stride] = self.strides.map(|stride| stride as u32);
        OffsetsLaunch::new(
            self.first as u32,
            second,
            third,
            fourth,
            first_stride,
            second_stride,
            third_stride,
            fourth_stride,
        )
    }
}

/// A gathered factor `[.., k, n]`, and where the outputs of its columns are.
pub(crate) struct GatheredFactor {
    /// Offsets of the columns in the factor, in vectors; where vectors are across, of each vector of columns.
    pub columns: Digits,
    /// Offsets of the steps in the factor, in vectors; where vectors are along `k`, of each vector of steps.
    pub steps: Digits,
    /// Offsets of the columns in an output matrix.
    pub outputs: Digits,
    /// Columns are stored whose last digit is below it.
    pub stored: usize,
    /// Elements from row to row of an output matrix.
    pub output_row: usize,
    /// Elements from an output matrix to the next, and from a part to the next.
    pub output_strides: [usize; 2],
}

impl GatheredFactor {
    /// As a kernel takes it, whose first part is the output's part `part`.
    pub(super) fn launch(&self, part: usize) -> GatheredLaunch {
        let [batch, of_part] = self.output_strides;
        let outputs = Digits { first: self.outputs.first + (part * of_part) as i64, ..self.outputs };
        let [columns, steps, outputs] = [&self.columns, &self.steps, &outputs].map(Digits::launch);
        GatheredLaunch::new(columns, steps, outputs, self.stored as u32, batch as u32, of_part as u32)
    }
}

/// [`Digits`] on the device.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Offsets {
    first: u32,
    length_1: u32,
    length_2: u32,
    length_3: u32,
    stride_0: u32,
    stride_1: u32,
    stride_2: u32,
    stride_3: u32,
}

#[cube]
impl Offsets {
    fn of(&self, number: u32) -> u32 {
        let (rest, digit_3) = (number / self.length_3, number % self.length_3);
        let (rest, digit_2) = (rest / self.length_2, rest % self.length_2);
        let (digit_0, digit_1) = (rest / self.length_1, rest % self.length_1);
        self.first
            + digit_0 * self.stride_0
            + digit_1 * self.stride_1
            + digit_2 * self.stride_2
            + digit_3 * self.stride_3
    }
}

/// [`GatheredFactor`] on the device.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Gathered {
    columns: Offsets,
    steps: Offsets,
    outputs: Offsets,
    stored: u32,
    batch_stride: u32,
    part_stride: u32,
}

#[cube]
impl Gathered {
    /// The offset of an output, in a row at this offset.
    pub(super) fn output(&self, place: &Place, row: u32, column: u32) -> u32 {
        place.opening * self.part_stride + place.batch * self.batch_stride + row + self.outputs.of(column)
    }

    /// Whether the outputs of a column are stored.
    pub(super) fn is_stored(&self, column: u32) -> bool {
        column % self.outputs.length_3 < self.stored
    }
}

/// Where a unit's vectors of a gathered factor are.
#[derive(CubeType)]
pub(super) struct Places {
    /// Of the unit's vectors: the matrix, and the column.
    columns: Array<u32>,
    /// Of the cube: each step of the block, or each vector of them.
    steps: Shared<[u32]>,
}

/// Finds the places of the block that begins at step `at`. Columns and steps beyond the edge repeat the last ones.
#[cube]
pub(super) fn find(gathered: &Gathered, part: &Part, at: u32, #[comptime] stage: Stage) -> Places {
    let vector = comptime!(stage.vector());
    let (column_width, step_width) = comptime!(if stage.along_k { (1, vector) } else { (vector, 1) });
    let mut columns = Array::<u32>::new(comptime!(stage.vectors_of_unit() as usize));
    #[unroll]
    for nth in 0..comptime!(stage.vectors_of_unit()) {
        let (place, _) = begin(nth * comptime!(stage.units) + UNIT_POS, stage);
        let column = min(part.first + place, part.extent - column_width) / column_width;
        columns[comptime!(nth as usize)] = part.matrix / vector + gathered.columns.of(column);
    }
    let entries = comptime!(BLOCK_TERMS / step_width);
    let mut steps = Shared::<[u32]>::new_slice(comptime!(BLOCK / step_width as usize));
    for round in 0..comptime!(entries.div_ceil(stage.units)) {
        let entry = round * comptime!(stage.units) + UNIT_POS;
        if entry < entries {
            steps[entry as usize] = gathered.steps.of(min(at / step_width + entry, part.k / step_width - 1));
        }
    }
    sync_cube();
    Places { columns, steps }
}

/// Fetches a unit's vectors of the stage that begins at step `at`.
#[cube]
pub(super) fn gather<I: Numeric, W: Size>(
    matrix: &Tensor<Vector<I, W>>,
    next: &mut Array<Vector<I, W>>,
    places: &Places,
    at: u32,
    #[comptime] stage: Stage,
) {
    let step_width = comptime!(if stage.along_k { stage.vector() } else { 1 });
    #[unroll]
    for nth in 0..comptime!(stage.vectors_of_unit()) {
        let (_, step) = begin(nth * comptime!(stage.units) + UNIT_POS, stage);
        let offset = places.steps[((at + step) % BLOCK_TERMS / step_width) as usize];
        next[comptime!(nth as usize)] = matrix[(places.columns[comptime!(nth as usize)] + offset) as usize];
    }
}
