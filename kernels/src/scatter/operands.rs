//! The operands of an update, checked, and seen as `[outer, axis, inner]`.

use super::combine::Form;
use super::plan::{Indexed, Problem};
use super::update::Update;
use crate::KernelError;
use crate::buffer::{copy, unwritten};
use crate::device::require_units;
use crate::dtype::{accumulator, supported};
use crate::error::require_shapes;
use crate::grid::UNITS;
use crate::index::{require_indices, tuple_axes, tuple_rows};
use crate::index_check::Flag;
use crate::view::{AxisView, Strides, axis_length};
use cubecl::prelude::*;
use cubecl::std::tensor::TensorHandle;
use std::ops::Range;

/// The operands of an update.
#[derive(Clone, Debug)]
pub struct Operands {
    /// What is updated. Not written: the result is a new tensor.
    pub tensor: TensorHandle,
    /// The destinations: i32, i64 or u32.
    pub indices: TensorHandle,
    /// The values, of the tensor's element type.
    pub values: TensorHandle,
}

/// What an index names, and so how the shapes of the operands fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addressing {
    /// An element of the line along `dim` that its value is in: `indices` and `values` have one shape, that of the tensor
    /// but for `dim`. As Burn's `scatter`.
    Elements {
        /// The axis of the tensor that indices count along.
        dim: usize,
    },
    /// A row along `dim`: `indices[positions]`, and `values` of the tensor's shape but for `dim`, where they have a row for
    /// each index. As Burn's `select_assign`.
    Rows {
        /// The axis of the tensor that indices count along.
        dim: usize,
    },
    /// A row of its batch: `tensor[batches, rows, inner]`, `indices[batches, positions]` and
    /// `values[batches, positions, inner]`.
    Batches,
    /// A slice: each tuple along the last axis of `indices[.., k]` is a position in the first `k` axes of the tensor, and
    /// `values` have the shape `indices[..] ++ tensor[k..]`. As Burn's `scatter_nd`.
    Tuples,
}

impl Addressing {
    /// The name errors carry.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Elements { .. } => "scatter::scatter",
            Self::Rows { .. } => "scatter::select_assign",
            Self::Batches => "scatter::update_batches",
            Self::Tuples => "scatter::scatter_nd",
        }
    }

    /// The sizes of the axes of the tensor that a tuple of indices counts along, or of the one axis that each index does; of none, where
    /// the tensor has not the axes, and an update is refused.
    pub fn sizes(self, tensor: &[usize], indices: &[usize]) -> Vec<usize> {
        let axes = match self {
            Self::Elements { dim } | Self::Rows { dim } => dim..dim + 1,
            Self::Batches => 1..2,
            Self::Tuples => 0..indices.last().copied().unwrap_or(0),
        };
        tensor.get(axes).unwrap_or_default().to_vec()
    }

    /// The axes of the tensor that indices count along, and those of the values that positions run over. Refuses shapes
    /// that do not fit together.
    fn axes(self, tensor: &[usize], indices: &[usize], values: &[usize]) -> Result<[Range<usize>; 2], KernelError> {
        let kernel = self.name();
        let refuse = |reason: String| Err(KernelError::Shape { kernel, reason });
        let axis = match self {
            Self::Elements { dim } | Self::Rows { dim } => dim,
            Self::Batches => 1,
            Self::Tuples => {
                let batch = tuple_axes(kernel, tensor, indices)?;
                let parts = indices[batch];
                let wanted = [&indices[..batch], &tensor[parts..]].concat();
                return match values == wanted {
                    true => Ok([0..parts, 0..batch]),
                    false => refuse(format!(
                        "values {values:?} for tensor {tensor:?} and indices {indices:?}, want values of shape {wanted:?}"
                    )),
                };
            }
        };
        axis_length(kernel, tensor, axis)?;
        let is_equal = |other: usize| other == axis || tensor[other] == values[other];
        if tensor.len() != values.len() || !(0..tensor.len()).all(is_equal) {
            return refuse(format!(
                "values {values:?} into tensor {tensor:?} along axis {axis}, want equal other axes"
            ));
        }
        let wanted = match self {
            Self::Rows { .. } => &values[axis..axis + 1],
            Self::Batches => &values[..2],
            Self::Elements { .. } | Self::Tuples => values,
        };
        match indices == wanted {
            true => Ok([axis..axis + 1, axis..axis + 1]),
            false => refuse(format!("indices {indices:?} for values {values:?}, want indices of shape {wanted:?}")),
        }
    }
}

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

