//! The device side.

pub mod extreme;
pub mod four_elements;
pub mod four_outputs;
mod operation;
pub mod single;
pub mod source;

use super::plan::View;
use cubecl::prelude::*;

/// A [`View`] on the device: `outer * inner` outputs, and for each of them `axis` elements whose index is
/// split as `axis_outer * axis_inner`. Strides count elements.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub struct Geometry {
    pub outputs: u32,
    pub inner: u32,
    pub outer_stride: u32,
    pub inner_stride: u32,
    pub axis: u32,
    pub axis_inner: u32,
    pub axis_outer_stride: u32,
    pub axis_stride: u32,
    /// Blocks of an output, and so the distance of two outputs in the result.
    pub output_stride: u32,
}

#[cube]
impl Geometry {
    /// The offset of the first element of output `out`.
    pub fn base(&self, out: u32) -> u32 {
        (out / self.inner) * self.outer_stride + (out % self.inner) * self.inner_stride
    }
}

impl GeometryLaunch {
    /// The arguments for `view`, each of whose outputs gives `blocks` values.
    pub fn of(view: &View, blocks: u32) -> Self {
        Self::new(
            view.outputs,
            view.inner,
            view.outer_stride,
            view.inner_stride,
            view.axis,
            view.axis_inner,
            view.axis_outer_stride,
            view.axis_stride,
            blocks,
        )
    }
}
