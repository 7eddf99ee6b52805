//! A right factor that is gathered: the offset of an element is the sum of two, one of its column and one of its step.
//!
//! A convolution is such a product: see [`convolution::tensor_cores`](crate::convolution::tensor_cores). Columns and steps are
//! places of row-major tensors of four axes.

use super::super::kernel::Place;
use super::plan::Stage;
use super::stage::{OperandTile, begin};
use crate::order::{BLOCK, BLOCK_TERMS};
use cubecl::prelude::*;

/// Where the elements of `shape` are, numbered row-major: at `offset + sum of index * stride`, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub offset: i64,
    pub shape: [usize; 4],
    pub strides: [i64; 4],
}

impl Layout {
    /// How many elements it has.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    fn launch(&self) -> OffsetsLaunch {
        // A layout without elements is not read, and nothing is divided by 0.
        let [_, length_1, length_2, length_3] = self.shape.map(|length| length.max(1) as u32);
        let [stride_0, stride_1, stride_2, stride_3] = self.strides.map(|stride| stride as u32);
        let offset = self.offset as u32;
        OffsetsLaunch::new(offset, length_1, length_2, length_3, stride_0, stride_1, stride_2, stride_3)
    }
}

/// A gathered factor `[.., k, n]`, and where the outputs of its columns are.
pub(crate) struct GatheredFactor {
    /// The columns in the factor, in vectors; where vectors are across, each vector of columns.
    pub columns: Layout,
    /// The steps in the factor, in vectors; where vectors are along `k`, each vector of steps.
    pub steps: Layout,
    /// The columns in an output matrix.
    pub outputs: Layout,
    /// Of the last axis of `outputs`, the columns below it are stored.
    pub stored: usize,
    /// Elements from row to row of an output matrix, from matrix to matrix, and from part to part.
    pub output_row: usize,
    pub output_batch: usize,
    pub output_part: usize,
}

impl GatheredFactor {
    /// As a kernel takes it, whose first part is the output's part `part`.
    pub(super) fn launch(&self, part: usize) -> GatheredLaunch {
        let outputs = Layout { offset: self.outputs.offset + (part * self.output_part) as i64, ..self.outputs };
        let [columns, steps, outputs] = [&self.columns, &self.steps, &outputs].map(Layout::launch);
        let stored = self.stored as u32;
        GatheredLaunch::new(columns, steps, outputs, stored, self.output_batch as u32, self.output_part as u32)
    }
}

/// A [`Layout`] on the device.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Offsets {
    offset: u32,
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
    fn of(&self, element: u32) -> u32 {
        let (rest, index_3) = (element / self.length_3, element % self.length_3);
        let (rest, index_2) = (rest / self.length_2, rest % self.length_2);
        let (index_0, index_1) = (rest / self.length_1, rest % self.length_1);
        let inner = index_2 * self.stride_2 + index_3 * self.stride_3;
        self.offset + index_0 * self.stride_0 + index_1 * self.stride_1 + inner
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
        place.part * self.part_stride + place.batch * self.batch_stride + row + self.outputs.of(column)
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
pub(super) fn find(gathered: &Gathered, tile: &OperandTile, at: u32, #[comptime] stage: Stage) -> Places {
    let vector = comptime!(stage.vector());
    let (column_width, step_width) = comptime!(if stage.along_k { (1, vector) } else { (vector, 1) });
    let mut columns = Array::<u32>::new(comptime!(stage.vectors_of_unit() as usize));
    #[unroll]
    for nth in 0..comptime!(stage.vectors_of_unit()) {
        let (place, _) = begin(nth, stage);
        let column = min(tile.first + place, tile.extent - column_width) / column_width;
        columns[comptime!(nth as usize)] = tile.matrix / vector + gathered.columns.of(column);
    }
    let entries = comptime!(BLOCK_TERMS / step_width);
    let mut steps = Shared::<[u32]>::new_slice(comptime!(BLOCK / step_width as usize));
    for round in 0..comptime!(entries.div_ceil(stage.units)) {
        let entry = round * comptime!(stage.units) + UNIT_POS;
        if entry < entries {
            steps[entry as usize] = gathered.steps.of(min(at / step_width + entry, tile.k / step_width - 1));
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
        let (_, step) = begin(nth, stage);
        let offset = places.steps[((at + step) % BLOCK_TERMS / step_width) as usize];
        next[comptime!(nth as usize)] = matrix[(places.columns[comptime!(nth as usize)] + offset) as usize];
    }
}
