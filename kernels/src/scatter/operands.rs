//! The operands of an update, checked, and seen as `[outer, axis, inner]`.

use super::{Indexed, Problem, Update};
use crate::KernelError;
use crate::buffer::{copy, unwritten};
use crate::device::require_units;
use crate::dtype::{U32, accumulator, is_float, supported};
use crate::grid::UNITS;
use crate::index::{index_type, tuple_axes, tuple_rows};
use crate::view::{AxisView, Strides, StridesLaunch, axis_length};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::ops::Range;

/// `tensor[outer, rows, inner]`, `indices` and `values[outer, positions, inner]`: extents, and how each is laid out.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Layout {
    pub outer: u32,
    pub rows: u32,
    pub positions: u32,
    pub inner: u32,
    pub tensor: Strides,
    pub indices: Strides,
    pub values: Strides,
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub update: Update,
    pub is_float: bool,
    /// Positions of one block: [`BLOCK`](crate::order::BLOCK).
    pub block: u32,
    /// Whether all positions are of one block.
    pub one_block: bool,
}

/// One update.
pub(super) struct Scatter<'a> {
    pub client: &'a Client,
    pub kernel: &'static str,
    pub tensor: AxisView,
    pub values: AxisView,
    pub indices: AxisView,
    /// The types of the tensor, of its accumulator, and of the indices.
    pub types: [ElemType; 3],
    pub update: Update,
    indexed: Indexed,
    /// `[outer, rows, positions, inner]`.
    extents: [usize; 4],
    original: TensorHandle,
}

impl<'a> Scatter<'a> {
    /// [`scatter`](super::scatter).
    pub fn along(
        client: &'a Client,
        dim: usize,
        tensor: TensorHandle,
        indices: TensorHandle,
        values: TensorHandle,
        update: Update,
    ) -> Result<Self, KernelError> {
        const KERNEL: &str = "scatter::scatter";
        if indices.shape() != values.shape() {
            let (indices, values) = (indices.shape().as_slice(), values.shape().as_slice());
            let reason = format!("indices {indices:?} and values {values:?} differ in shape");
            return Err(KernelError::Shape { kernel: KERNEL, reason });
        }
        require_equal_but_for(KERNEL, dim, tensor.shape(), values.shape())?;
        let index = index_type(client, KERNEL, &indices)?;
        let axis = dim..dim + 1;
        let indices = AxisView::new(client, KERNEL, indices, axis.clone())?;
        let operands = Operands { tensor, values, tensor_axes: axis.clone(), value_axes: axis };
        Self::new(client, KERNEL, operands, (indices, index, Indexed::Value), update)
    }

    /// [`select_assign`](super::select_assign).
    pub fn rows(
        client: &'a Client,
        dim: usize,
        tensor: TensorHandle,
        indices: TensorHandle,
        values: TensorHandle,
        update: Update,
    ) -> Result<Self, KernelError> {
        const KERNEL: &str = "scatter::select_assign";
        require_equal_but_for(KERNEL, dim, tensor.shape(), values.shape())?;
        if indices.shape().to_vec() != [values.shape()[dim]] {
            let (indices, values) = (indices.shape().as_slice(), values.shape().as_slice());
            let reason = format!("indices {indices:?} do not number the rows of values {values:?} along axis {dim}");
            return Err(KernelError::Shape { kernel: KERNEL, reason });
        }
        let index = index_type(client, KERNEL, &indices)?;
        let indices = AxisView::new(client, KERNEL, indices, 0..1)?.along_axis_only();
        let operands = Operands { tensor, values, tensor_axes: dim..dim + 1, value_axes: dim..dim + 1 };
        Self::new(client, KERNEL, operands, (indices, index, Indexed::Position), update)
    }

    /// [`update_lines`](super::update_lines).
    pub fn lines(
        client: &'a Client,
        tensor: TensorHandle,
        indices: TensorHandle,
        values: TensorHandle,
        update: Update,
    ) -> Result<Self, KernelError> {
        const KERNEL: &str = "scatter::update_lines";
        require_equal_but_for(KERNEL, 1, tensor.shape(), values.shape())?;
        if indices.shape()[..] != values.shape()[..2] {
            let (indices, values) = (indices.shape().as_slice(), values.shape().as_slice());
            let reason = format!("indices {indices:?} do not number the positions of each line of values {values:?}");
            return Err(KernelError::Shape { kernel: KERNEL, reason });
        }
        let index = index_type(client, KERNEL, &indices)?;
        let indices = AxisView::new(client, KERNEL, indices, 1..2)?;
        let operands = Operands { tensor, values, tensor_axes: 1..2, value_axes: 1..2 };
        Self::new(client, KERNEL, operands, (indices, index, Indexed::Line), update)
    }