/// One update.
pub(super) struct Scatter<'a> {
    pub client: &'a Client,
    pub problem: Problem,
    pub tensor: AxisView,
    pub values: AxisView,
    pub indices: AxisView,
    /// The types of the tensor, of its accumulator, and of the indices.
    pub types: [ElemType; 3],
    /// What a kernel that reads each index sets if one names no row.
    pub flag: Option<Flag<'a>>,
    original: TensorHandle,
}

impl<'a> Scatter<'a> {
    /// Checks the operands.
    pub fn new(
        client: &'a Client,
        addressing: Addressing,
        operands: Operands,
        update: Update,
    ) -> Result<Self, KernelError> {
        let kernel = addressing.name();
        let Operands { tensor, indices, values } = operands;
        let [tensor_axes, value_axes] = addressing.axes(tensor.shape(), indices.shape(), values.shape())?;
        let dtype = tensor.dtype;
        require_shapes(kernel, values.dtype == dtype, || {
            format!("values are {}, the tensor they update is {dtype}", values.dtype)
        })?;
        require_units(client, kernel, UNITS)?;
        supported(client, kernel, dtype, "update f64, f32, f16, bf16 or an integer type that the device has")?;
        require_indices(client, kernel, &indices)?;
        let sizes = &tensor.shape()[tensor_axes.clone()];
        let (indices, axis, indexed) = match addressing {
            Addressing::Elements { dim } => (indices, dim, Indexed::Value),
            Addressing::Rows { .. } => (indices, 0, Indexed::Position),
            Addressing::Batches => (indices, 1, Indexed::Batch),
            Addressing::Tuples => (tuple_rows(client, kernel, indices, sizes)?, 0, Indexed::Position),
        };
        let product = |shape: &[usize]| shape.iter().product::<usize>();
        // Indices of one axis are the same for every `outer` and `inner`.
        let indices = AxisView::new(client, kernel, indices, axis..axis + 1)?;
        let problem = Problem {
            outer: product(&tensor.shape()[..tensor_axes.start]),
            rows: product(&tensor.shape()[tensor_axes.clone()]),
            positions: product(&values.shape()[value_axes.clone()]),
            inner: product(&tensor.shape()[tensor_axes.end..]),
            indexed,
            update,
            dtype,
        };
        Ok(Self {
            client,
            problem,
            original: tensor.clone(),
            tensor: AxisView::new(client, kernel, tensor, tensor_axes)?,
            values: AxisView::new(client, kernel, values, value_axes)?,
            types: [dtype, accumulator(dtype), indices.dtype],
            flag: None,
            indices,
        })
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
        Form {
            update: self.problem.update,
            is_float: self.types[0].is_float(),
            one_block: self.problem.has_one_block(),
        }
    }

    /// The width of vectors along the inner axis, of elements that one index names: 4 or 1.
    pub fn vector_width(&self) -> usize {
        let inner = self.problem.inner;
        match self.problem.indexed {
            Indexed::Value => 1,
            _ => self.tensor.vector_width(inner).min(self.values.vector_width(inner)),
        }
    }

    /// Strides in vectors of `width`, and extents: those of the problem but for the outer and the inner axis, which counts
    /// vectors.
    pub fn layout(&self, outer: usize, inner: usize, width: usize) -> LayoutLaunch {
        let Problem { rows, positions, .. } = self.problem;
        let [tensor, values] = [&self.tensor, &self.values].map(|view| view.vector_strides(width as u32));
        let [outer, rows, positions, inner] = [outer, rows, positions, inner].map(|extent| extent as u32);
        LayoutLaunch::new(outer, rows, positions, inner, tensor, self.indices.strides(), values)
    }
}
