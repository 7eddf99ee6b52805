//! How the elements of a reduction lie in memory.

use crate::order::{COLUMNS, COLUMNS_BLOCK as BLOCK};
use crate::view::{is_in_vectors, join};
use cubecl::prelude::*;

/// The elements of a reduction as two times two nested loops; strides count elements.
///
/// An output is `(outer, inner)`, its reduced index is `(axis_outer, axis_inner)`, both row-major.
#[derive(Clone, Copy, CubeLaunch, CubeType, Debug, PartialEq, Eq, Hash)]
#[expand(derive(Clone, Copy))]
pub struct View {
    /// Number of outputs.
    pub outputs: u32,
    /// Outputs in the inner of their two loops.
    pub inner: u32,
    /// Distance of two outputs of the outer loop.
    pub outer_stride: u32,
    /// Distance of two outputs of the inner loop.
    pub inner_stride: u32,
    /// Number of elements an output is reduced from.
    pub axis: u32,
    /// Elements in the inner of their two loops.
    pub axis_inner: u32,
    /// Distance of two elements of the outer loop.
    pub axis_outer_stride: u32,
    /// Distance of two elements of the inner loop.
    pub axis_stride: u32,
}

impl View {
    /// `outputs` rows of `axis` elements, row by row.
    pub fn rows(outputs: u32, axis: u32) -> Self {
        Self {
            outputs,
            inner: outputs.max(1),
            outer_stride: 0,
            inner_stride: axis,
            axis,
            axis_inner: axis.max(1),
            axis_outer_stride: 0,
            axis_stride: 1,
        }
    }

    /// The view of `shape` with `strides` reduced over the axes for which `reduced` holds; `None` when the kept or the
    /// reduced axes do not join to two loops. Every size is at least one.
    pub fn of(shape: &[usize], strides: &[usize], reduced: &[bool]) -> Option<Self> {
        let loops = |which: bool| {
            let joined: Vec<(usize, usize)> =
                join((0..shape.len()).filter(|&i| reduced[i] == which), shape, &[strides])
                    .into_iter()
                    .map(|(size, axis)| (size, strides[axis]))
                    .collect();
            match joined[..] {
                [] => Some([(1, 0), (1, 0)]),
                [inner] => Some([(1, 0), inner]),
                [outer, inner] => Some([outer, inner]),
                _ => None,
            }
        };
        let ([outer, inner], [axis_outer, axis_inner]) = (loops(false)?, loops(true)?);
        Some(Self {
            outputs: (outer.0 * inner.0) as u32,
            inner: inner.0 as u32,
            outer_stride: outer.1 as u32,
            inner_stride: inner.1 as u32,
            axis: (axis_outer.0 * axis_inner.0) as u32,
            axis_inner: axis_inner.0 as u32,
            axis_outer_stride: axis_outer.1 as u32,
            axis_stride: axis_inner.1 as u32,
        })
    }

    /// The view of a dense copy of `shape` whose reduced axes are the last ones.
    pub(super) fn of_copy(shape: &[usize], reduced: &[bool]) -> Self {
        let size = |which: bool| (0..shape.len()).filter(|&i| reduced[i] == which).map(|i| shape[i]).product::<usize>();
        Self::rows(size(false) as u32, size(true) as u32)
    }

    /// Whether the elements of an output can be read in vectors of four: they are adjacent in memory, those of each output
    /// begin at a multiple of four, and a block has a row at least, and whole vectors in its last one.
    pub fn has_elements_in_vectors(&self) -> bool {
        let outputs = [self.outer_stride as usize, self.inner_stride as usize];
        let in_vectors = is_in_vectors(4, self.axis as usize, self.axis_stride as usize, outputs);
        let last_block = self.axis - (self.blocks() - 1) * BLOCK;
        in_vectors && self.axis_inner == self.axis && last_block >= COLUMNS
    }

    /// Whether an output is one chain over elements that are neighbours.
    pub fn has_short_rows(&self) -> bool {
        self.axis <= COLUMNS && self.axis_inner == self.axis && self.axis_stride == 1
    }

    /// The view with vectors of four neighbouring outputs in place of elements: they are adjacent in memory, from a multiple of
    /// four on, at each step along the axis. `None` where they are not.
    pub fn in_vectors_of_outputs(&self) -> Option<Self> {
        let others = [self.outer_stride, self.axis_outer_stride, self.axis_stride].map(|stride| stride as usize);
        is_in_vectors(4, self.inner as usize, self.inner_stride as usize, others).then_some(Self {
            outputs: self.outputs / 4,
            inner: self.inner / 4,
            outer_stride: self.outer_stride / 4,
            axis_outer_stride: self.axis_outer_stride / 4,
            axis_stride: self.axis_stride / 4,
            ..*self
        })
    }

    /// Blocks of an output: the values that one pass leaves of it.
    pub fn blocks(&self) -> u32 {
        self.axis.div_ceil(BLOCK)
    }

    /// Blocks of all outputs.
    pub(super) fn all_blocks(&self) -> usize {
        self.outputs as usize * self.blocks() as usize
    }

    /// Whether the elements of an output are in two nested loops, not in one.
    pub(super) fn is_split(&self) -> bool {
        self.axis_inner != self.axis
    }
}

#[cube]
impl View {
    /// The offset of the first element of output `out`.
    pub(super) fn base(&self, out: u32) -> u32 {
        (out / self.inner) * self.outer_stride + (out % self.inner) * self.inner_stride
    }
}

impl ViewLaunch {
    /// The arguments for a view.
    pub(super) fn of(view: &View) -> Self {
        let View { outputs, inner, outer_stride, inner_stride, axis, axis_inner, axis_outer_stride, axis_stride } =
            *view;
        Self::new(outputs, inner, outer_stride, inner_stride, axis, axis_inner, axis_outer_stride, axis_stride)
    }
}