    /// [`scatter_nd`](super::scatter_nd).
    pub fn slices(
        client: &'a Client,
        tensor: TensorHandle,
        indices: TensorHandle,
        values: TensorHandle,
        update: Update,
    ) -> Result<Self, KernelError> {
        const KERNEL: &str = "scatter::scatter_nd";
        let batch = tuple_axes(KERNEL, tensor.shape(), indices.shape())?;
        let parts = indices.shape()[batch];
        let expected: Vec<usize> = indices.shape()[..batch].iter().chain(&tensor.shape()[parts..]).copied().collect();
        if values.shape().to_vec() != expected {
            let [tensor, indices, values] = [&tensor, &indices, &values].map(|operand| operand.shape().as_slice());
            let reason = format!(
                "values {values:?} for tensor {tensor:?} and indices {indices:?}, want values of shape {expected:?}"
            );
            return Err(KernelError::Shape { kernel: KERNEL, reason });
        }
        let index = index_type(client, KERNEL, &indices)?;
        let positions = indices.shape()[..batch].iter().product();
        let rows = match positions {
            0 => unwritten(client, vec![0], U32),
            _ => {
                let rows = tuple_rows(client, KERNEL, indices, &tensor.shape()[..parts], index)?;
                TensorHandle::new_contiguous(vec![positions], rows, U32)
            }
        };
        let indices = AxisView::new(client, KERNEL, rows, 0..1)?.along_axis_only();
        let operands = Operands { tensor, values, tensor_axes: 0..parts, value_axes: 0..batch };
        Self::new(client, KERNEL, operands, (indices, U32, Indexed::Position), update)
    }

    fn new(
        client: &'a Client,
        kernel: &'static str,
        operands: Operands,
        (indices, index, indexed): (AxisView, ElemType, Indexed),
        update: Update,
    ) -> Result<Self, KernelError> {
        let Operands { tensor, values, tensor_axes, value_axes } = operands;
        let storage = tensor.dtype;
        if values.dtype != storage {
            let reason = format!("values are {}, the tensor they update is {storage}", values.dtype);
            return Err(KernelError::Shape { kernel, reason });
        }
        require_units(client, kernel, UNITS)?;
        supported(client, kernel, storage, "update f64, f32, f16, bf16 or an integer type that the device has")?;
        let product = |shape: &[usize]| shape.iter().product::<usize>();
        let extents = [
            product(&tensor.shape()[..tensor_axes.start]),
            product(&tensor.shape()[tensor_axes.clone()]),
            product(&values.shape()[value_axes.clone()]),
            product(&tensor.shape()[tensor_axes.end..]),
        ];
        Ok(Self {
            client,
            kernel,
            original: tensor.clone(),
            tensor: AxisView::new(client, kernel, tensor, tensor_axes)?,
            values: AxisView::new(client, kernel, values, value_axes)?,
            indices,
            types: [storage, accumulator(storage), index],
            update,
            indexed,
            extents,
        })
    }

    /// What a plan looks at; none where there is nothing to update, or nothing to update with.
    pub fn problem(&self) -> Option<Problem> {
        let [outer, rows, positions, inner] = self.extents;
        let Self { update, indexed, types: [dtype, ..], .. } = *self;
        let something = outer * rows * inner > 0 && positions > 0;
        something.then_some(Problem { outer, rows, positions, inner, indexed, update, dtype })
    }

    /// A new tensor of the same elements.
    pub fn copy(self) -> TensorHandle {
        copy(self.client, self.original)
    }

    /// A new tensor for a kernel to write.
    pub fn output(&self) -> TensorHandle {
        unwritten(self.client, self.original.shape().to_vec(), self.original.dtype)
    }

    /// What a kernel is compiled for.
    pub fn form(&self) -> Form {
        let block = crate::order::BLOCK;
        Form {
            update: self.update,
            is_float: is_float(self.types[0]),
            block: block as u32,
            one_block: self.extents[2] <= block,
        }
    }

    /// Neighbours along the inner axis that one index names, in vectors of the tensor and the values: four, or one.
    pub fn vector_width(&self) -> usize {
        let four_byte = self.types[0].size() == 4 && self.types[1].size() == 4;
        let fours = self.extents[3].is_multiple_of(4) && self.tensor.is_in_vectors(4) && self.values.is_in_vectors(4);
        if self.indexed != Indexed::Value && four_byte && fours { 4 } else { 1 }
    }

    /// The extents and strides, with the inner axis in vectors of `width`.
    pub fn layout(&self, width: usize) -> LayoutLaunch {
        let [outer, rows, positions, inner] = self.extents;
        self.layout_with([outer, rows, positions, inner / width], width)
    }

    /// The extents and strides, with other outer and inner extents.
    pub fn layout_of(&self, outer: usize, inner: usize) -> LayoutLaunch {
        let [_, rows, positions, _] = self.extents;
        self.layout_with([outer, rows, positions, inner], 1)
    }

    fn layout_with(&self, extents: [usize; 4], width: usize) -> LayoutLaunch {
        let [outer, rows, positions, inner] = extents.map(|extent| extent as u32);
        let strides = |view: &AxisView| -> StridesLaunch { view.vector_strides(width as u32) };
        let (tensor, values) = (strides(&self.tensor), strides(&self.values));
        LayoutLaunch::new(outer, rows, positions, inner, tensor, self.indices.strides(), values)
    }
}

struct Operands {
    tensor: TensorHandle,
    values: TensorHandle,
    tensor_axes: Range<usize>,
    value_axes: Range<usize>,
}

/// Refuses a tensor and values that differ in shape elsewhere than along `dim`.
fn require_equal_but_for(
    kernel: &'static str,
    dim: usize,
    tensor: &[usize],
    values: &[usize],
) -> Result<(), KernelError> {
    axis_length(kernel, tensor, dim)?;
    let fits =
        tensor.len() == values.len() && (0..tensor.len()).all(|axis| axis == dim || tensor[axis] == values[axis]);
    match fits {
        true => Ok(()),
        false => {
            let reason = format!("values {values:?} into tensor {tensor:?} along axis {dim}, want equal other axes");
            Err(KernelError::Shape { kernel, reason })
        }
    }
}
